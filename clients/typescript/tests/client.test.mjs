// The client against a stub server: every request, streams that break, approvals, and errors.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { ApiError, ConnectionFailed, LimitReached, PartialAnswer, RunCancelled, RunFailed, RunIsSuspended, TimedOut, Toolyard } from "../dist/index.js";
import { SseParser } from "../dist/events.js";
import { RUN, StubServer, TOKEN, event } from "./stub-server.mjs";

const APPROVAL_SCRIPT = [
  event(0, "run_created", { agent: "assistant", question: "q" }),
  event(1, "approval_requested", { step: "write", approval: 7, text: "write_note {}" }),
  event(2, "run_suspended", { approvals: [7], unknown_steps: [] }),
  event(3, "approval_decided", { step: "write", allow: true, scope: "run", by: "http" }),
  event(4, "run_resumed", { owner: "gateway" }),
  event(null, "answer_delta", { text: "时间 " }),
  event(5, "invented_later", { something: { nested: "字符" } }),
  event(6, "run_ended", { state: "answered", answer: "It is written." }),
];

let stub;
let client;
beforeEach(async () => {
  stub = await StubServer.start();
  client = new Toolyard({ baseUrl: stub.url, token: TOKEN });
});
afterEach(() => stub.stop());

async function collect(items) {
  const all = [];
  for await (const item of items) all.push(item);
  return all;
}
const eventRequests = () => stub.requests.filter(({ url }) => url.endsWith("/events")).map(({ headers }) => headers["last-event-id"]);
const isApiError = (status, code) => (error) => error instanceof ApiError && error.status === status && error.code === code;

test("tools are searched, listed page by page and described", async () => {
  assert.deepEqual((await client.tools.search("read excel & more")).map((tool) => tool.score), [0.9]);
  assert.match(stub.requests.at(-1).url, /query=read\+excel\+%26\+more$/);
  const page = await client.tools.list({ limit: 2 });
  assert.deepEqual([page.items.length, page.next], [2, "2"]);
  assert.equal((await collect(client.tools.iterate())).length, 5);
  const tool = await client.tools.get("odd/name");
  assert.deepEqual([tool.name, tool.added_later], ["odd/name", 1]);
});

test("tools are called, and long results are read whole", async () => {
  const result = await client.tools.call("tool_0", { count: 1 }, { source: "native" });
  assert.deepEqual(stub.requests.at(-1).body, { arguments: { count: 1 }, source: "native" });
  assert.deepEqual([result.source, await client.tools.result(result.result_id)], ["native", "123"]);
  await assert.rejects(client.tools.call("gone"), (error) => error.hint === "did you mean `tool_0`?" && error.message.endsWith("(hint: did you mean `tool_0`?)"));
});

test("a tool call whose response was lost is repeated only with a key", async () => {
  stub.loseResponse = true;
  await assert.rejects(client.tools.call("tool_0"), ConnectionFailed);
  assert.equal(stub.requests.length, 1);
  stub.loseResponse = true;
  assert.equal((await client.tools.call("tool_0", {}, { idempotencyKey: "k" })).is_error, false);
  assert.deepEqual(stub.requests.map(({ headers }) => headers["idempotency-key"]), [undefined, "k", "k"]);
});

test("agents are created, replaced and deleted", async () => {
  assert.equal((await client.agents.list()).items[0].origin, "built_in");
  assert.equal((await client.agents.get("assistant")).name, "assistant");
  assert.equal((await client.agents.create("writer", { instructions: "Be brief." })).name, "writer");
  assert.equal((await client.agents.replace("writer", { instructions: "Be long." })).name, "writer");
  assert.equal(await client.agents.delete("writer"), undefined);
  await assert.rejects(client.agents.replace("assistant"), isApiError(409, "agent_read_only"));
});

test("other lists", async () => {
  const servers = await client.servers.list();
  assert.deepEqual([servers.items[0].name, servers.next], ["time", null]);
  assert.equal((await client.statistics()).items[0].weighted_calls, 3);
  assert.deepEqual(await collect(client.audit.iterate()), [{ record: 1 }]);
  assert.equal((await client.audit.verify()).valid, true);
  assert.equal((await client.approvals.list())[0].approval, 7);
  assert.deepEqual((await collect(client.runs.iterate({ state: "running" }))).map(({ run }) => run), [RUN]);
});

test("an unknown step is resolved by its name", async () => {
  const [unknown] = await client.runs.unknown();
  const resolved = await client.runs.open(unknown.run).resolve(unknown.step, "done");
  assert.deepEqual(resolved, { run: RUN, step: "write#2", outcome: "done", resumed: true });
});

test("a wrong token and unknown names throw errors with codes", async () => {
  await assert.rejects(new Toolyard({ baseUrl: stub.url, token: "wrong" }).tools.list(), isApiError(401, "invalid_api_key"));
  await assert.rejects(collect(client.runs.open("01NONE").events()), isApiError(404, "run_not_found"));
  assert.equal(eventRequests().length, 1, "an unknown run is not asked for again");
});

test("a server that cannot be reached", async () => {
  assert.throws(() => new Toolyard({ baseUrl: "ftp://host" }), TypeError);
  await assert.rejects(new Toolyard({ baseUrl: "http://127.0.0.1:9" }).servers.list(), ConnectionFailed);
});

test("a run whose response was lost is started once", async () => {
  stub.loseResponse = true;
  assert.equal((await client.runs.create("q", { agent: "writer", plan_only: false })).id, RUN);
  assert.equal(stub.requests.length, 2);
  assert.equal(stub.keys.size, 1);
  assert.deepEqual(stub.requests[0].body, { question: "q", agent: "writer", plan_only: false });
});

