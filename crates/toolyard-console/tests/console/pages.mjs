// Part `pages` of `just console`: every page in both languages, both themes and two widths.
import { pathToFileURL } from "node:url";
import { ask, attempt, check, finish, openContext, openProbedPage, recorded, screenshot, signIn, task, visit } from "./harness.mjs";
import { findPages, nameOf, SECTIONS } from "./crawl.mjs";

const { AxeBuilder } = await import(pathToFileURL(task.axe).href);
const MAX_PAGE_BYTES = 100_000;
const NARROW_WIDTH = 390;
const NAVIGATION_LINKS = 9;

const variants = [];
for (const width of [1280, NARROW_WIDTH]) {
  for (const language of ["en", "zh"]) {
    for (const theme of ["light", "dark"]) variants.push({ width, language, theme });
  }
}
// On a phone in English, whose words are longer than the Chinese ones.
const QUICK = [
  { width: 1280, language: "zh", theme: "light" },
  { width: NARROW_WIDTH, language: "en", theme: "dark" },
];

await attempt("runs of a real agent", async () => {
  const { questions } = task;
  const answered = await ask(questions.sum);
  const failing = await ask(questions.fail);
  const suspended = await ask(questions.write);
  check("runs of a real agent", answered.state === "answered" && suspended.state === "suspended", [answered, failing, suspended].map(({ state }) => state).join(", "));
  task.runs = [answered, failing, suspended].map(({ run }) => run);
});

const cookies = await signIn(task.link);
check("sign-in by the one-time link", cookies.length === 1, "");
const crawler = await openContext(cookies);
const paths = await findPages(await crawler.newPage(), 1);
for (const run of task.runs ?? []) paths.push(`/console/runs/${run}`);
for (const tool of ["write_data_to_excel?source=excel", "get_current_time?source=time", "calculate"]) paths.push(`/console/tools/${tool}`);
paths.push("/console/tools?query=excel", "/console/tools?query=no+such+thing+anywhere", "/console/no-such-page");
const distinct = [...new Set(paths)];
await crawler.close();
const missing = Object.values(SECTIONS).filter((path) => !distinct.includes(path));
check("every section is found", missing.length === 0, `${distinct.length} pages${missing.length ? `; missing: ${missing}` : ""}`);

const results = new Map(distinct.map((path) => [path, { problems: [], bytes: 0, axe: 0, visits: 0 }]));

/** The same page may be visited as several kinds of run or tool. */
function fileName(path) {
  const base = nameOf(path);
  const same = distinct.filter((other) => nameOf(other) === base);
  return same.length > 1 ? `${base}-${same.indexOf(path) + 1}` : base;
}

/** In the page: what should not be, as texts. */
function inspect({ language, width }) {
  const problems = [];
  const root = document.documentElement;
  if (!root.lang.toLowerCase().startsWith(language)) problems.push(`lang="${root.lang}"`);
  if (!document.title.trim()) problems.push("no title");
  if (document.querySelectorAll("h1").length !== 1) problems.push(`${document.querySelectorAll("h1").length} h1`);
  if (!document.querySelector("main")) problems.push("no main");
  if (document.querySelector("[style]")) problems.push(`style attribute on ${document.querySelector("[style]").tagName}`);
  if (document.querySelector("script:not([src])")) problems.push("inline script");
  if (language === "zh") {
    const labels = [...document.querySelectorAll("nav a")].map((link) => link.textContent.trim()).filter(Boolean);
    const english = labels.filter((label) => !/[\u4e00-\u9fff]/.test(label) && !/^(English|Toolyard|EN)/.test(label));
    if (english.length) problems.push(`navigation in English: ${english.slice(0, 4).join(", ")}`);
  }
  if (root.scrollWidth > width + 1) problems.push(`scrolls sideways: ${root.scrollWidth} px of ${width}`);
  const cut = [...document.querySelectorAll(".sidebar a, .sidebar button")].find((control) => control.getBoundingClientRect().right > width);
  if (cut) problems.push(`beyond the edge of the screen: ${cut.textContent.trim()}`);
  const [composer, earlier] = [".composer", ".chat-earlier"].map((part) => document.querySelector(part)?.getBoundingClientRect().top);
  if (width <= 980 && composer > earlier) problems.push("earlier conversations are above the question");
  const squeezed = [...document.querySelectorAll("main td, main dd, main li")].find((cell) => {
    const { width: cellWidth, height } = cell.getBoundingClientRect();
    return cellWidth > 0 && cellWidth < 80 && height > 160;
  });
  if (squeezed) problems.push(`a cell of ${Math.round(squeezed.getBoundingClientRect().width)} px: ${squeezed.textContent.trim().slice(0, 30)}`);
  const small = [...document.querySelectorAll("main *")].find((element) => {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    return hasText && element.getClientRects().length && parseFloat(getComputedStyle(element).fontSize) < 11;
  });
  if (small) problems.push(`text below 11 px: ${small.tagName}.${small.getAttribute("class")}`);
  return problems;
}

