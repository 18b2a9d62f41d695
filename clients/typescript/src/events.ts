// Reads the events of a run and reconnects when the connection breaks.
import { ApiError, ConnectionFailed, TimedOut } from "./errors.js";
import { LinkedAbort, TEMPORARY_STATUSES, type Transport, apiError, describe, sleep } from "./transport.js";
import type { RunEvent } from "./types.js";

const MAX_FAILED_CONNECTIONS = 8;
const FIRST_RECONNECT_DELAY_MS = 250;
const MAX_RECONNECT_DELAY_MS = 5_000;
/** The server sends a comment at least every 30 seconds; a stream without any byte for longer is dead. */
const STREAM_IDLE_TIMEOUT_MS = 90_000;

export interface EventOptions {
  /** Only events after this number. */
  after?: number | undefined;
  /** Throws `TimedOut` if the run is not over by then. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A message of an event stream. */
export interface ServerSentEvent {
  name: string;
  data: string;
  id: string | null;
}

/** Parses server-sent events, however they are split into chunks. An event that is not complete at the end is dropped, as the specification says. */
export class SseParser {
  /** The delay before reconnecting that the server asked for. */
  retryMs: number | null = null;
  #rest = "";
  #name = "";
  #data: string[] = [];
  #id: string | null = null;

  push(text: string): ServerSentEvent[] {
    // A carriage return at the end may be the first half of a line break.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#line(line) ?? []);
  }

  #line(line: string): ServerSentEvent | null {
    if (line === "") {
      const event = this.#data.length > 0 ? { name: this.#name || "message", data: this.#data.join("\n"), id: this.#id } : null;
      this.#name = "";
      this.#data = [];
      this.#id = null;
      return event;
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#name = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
    return null;
  }
}

/** The events of a run up to `run_ended`, each numbered one once. */
export async function* readEvents(http: Transport, run: string, options: EventOptions): AsyncGenerator<RunEvent, void, undefined> {
  const deadline = options.timeoutMs === undefined ? Infinity : Date.now() + options.timeoutMs;
  const state: StreamState = { last: options.after ?? null, failures: 0, retryMs: FIRST_RECONNECT_DELAY_MS };
  for (;;) {
    let problem: unknown = "the stream ends early";
    const abort = new LinkedAbort(options.signal);
    try {
      for await (const event of readConnection(http, run, state, abort, deadline)) {
        yield event;
        if (event.type === "run_ended") return;
      }
      if (state.isEmpty) return;
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof ApiError && !TEMPORARY_STATUSES.has(error.status)) throw error;
      problem = error;
    } finally {
      // Also ends the request if the caller leaves the loop.
      abort.abort();
      abort.release();
    }
    state.failures += 1;
    if (Date.now() >= deadline) throw new TimedOut(`run ${run} is not over yet`);
    if (state.failures > MAX_FAILED_CONNECTIONS) {
      throw new ConnectionFailed(`the events of run ${run} cannot be read: ${describe(problem)}`, { cause: problem });
    }
    const delay = Math.min(state.retryMs * 2 ** (state.failures - 1), MAX_RECONNECT_DELAY_MS);
    await sleep(Math.min(delay, deadline - Date.now()), options.signal);
  }
}

interface StreamState {
  /** The number of the last event. */
  last: number | null;
  /** Connections that broke since the last event. */
  failures: number;
  retryMs: number;
  /** Whether the server has nothing more to send (204). */
  isEmpty?: boolean;
}

async function* readConnection(
  http: Transport,
  run: string,
  state: StreamState,
  abort: LinkedAbort,
  deadline: number,
): AsyncGenerator<RunEvent, void, undefined> {
  const watch = (): void => abort.abortAfter(Math.max(Math.min(STREAM_IDLE_TIMEOUT_MS, deadline - Date.now()), 0));
  watch();
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (state.last !== null) headers["Last-Event-ID"] = String(state.last);
  const response = await http.send("GET", "/runs/{run}/events", { path: { run }, headers, signal: abort.signal });
  state.isEmpty = response.status === 204;
  if (state.isEmpty) return;
  if (!response.ok) throw apiError(response, await response.text());
  if (!response.headers.get("content-type")?.startsWith("text/event-stream") || response.body === null) {
    throw new ApiError(502, "not_an_event_stream", "the response is not an event stream");
  }
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    watch();
    const messages = parser.push(decoder.decode(value, { stream: true }));
    if (parser.retryMs !== null) state.retryMs = Math.min(parser.retryMs, MAX_RECONNECT_DELAY_MS);
    for (const message of messages) {
      const event = accept(message, state);
      if (event === null) continue;
      state.failures = 0;
      yield event;
    }
  }
}

/** The event of a message; `null` for one that is unreadable or was delivered before. */
function accept(message: ServerSentEvent, state: StreamState): RunEvent | null {
  let event: { type?: unknown; number?: unknown } | null;
  try {
    event = JSON.parse(message.data) as { type?: unknown; number?: unknown } | null;
  } catch {
    return null;
  }
  if (typeof event !== "object" || event === null || typeof event.type !== "string") return null;
  const number = event.number ?? (message.id !== null && /^\d+$/.test(message.id) ? Number(message.id) : null);
  if (typeof number === "number") {
    if (state.last !== null && number <= state.last) return null;
    state.last = number;
  }
  return event as RunEvent;
}
