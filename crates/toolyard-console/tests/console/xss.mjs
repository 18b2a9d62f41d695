// Part `security`, XSS: visits every page of a gateway whose servers and model send payloads, and looks for anything that they created.
import { api, ask, attempt, check, finish, openContext, openProbedPage, recorded, screenshot, signIn, task, until, visit } from "./harness.mjs";
import { findPages, kindOf } from "./crawl.mjs";
import { checkDetection, findHostileElements } from "./xss_detection.mjs";

/** Unescaped text of the page, to know that the payloads were rendered at all. */
const countPayloads = (texts) => {
  const parts = [document.documentElement.textContent, ...[...document.querySelectorAll("input, textarea, option")].map((field) => field.value)];
  const all = parts.join("\n");
  return texts.filter((text) => all.includes(text.split("\n")[0].slice(0, 40))).length;
};

const totals = { pages: 0, executed: [], violations: [], elements: [], foreign: [], errors: [], rendered: new Map() };

/** Looks at the page that is open. */
async function inspect(page, probe, where) {
  const { violations, executed } = await recorded(page, probe);
  const elements = await page.evaluate(findHostileElements);
  const kind = kindOf(where);
  totals.pages++;
  for (const text of executed) totals.executed.push(`${where}: ${text}`);
  for (const text of violations) totals.violations.push(`${where}: ${text}`);
  for (const text of elements) totals.elements.push(`${where}: ${text}`);
  for (const url of probe.foreign) totals.foreign.push(`${where}: ${url}`);
  for (const text of probe.errors.filter((error) => !/status of 4\d\d/.test(error))) totals.errors.push(`${where}: ${text}`);
  const count = await page.evaluate(countPayloads, task.texts);
  totals.rendered.set(kind, Math.max(totals.rendered.get(kind) ?? 0, count));
  probe.reset();
}

async function visitAndInspect(page, probe, path) {
  try {
    await page.goto(new URL(path, task.url).href, { waitUntil: "load" });
    await page.waitForTimeout(60);
    await inspect(page, probe, path);
  } catch (error) {
    totals.errors.push(`${path}: ${error.message.split("\n")[0]}`);
  }
}

const cookies = await signIn(task.link);
const context = await openContext(cookies);
const { page, probe } = await openProbedPage(context);

await attempt("the test notices payloads", () => checkDetection(context));
const runs = [];
await attempt("runs of a hostile model", async () => {
  for (let first = 0; first < task.questions.length; first += 4) {
    runs.push(...(await Promise.all(task.questions.slice(first, first + 4).map((question) => ask(question)))));
  }
  check("runs of a hostile model", runs.length > 0, runs.map(({ state }) => state).join(", "));
});

// Stored: everything that servers and the model said.
let tools = [];
for (let after; ; ) {
  const { body } = await api("GET", `/tools?limit=500${after ? `&after=${encodeURIComponent(after)}` : ""}`);
  tools.push(...body.tools);
  after = body.next;
  if (!after) break;
}
const isOurs = ({ source }) => /^(running|waiting|data\d+)$/.test(source);
tools = tools.filter(isOurs);
const toolPath = ({ name, source }) => `/console/tools/${encodeURIComponent(name)}?source=${encodeURIComponent(source)}`;
const hostileNames = tools.filter(({ name }) => /[^A-Za-z0-9_.-]/.test(name)).length;
check("hostile tools are known to the gateway", tools.length > 100, `${tools.length} tools with ${task.texts.length} payloads and ${task.dataCount} strings of the data folder; ${hostileNames} with a hostile name`);
const pages = await findPages(page, task.quick ? 2 : 4);
const visited = task.quick ? tools.filter((_, index) => index % 12 === 0) : tools;
const stored = [...new Set([...pages, ...runs.map(({ run }) => `/console/runs/${run}`), ...visited.map(toolPath)])];
for (const path of stored) await visitAndInspect(page, probe, path);
await screenshot(page, "hostile-tool");
check("stored payloads are rendered", totals.pages >= stored.length * 0.9, [...totals.rendered].filter(([, count]) => count).map(([kind, count]) => `${kind} ${count}`).join(", "));

// Reflected: payloads in paths and parameters.
const before = totals.pages;
for (const text of task.quick ? task.texts.filter((_, index) => index % 10 === 0) : task.texts) {
  const value = encodeURIComponent(text);
  const paths = [`/console/tools?query=${value}`, `/console/tools/${value}?source=${value}`, `/console/runs?state=${value}&agent=${value}`, `/console/sign-in?next=${value}&code=${value}`];
  if (!task.quick) paths.push(`/console/runs/${value}`, `/console/servers/${value}`, `/console/agents/${value}`, `/console/audit?after=${value}`, `/?lang=${value}&theme=${value}`);
  for (const path of paths) await visitAndInspect(page, probe, path);
}
check("reflected payloads are rendered", totals.pages > before, `${totals.pages - before} pages`);

// Results and errors of tools, called with the form of the page.
await attempt("results of hostile tools", async () => {
  const callable = tools.filter(({ source, name }) => source === "running" && /^run_\d+$/.test(name)).filter((_, index) => index % (task.quick ? 15 : 2) === 0);
  let shown = 0;
  for (const tool of callable) {
    await page.goto(new URL(toolPath(tool), task.url).href);
    const form = page.locator('main form[method="post"]').first();
    await form.locator('button[type="submit"], button:not([type])').first().click();
    await page.waitForLoadState("load");
    await inspect(page, probe, "/console/tools/NAME/call");
    if (await page.evaluate(countPayloads, task.texts)) shown++;
  }
  await screenshot(page, "hostile-result");
  check("results of hostile tools are rendered", shown > 0, `${shown} of ${callable.length}`);
});

// The chat page: questions, plans and answers, as they arrive.
await attempt("hostile chat", async () => {
  let answered = 0;
  for (const question of task.chatQuestions) {
    await visit(page, "/console/chat");
    const field = page.locator("main textarea").first();
    await field.fill(question);
    await page.locator('main form:has(textarea) button[type="submit"], main form:has(textarea) button:not([type])').first().click();
    const text = question.slice(question.indexOf(": ") + 2).split("\n")[0].slice(0, 30);
    const isShown = () => page.evaluate((part) => document.querySelector("main").textContent.split(part).length > 2, text);
    if (await until("answer", isShown, 15_000).catch(() => false)) answered++;
    await inspect(page, probe, "/console/chat");
  }
  await screenshot(page, "hostile-chat");
  check("hostile answers are shown in the chat", answered >= task.chatQuestions.length * 0.8, `${answered} of ${task.chatQuestions.length}`);
});

const few = (list) => (list.length ? `${list.length}: ${[...new Set(list)].slice(0, 4).join(" || ")}` : `0 on ${totals.pages} pages`);
check("payloads that executed", totals.executed.length === 0, few(totals.executed));
check("payloads that only the CSP stopped", totals.violations.length === 0, few(totals.violations));
check("elements and attributes that payloads created", totals.elements.length === 0, few(totals.elements));
check("requests to other hosts", totals.foreign.length === 0, few(totals.foreign));
check("errors in the console", totals.errors.length === 0, few(totals.errors));
await finish();
