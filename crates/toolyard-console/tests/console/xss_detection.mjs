// Part `security`, XSS: finds what payloads created in a page, and shows that it would be found.
import { createServer } from "node:http";
import { once } from "node:events";
import { check, openProbedPage, recorded, task } from "./harness.mjs";

/** In the page: elements and attributes that no template of ours contains. */
export function findHostileElements() {
  const found = [];
  const note = (what, element) => found.push(`${what}: ${element.outerHTML.slice(0, 120)}`);
  document.querySelectorAll("[data-xss]").forEach((element) => note("created by a payload", element));
  document.querySelectorAll("script").forEach((element) => {
    if (!new URL(element.src || "x:", location.href).pathname.startsWith("/console/assets/")) note("script", element);
  });
  const unexpected = "iframe, object, embed, frame, frameset, base, meta[http-equiv], style, audio, video, marquee, math, template, image, foreignObject, animate, set";
  document.querySelectorAll(unexpected).forEach((element) => note("element", element));
  document.querySelectorAll("img").forEach((element) => {
    if (!/^(\/console\/assets\/|data:image\/)/.test(element.getAttribute("src") ?? "")) note("image", element);
  });
  for (const element of document.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      if (name.startsWith("on")) note(`attribute ${name}`, element);
      if (name === "style" || name === "srcdoc") note(`attribute ${name}`, element);
      if (["href", "src", "action", "formaction", "xlink:href"].includes(name)) {
        const url = new URL(value, location.href);
        const isImage = value.startsWith("data:image/") && (name === "src" || element.matches('head > link[rel="icon"]'));
        if (url.origin !== location.origin && !isImage) note(`${name} to ${url.protocol}`, element);
      }
    }
  }
  return found;
}

/** Renders each payload without escaping, with and without a policy: scripts execute, or only the policy stops them. */
export async function checkDetection(context) {
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://vulnerable");
    const headers = { "content-type": "text/html; charset=utf-8" };
    if (url.searchParams.has("policy")) headers["content-security-policy"] = "default-src 'none'; script-src 'self'";
    response.writeHead(200, headers).end(`<!doctype html><title>x</title><main>${task.texts[url.searchParams.get("text")] ?? ""}</main>`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const found = { executed: 0, elements: 0, violations: 0 };
  const { page, probe } = await openProbedPage(context);
  const numbers = task.texts.keys().filter((number) => !task.quick || number % 8 === 0);
  let count = 0;
  for (const number of numbers) {
    count++;
    for (const policy of ["", "&policy"]) {
      probe.reset();
      // Some payloads lead elsewhere.
      await page.goto(`http://127.0.0.1:${server.address().port}/?text=${number}${policy}`, { timeout: 3000, waitUntil: "domcontentloaded" }).catch(() => {});
      await page.waitForTimeout(40);
      const { executed, violations } = await recorded(page, probe).catch(() => ({ executed: ["left the page"], violations: [] }));
      if (policy && violations.length) found.violations++;
      if (!policy && executed.length) found.executed++;
      if (!policy && (await page.evaluate(findHostileElements).catch(() => [])).length) found.elements++;
    }
  }
  await page.close();
  server.close();
  server.closeAllConnections();
  const isOk = found.executed >= count / 4 && found.elements >= count / 2 && found.violations >= count / 4;
  check("the test notices payloads in a page that does not escape them", isOk, `${count} payloads: ${found.executed} execute, ${found.elements} create elements, ${found.violations} are stopped by a policy`);
}
