// Part `first-run` of `just console`: follows the console from an empty home folder to a first answer.
import { api, attempt, check, finish, openContext, openProbedPage, recorded, screenshot, signIn, task, until, visit } from "./harness.mjs";

const cookies = await signIn(task.link);
const context = await openContext(cookies);
const { page, probe } = await openProbedPage(context);
const mainText = () => page.locator("main").innerText();

await attempt("first steps", async () => {
  await visit(page, "/");
  const path = new URL(page.url()).pathname;
  const steps = await page.locator("main ol.steps > li").count();
  check("the overview without servers has the first steps", steps === 4, `${steps} steps at ${path}`);
  await page.locator('main ol.steps a[href^="/console/servers"]').first().click();
  await page.waitForLoadState("load");
  const text = await mainText();
  check("the page of servers names the editor and its server", /cursor/i.test(text) && text.includes("time") && text.includes("mcp-server-time"), "");
  await screenshot(page, "first-run-1-import");
});

await attempt("import", async () => {
  const button = page.locator('main form[method="post"] button').filter({ hasText: /import/i }).first();
  await button.click();
  await page.waitForLoadState("load");
  const isKnown = await until("server is known", async () => (await api("GET", "/servers")).body.servers.some(({ name }) => name === "time"), 15_000);
  check("a press on the button imports the server", isKnown, new URL(page.url()).pathname);
  await screenshot(page, "first-run-2-imported");
});

await attempt("first call", async () => {
  await visit(page, "/console/servers");
  await until("tools are known", async () => (await api("GET", "/tools?source=time")).body.tools.length > 0, 30_000);
  await visit(page, "/console/servers");
  const link = page.locator('main a[href*="/console/tools"]').first();
  check("the page of servers leads to its tools", (await link.count()) > 0, (await link.count()) ? await link.getAttribute("href") : "");
  await screenshot(page, "first-run-3-call");
  await link.click();
  await page.waitForLoadState("load");
  if (!/\/console\/tools\/./.test(page.url())) await visit(page, "/console/tools/get_current_time?source=time");
  const isTime = page.url().includes("get_current_time");
  if (!isTime) await visit(page, "/console/tools/get_current_time?source=time");
  const form = page.locator('main form[method="post"]').first();
  await form.locator('[name*="timezone"]').first().fill("Asia/Shanghai");
  await form.locator('button[type="submit"], button:not([type])').first().click();
  await page.waitForLoadState("load");
  await until("result is shown", async () => /\d{4}-\d{2}-\d{2}T/.test(await page.locator("main").evaluate((main) => main.textContent)));
  check("a first call shows its result", true, "");
  await screenshot(page, "first-run-4-result");
});

await attempt("first question", async () => {
  await visit(page, "/");
  const link = page.locator('a[href^="/console/chat"]').first();
  check("the overview leads to the chat", (await link.count()) > 0, "");
  if (await link.count()) await link.click();
  else await visit(page, "/console/chat");
  await page.waitForLoadState("load");
  await page.locator("main textarea").first().fill(task.question);
  await page.locator('main form:has(textarea) button[type="submit"], main form:has(textarea) button:not([type])').first().click();
  // Tools of servers that are not trusted need approval.
  const allow = page.locator("main button").filter({ hasText: /^\s*(allow|approve)/i });
  await until("approval or answer", async () => (await allow.count()) > 0 || (await mainText()).includes("noon in Paris"));
  if (await allow.count()) await allow.first().click();
  await until("answer is shown", async () => (await mainText()).includes("It is noon in Paris."));
  check("a first question is answered", true, "");
  await screenshot(page, "first-run-5-answer");
});

await attempt("afterwards", async () => {
  await visit(page, "/");
  check("afterwards the overview is the overview", new URL(page.url()).pathname === "/", "");
  const { violations } = await recorded(page, probe);
  check("no errors and no violations in the console", !probe.errors.length && !violations.length, [...probe.errors, ...violations].join("; "));
  await screenshot(page, "first-run-6-overview");
});
await finish();
