// Part `no-javascript` of `just console`: reading, calling a tool and deciding approvals with JavaScript off.
import { api, ask, attempt, check, finish, openContext, screenshot, signIn, task, until } from "./harness.mjs";
import { findPages, nameOf } from "./crawl.mjs";

const cookies = await signIn(task.link);
const context = await openContext(cookies, { javaScript: false });
const page = await context.newPage();
const open = (path) => page.goto(new URL(path, task.url).href);
const mainText = () => page.locator("main").innerText();

let answered, waiting, denied;
await attempt("runs", async () => {
  answered = await ask(task.questions.sum);
  waiting = await ask(task.questions.write);
  denied = await ask(task.questions.secondWrite);
  check("runs to look at", answered.state === "answered" && waiting.state === "suspended" && denied.state === "suspended", "");
});

await attempt("pages", async () => {
  const problems = [];
  const paths = await findPages(page, 1);
  for (const path of paths) {
    const response = await open(path);
    const title = await page.title();
    const heading = await page.locator("h1").first().innerText().catch(() => "");
    const text = await mainText().catch(() => "");
    if (response.status() !== 200) problems.push(`${nameOf(path)}: status ${response.status()}`);
    if (!title.trim() || !heading.trim()) problems.push(`${nameOf(path)}: no title or heading`);
    if (text.length < 60) problems.push(`${nameOf(path)}: only ${text.length} characters`);
    if (/loading…|loading\.\.\.|加载中/i.test(text)) problems.push(`${nameOf(path)}: says that it is loading`);
    await screenshot(page, `no-javascript-${nameOf(path)}`);
  }
  check("every page has a title, a heading and a text", problems.length === 0, problems.join("; ") || `${paths.length} pages`);
});

await attempt("tables", async () => {
  const rows = {};
  for (const [path, selector] of [["/console/tools", "a[href*='/console/tools/']"], ["/console/servers", "main"], ["/console/runs", "a[href*='/console/runs/']"], ["/console/audit", "main table tbody tr, main ol > li"]]) {
    await open(path);
    rows[path] = await page.locator(selector).count();
  }
  await open("/console/servers");
  const servers = await mainText();
  const named = ["excel", "everything", "time"].filter((name) => servers.includes(name)).length;
  check("tables of tools, servers, runs and audit records have rows", rows["/console/tools"] > 5 && rows["/console/runs"] >= 3 && rows["/console/audit"] > 2 && named === 3, JSON.stringify({ ...rows, "/console/servers": named }));
});

await attempt("run", async () => {
  await open(`/console/runs/${answered.run}`);
  const nodes = await page.locator("svg [data-step]").evaluateAll((all) => all.map((node) => `${node.dataset.step} ${node.dataset.state}`));
  check("the plan graph is drawn", nodes.length === 3 && nodes.every((node) => node.endsWith(" done")), nodes.join(", "));
  // Details of a step are in closed <details>, which need no script to open.
  const text = await page.locator("main").evaluate((main) => main.textContent);
  const parts = ["2+3", "Asia/Tokyo", "The sum is 5", "calculate", "get_current_time"];
  const missing = parts.filter((part) => !text.includes(part));
  check("a run shows its steps' inputs, outputs and the answer", missing.length === 0, missing.length ? `missing: ${missing.join(", ")}` : "");
});

await attempt("search", async () => {
  await open("/console/tools");
  const search = page.locator("main form input[type='search'], main form input[name='query']").first();
  await search.fill("read a workbook");
  await search.press("Enter");
  await page.waitForLoadState("load");
  check("the search box works", (await mainText()).includes("read_data_from_excel"), page.url().slice(task.url.length));
});

await attempt("tool form", async () => {
  await open("/console/tools/calculate");
  const form = page.locator('main form[method="post"]').first();
  await form.locator('[name*="expression"]').first().fill("6*7");
  await form.locator('button[type="submit"], button:not([type])').first().click();
  await page.waitForLoadState("load");
  check("a tool is called with the form", /\b42\b/.test(await mainText()), page.url().slice(task.url.length));
  await screenshot(page, "no-javascript-tool-result");
});

/** Presses the button of the approval of a run whose text matches. */
async function decide(run, pattern) {
  await open("/console/approvals");
  const forms = page.locator(`main form[method="post"]`);
  const buttons = page.locator(`main form[method="post"] button`);
  const { approval } = (await api("GET", "/approvals")).body.approvals.find((each) => each.run === run);
  const own = page.locator(`main form[method="post"][action*="/${approval}"] button, main form[method="post"]:has(input[name="approval"][value="${approval}"]) button`).filter({ hasText: pattern });
  if (!(await own.count())) throw new Error(`no button ${pattern} for approval ${approval}; ${await forms.count()} forms with ${(await buttons.allInnerTexts()).join(", ")}`);
  await own.first().click();
  await page.waitForLoadState("load");
}

await attempt("approvals by form", async () => {
  await decide(waiting.run, /^\s*(allow|approve)/i);
  const done = await until("run goes on", async () => (await api("GET", `/runs/${waiting.run}`)).body.state === "answered");
  check("a call is approved with a form", done, "");
  await decide(denied.run, /deny|refuse|reject/i);
  const ended = await until("run goes on", async () => !/running|suspended/.test((await api("GET", `/runs/${denied.run}`)).body.state));
  check("a call is denied with a form", ended, (await api("GET", `/runs/${denied.run}`)).body.state);
});

await attempt("chat", async () => {
  await open("/console/chat");
  await page.locator("main textarea").first().fill("What is 2 + 3, and what time is it in Tokyo? Ask again.");
  await page.locator('main form:has(textarea) button[type="submit"], main form:has(textarea) button:not([type])').first().click();
  await page.waitForLoadState("load");
  const text = await mainText();
  check("a question is asked with the form, and the page says where its run is", text.includes("What is 2 + 3") && (await page.locator("main a[href*='/console/runs/']").count()) > 0, page.url().slice(task.url.length));
});
await finish();
