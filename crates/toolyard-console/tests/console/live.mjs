// Part `live` of `just console`: the time from an event of a run until its node shows the new state.
import { api, attempt, check, finish, openContext, openProbedPage, screenshot, signIn, task, until, visit } from "./harness.mjs";

const MAX_DELAY_MS = 200;
const MAX_PAGE_BYTES = 100_000;
const MIN_LABEL_PIXELS = 11;

/** Runs before the scripts of the page: records when events arrive and when nodes change. */
function recordTimes() {
  window.__events = [];
  window.__states = [];
  const Original = window.EventSource;
  const types = ["planned", "step_started", "step_ended", "approval_requested", "run_ended"];
  window.EventSource = class extends Original {
    constructor(...values) {
      super(...values);
      for (const type of types) {
        this.addEventListener(type, (event) => window.__events.push({ at: performance.timeOrigin + performance.now(), type, number: event.lastEventId, data: JSON.parse(event.data) }));
      }
    }
  };
  const last = new Map();
  const scan = () => {
    const at = performance.timeOrigin + performance.now();
    for (const node of document.querySelectorAll("svg [data-step]")) {
      const { step, state } = node.dataset;
      if (last.get(step) !== state) {
        last.set(step, state);
        window.__states.push({ at, step, state });
      }
    }
  };
  const observe = () => new MutationObserver(scan).observe(document.documentElement, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-state", "class"] });
  if (document.documentElement) observe();
  else document.addEventListener("readystatechange", observe, { once: true });
  document.addEventListener("DOMContentLoaded", scan);
}

/** When a client that only reads the stream receives each event: about when the gateway sent it. */
async function readStream(run) {
  const arrivals = new Map();
  const response = await fetch(`${task.url}/api/v1/runs/${run}/events`, { headers: { authorization: `Bearer ${task.token}` } });
  let rest = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const at = performance.timeOrigin + performance.now();
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("id:")) arrivals.set(line.slice(3).trim(), at);
  }
  return arrivals;
}

const STATES = { step_started: ["running"], approval_requested: ["needs_approval"] };
const ENDED = { done: "done", simulated: "done", failed: "failed", denied: "failed", unknown: "unknown", skipped: "skipped" };
const LATER = { running: ["done", "failed", "unknown", "skipped"], needs_approval: ["running", "done", "failed"] };

/** Delays of all events that change the state of a step, in milliseconds. */
function delays(events, states, since) {
  const found = [];
  for (const event of events) {
    const expected = event.type === "step_ended" ? ENDED[event.data.state] : STATES[event.type]?.[0];
    if (!expected) continue;
    const accepted = [expected, ...(LATER[expected] ?? [])];
    // The node may have the state before the event is read, if the page got it with a fragment.
    const shown = states.find(({ step, state }) => step === event.data.step && accepted.includes(state));
    const from = since(event);
    found.push({ step: event.data.step, type: event.type, ms: shown && from !== undefined ? Math.max(0, shown.at - from) : Infinity });
  }
  return found;
}

function distribution(list) {
  const values = list.map(({ ms }) => ms).sort((a, b) => a - b);
  const at = (part) => values[Math.min(values.length - 1, Math.floor(part * values.length))];
  const text = (value) => (Number.isFinite(value) ? value.toFixed(0) : "never");
  const late = list.filter(({ ms }) => ms > MAX_DELAY_MS).map(({ step, type, ms }) => `${step} ${type} ${text(ms)}`);
  const worst = late.length ? `; late: ${late.slice(0, 8).join(", ")}` : "";
  return { max: values.at(-1) ?? Infinity, text: `${values.length} events: min ${text(values[0])}, p50 ${text(at(0.5))}, p90 ${text(at(0.9))}, p99 ${text(at(0.99))}, max ${text(values.at(-1))} ms${worst}` };
}

