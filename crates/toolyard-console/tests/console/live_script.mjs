// Part `live`, without a browser: how assets/live.js behaves if the gateway, the stream or the session goes away. Time is simulated.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const script = readFileSync(new URL("../../assets/live.js", import.meta.url), "utf8");
const rendered = () => ({ ok: true, status: 200, redirected: false, text: async () => "<p>rendered</p>" });
const check = (name, isOk, detail = "") => console.log(JSON.stringify({ check: name, ok: isOk, detail: String(detail) }));

/** A page with an active run, whose requests are answered by `answer`. */
function open(answer) {
  let [now, lastTimer] = [0, 0];
  const timers = new Map();
  const run = { dataset: { active: "true", after: "3", stateLabel: "Running" } };
  const live = { dataset: { fragment: "/fragment", events: "/events" }, innerHTML: "", querySelector: (selector) => (selector === "[data-run]" ? run : null), querySelectorAll: () => [], contains: () => false };
  const page = { requests: 0, reloads: 0, streams: [], offline: { hidden: true }, run, listeners: {} };
  const parts = { "[data-live]": live, "[data-offline]": page.offline, "[data-announce]": { textContent: "" } };
  page.document = {
    hidden: false,
    activeElement: null,
    querySelector: (selector) => parts[selector] ?? null,
    querySelectorAll: () => [],
    getElementById: () => null,
    addEventListener: (type, listener) => { page.listeners[type] = listener; },
  };
  class EventSource {
    static CLOSED = 2;
    constructor() {
      this.readyState = 0;
      this.handlers = {};
      page.streams.push(this);
    }
    addEventListener(type, handler) { this.handlers[type] = handler; }
    close() { this.readyState = EventSource.CLOSED; }
  }
  page.giveUp = () => {
    page.streams.at(-1).readyState = EventSource.CLOSED;
    page.streams.at(-1).onerror();
  };
  vm.runInContext(script, vm.createContext({
    document: page.document,
    EventSource,
    window: { addEventListener() {} },
    location: { hash: "", reload() { page.reloads++; } },
    performance: { now: () => now },
    CSS: { escape: (text) => text },
    showLocalTimes() {},
    setTimeout: (action, delay) => { timers.set(++lastTimer, [now + delay, action]); return lastTimer; },
    clearTimeout: (timer) => timers.delete(timer),
    fetch: async () => { page.requests++; return answer(); },
  }));
  const settle = async () => { for (let turn = 0; turn < 20; turn++) await Promise.resolve(); };
  page.wait = async (milliseconds) => {
    const end = now + milliseconds;
    for (;;) {
      await settle();
      const due = [...timers].filter(([, [at]]) => at <= end).sort(([, [first]], [, [second]]) => first - second)[0];
      if (!due) break;
      const [timer, [at, action]] = due;
      timers.delete(timer);
      now = Math.max(now, at);
      action();
    }
    now = end;
    await settle();
  };
  return page;
}

let page = open(() => { throw new Error("connection refused"); });
await page.wait(60_000);
check("a page backs off while the gateway is down", page.requests > 3 && page.requests < 20, `${page.requests} requests in a minute`);

page = open(() => ({ ok: true, status: 200, redirected: true }));
page.giveUp();
await page.wait(100);
check("a page is loaded again after its session has ended", page.reloads === 1, `${page.reloads} reloads`);

page = open(rendered);
for (let attempt = 0; attempt < 6; attempt++) {
  page.giveUp();
  await page.wait(20_000);
}
check("a stream that the browser gave up is opened again", page.streams.length === 7 && !page.offline.hidden, `${page.streams.length} streams`);
page.streams.at(-1).onopen();
check("the notice disappears with the connection's return", page.offline.hidden);

page.document.hidden = true;
page.listeners.visibilitychange();
const before = page.requests;
await page.wait(60_000);
check("a page in the background keeps no connection", page.streams.at(-1).readyState === 2 && page.requests === before, `${page.requests - before} requests`);
page.document.hidden = false;
page.listeners.visibilitychange();
await page.wait(10);
check("a page that is visible again follows the run", page.streams.length === 8 && page.streams.at(-1).readyState === 0 && page.requests > before);

page = open(rendered);
page.streams[0].handlers.run_ended({ data: '{"type": "run_ended"}' });
page.run.dataset.active = "false";
const requests = page.requests;
await page.wait(60_000);
check("nothing is requested after the end of a run", page.streams.length === 1 && page.requests - requests <= 2, `${page.requests} requests`);
