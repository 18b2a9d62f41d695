// A server that speaks the HTTP API with canned data, and misbehaves on request: streams that break, statuses, dropped connections.
import { createServer } from "node:http";
import { once } from "node:events";

export const TOKEN = "a-token";
export const RUN = "01RUN";
const TOOLS = Array.from({ length: 5 }, (_, index) => ({ name: `tool_${index}`, source: "native", kind: "native", read_only: true }));

export const event = (number, type, fields = {}) => ({ type, run: RUN, ...(number === null ? {} : { number }), ...fields });

const encode = (each) =>
  `retry: 10\n: keep-alive\n\n${each.number === undefined ? "" : `id: ${each.number}\n`}event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`;

export class StubServer {
  requests = [];
  script = [event(0, "run_created", { agent: "assistant", question: "q" }), event(1, "run_ended", { state: "answered", answer: "42" })];
  /** Bytes of a stream after which the connection breaks, one per connection. */
  cutAfter = [];
  /** Statuses of the next requests for events; 0 drops the connection. */
  eventStatuses = [];
  loseResponse = false;
  /** The number of the event that waits for a decision. */
  waitsBefore = null;
  decisions = [];
  decisionStatus = 200;
  isCancelled = false;
  keys = new Set();
  #server = createServer((request, response) => this.#handle(request, response));
  #onDecision = () => {};

  static async start() {
    const stub = new StubServer();
    stub.#server.listen(0, "127.0.0.1");
    await once(stub.#server, "listening");
    stub.url = `http://127.0.0.1:${stub.#server.address().port}`;
    return stub;
  }

  stop() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #handle(request, response) {
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = text ? JSON.parse(text) : null;
    this.requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    const json = (status, value) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    const error = (status, code, message) => json(status, { error: { message, type: "invalid_request_error", param: null, code } });
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return error(401, "invalid_api_key", "invalid bearer token");
    const url = new URL(request.url, this.url);
    const [group, ...rest] = url.pathname.replace("/api/v1/", "").split("/");
    const handlers = {
      tools: () => {
        if (rest[1] === "call" && rest[0] === "gone") {
          return json(404, { error: { message: "no tool `gone`", type: "invalid_request_error", param: null, code: "tool_not_found", hint: "did you mean `tool_0`?" } });
        }
        if (rest[1] === "call" && this.loseResponse) {
          this.loseResponse = false;
          return request.socket.destroy();
        }
        if (rest[1] === "call") return json(200, { output: "12…", is_error: false, source: body.source ?? null, attempts: 1, duration_ms: 1, result_id: "r_1" });
        if (rest[0] === "odd%2Fname") return json(200, { ...TOOLS[0], name: "odd/name", added_later: 1 });
        if (rest.length > 0) return error(404, "tool_not_found", `no tool \`${rest[0]}\``);
        if (url.searchParams.has("query")) return json(200, { tools: [{ ...TOOLS[1], score: 0.9 }], next: null });
        const start = Number(url.searchParams.get("after") ?? 0);
        return json(200, { tools: TOOLS.slice(start, start + 2), next: start + 2 < TOOLS.length ? String(start + 2) : null });
      },
      results: () => json(200, url.searchParams.get("offset") === "0" ? { text: "12", offset: 0, next: 2, total: 3 } : { text: "3", offset: 2, next: null, total: 3 }),
      servers: () => json(200, { servers: [{ name: "time", state: "stopped", tools: 2 }], next: null }),
      statistics: () => json(200, { statistics: [{ tool: "tool_0", weighted_calls: 3 }], next: null }),
      audit: () => json(200, rest[0] === "verify" ? { valid: true } : { records: [{ record: 1 }], next: null }),
      agents: () => {
        const agent = { name: "assistant", origin: "built_in", config: {} };
        if (request.method === "GET") return json(200, rest.length > 0 ? agent : { agents: [agent], next: null });
        if (rest[0] === "assistant") return error(409, "agent_read_only", "agent `assistant` is built in");
        if (request.method === "DELETE") return response.writeHead(204).end();
        return json(request.method === "POST" ? 201 : 200, { name: rest[0] ?? body.name, origin: "store", config: body });
      },
      approvals: () => {
        if (rest.length === 0) return json(200, { approvals: [{ approval: 7, run: RUN, step: "write", text: "{}" }] });
        this.decisions.push([rest[0], body]);
        if (this.decisionStatus !== 200) return error(this.decisionStatus, "approval_not_permitted", "HTTP clients may only deny tool calls");
        json(200, {});
        this.#onDecision();
      },
      "unknown-steps": () => (request.method === "GET" ? json(200, { steps: [{ run: RUN, step: "write#2" }] }) : json(202, { ...body, resumed: true })),
      runs: () => this.#runs(request, response, rest, json, error),
    };
    await (handlers[group] ?? (() => error(404, "not_found", "no such route")))();
  }

  async #runs(request, response, rest, json, error) {
    if (rest.length === 0 && request.method === "POST") {
      this.keys.add(request.headers["idempotency-key"]);
      if (!this.loseResponse) return json(202, { run: RUN, state: "running", events: `/api/v1/runs/${RUN}/events` });
      this.loseResponse = false;
      return request.socket.destroy();
    }
    if (rest.length === 0) return json(200, { runs: [{ run: RUN, state: "running" }], next: null });
    if (rest[0] !== RUN) return error(404, "run_not_found", `no run \`${rest[0]}\``);
    if (rest[1] === "events") return await this.#events(request, response, error);
    if (rest[1] === "cancel") this.isCancelled = true;
    const { state, answer } = this.script.at(-1);
    return json(200, { run: RUN, state, answer });
  }

  async #events(request, response, error) {
    const status = this.eventStatuses.shift();
    if (status === 0) return request.socket.destroy();
    if (status !== undefined) return error(status, "store_unavailable", "not now");
    const last = Number(request.headers["last-event-id"] ?? -1);
    if (last >= (this.script.at(-1).number ?? 0)) return response.writeHead(204).end();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    let left = this.cutAfter.shift();
    for (const each of this.script) {
      if ((each.number ?? last + 1) <= last) continue;
      if (each.number === this.waitsBefore && this.decisions.length === 0) await new Promise((resolve) => (this.#onDecision = resolve));
      const content = Buffer.from(encode(each));
      if (left !== undefined && content.length >= left) {
        response.write(content.subarray(0, left), () => setImmediate(() => request.socket.destroy()));
        return;
      }
      left = left === undefined ? undefined : left - content.length;
      response.write(content);
    }
    if (this.script.at(-1).type === "run_ended") response.end();
  }
}