test("a stream that breaks anywhere delivers each event once", async () => {
  stub.script = APPROVAL_SCRIPT.filter(({ number }) => number !== undefined);
  const cuts = Array.from({ length: 24 }, (_, index) => index * 31);
  for (const cut of cuts) {
    stub.cutAfter = [cut, 150];
    const events = await collect(client.runs.open(RUN).events());
    assert.deepEqual(events.map(({ number }) => number), [0, 1, 2, 3, 4, 5, 6], `cut after ${cut} bytes`);
  }
});

test("reconnections continue after the last event", async () => {
  stub.cutAfter = [150];
  await collect(client.runs.open(RUN).events());
  assert.deepEqual(eventRequests(), [undefined, "0"]);
});

test("refused connections and temporary errors are survived", async () => {
  stub.eventStatuses = [0, 503];
  assert.equal((await collect(client.runs.open(RUN).events())).length, 2);
});

test("nothing follows the last event", async () => {
  assert.deepEqual(await collect(client.runs.open(RUN).events({ after: 1 })), []);
});

test("unknown events and events without number are delivered", async () => {
  stub.script = APPROVAL_SCRIPT;
  const types = (await collect(client.runs.open(RUN).events())).map(({ type }) => type);
  assert.ok(types.includes("invented_later") && types.includes("answer_delta"), String(types));
});

test("waiting ends with the run, after the timeout or by a signal", async () => {
  assert.equal((await client.runs.open(RUN).wait({ timeoutMs: 5000 })).answer, "42");
  stub.script = stub.script.slice(0, 1);
  const started = Date.now();
  await assert.rejects(client.runs.open(RUN).wait({ timeoutMs: 200 }), TimedOut);
  await assert.rejects(client.runs.open(RUN).wait({ signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
  assert.ok(Date.now() - started < 2000);
});

test("an approval is asked for and given for the run", async () => {
  [stub.script, stub.waitsBefore] = [APPROVAL_SCRIPT, 3];
  const [texts, types] = [[], []];
  const onApproval = async ({ text }) => {
    texts.push(text);
    return "run";
  };
  assert.equal(await client.ask("q", { onApproval, onEvent: ({ type }) => types.push(type) }), "It is written.");
  assert.deepEqual(texts, ["write_note {}"]);
  assert.deepEqual(stub.decisions, [["7", { allow: true, scope: "run" }]]);
  assert.equal(types.length, APPROVAL_SCRIPT.length);
});

test("only a clear yes allows a call", async () => {
  stub.script = APPROVAL_SCRIPT;
  for (const [decision, allow] of [[true, true], ["once", true], [false, false], ["no", false], [1, false], [[], false]]) {
    stub.decisions = [];
    await client.ask("q", { onApproval: () => decision });
    assert.deepEqual(stub.decisions, [["7", { allow }]], JSON.stringify(decision));
  }
});

test("a missing decision leaves the run suspended", async () => {
  [stub.script, stub.waitsBefore] = [APPROVAL_SCRIPT, 3];
  for (const options of [{}, { onApproval: () => null }]) {
    const error = await client.ask("q", options).catch((error) => error);
    assert.ok(error instanceof RunIsSuspended, String(error));
    assert.deepEqual([error.approvals, error.run.id], [[7], RUN]);
  }
  assert.equal(stub.isCancelled, false);
});

test("an approval that is not permitted is an error, one decided elsewhere is not", async () => {
  stub.script = APPROVAL_SCRIPT;
  stub.decisionStatus = 403;
  await assert.rejects(client.ask("q", { onApproval: () => true }), isApiError(403, "approval_not_permitted"));
  stub.decisionStatus = 404;
  assert.equal(await client.ask("q", { onApproval: () => true }), "It is written.");
});

test("each state without an answer has its error", async () => {
  const errors = { partial: PartialAnswer, failed: RunFailed, cancelled: RunCancelled, limit_reached: LimitReached, new: RunFailed };
  for (const [state, type] of Object.entries(errors)) {
    stub.script = [event(0, "run_ended", { state, answer: "half", message: "no luck", hint: "try again" })];
    const error = await client.ask("q").catch((error) => error);
    assert.ok(error instanceof type && error.name === type.name, String(error));
    assert.deepEqual([error.answer, error.state], ["half", state]);
    assert.match(error.message, /try again/);
  }
});

test("a timeout or a signal cancels the run", async () => {
  stub.script = APPROVAL_SCRIPT.slice(0, 1);
  for (const [options, name] of [[() => ({ timeoutMs: 200 }), "TimedOut"], [() => ({ signal: AbortSignal.timeout(200) }), "TimeoutError"]]) {
    stub.isCancelled = false;
    await assert.rejects(client.ask("q", options()), { name });
    assert.equal(stub.isCancelled, true);
  }
});

test("events are parsed however they are split", () => {
  const text = ": comment\r\nid: 3\r\nevent: a\r\ndata: one\r\ndata:two\r\n\r\nretry: 20\rdata: x\r\rdata\n\ndata: incomplete";
  for (let size = 1; size < text.length; size++) {
    const parser = new SseParser();
    const events = [];
    for (let start = 0; start < text.length; start += size) events.push(...parser.push(text.slice(start, start + size)));
    const expected = [{ name: "a", data: "one\ntwo", id: "3" }, { name: "message", data: "x", id: null }, { name: "message", data: "", id: null }];
    assert.deepEqual([events, parser.retryMs], [expected, 20], `pieces of ${size}`);
  }
});
