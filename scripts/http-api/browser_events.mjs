// The part of scripts/http-api/browser-events that drives the browser: browser_events.mjs TASK, a JSON object (see there).
import { createReadStream } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { once } from "node:events";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const task = JSON.parse(process.argv[2]);
const { chromium } = await import(pathToFileURL(task.playwright).href);
const PAGE_TIMEOUT_MS = 60_000;
/** A blocked request would wait for as long as the streams are open. */
const MAX_FURTHER_FETCH_MS = 2_000;

// Serves an empty page and the modules of the client, and passes /api on to the gateway with the token.
const proxy = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://proxy");
  if (pathname === "/") return response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>events</title>");
  if (pathname.startsWith("/client/")) {
    response.writeHead(200, { "content-type": "text/javascript" });
    return createReadStream(join(task.client, basename(pathname))).pipe(response);
  }
  const { origin, host, connection, ...headers } = request.headers;
  headers.authorization = `Bearer ${task.withToken.token}`;
  const forwarded = httpRequest(task.withToken.url + request.url, { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    answer.pipe(response);
  });
  forwarded.on("error", () => response.destroy());
  response.on("close", () => forwarded.destroy());
  request.pipe(forwarded);
});
proxy.listen(0, "127.0.0.1");
await once(proxy, "listening");
const proxyUrl = `http://127.0.0.1:${proxy.address().port}`;

/** In the page: opens all streams at once, with a ticket for each if there is a token, and lets the browser reconnect, until it stops by itself. */
async function readWithEventSource({ baseUrl, token, runs }) {
  const started = performance.now();
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const queryOf = async (run) => {
    if (token === undefined) return "";
    const created = await fetch(`${baseUrl}/api/v1/runs/${run}/stream-ticket`, { method: "POST", headers });
    return `?ticket=${(await created.json()).ticket}`;
  };
  const queries = await Promise.all(runs.map(queryOf));
  const streams = runs.map(
    (run, index) =>
      new Promise((resolve) => {
        const source = new EventSource(`${baseUrl}/api/v1/runs/${run}/events${queries[index]}`);
        const result = { run, opened: 0, created: 0, ended: 0 };
        source.addEventListener("open", () => result.opened++);
        source.addEventListener("run_created", () => result.created++);
        source.addEventListener("run_ended", (event) => {
          result.ended++;
          result.answer = JSON.parse(event.data).answer;
        });
        // The answer 204 to the reconnection closes the stream for good.
        source.addEventListener("error", () => source.readyState === EventSource.CLOSED && resolve(result));
      }),
  );
  const results = await Promise.all(streams);
  const readMs = performance.now() - started;
  const response = await fetch(`${baseUrl}/api/v1/runs/${runs[0]}`, { headers });
  await response.text();
  return { results, readMs, status: response.status, fetchMs: performance.now() - started - readMs };
}

/** In the page: reads all streams at once with the TypeScript client, from another origin. */
async function readWithClient({ module, baseUrl, token, runs }) {
  const { Toolyard } = await import(module);
  const client = new Toolyard({ baseUrl, token });
  const started = performance.now();
  const read = async (run) => {
    const result = { run, opened: 1, created: 0, ended: 0 };
    for await (const event of client.runs.open(run).events()) {
      if (event.type === "run_created") result.created++;
      if (event.type === "run_ended") [result.ended, result.answer] = [result.ended + 1, event.answer];
    }
    return result;
  };
  const results = await Promise.all(runs.map(read));
  const readMs = performance.now() - started;
  await client.runs.get(runs[0]);
  const fetchMs = performance.now() - started - readMs;
  return { results, readMs, status: 200, fetchMs };
}

/** In the page: a request of each method from another origin, which the browser asks the gateway about first. */
async function useEachMethod({ module, baseUrl, token }) {
  const { Toolyard } = await import(module);
  const { agents } = new Toolyard({ baseUrl, token });
  await agents.create("painter", { description: "Paints." });
  const { description } = await agents.replace("painter", { description: "Draws." });
  await agents.delete("painter");
  return description;
}

let failed = 0;
function report(name, isOk, detail) {
  console.log(`${name.padEnd(36)} ${isOk ? "ok    " : "FAILED"} ${detail}`);
  if (!isOk) failed = 1;
}

const browser = await chromium.launch({
  executablePath: task.chromium,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Opens the page, runs a function in it, and returns its result and the errors of the console. */
async function inPage(run, argument) {
  const page = await browser.newPage();
  const messages = [];
  page.on("console", (message) => message.type() === "error" && messages.push(message.text()));
  try {
    await page.goto(proxyUrl);
    const timeout = new Promise((_, reject) => setTimeout(() => reject(new Error(`not finished after ${PAGE_TIMEOUT_MS} ms`)), PAGE_TIMEOUT_MS).unref());
    return await Promise.race([page.evaluate(run, argument), timeout]);
  } catch (error) {
    throw new Error([error.message.split("\n")[0], ...messages].join("; "));
  } finally {
    await page.close();
  }
}

async function checkStreams(name, run, argument) {
  try {
    const { results, readMs, status, fetchMs } = await inPage(run, argument);
    const isComplete = ({ created, ended }, index) => created === 1 && ended === 1 && results[index].answer === `It is ${2 * index}.`;
    const complete = results.filter(isComplete).length;
    const isOk = complete === argument.runs.length && status === 200 && fetchMs < MAX_FURTHER_FETCH_MS;
    const incomplete = results.find((result, index) => !isComplete(result, index));
    const detail = `${complete} of ${results.length} runs complete in ${Math.round(readMs)} ms; further request: ${status} in ${Math.round(fetchMs)} ms`;
    report(name, isOk, incomplete ? `${detail}; ${JSON.stringify(incomplete)}` : detail);
  } catch (error) {
    report(name, false, error.message);
  }
}

const module = `${proxyUrl}/client/index.js`;
const { withToken, withoutToken } = task;
await checkStreams("EventSource, no authentication", readWithEventSource, { baseUrl: withoutToken.url, runs: withoutToken.runs });
await checkStreams("EventSource, proxy adds the token", readWithEventSource, { baseUrl: proxyUrl, runs: withToken.runs });
await checkStreams("EventSource, ticket, other origin", readWithEventSource, { baseUrl: withToken.url, token: withToken.token, runs: withToken.runs });
await checkStreams("client with token, other origin", readWithClient, { module, baseUrl: withToken.url, token: withToken.token, runs: withToken.runs });
try {
  const description = await inPage(useEachMethod, { module, baseUrl: withToken.url, token: withToken.token });
  report("POST, PUT, DELETE, other origin", description === "Draws.", description);
} catch (error) {
  report("POST, PUT, DELETE, other origin", false, error.message);
}
await browser.close();
proxy.close();
proxy.closeAllConnections();
process.exit(failed);
