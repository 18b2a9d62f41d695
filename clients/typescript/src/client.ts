// The client: `Toolyard` and its groups of requests.
import { ApiError, TimedOut } from "./errors.js";
import { Run } from "./run.js";
import { RunIsSuspended, answerOrError } from "./run_errors.js";
import { Transport, type TransportOptions } from "./transport.js";
import type {
  Agent, Approval, ApprovalRequested, CreatedRun, ResultPart, RunDetails, RunEvent, RunRequest, RunSummary, Scope, Server, Tool,
  ToolCallResult, ToolDetails, ToolMatch, ToolStatistics, UnknownStep,
} from "./types.js";

export const DEFAULT_URL = "http://127.0.0.1:7300";

/** `true` or "once" allows this call, "run" every call of the tool in this run, `false` denies; `null` leaves it undecided. */
export type Decision = boolean | Scope | null;

/** A part of a list; `next` is the cursor of the following part, to be given as `after`. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

export interface PageOptions {
  limit?: number;
  after?: string | null;
}

export interface ClientOptions extends TransportOptions {
  /** The URL of the gateway. */
  baseUrl?: string;
}

export interface CreateRunOptions extends Omit<RunRequest, "question"> {
  /** A key of your own; requests with the same key start one run. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export interface AskOptions extends Pick<RunRequest, "agent" | "history" | "conversation"> {
  /** Decides on a tool call that needs approval. */
  onApproval?: (request: ApprovalRequested) => Decision | Promise<Decision>;
  onEvent?: (event: RunEvent) => void;
  /** Throws `TimedOut` and cancels the run if it is not over by then. */
  timeoutMs?: number;
  /** Cancels the run. */
  signal?: AbortSignal;
}

/** A client of a gateway. `token` is the token of `toolyard serve`. */
export class Toolyard {
  readonly tools: Tools;
  readonly servers: Servers;
  readonly agents: Agents;
  readonly runs: Runs;
  readonly approvals: Approvals;
  readonly audit: Audit;
  readonly #http: Transport;

  constructor(options: ClientOptions = {}) {
    const http = new Transport(options.baseUrl ?? DEFAULT_URL, options);
    this.#http = http;
    this.tools = new Tools(http);
    this.servers = new Servers(http);
    this.agents = new Agents(http);
    this.runs = new Runs(http);
    this.approvals = new Approvals(http);
    this.audit = new Audit(http);
  }

  /** Calls, failures and latencies by tool and source. */
  async statistics(): Promise<Page<ToolStatistics>> {
    return page(await this.#http.request("GET", "/statistics"), "statistics");
  }

  /**
   * Asks an agent and returns its answer. Throws `RunIsSuspended` if a decision is missing (the run still waits for it), another `RunError`
   * if the run ends without a complete answer.
   */
  async ask(question: string, options: AskOptions = {}): Promise<string> {
    const { onApproval, onEvent, timeoutMs, signal, ...fields } = options;
    const run = await this.runs.create(question, signal ? { ...fields, signal } : fields);
    const decided = new Set<number>();
    try {
      for await (const event of run.events({ timeoutMs, signal })) {
        onEvent?.(event);
        if (event.type === "run_ended") return answerOrError(run, event);
        if (event.type === "approval_requested" && onApproval) {
          const decision = await onApproval(event);
          if (decision === null || decision === undefined) continue;
          decided.add(event.approval);
          await this.#decide(event.approval, decision);
        } else if (event.type === "run_suspended") {
          const approvals = (event.approvals ?? []).filter((id) => !decided.has(id));
          if (approvals.length > 0 || (event.unknown_steps ?? []).length > 0) throw new RunIsSuspended(run, { ...event, approvals });
        }
      }
      const { state, answer } = await run.get();
      return answerOrError(run, { state, answer });
    } catch (error) {
      // The run is over already, or the first error says more.
      if (error instanceof TimedOut || signal?.aborted) await run.cancel().catch(() => undefined);
      throw error;
    }
  }

  async #decide(approval: number, decision: Decision): Promise<void> {
    try {
      // Anything else that a callback returns does not allow the call.
      const allow = decision === true || decision === "once" || decision === "run";
      await this.approvals.decide(approval, decision === "run" ? { allow, scope: "run" } : { allow });
    } catch (error) {
      // Decided elsewhere in the meantime, or by an earlier decision for the whole run.
      if (!(error instanceof ApiError && (error.status === 404 || error.status === 409))) throw error;
    }
  }
}

