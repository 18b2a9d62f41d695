// Sends requests with `fetch` and opens streams of server-sent events.
import { ApiError, ConnectionFailed } from "./errors.js";

const API_PATH = "/api/v1";
const MAX_ATTEMPTS = 3;
const MAX_RETRY_DELAY_MS = 10_000;

/** Statuses after which the same request may succeed later. */
export const TEMPORARY_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

export interface TransportOptions {
  token?: string | undefined;
  /** The timeout of a request in milliseconds, not of a run. */
  timeoutMs?: number | undefined;
  fetch?: typeof globalThis.fetch | undefined;
}

export interface RequestParts {
  path?: Record<string, string | number>;
  query?: Record<string, string | number | null | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

export class Transport {
  readonly #baseUrl: string;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(baseUrl: string, options: TransportOptions) {
    const url = new URL(baseUrl);
    if (url.protocol !== "http:" && url.protocol !== "https:") throw new TypeError(`base URL ${baseUrl} is not an http or https URL`);
    this.#baseUrl = url.origin + url.pathname.replace(/\/+$/, "") + API_PATH;
    this.#token = options.token;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    // Browsers refuse a `fetch` that is called as a method of another object.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /**
   * Sends a request and returns the JSON of the response, `null` if it is empty. A request is repeated after a broken connection if that
   * cannot execute it twice, and whenever the server says so.
   */
  async request(method: string, template: string, parts: RequestParts = {}): Promise<unknown> {
    const isRepeatable = method === "GET" || parts.headers?.["Idempotency-Key"] !== undefined;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#requestOnce(method, template, parts);
      } catch (error) {
        const mayRetry = error instanceof ApiError ? error.retryAfterMs !== null : error instanceof ConnectionFailed && isRepeatable;
        if (!mayRetry || attempt === MAX_ATTEMPTS) throw error;
        await sleep(error instanceof ApiError ? (error.retryAfterMs ?? 0) : 200 * attempt, parts.signal);
      }
    }
  }

  async #requestOnce(method: string, template: string, parts: RequestParts): Promise<unknown> {
    const deadline = new LinkedAbort(parts.signal);
    deadline.abortAfter(this.#timeoutMs);
    try {
      const response = await this.send(method, template, { ...parts, signal: deadline.signal });
      const text = await response.text();
      if (!response.ok) throw apiError(response, text);
      return text === "" ? null : parseJson(text);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      parts.signal?.throwIfAborted();
      throw new ConnectionFailed(`${method} ${template}: ${describe(error)}`, { cause: error });
    } finally {
      deadline.release();
    }
  }

  /** Sends a request once; errors are those of `fetch`. */
  async send(method: string, template: string, parts: RequestParts): Promise<Response> {
    const headers: Record<string, string> = { Accept: "application/json", ...parts.headers };
    if (this.#token !== undefined) headers["Authorization"] = `Bearer ${this.#token}`;
    const init: RequestInit = { method, headers, redirect: "error", cache: "no-store", signal: parts.signal ?? null };
    if (parts.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(parts.body);
    }
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parts.path?.[name] ?? ""));
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parts.query ?? {})) {
      if (value !== null && value !== undefined) query.set(name, String(value));
    }
    return await this.#fetch(this.#baseUrl + path + (String(query) && `?${query}`), init);
  }
}

/** A signal that follows another one and can also be triggered here. */
export class LinkedAbort {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#controller.abort(this.#parent?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(parent: AbortSignal | undefined) {
    this.#parent = parent;
    if (parent?.aborted) this.#onAbort();
    parent?.addEventListener("abort", this.#onAbort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(): void {
    this.#controller.abort();
  }

  /** Starts the timer anew. */
  abortAfter(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#controller.abort(new Error(`no response within ${milliseconds} ms`)), milliseconds);
  }

  release(): void {
    clearTimeout(this.#timer);
    this.#parent?.removeEventListener("abort", this.#onAbort);
  }
}

export async function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

export function apiError(response: Response, text: string): ApiError {
  let code = "";
  let message = text.slice(0, 500) || response.statusText;
  let param: string | null = null;
  let hint: string | null = null;
  try {
    const error = (JSON.parse(text) as { error?: { code?: unknown; message?: unknown; param?: unknown; hint?: unknown } }).error;
    code = typeof error?.code === "string" ? error.code : "";
    message = typeof error?.message === "string" ? error.message : message;
    param = typeof error?.param === "string" ? error.param : null;
    hint = typeof error?.hint === "string" ? error.hint : null;
  } catch {
    // Not an error of this API, such as one of a proxy.
  }
  let retryAfterMs: number | null = null;
  if (response.headers.get("x-should-retry") === "true") {
    const seconds = Number(response.headers.get("retry-after") ?? 1);
    retryAfterMs = Math.min(Math.max(Number.isFinite(seconds) ? seconds * 1000 : 1000, 0), MAX_RETRY_DELAY_MS);
  }
  return new ApiError(response.status, code, message, param, retryAfterMs, hint);
}

export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(502, "not_json", `the response is not JSON: ${text.slice(0, 200)}`);
  }
}
