// Part `security`, other origins: a page of another port of this machine frames the console, submits its forms, and reads its answers.
import { createServer } from "node:http";
import { once } from "node:events";
import { attempt, check, finish, openContext, openProbedPage, task } from "./harness.mjs";

// Another port is the same site, so that the browser sends the cookie: SameSite does not help here.
const cookies = [{ name: "toolyard_console", value: task.session, url: task.url, httpOnly: true, sameSite: "Lax" }];
const attacker = createServer((request, response) => {
  response.writeHead(200, { "content-type": "text/html" });
  const { pathname } = new URL(request.url, "http://attacker");
  if (pathname === "/frame") return response.end(`<!doctype html><title>x</title><iframe width=800 height=600 src="${task.url}/"></iframe>`);
  if (pathname === "/submit") {
    const fields = '<input name=approval value=1><input name=decision value=allow><input name=csrf value="">';
    return response.end(`<!doctype html><title>x</title><form method=post action="${task.url}/console/runs/${task.run}/approve">${fields}</form><script>document.forms[0].submit()</script>`);
  }
  return response.end("<!doctype html><title>x</title>");
});
attacker.listen(0, "127.0.0.1");
await once(attacker, "listening");
const origin = `http://127.0.0.1:${attacker.address().port}`;
const context = await openContext(cookies);

await attempt("framing", async () => {
  const { page } = await openProbedPage(context);
  await page.goto(`${origin}/frame`);
  await page.waitForTimeout(500);
  const frame = page.frames().find((each) => each !== page.mainFrame());
  const text = await frame.evaluate(() => document.body?.innerText ?? "").catch(() => "");
  check("a page of another origin cannot frame the console", !frame.url().startsWith(task.url) || !/Toolyard/.test(text), frame.url().slice(0, 40));
  await page.close();
});

await attempt("form of another origin", async () => {
  const { page } = await openProbedPage(context);
  const answer = page.waitForResponse((response) => response.request().method() === "POST");
  await page.goto(`${origin}/submit`).catch(() => {});
  const status = (await answer).status();
  check("a form of another port is refused", status === 403 || status === 404, `status ${status}`);
  await page.close();
});

await attempt("reading from another origin", async () => {
  const { page } = await openProbedPage(context);
  await page.goto(origin);
  const read = await page.evaluate(
    async ({ url, run }) => {
      const readable = [];
      for (const path of ["/", "/console/settings", `/console/runs/${run}`, `/console/runs/${run}/events`, "/api/v1/servers"]) {
        try {
          const response = await fetch(url + path, { credentials: "include", signal: AbortSignal.timeout(3000) });
          readable.push(`${path} ${response.status}`);
        } catch {}
      }
      const source = await new Promise((resolve) => {
        const stream = new EventSource(`${url}/console/runs/${run}/events`, { withCredentials: true });
        stream.onopen = () => resolve("opened");
        stream.onerror = () => resolve("refused");
        setTimeout(() => resolve("silent"), 5000);
      });
      return { readable, source };
    },
    { url: task.url, run: task.run },
  );
  check("a page of another origin reads nothing", read.readable.length === 0 && read.source !== "opened", `${read.readable.join(", ") || "nothing"}; event stream ${read.source}`);
  await page.close();
});
attacker.close();
attacker.closeAllConnections();
await finish();
