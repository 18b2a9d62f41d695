// Part `scenario-zh` of `just console`: from a question in the chat page to the statistics of the tool.
import { api, attempt, check, finish, openContext, openProbedPage, recorded, screenshot, signIn, task, until, visit } from "./harness.mjs";

const cookies = await signIn(task.link);
const context = await openContext(cookies, { language: "zh" });
const { page, probe } = await openProbedPage(context);
// Records how the answer grows in a page that was loaded without it.
await page.addInitScript(() => {
  window.__answers = new Set();
  document.addEventListener("DOMContentLoaded", () => {
    const main = document.querySelector("main");
    const note = () => window.__answers.add((main.textContent.match(/Sheet1 共有[^\n]*/) ?? [""])[0].length);
    note();
    new MutationObserver(note).observe(main, { childList: true, subtree: true, characterData: true });
  });
});
const mainText = () => page.locator("main").innerText();

await attempt("question", async () => {
  await visit(page, "/console/chat");
  const agent = page.locator('main select[name="agent"]');
  if (await agent.count()) await agent.selectOption(task.agent);
  check("the agent is chosen in the chat page", (await agent.count()) === 1, "");
  await page.locator("main textarea").first().fill(task.question);
  await page.locator('main form:has(textarea) button[type="submit"], main form:has(textarea) button:not([type])').first().click();
  await until("the question is shown", async () => (await mainText()).includes("Sheet1"));
});

const ALLOW = page.locator("main button").filter({ hasText: /^\s*(允许|批准|同意)/ });
await attempt("approval", async () => {
  await until("the button to allow is in the chat page", async () => (await ALLOW.count()) > 0);
  await page.waitForTimeout(400);
  const nodes = await page.locator("svg [data-step]").evaluateAll((all) => all.map((node) => `${node.dataset.step} ${node.dataset.state}`));
  check("the plan is drawn in the chat, and a step needs approval", nodes.length === 3 && nodes.includes("write needs_approval") && nodes.includes("read done"), nodes.join(", "));
  const text = await mainText();
  check("the approval says tool and arguments", text.includes("write_data_to_excel") && text.includes("3450"), "");
  await screenshot(page, "scenario-zh-approval");
  // A refresh must not put another call under the pointer. Becoming visible refreshes the page, here in another language.
  const refreshIn = (language) => page.evaluate((language) => {
    const live = document.querySelector("[data-live]");
    live.dataset.fragment = `${live.dataset.fragment.split("&lang=")[0]}&lang=${language}`;
    document.dispatchEvent(new Event("visibilitychange"));
  }, language);
  await page.locator("main .ask").first().hover();
  await refreshIn("en");
  await page.waitForTimeout(800);
  check("an approval stays in place while the pointer is on it", (await ALLOW.count()) > 0, "");
  await page.mouse.move(0, 0);
  await until("the approval is rendered again once the pointer is away", async () => (await ALLOW.count()) === 0);
  await refreshIn("zh");
  await until("the button to allow is in Chinese again", async () => (await ALLOW.count()) > 0);
  await ALLOW.first().click();
});

await attempt("answer", async () => {
  const part = "销售额合计 3450";
  await until("the answer is shown", async () => (await mainText()).includes(part));
  await page.waitForTimeout(600);
  const text = await mainText();
  check("the whole answer is shown, once", text.split(part).length === 2 && text.includes("已写入 B5 单元格"), `${text.split(part).length - 1} times`);
  const states = await page.locator("svg [data-step]").evaluateAll((all) => all.map((node) => node.dataset.state));
  check("all steps are shown as done", states.length === 3 && states.every((state) => state === "done"), states.join(", "));
  check("nothing waits any more", (await ALLOW.count()) === 0, `${await ALLOW.count()} buttons`);
  const lengths = await page.evaluate(() => [...window.__answers]);
  check("the answer appears word by word, without a reload", lengths[0] === 0 && lengths.length > 2, `lengths: ${lengths.join(", ")}`);
  await screenshot(page, "scenario-zh-answer");
});

await attempt("history", async () => {
  await page.reload();
  await page.waitForTimeout(500);
  const isKept = (await mainText()).includes("销售额合计 3450");
  await visit(page, "/console/chat");
  const isListed = (await page.locator("body").innerText()).includes("sales.xlsx");
  check("the conversation is there after a reload, and in the history", isKept && isListed, `after a reload: ${isKept}, in the list: ${isListed}`);
});

await attempt("statistics", async () => {
  const { body } = await api("GET", "/tools/write_data_to_excel?source=excel");
  await visit(page, "/console/tools/write_data_to_excel?source=excel");
  const text = await mainText();
  check("the page of the tool shows its statistics", body.statistics.weighted_calls > 0 && /100\s*%/.test(text), `${body.statistics.weighted_calls} calls; ${(text.match(/.*100\s*%.*/) ?? ["no 100 %"])[0]}`);
  await screenshot(page, "scenario-zh-tool");
});

const { violations } = await recorded(page, probe);
check("no errors and no violations in the console", !probe.errors.length && !violations.length, [...probe.errors, ...violations].join("; "));
await finish();