async function measure(context, question, name, steps) {
  const { page, probe } = await openProbedPage(context);
  await page.addInitScript(recordTimes);
  const { body } = await api("POST", "/runs", { question });
  const stream = readStream(body.run);
  await visit(page, `/console/runs/${body.run}`);
  await until("run ends", async () => (await api("GET", `/runs/${body.run}`)).body.state === "answered", 60_000);
  const arrivals = await stream;
  await page.waitForTimeout(1000);
  const { events, states } = await page.evaluate(() => ({ events: window.__events, states: window.__states }));
  const changes = events.filter(({ type }) => type === "step_started" || type === "step_ended");
  check(`${name}: the page receives all events`, changes.length === 2 * steps, `${changes.length} of ${2 * steps} state changes; ${states.length} changes of nodes`);
  const fromArrival = distribution(delays(events, states, ({ at }) => at));
  check(`${name}: from the event's arrival in the page to the node`, fromArrival.max <= MAX_DELAY_MS, fromArrival.text);
  const fromSending = distribution(delays(events, states, ({ number }) => arrivals.get(number)));
  check(`${name}: from the gateway's sending to the node`, fromSending.max <= MAX_DELAY_MS, fromSending.text);
  const shown = new Set(states.filter(({ state }) => state === "running").map(({ step }) => step));
  check(`${name}: every step is seen running`, shown.size === steps, `${shown.size} of ${steps}`);
  const text = await page.locator("main").innerText();
  check(`${name}: state and answer appear without a reload`, text.includes("Waited.") && !probe.errors.length, probe.errors.join("; "));
  await screenshot(page, `live-${name.replace(/\W+/g, "-")}`);
  await page.close();
}

/** In the page: how the graph is drawn. */
function inspectGraph() {
  const nodes = [...document.querySelectorAll("svg [data-state]")].filter((node) => node.closest("svg.pg") || node.dataset.step);
  const svg = nodes[0]?.ownerSVGElement;
  const boxes = nodes.map((node) => (node.querySelector("rect") ?? node).getBoundingClientRect());
  let overlaps = 0;
  for (let first = 0; first < boxes.length; first++) {
    for (let second = first + 1; second < boxes.length; second++) {
      const [a, b] = [boxes[first], boxes[second]];
      if (a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5) overlaps++;
    }
  }
  const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 0;
  const sizes = nodes.flatMap((node) => [...node.querySelectorAll("text")].map((text) => parseFloat(getComputedStyle(text).fontSize) * scale));
  const outside = nodes.flatMap((node, index) => [...node.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.right > boxes[index].right + 1 || box.left < boxes[index].left - 1;
  })).length;
  return { nodes: nodes.length, overlaps, scale, smallest: Math.min(...sizes), labels: sizes.length, outside, width: svg?.getBoundingClientRect().width, height: svg?.getBoundingClientRect().height };
}

const cookies = await signIn(task.link);
const context = await openContext(cookies);
await attempt("20 steps", () => measure(context, task.questions.small, "20 steps", 20));
if (!task.quick) await attempt("20 steps at once", () => measure(context, task.questions.contended, "20 steps at once", 20));
await attempt("200 steps", async () => {
  const { body } = await api("POST", "/runs", { question: task.questions.large });
  await until("run ends", async () => (await api("GET", `/runs/${body.run}`)).body.state === "answered", 90_000);
  for (const width of [1280, 390]) {
    const other = await openContext(cookies, { width });
    const { page, probe } = await openProbedPage(other);
    await visit(page, `/console/runs/${body.run}`);
    const graph = await page.evaluate(inspectGraph);
    const name = `200 steps, ${width} px`;
    check(`${name}: the page is at most 100 kB`, probe.bytes > 0 && probe.bytes <= MAX_PAGE_BYTES, `${(probe.bytes / 1000).toFixed(1)} kB`);
    check(`${name}: all nodes are drawn, none overlap`, graph.nodes === 200 && graph.overlaps === 0, JSON.stringify(graph));
    check(`${name}: labels have at least ${MIN_LABEL_PIXELS} px and stay in their nodes`, graph.smallest >= MIN_LABEL_PIXELS && graph.outside === 0, `smallest ${graph.smallest.toFixed(1)} px, ${graph.outside} of ${graph.labels} outside`);
    await screenshot(page, `live-200-steps-${width}`);
    await other.close();
  }
});
await finish();
