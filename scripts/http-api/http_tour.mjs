// The TypeScript part of scripts/http-api/http-tour:
// http_tour.mjs MODULE URL TOKEN QUESTION ANSWER
// MODULE is the compiled client; QUESTION contains `PURPOSE`, which each check replaces. The exit code is 1 if a check fails.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const [modulePath, baseUrl, token, question, answer] = process.argv.slice(2);
const { ApiError, RunIsSuspended, Toolyard } = await import(pathToFileURL(modulePath).href);
const client = new Toolyard({ baseUrl, token });
const timeoutMs = 120_000;
const agent = "clock";
let failed = 0;

async function check(name, run) {
  let [result, detail] = ["ok", ""];
  try {
    detail = await run();
  } catch (error) {
    [result, detail] = ["FAILED", `${error.name}: ${error.message.split("\n").join(" ")}`];
    failed = 1;
  }
  console.log(`${"typescript".padEnd(11)} ${name.padEnd(22)} ${result.padEnd(7)} ${detail}`);
}

async function expectError(status, promise) {
  const error = await promise.then(() => null, (error) => error);
  assert.ok(error instanceof ApiError, `expected status ${status}, got ${error}`);
  assert.equal(error.status, status, error.message);
  return `${error.status} ${error.code}`;
}

async function collect(items) {
  const all = [];
  for await (const item of items) all.push(item);
  return all;
}

await check("errors", async () => {
  const unknown = client.runs.open("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  const errors = [
    await expectError(401, new Toolyard({ baseUrl, token: "wrong" }).tools.list()),
    await expectError(404, unknown.get()),
    await expectError(404, collect(unknown.events())),
    await expectError(409, client.agents.delete(agent)),
  ];
  return errors.join(", ");
});

await check("servers and tools", async () => {
  assert.deepEqual((await client.servers.list()).items.map(({ name }) => name), ["time"]);
  const tools = await collect(client.tools.iterate());
  assert.ok(tools.some(({ name }) => name === "calculate"));
  const found = await client.tools.search("current time in a timezone");
  assert.ok(found.slice(0, 2).some(({ name }) => name === "get_current_time"), JSON.stringify(found));
  assert.ok((await client.tools.get("calculate")).input_schema.properties.expression);
  return `${tools.length} tools`;
});

await check("agents", async () => {
  const created = await client.agents.create("typist", { instructions: "Be brief." });
  assert.equal(created.origin, "store");
  assert.equal((await client.agents.replace("typist", { description: "Types." })).description, "Types.");
  await client.agents.delete("typist");
  return await expectError(404, client.agents.get("typist"));
});

await check("streamed run", async () => {
  const run = await client.runs.create(question.replace("PURPOSE", "stream"), { agent });
  const types = [];
  for await (const event of run.events({ timeoutMs })) {
    types.push(event.type);
    if (event.type === "approval_requested") await client.approvals.decide(event.approval, { allow: true, scope: "run" });
    if (event.type === "run_ended") assert.deepEqual([event.state, event.answer], ["answered", answer]);
  }
  assert.deepEqual([types[0], types.at(-1)], ["run_created", "run_ended"]);
  assert.equal(types.filter((type) => type === "approval_requested").length, 1, String(types));
  const again = await collect(run.events());
  assert.deepEqual(await collect(run.events({ after: again.at(-1).number })), []);
  assert.equal((await run.get()).answer, answer);
  return `${types.length} events, 1 approval for 2 calls`;
});

await check("ask", async () => {
  const texts = [];
  const onApproval = ({ text }) => texts.push(text) > 0;
  assert.equal(await client.ask(question.replace("PURPOSE", "ask"), { agent, onApproval, timeoutMs }), answer);
  assert.equal(texts.length, 2);
  return "2 approvals for 2 calls";
});

await check("suspended run", async () => {
  const error = await client.ask(question.replace("PURPOSE", "leave"), { agent, timeoutMs }).catch((error) => error);
  assert.ok(error instanceof RunIsSuspended, String(error));
  await client.approvals.decide(error.approvals[0], { allow: false });
  const { state } = await error.run.wait({ timeoutMs });
  assert.notEqual(state, "suspended");
  return `suspended, denied, then ${state}`;
});

await check("statistics and audit", async () => {
  assert.ok((await client.statistics()).items.some(({ tool }) => tool === "get_current_time"));
  const records = await collect(client.audit.iterate());
  assert.ok(records.length > 0);
  await client.audit.verify();
  return `${records.length} records`;
});
process.exit(failed);
