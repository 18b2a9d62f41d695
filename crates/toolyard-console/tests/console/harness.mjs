// What all browser parts of `just console` share: the task, the report, the browser, sign-in and probes of a page.
import { readFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The JSON object that the Python side wrote; see `run_in_browser` in browser.py. */
export const task = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = await import(pathToFileURL(task.playwright).href);

/** Adds a row to the table of checks, which the Python side prints. */
export function check(name, isOk, detail = "") {
  process.stdout.write(JSON.stringify({ check: name, ok: Boolean(isOk), detail: String(detail) }) + "\n");
}

/** Runs a check that may throw; a thrown error is a failed check. */
export async function attempt(name, run) {
  try {
    await run();
  } catch (error) {
    check(name, false, String(error.message ?? error).split("\n").slice(0, 3).join(" | "));
  }
}

export const browser = await chromium.launch({
  executablePath: task.chromium,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--font-render-hinting=none"],
});

/** Signs in with a one-time link and returns the cookies of the session. */
export async function signIn(link) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const response = await page.goto(link);
  if (response.status() !== 200) throw new Error(`sign-in: status ${response.status()} at ${new URL(page.url()).pathname}`);
  const cookies = await context.cookies();
  await context.close();
  if (!cookies.some(({ name }) => name === "toolyard_console")) throw new Error("sign-in set no session cookie");
  return cookies.filter(({ name }) => name === "toolyard_console");
}

/** A context with the session, and the way a person looks at the console. */
export async function openContext(cookies, { language = "en", theme = "light", width = 1280, javaScript = true } = {}) {
  const context = await browser.newContext({
    locale: language === "zh" ? "zh-CN" : "en-US",
    colorScheme: theme,
    viewport: { width, height: width < 500 ? 844 : 900 },
    javaScriptEnabled: javaScript,
    reducedMotion: "reduce",
  });
  await context.addCookies(cookies);
  context.setDefaultTimeout(20_000);
  return context;
}

/** Runs before the scripts of a page: records violations of the policy, and everything that a payload could call. */
function recordInPage() {
  window.__violations = [];
  window.__executed = [];
  document.addEventListener("securitypolicyviolation", (event) => {
    window.__violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile ?? ""} ${event.sample ?? ""}`.slice(0, 200));
  });
  for (const name of ["alert", "confirm", "prompt", "print"]) {
    window[name] = (...values) => window.__executed.push(`${name}(${values.join()})`);
  }
}

/** A page with probes: errors of the console, violations, dialogs, requests to other hosts, transferred bytes. */
export async function openProbedPage(context) {
  const page = await context.newPage();
  const probe = { errors: [], dialogs: [], foreign: [], failed: [], bytes: 0, requests: [] };
  const host = new URL(task.url).host;
  await page.addInitScript(recordInPage);
  page.on("console", (message) => message.type() === "error" && probe.errors.push(message.text().slice(0, 300)));
  page.on("pageerror", (error) => probe.errors.push(`uncaught: ${error.message}`.slice(0, 300)));
  page.on("dialog", (dialog) => {
    probe.dialogs.push(`${dialog.type()}: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    probe.requests.push({ method: request.method(), url: request.url(), referer: request.headers().referer });
    if (/^(https?|wss?):$/.test(url.protocol) && url.host !== host) probe.foreign.push(request.url());
  });
  page.on("response", (response) => response.status() >= 400 && probe.failed.push(`${response.status()} ${response.url()}`));
  const devtools = await context.newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  devtools.on("Network.loadingFinished", ({ encodedDataLength }) => (probe.bytes += encodedDataLength));
  probe.reset = () => Object.assign(probe, { errors: [], dialogs: [], foreign: [], failed: [], bytes: 0, requests: [] });
  return { page, probe };
}

/** Violations and executed payloads that the page recorded, and those that opened a dialog. */
export async function recorded(page, probe) {
  const { violations, executed } = await page.evaluate(() => ({ violations: window.__violations ?? [], executed: window.__executed ?? [] }));
  return { violations, executed: [...executed, ...probe.dialogs] };
}

/** In the page: waits until fonts are there and scripts that ran at the load are drawn, or for the time limit, should nothing be drawn. */
async function waitUntilDrawn(limitMs) {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const drawn = document.fonts.ready.then(frame).then(frame);
  await Promise.race([drawn, new Promise((resolve) => setTimeout(resolve, limitMs))]);
}

/** Opens a path and waits until the page is at rest; pages with an event stream are never idle, so not for the network. */
export async function visit(page, path) {
  const response = await page.goto(new URL(path, task.url).href, { waitUntil: "load" });
  await page.evaluate(waitUntilDrawn, task.quick ? 120 : 250);
  return response;
}

/** A request with the token, as a client of the HTTP API sends it. */
export async function api(method, path, body, token = task.token) {
  const headers = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(new URL(`/api/v1${path}`, task.url), { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : text };
}

/** Starts a run. While the store is slow, the gateway starts none and says so; then this asks again, as any client should. */
async function startRun(request) {
  for (let attempt = 1; ; attempt++) {
    const { status, body } = await api("POST", "/runs", request);
    if (status !== 503 || body.error?.code !== "store_unavailable" || attempt === 5) return { status, body };
  }
}

/** Starts a run and waits until it ends or is suspended. */
export async function ask(question, fields = {}) {
  const { status, body } = await startRun({ question, ...fields });
  if (status !== 202) throw new Error(`POST /runs: status ${status}: ${JSON.stringify(body)}`);
  for (let tries = 0; tries < 600; tries++) {
    const details = (await api("GET", `/runs/${body.run}`)).body;
    if (details.state !== "running") return details;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`run ${body.run} is still running after 60 s`);
}

/** Waits until a function returns something true. */
export async function until(what, run, timeoutMs = 20_000) {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const value = await run();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`${what}: not after ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Keeps a screenshot of the whole page, if the script was asked for them. */
export async function screenshot(page, name) {
  if (!task.screenshots) return;
  mkdirSync(task.screenshots, { recursive: true });
  await page.screenshot({ path: join(task.screenshots, `${name}.png`), fullPage: true, animations: "disabled" }).catch(() => {});
}

export async function finish() {
  await browser.close();
  process.exit(0);
}