class Group {
  constructor(protected readonly http: Transport) {}
}

/** The tools of the gateway. */
export class Tools extends Group {
  /** One page of all tools. */
  async list(options: PageOptions & { source?: string } = {}): Promise<Page<Tool>> {
    const { source, limit, after } = options;
    return page(await this.http.request("GET", "/tools", { query: { source, limit, after } }), "tools");
  }

  /** All tools, page by page. */
  iterate(options: { source?: string } = {}): AsyncGenerator<Tool, void, undefined> {
    return allPages((after) => this.list({ ...options, after }));
  }

  /** The tools that fit a request best, with a `score`. */
  async search(query: string, options: { source?: string; limit?: number } = {}): Promise<ToolMatch[]> {
    const { source, limit } = options;
    return page<ToolMatch>(await this.http.request("GET", "/tools", { query: { query, source, limit } }), "tools").items;
  }

  /** One tool with its schemas; `source` chooses if several sources have it. */
  async get(name: string, options: { source?: string } = {}): Promise<ToolDetails> {
    return (await this.http.request("GET", "/tools/{name}", { path: { name }, query: { source: options.source } })) as ToolDetails;
  }

  /**
   * Calls a tool. A failure that the tool reports is a result with `is_error`. Without an `idempotencyKey`, the call is sent again only if
   * the gateway says that nothing was called. With one, such as a UUID, it is also sent again after a broken connection, and the gateway
   * makes it once. It keeps a key for a day, or until the caller has used 1,000 others; another gateway does not know it, nor the same one
   * after a restart. Give the `source`: a tool of the same name may be added at another one.
   */
  async call(
    name: string,
    args: Record<string, unknown> = {},
    options: { source?: string; idempotencyKey?: string; signal?: AbortSignal } = {},
  ): Promise<ToolCallResult> {
    const { source, idempotencyKey, signal } = options;
    const body = { arguments: args, ...(source !== undefined && { source }) };
    const headers: Record<string, string> = idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey };
    return (await this.http.request("POST", "/tools/{name}/call", { path: { name }, body, headers, signal })) as ToolCallResult;
  }

  /** The whole of a result that was too long for its answer, by its `result_id`. */
  async result(id: string): Promise<string> {
    let text = "";
    for (let offset: number | null = 0; offset !== null; ) {
      const part = (await this.http.request("GET", "/results/{id}", { path: { id }, query: { offset } })) as ResultPart;
      text += part.text;
      offset = part.next;
    }
    return text;
  }
}

/** The upstream MCP servers. */
export class Servers extends Group {
  async list(): Promise<Page<Server>> {
    return page(await this.http.request("GET", "/servers"), "servers");
  }

  async get(name: string): Promise<Server> {
    return (await this.http.request("GET", "/servers/{name}", { path: { name } })) as Server;
  }
}

/** The agents. Only those kept in the store can be changed; the others are in the settings file (409 `agent_read_only`). */
export class Agents extends Group {
  async list(): Promise<Page<Agent>> {
    return page(await this.http.request("GET", "/agents"), "agents");
  }

  async get(name: string): Promise<Agent> {
    return (await this.http.request("GET", "/agents/{name}", { path: { name } })) as Agent;
  }

  /** Creates an agent; `config` has the fields of `[agents.NAME]` in toolyard.toml. */
  async create(name: string, config: Record<string, unknown> = {}): Promise<Agent> {
    return (await this.http.request("POST", "/agents", { body: { name, config } })) as Agent;
  }

