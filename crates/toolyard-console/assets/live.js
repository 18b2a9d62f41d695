// Live updates of a run and of the chat: states of steps, the streamed answer, replay. Pages work without this script.
// Texts of events are only written as text; HTML comes from fragments that the server renders.
"use strict";

(() => {
  const live = document.querySelector("[data-live]");
  if (!live) return;
  const announcer = document.querySelector("[data-announce]");
  const offline = document.querySelector("[data-offline]");
  const OUTCOMES = { done: "done", failed: "failed", denied: "failed", unknown: "unknown", skipped: "skipped", simulated: "skipped" };
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

  function duration(ms) {
    if (ms < 1000) return `${ms} ms`;
    if (ms < 10000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
    if (ms < 60000) return `${Math.floor(ms / 1000)} s`;
    return `${Math.floor(ms / 60000)} min ${Math.floor(ms / 1000) % 60} s`;
  }

  // States of steps that are not drawn yet.
  const early = new Map();
  function setState(step, state, ms) {
    const node = nodes.get(step);
    const entry = legend(state);
    if (!node || !entry) {
      early.set(step, [state, ms]);
      return;
    }
    node.dataset.state = state;
    node.querySelector("use").setAttribute("href", `#pg-n-${state}`);
    const status = node.querySelector(".pg-r");
    if (status) status.textContent = state === "done" && ms !== undefined ? duration(ms) : entry.dataset.short;
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
      case "step_ended": setState(event.step, OUTCOMES[event.outcome] || "failed", event.duration_ms); break;
      case "approval_requested": setState(event.step, "needs_approval"); break;
      case "approval_decided": setState(event.step, event.allowed ? "running" : "failed"); break;
      case "step_repaired": setState(event.step, "waiting"); break;
      case "step_resolved": setState(event.step, event.resolution === "done" ? "running" : "waiting"); break;
      case "answer_delta": answer += event.text; showAnswer(); break;
      case "answer_discarded": answer = ""; showAnswer(); break;
      default: break;
    }
  }

  // Fetches the server's rendering, at most one request at a time, and keeps what the visitor has unfolded and scrolled to.
  let timer = 0;
  let isFetching = false;
  let isStale = false;
  let due = Infinity;
  function refreshSoon(delay) {
    const wanted = performance.now() + delay;
    // A refresh that is due earlier is not postponed.
    if (wanted >= due) return;
    clearTimeout(timer);
    due = wanted;
    timer = setTimeout(() => {
      due = Infinity;
      refresh();
    }, delay);
  }

  async function refresh() {
    if (isFetching) {
      isStale = true;
      return;
    }
    isFetching = true;
    try {
      const response = await fetch(live.dataset.fragment, { headers: { accept: "text/html" } });
      if (response.ok && !response.redirected) replace(await response.text());
    } catch {
      isStale = true;
    }
    isFetching = false;
    if (isStale) {
      isStale = false;
      refreshSoon(100);
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
    // A decision that is being made must not move under the pointer.
    if (focused && focused.closest("form")) return refreshSoon(1000);
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

  function localTimes() {
    for (const element of live.querySelectorAll("time[datetime]:not([title])")) {
      const time = new Date(element.dateTime);
      if (Number.isNaN(time.getTime())) continue;
      element.title = element.textContent;
      element.textContent = time.toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium" });
    }
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
    for (const [step, [state, ms]] of early) {
      if (!nodes.has(step)) continue;
      early.delete(step);
      setState(step, state, ms);
    }
    showAnswer();
    localTimes();
    prepareReplay();
    for (const part of live.querySelectorAll("#graph")) {
      const svg = part.querySelector("svg");
      if (!isPlaced && svg) showCurrent(part);
    }
  }

  const TYPES = ["run_created", "model_requested", "model_replied", "model_failed", "planned", "plan_rejected", "tools_searched", "step_started", "step_progress", "step_ended", "step_repaired", "repair_failed", "step_resolved", "step_verified", "approval_requested", "approval_decided", "answer_delta", "answer_discarded", "run_suspended", "run_resumed", "run_ended"];
  // What is shown by more than the states of steps.
  const AT_ONCE = new Set(["planned", "approval_requested", "approval_decided", "run_suspended", "run_resumed", "run_ended"]);
  const LATER = new Set(["step_started", "step_ended", "step_verified", "step_repaired", "step_resolved", "model_failed"]);

  // A proxy may hold events back: after a silence, a run that is not over is shown by the server's rendering, less and
  // less often while nothing changes.
  const SILENCE = 3000;
  let silenceTimer = 0;
  let silence = SILENCE;
  function watchSilence() {
    clearTimeout(silenceTimer);
    const run = root();
    if (!run || run.dataset.active !== "true") return;
    silenceTimer = setTimeout(async () => {
      const shown = run.dataset.after;
      if (!document.hidden) await refresh();
      const now = root();
      if (now && now.dataset.active !== "true") {
        source.close();
        announce(now.dataset.stateLabel);
        return;
      }
      silence = !now || now.dataset.after === shown ? Math.min(silence * 1.5, 15000) : SILENCE;
      watchSilence();
    }, silence);
  }

  function heard() {
    silence = SILENCE;
    watchSilence();
  }

  function follow() {
    const run = root();
    if (!run || run.dataset.active !== "true" || !live.dataset.events) return;
    const after = Number(run.dataset.after);
    // The numbers of events start at 0 or 1; the server sends what follows the last one that the page shows.
    source = new EventSource(`${live.dataset.events}?after=${after > 0 ? after - 1 : -1}`);
    // A short interruption is not worth a notice.
    let lost = 0;
    source.onopen = () => {
      clearTimeout(lost);
      lost = 0;
      offline.hidden = true;
    };
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED && lost === 0) lost = setTimeout(() => { offline.hidden = false; }, 5000);
    };
    const receive = (message) => {
      let event;
      try { event = JSON.parse(message.data); } catch { return; }
      heard();
      apply(event);
      if (AT_ONCE.has(event.type)) refreshSoon(20);
      else if (LATER.has(event.type)) refreshSoon(nodes.size > 60 ? 1500 : 400);
      if (event.type === "run_ended") {
        source.close();
        clearTimeout(silenceTimer);
        refresh().then(() => announce(root()?.dataset.stateLabel || ""));
      }
    };
    for (const type of TYPES) source.addEventListener(type, receive);
    watchSilence();
  }

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
      if (key.key === "Enter" && !key.shiftKey && !key.isComposing) {
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