async function visitVariant(variant) {
  const { width, language, theme } = variant;
  const context = await openContext(cookies, variant);
  const { page, probe } = await openProbedPage(context);
  for (const path of distinct) {
    const result = results.get(path);
    const problem = (text) => result.problems.push(`${language} ${theme} ${width}: ${text}`);
    probe.reset();
    try {
      const response = await visit(page, path);
      const expected = path === "/console/no-such-page" ? 404 : 200;
      if (response.status() !== expected) problem(`status ${response.status()}`);
      (await page.evaluate(inspect, variant)).forEach(problem);
      await screenshot(page, `${fileName(path)}-${language}-${theme}-${width}`);
      const { violations: axe } = await new AxeBuilder({ page }).analyze();
      for (const { id, impact, nodes } of axe) {
        if (impact === "serious" || impact === "critical") problem(`axe ${impact} ${id}: ${nodes[0].target.join(" ")} (${nodes.length})`);
        else result.axe++;
      }
      // Last: what a page does a moment after it was drawn counts, too.
      const { violations } = await recorded(page, probe);
      violations.forEach((text) => problem(`CSP: ${text}`));
      const errors = probe.errors.filter((text) => !(expected === 404 && text.includes("404")));
      errors.forEach((text) => problem(`console: ${text}`));
      probe.foreign.forEach((url) => problem(`request to ${url}`));
      if (probe.bytes > MAX_PAGE_BYTES) problem(`${probe.bytes} bytes`);
      result.bytes = Math.max(result.bytes, probe.bytes);
      result.visits++;
    } catch (error) {
      problem(String(error.message).split("\n")[0]);
    }
  }
  await context.close();
}

if (task.quick) await Promise.all(QUICK.map(visitVariant));
else for (const variant of variants) await visitVariant(variant);
for (const [path, { problems, bytes, axe, visits }] of results) {
  const shown = path.replace(/01[0-9A-Z]{24}/, "RUN");
  const detail = `${visits} variants, ${(bytes / 1000).toFixed(1)} kB${axe ? `, ${axe} minor axe findings` : ""}`;
  check(shown, problems.length === 0, problems.length ? `${problems.length} problems: ${[...new Set(problems)].slice(0, 6).join("; ")}` : detail);
}

/** Presses Tab until the focus is back at the start; returns what was focused. */
async function tabThrough(page, path) {
  await visit(page, path);
  // A page may focus an element when it is loaded, such as the question of a new conversation.
  const first = await page.evaluate(() => {
    const active = document.activeElement;
    if (!active || active === document.body) return null;
    return { isNew: true, ring: true, tag: active.tagName.toLowerCase(), type: active.type ?? "", text: "", href: "", inNavigation: false, inMain: Boolean(active.closest("main")), visible: true };
  });
  const focused = first ? [first] : [];
  for (let presses = 0; presses < 150; presses++) {
    await page.keyboard.press("Tab");
    const element = await page.evaluate(() => {
      const active = document.activeElement;
      if (!active || active === document.body) return null;
      const style = getComputedStyle(active);
      const ring = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
      const isNew = !active.hasAttribute("data-tabbed");
      active.setAttribute("data-tabbed", "");
      return {
        isNew, ring, tag: active.tagName.toLowerCase(), type: active.type ?? "", text: (active.textContent || active.getAttribute("aria-label") || "").trim().slice(0, 40),
        href: active.getAttribute("href") ?? "", inNavigation: Boolean(active.closest("nav")), inMain: Boolean(active.closest("main")), visible: active.getBoundingClientRect().width > 0,
      };
    });
    if (!element || !element.isNew) break;
    focused.push(element);
  }
  return focused;
}