  /** Replaces all fields of an agent. */
  async replace(name: string, config: Record<string, unknown> = {}): Promise<Agent> {
    return (await this.http.request("PUT", "/agents/{name}", { path: { name }, body: { config } })) as Agent;
  }

  async delete(name: string): Promise<void> {
    await this.http.request("DELETE", "/agents/{name}", { path: { name } });
  }
}

/** The runs of agents. */
export class Runs extends Group {
  /** Starts a run, which continues if this client disconnects. The request is executed once even if it has to be repeated. */
  async create(question: string, options: CreateRunOptions = {}): Promise<Run> {
    const { idempotencyKey, signal, ...fields } = options;
    const headers = { "Idempotency-Key": idempotencyKey ?? randomKey() };
    const created = (await this.http.request("POST", "/runs", { body: { question, ...fields }, headers, signal })) as CreatedRun;
    return this.open(created.run);
  }

  /** A run by its id, without a request. */
  open(run: string): Run {
    return new Run(this.http, run);
  }

  async get(run: string): Promise<RunDetails> {
    return (await this.http.request("GET", "/runs/{run}", { path: { run } })) as RunDetails;
  }

  /** One page of the runs, newest first. */
  async list(options: PageOptions & { state?: string; agent?: string } = {}): Promise<Page<RunSummary>> {
    const { state, agent, limit, after } = options;
    return page(await this.http.request("GET", "/runs", { query: { state, agent, limit, after } }), "runs");
  }

  /** All runs, newest first, page by page. */
  iterate(options: { state?: string; agent?: string } = {}): AsyncGenerator<RunSummary, void, undefined> {
    return allPages((after) => this.list({ ...options, after }));
  }

  /** The steps of all runs whose outcome is unknown. */
  async unknown(): Promise<UnknownStep[]> {
    return page<UnknownStep>(await this.http.request("GET", "/unknown-steps"), "steps").items;
  }
}

/** Tool calls that wait for approval. */
export class Approvals extends Group {
  async list(): Promise<Approval[]> {
    return page<Approval>(await this.http.request("GET", "/approvals"), "approvals").items;
  }

  /**
   * Allows or denies a call; with `scope: "run"` every call of this tool in this run. Allowing is refused (403 `approval_not_permitted`)
   * unless the operator set `[serve] remote_approval = true`.
   */
  async decide(approval: number, decision: { allow: boolean; scope?: Scope }): Promise<unknown> {
    return await this.http.request("POST", "/approvals/{approval}", { path: { approval }, body: decision });
  }
}

/** The audit log. */
export class Audit extends Group {
  /** One page of the records, newest first. */
  async list(options: PageOptions = {}): Promise<Page<Record<string, unknown>>> {
    const { limit, after } = options;
    return page(await this.http.request("GET", "/audit", { query: { limit, after } }), "records");
  }

  /** All records, newest first, page by page. */
  iterate(): AsyncGenerator<Record<string, unknown>, void, undefined> {
    return allPages((after) => this.list({ after }));
  }

  /** Verifies the hash chain of the log. */
  async verify(): Promise<Record<string, unknown>> {
    return (await this.http.request("GET", "/audit/verify")) as Record<string, unknown>;
  }
}

function page<T>(body: unknown, key: string): Page<T> {
  const object = (body ?? {}) as Record<string, unknown>;
  const items = object[key];
  if (!Array.isArray(items)) throw new ApiError(502, "unexpected_response", `the response has no list \`${key}\``);
  return { items: items as T[], next: typeof object["next"] === "string" ? object["next"] : null };
}

async function* allPages<T>(load: (after: string | null) => Promise<Page<T>>): AsyncGenerator<T, void, undefined> {
  let after: string | null = null;
  for (;;) {
    const { items, next }: Page<T> = await load(after);
    yield* items;
    if (next === null || next === after) return;
    after = next;
  }
}

/** `crypto.randomUUID` is missing on pages that are not served over TLS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
