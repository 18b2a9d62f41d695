// Part `security`, secrets: signs in with the token in the form, visits all pages, and reports every URL and every page that contains a secret.
import { attempt, check, finish, openContext, openProbedPage, signIn, task } from "./harness.mjs";
import { findPages } from "./crawl.mjs";

const requests = [];
const leaks = [];

async function visitAll(context, name) {
  const { page, probe } = await openProbedPage(context);
  for (const path of await findPages(page, 2)) {
    await page.goto(new URL(path, task.url).href);
    const html = await page.content();
    for (const [what, secret] of [["token", task.token], ["session", task.session]]) {
      if (secret && html.includes(secret)) leaks.push(`${name} ${path}: ${what}`);
    }
    const storage = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie);
    if (storage.includes(task.token) || storage.includes("toolyard_console")) leaks.push(`${name} ${path}: readable by scripts`);
  }
  requests.push(...probe.requests);
}

await attempt("the operator's pages", async () => {
  const cookies = [{ name: "toolyard_console", value: task.session, url: task.url, httpOnly: true, sameSite: "Lax" }];
  await visitAll(await openContext(cookies), "operator");
});

await attempt("sign-in with the token in the page", async () => {
  const context = await openContext([]);
  const { page, probe } = await openProbedPage(context);
  await page.goto(new URL("/console/sign-in", task.url).href);
  const field = page.locator('input[name="token"]');
  check("the field of the token is a password field", (await field.getAttribute("type")) === "password", "");
  await field.fill(task.token);
  await field.press("Enter");
  await page.waitForLoadState("load");
  check("sign-in with the token in the page", new URL(page.url()).pathname !== "/console/sign-in", page.url().slice(task.url.length));
  requests.push(...probe.requests);
  await visitAll(context, "caller");
});
check("no secret in pages or in what scripts can read", leaks.length === 0, leaks.slice(0, 5).join("; "));
process.stdout.write(JSON.stringify({ requests }) + "\n");
await finish();