await attempt("keyboard", async () => {
  const context = await openContext(cookies);
  const { page } = await openProbedPage(context);
  const overview = await tabThrough(page, "/");
  check("Tab: the first stop is the skip link", overview[0]?.href.startsWith("#"), `${overview[0]?.tag} ${overview[0]?.text}`);
  const links = overview.filter(({ inNavigation, tag }) => inNavigation && tag === "a").length;
  check(`Tab: reaches the ${NAVIGATION_LINKS} links of the navigation`, links >= NAVIGATION_LINKS, `${links} links, ${overview.length} stops`);
  const tools = await tabThrough(page, "/console/tools");
  check("Tab: reaches the search box", tools.some(({ tag, type, inMain }) => inMain && tag === "input" && /search|text/.test(type)), "");
  const form = await tabThrough(page, "/console/tools/write_data_to_excel?source=excel");
  const fields = form.filter(({ tag, inMain }) => inMain && /input|textarea|select/.test(tag));
  check("Tab: reaches the fields and the button of a tool's form", fields.length >= 3 && form.some(({ tag, inMain }) => inMain && tag === "button"), `${fields.length} fields`);
  const chat = await tabThrough(page, "/console/chat");
  check("Tab: reaches the question of the chat", chat.some(({ tag, inMain }) => inMain && /textarea|input/.test(tag)), "");
  const all = [...overview, ...tools, ...form, ...chat];
  const unmarked = all.filter(({ ring }) => !ring);
  check("Tab: every focused element is visibly marked", unmarked.length === 0, `${unmarked.length} of ${all.length} are not${unmarked.length ? `: ${unmarked[0].tag} ${unmarked[0].text}` : ""}`);
  await page.keyboard.press("Home");
  await visit(page, "/");
  await page.keyboard.press("Tab");
  await screenshot(page, "keyboard-skip-link");
  await page.keyboard.press("Enter");
  const target = await page.evaluate(() => location.hash && Boolean(document.querySelector(location.hash)?.closest("main")));
  check("Enter on the skip link leads to the main part", target, "");
  await context.close();
});

await attempt("choice of language and theme", async () => {
  const context = await openContext(cookies, { language: "en" });
  const { page } = await openProbedPage(context);
  await visit(page, "/console/tools?query=excel");
  const language = page.locator('a[href*="lang=zh"], button[name="lang"][value="zh"]').first();
  await language.click();
  await visit(page, "/console/servers");
  check("the language is chosen in the page and remembered", (await page.getAttribute("html", "lang")).startsWith("zh"), await page.title());
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await background();
  await page.locator('a[href*="theme=dark"], button[name="theme"][value="dark"]').first().click();
  await visit(page, "/console/servers");
  check("the theme is chosen in the page and remembered", (await background()) !== before, `${before} → ${await background()}`);
  await context.close();
});

await attempt("sign-in page", async () => {
  const context = await openContext([], { language: "zh", theme: "dark" });
  const { page, probe } = await openProbedPage(context);
  const response = await visit(page, "/console/runs");
  const { violations: axe } = await new AxeBuilder({ page }).analyze();
  const { violations } = await recorded(page, probe);
  const serious = axe.filter(({ impact }) => /serious|critical/.test(impact));
  const isSignIn = new URL(page.url()).pathname === "/console/sign-in";
  await screenshot(page, "sign-in-zh-dark");
  check("a visitor without a session sees the sign-in page", isSignIn && response.status() < 500 && !violations.length && !probe.errors.length && !serious.length, [page.url().slice(task.url.length), ...violations, ...probe.errors, ...serious.map(({ id }) => id)].join("; "));
  await context.close();
});
await finish();
