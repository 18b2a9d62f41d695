// Finds all pages of the console by following links, and gives each a name by its kind.
import { task } from "./harness.mjs";

/** Pages that must exist, whether or not something links to them. */
export const SECTIONS = {
  overview: "/",
  chat: "/console/chat",
  tools: "/console/tools",
  servers: "/console/servers",
  runs: "/console/runs",
  approvals: "/console/approvals",
  agents: "/console/agents",
  audit: "/console/audit",
  settings: "/console/settings",
};

/** The kind of a page: its path with names and ids replaced, and the names of its parameters. */
export function kindOf(href) {
  const url = new URL(href, task.url);
  const segments = url.pathname.split("/").filter(Boolean);
  if (segments[0] === "console" && segments.length > 2) segments[2] = /^(new|unknown|import)$/.test(segments[2]) ? segments[2] : "NAME";
  const parameters = [...url.searchParams.keys()].filter((name) => name !== "source").sort();
  return `/${segments.join("/")}${parameters.length ? `?${parameters.join("&")}` : ""}`;
}

function isFollowed(url) {
  if (url.origin !== new URL(task.url).origin) return false;
  if (url.pathname !== "/" && !url.pathname.startsWith("/console")) return false;
  if (/sign-(in|out)|\/assets\/|\/events$|\/fragment/.test(url.pathname)) return false;
  return !url.searchParams.has("lang") && !url.searchParams.has("theme");
}

/** Paths of all pages that can be reached, at most `perKind` of each kind. */
export async function findPages(page, perKind = 1, start = Object.values(SECTIONS)) {
  const queue = [...start];
  const seen = new Set();
  const kinds = new Map();
  const found = [];
  while (queue.length) {
    const path = queue.shift();
    if (seen.has(path)) continue;
    seen.add(path);
    const kind = kindOf(path);
    const count = kinds.get(kind) ?? 0;
    if (count >= perKind) continue;
    kinds.set(kind, count + 1);
    found.push(path);
    const response = await page.goto(new URL(path, task.url).href, { waitUntil: "domcontentloaded" }).catch(() => null);
    if (!response?.headers()["content-type"]?.startsWith("text/html")) continue;
    const links = await page.$$eval("a[href]", (anchors) => anchors.map((anchor) => anchor.href).filter((href) => typeof href === "string"));
    for (const link of links) {
      const url = new URL(link, task.url);
      url.hash = "";
      if (isFollowed(url)) queue.push(url.pathname + url.search);
    }
  }
  return found;
}

/** A name for files and rows: `runs/NAME` → `runs-name`. */
export function nameOf(path) {
  const kind = kindOf(path);
  if (kind === "/") return "overview";
  return kind.replace("/console/", "").replace(/[/?&]+/g, "-").replace(/NAME/g, "detail");
}
