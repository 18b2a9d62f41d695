// Live updates of a run and of the chat: states of steps, the streamed answer, replay. Pages work without this script.
// Texts of events are only written as text; HTML comes from fragments that the server renders.
"use strict";

(() => {
  const live = document.querySelector("[data-live]");
  if (!live) return;
  const announcer = document.querySelector("[data-announce]");
  const offline = document.querySelector("[data-offline]");
  const END_STATES = { done: "done", failed: "failed", denied: "failed", unknown: "unknown", skipped: "skipped", simulated: "skipped" };
  const root = () => live.querySelector("[data-run]");
  let nodes = new Map();
  let answer = "";
  let source = null;
  let isReplaying = false;

  function announce(text) {
    if (announcer) announcer.textContent = text;
  }

  function index() {
    nodes = new Map();
    for (const node of live.querySelectorAll("a[data-step]")) nodes.set(node.dataset.step, node);
  }

  function legend(state) {
    return live.querySelector(`[data-legend] [data-state="${state}"]`);
  }

  function countStates() {
    const counts = {};
    for (const node of live.querySelectorAll(".pg a[data-state]")) counts[node.dataset.state] = (counts[node.dataset.state] || 0) + 1;
    for (const entry of live.querySelectorAll("[data-legend] [data-state]")) {
      const count = counts[entry.dataset.state] || 0;
      entry.hidden = count === 0;
      entry.querySelector("b").textContent = count;
    }
  }

  // States of steps that are not drawn yet.
  const pendingStates = new Map();
  function setState(step, state) {
    const node = nodes.get(step);
    const entry = legend(state);
    if (!node || !entry) {
      pendingStates.set(step, state);
      return;
    }
    node.dataset.state = state;
    node.querySelector("use").setAttribute("href", `#pg-n-${state}`);
    const status = node.querySelector(".pg-r");
    // The server's rendering, which follows, has the duration.
    if (status) status.textContent = entry.dataset.short;
    const title = node.querySelector("title");
    title.textContent = entry.dataset.label + title.textContent.slice(title.textContent.indexOf(":"));
    countStates();
    announce(`${step}: ${entry.dataset.label}`);
  }

  function showAnswer() {
    const place = live.querySelector("[data-answer]");
    if (place) place.textContent = answer;
    const activity = live.querySelector("[data-activity]");
    if (activity && place) activity.hidden = answer !== "";
  }

  // Applies what an event changes at once.
  function apply(event) {
    shownHtml = "";
    switch (event.type) {
      case "step_started": setState(event.step, "running"); break;
      case "step_ended": setState(event.step, END_STATES[event.state] || "failed"); break;
      case "approval_requested": setState(event.step, "needs_approval"); break;
      case "approval_decided": setState(event.step, event.allow ? "running" : "failed"); break;
      case "step_repaired": setState(event.step, "waiting"); break;
      case "step_resolved": setState(event.step, event.outcome === "done" ? "running" : "waiting"); break;
      case "answer_delta": answer += event.text; showAnswer(); break;
      case "answer_discarded": answer = ""; showAnswer(); break;
      default: break;
    }
  }

  // Fetches the server's rendering, at most one request at a time, and keeps what the visitor has unfolded and scrolled to.
  // Failed requests are repeated after a delay that doubles.
  const MIN_RETRY_MS = 500;
  const MAX_RETRY_MS = 15000;
  let timer = 0;
  let isFetching = false;
  let isStale = false;
  let nextRefreshAt = Infinity;
  let retryDelay = MIN_RETRY_MS;
  function refreshSoon(delay) {
    const wanted = performance.now() + delay;
    // A refresh that is due earlier is not postponed.
    if (wanted >= nextRefreshAt) return;
    clearTimeout(timer);
    nextRefreshAt = wanted;
    timer = setTimeout(() => {
      nextRefreshAt = Infinity;
      refresh();
    }, delay);
  }

  async function refresh() {
    if (isFetching) {
      isStale = true;
      return;
    }
    isFetching = true;
    let delay = 100;
    try {
      const response = await fetch(live.dataset.fragment, { headers: { accept: "text/html" } });
      // The session has ended: the page itself leads to the sign-in page, and back.
      if (response.redirected) return location.reload();
      if (response.status >= 500) throw new Error(`status ${response.status}`);
      if (response.ok) replace(await response.text());
      retryDelay = MIN_RETRY_MS;
    } catch {
      isStale = true;
      delay = retryDelay;
      retryDelay = Math.min(retryDelay * 2, MAX_RETRY_MS);
    }
    isFetching = false;
    if (isStale) {
      isStale = false;
      refreshSoon(delay);
    }
  }

  // What the page shows, as long as no event has changed it: an equal rendering must not undo a selection of text.
  let shownHtml = "";
  function replace(html) {
    if (html === shownHtml) return;
    const folds = new Map();
    for (const details of live.querySelectorAll("details[id]")) folds.set(details.id, details.open);
    const scrolls = [...live.querySelectorAll(".pg-scroll")].map((part) => [part.id, part.scrollLeft, part.scrollTop]);
    const focused = document.activeElement && live.contains(document.activeElement) ? document.activeElement : null;
    const focusKey = focused && (focused.id ? `#${CSS.escape(focused.id)}` : focused.dataset.step ? `[data-step="${CSS.escape(focused.dataset.step)}"]` : null);
    // A decision that is being made must not move under the pointer, or the click would decide on another call.
    if (focused?.closest("form") || live.querySelector(".ask:hover")) return refreshSoon(1000);
    live.innerHTML = html;
    shownHtml = html;
    for (const [id, isOpen] of folds) {
      const details = document.getElementById(id);
      if (details) details.open = isOpen || details.open;
    }
    for (const [id, left, top] of scrolls) {
      const part = document.getElementById(id);
      if (part) part.scrollTo(left, top);
    }
    if (focusKey) live.querySelector(focusKey)?.focus({ preventScroll: true });
    prepare();
  }

  // A graph that is larger than its place starts at the step under way, or else at the first one.
  let isPlaced = false;
  function showCurrent(part) {
    isPlaced = true;
    const node = part.querySelector("[data-state=needs_approval], [data-state=running]") || part.querySelector("a");
    if (!node) return;
    const [place, box] = [part.getBoundingClientRect(), node.getBoundingClientRect()];
    if (box.bottom > place.bottom) part.scrollTop += box.top - place.top - place.height / 2;
    if (box.right > place.right) part.scrollLeft += box.left - place.left - place.width / 2;
  }

  function prepare() {
    index();
    for (const [step, state] of pendingStates) {
      if (!nodes.has(step)) continue;
      pendingStates.delete(step);
      setState(step, state);
    }
    showAnswer();
    showLocalTimes(live);
    prepareReplay();
    for (const part of live.querySelectorAll("#graph")) {
      const svg = part.querySelector("svg");
      if (!isPlaced && svg) showCurrent(part);
    }
  }

  const TYPES = ["run_created", "model_requested", "model_replied", "model_failed", "planned", "plan_rejected", "tools_searched", "step_started", "step_progress", "step_ended", "step_repaired", "repair_failed", "step_resolved", "step_verified", "approval_requested", "approval_decided", "answer_delta", "answer_discarded", "answered", "run_suspended", "run_resumed", "run_ended"];
  // Events that change more of the page than the states of steps.
  const REFRESH_NOW = new Set(["planned", "approval_requested", "approval_decided", "answered", "run_suspended", "run_resumed", "run_ended"]);
  const REFRESH_SOON = new Set(["step_started", "step_ended", "step_verified", "step_repaired", "step_resolved", "model_failed"]);

  // A proxy may hold events back: after a silence, a run that is not over is shown by the server's rendering, less and
  // less often while nothing changes.
  const POLL_AFTER_MS = 3000;
  let pollTimer = 0;
  let pollDelay = POLL_AFTER_MS;
  function pollLater() {
    clearTimeout(pollTimer);
    const run = root();
    if (!run || run.dataset.active !== "true") return;
    pollTimer = setTimeout(async () => {
      const shown = run.dataset.after;
      if (!document.hidden) await refresh();
      const now = root();
      if (now && now.dataset.active !== "true") {
        closeStream();
        announce(now.dataset.stateLabel);
        return;
      }
      pollDelay = !now || now.dataset.after === shown ? Math.min(pollDelay * 1.5, MAX_RETRY_MS) : POLL_AFTER_MS;
      pollLater();
    }, pollDelay);
  }

  function resetPolling() {
    pollDelay = POLL_AFTER_MS;
    pollLater();
  }

  // A short interruption is not worth a notice.
  const OFFLINE_NOTICE_AFTER_MS = 5000;
  let offlineTimer = 0;
  let followTimer = 0;
  let followDelay = MIN_RETRY_MS;

  function closeStream() {
    source?.close();
    source = null;
    for (const id of [pollTimer, followTimer, offlineTimer]) clearTimeout(id);
    offlineTimer = 0;
  }

  function follow() {
    const run = root();
    if (!run || run.dataset.active !== "true" || !live.dataset.events || document.hidden) return;
    closeStream();
    // The server sends what follows the last event that the page shows.
    const stream = new EventSource(`${live.dataset.events}?after=${run.dataset.after}`);
    source = stream;
    stream.onopen = () => {
      clearTimeout(offlineTimer);
      offlineTimer = 0;
      followDelay = MIN_RETRY_MS;
      offline.hidden = true;
    };
    stream.onerror = () => {
      if (stream !== source) return;
      if (stream.readyState === EventSource.CLOSED) followAgain();
      else if (offlineTimer === 0) offlineTimer = setTimeout(() => { offline.hidden = false; }, OFFLINE_NOTICE_AFTER_MS);
    };
    const receive = (message) => {
      let event;
      try { event = JSON.parse(message.data); } catch { return; }
      resetPolling();
      apply(event);
      if (REFRESH_NOW.has(event.type)) refreshSoon(20);
      else if (REFRESH_SOON.has(event.type)) refreshSoon(nodes.size > 60 ? 1500 : 400);
      if (event.type === "run_ended") {
        closeStream();
        refresh().then(() => announce(root()?.dataset.stateLabel || ""));
      }
    };
    for (const type of TYPES) stream.addEventListener(type, receive);
    pollLater();
  }

  // A browser gives a stream up if its answer is no event stream: the run is over, the session is, or the gateway refuses it.
  async function followAgain() {
    closeStream();
    await refresh();
    if (root()?.dataset.active !== "true") return;
    offline.hidden = false;
    followTimer = setTimeout(follow, followDelay);
    followDelay = Math.min(followDelay * 2, MAX_RETRY_MS);
    pollLater();
  }

  // A browser has six connections to a server with HTTP/1.1, so that pages in the background do not keep one.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      closeStream();
    } else if (root()?.dataset.active === "true") {
      // What was said meanwhile is lost until the run ends.
      if (answer !== "") answer += " … ";
      refresh().then(follow);
    }
  });

  // Replay: plays the recorded events again in the graph. Nothing is called.
  let replayTimer = 0;
  function prepareReplay() {
    const box = live.querySelector("[data-replay]");
    if (!box) return;
    box.hidden = false;
    box.querySelector("[data-replay-button]").addEventListener("click", () => (isReplaying ? stopReplay() : startReplay(box)));
  }

  async function startReplay(box) {
    isReplaying = true;
    const button = box.querySelector("[data-replay-button]");
    button.textContent = `■ ${button.dataset.stop}`;
    let events = [];
    try {
      const response = await fetch(live.dataset.events, { headers: { accept: "text/event-stream" } });
      const text = await response.text();
      events = text.split("\n").filter((line) => line.startsWith("data:")).map((line) => JSON.parse(line.slice(5)));
    } catch {
      return stopReplay();
    }
    // The visitor may have stopped it meanwhile.
    if (!isReplaying) return;
    for (const step of nodes.keys()) setState(step, "waiting");
    announce(box.querySelector("[data-replay-status]").dataset.text);
    play(events, 0, box);
  }

  function play(events, position, box) {
    if (!isReplaying) return;
    if (position >= events.length) return stopReplay();
    const event = events[position];
    const speed = Number(box.querySelector("[data-replay-speed]").value) || 1;
    // Waits as long as the step took, but never longer than a person wants to watch.
    const wait = Math.min(Math.max(event.duration_ms || 120, 120), 1500) / speed;
    box.querySelector("[data-replay-status]").textContent = `${position + 1}/${events.length} ${event.type}${event.step ? ` ${event.step}` : ""}`;
    if (event.type === "step_ended") {
      replayTimer = setTimeout(() => { apply(event); play(events, position + 1, box); }, wait);
    } else {
      if (event.type !== "answer_delta") apply(event);
      replayTimer = setTimeout(() => play(events, position + 1, box), event.duration_ms ? wait : 120 / speed);
    }
  }

  function stopReplay() {
    clearTimeout(replayTimer);
    isReplaying = false;
    shownHtml = "";
    refresh();
  }

  // Enter asks, Shift+Enter starts a line.
  for (const field of document.querySelectorAll("[data-submit-on-enter]")) {
    field.addEventListener("keydown", (key) => {
      // Safari ends a composition before the key that ends it, whose code is then 229.
      if (key.key === "Enter" && !key.shiftKey && !key.isComposing && key.keyCode !== 229) {
        key.preventDefault();
        field.form.requestSubmit();
      }
    });
  }

  // A link into a folded step unfolds it.
  function unfold() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") {
      target.open = true;
      target.scrollIntoView({ block: "center" });
    }
  }
  window.addEventListener("hashchange", unfold);

  prepare();
  unfold();
  follow();
})();
