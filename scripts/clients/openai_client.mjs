// Asks an agent of a running gateway with the JavaScript package `openai`: chat completions and responses, streamed, at once, and with errors.
// usage: openai_client.mjs PACKAGES BASE_URL TOKEN
// PACKAGES is the folder whose node_modules contains the package.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const [packages, baseURL, apiKey] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(`${packages}/node_modules/openai/index.mjs`).href);
let requests = 0;
const countingFetch = (...request) => {
  requests += 1;
  return fetch(...request);
};
const client = new OpenAI({ baseURL, apiKey, fetch: countingFetch });
const model = "assistant";
const [instructions, input] = ["Be brief.", "What is 2^10, and what time is it in Tokyo?"];
const messages = [{ role: "system", content: instructions }, { role: "user", content: input }];
const answer = "It is 1024, and the time in Tokyo was looked up.";

// Prints the result of a check, with the text that `run` returns; ends the program if it fails.
async function check(name, run) {
  try {
    console.log(`javascript: ${name.padEnd(28)} ok   ${await run()}`);
  } catch (error) {
    console.log(`javascript: ${name.padEnd(28)} FAILED   ${error.stack}`);
    process.exit(1);
  }
}

async function collect(items) {
  const all = [];
  for await (const item of items) all.push(item);
  return all;
}

// The request must fail with an error of OpenAI's shape, reported as `kind`, and must not be repeated.
async function expectError(send, kind, { status, type = "invalid_request_error", code, param = null }) {
  requests = 0;
  const error = await send().then(() => assert.fail(`no error, but ${code} is expected`), (error) => error);
  assert.ok(error instanceof kind, `not a ${kind.name}: ${error.stack}`);
  const { status: foundStatus, type: foundType, code: foundCode, param: foundParam } = error;
  assert.deepEqual({ status: foundStatus, type: foundType, code: foundCode, param: foundParam }, { status, type, code, param });
  assert.ok(error.error.message, "the error has no message");
  assert.equal(requests, 1, "the client repeated the request");
  return `${kind.name} ${status} ${code}`;
}

function checkRun(toolyard) {
  assert.match(toolyard.run, /^[0-9A-Z]{26}$/);
  assert.deepEqual([toolyard.awaits_approval, toolyard.partial], [false, false]);
  return `run ${toolyard.run}`;
}

await check("models", async () => {
  const names = (await collect(client.models.list())).map(({ id }) => id);
  assert.deepEqual(names, [model]);
  return names.join(", ");
});

await check("whole answer", async () => {
  const { choices, usage, toolyard } = await client.chat.completions.create({ model, messages });
  assert.deepEqual([choices[0].message.content, choices[0].finish_reason], [answer, "stop"]);
  assert.ok(usage.total_tokens > 0);
  return `${checkRun(toolyard)}: ${answer}`;
});

await check("streamed answer", async () => {
  const chunks = await collect(await client.chat.completions.create({ model, messages, stream: true }));
  const deltas = chunks.map(({ choices }) => choices[0].delta);
  const pieces = deltas.map(({ content }) => content).filter(Boolean);
  assert.ok(pieces.join("") === answer && pieces.length > 3, JSON.stringify(pieces));
  const reasoning = deltas.map((delta) => delta.reasoning_content ?? "").join("");
  assert.ok(reasoning.includes("power: done") && reasoning.includes("clock: done"), reasoning);
  const last = chunks.pop();
  assert.equal(last.choices[0].finish_reason, "stop");
  assert.ok(chunks.every((chunk) => chunk.toolyard === undefined && chunk.choices[0].finish_reason === null));
  return `${checkRun(last.toolyard)}: ${pieces.length} pieces`;
});

await check("whole response", async () => {
  const response = await client.responses.create({ model, instructions, input });
  assert.deepEqual([response.output_text, response.status], [answer, "completed"]);
  return `${checkRun(response.toolyard)}: ${answer}`;
});

await check("streamed response", async () => {
  const events = await collect(await client.responses.create({ model, instructions, input, stream: true }));
  const deltas = events.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta);
  assert.ok(deltas.join("") === answer && deltas.length > 3, JSON.stringify(deltas));
  assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
  const { type, response } = events.at(-1);
  assert.deepEqual([type, response.status, response.output[0].content[0].text], ["response.completed", "completed", answer]);
  return `${checkRun(response.toolyard)}: ${deltas.length} pieces in ${events.length} events`;
});

await check("wrong key", () => {
  const stranger = new OpenAI({ baseURL, apiKey: "wrong", fetch: countingFetch });
  return expectError(() => stranger.chat.completions.create({ model, messages }), OpenAI.AuthenticationError, { status: 401, code: "invalid_api_key" });
});
const unknown = { status: 404, code: "model_not_found", param: "model" };
await check("unknown agent", () => expectError(() => client.chat.completions.create({ model: "nobody", messages }), OpenAI.NotFoundError, unknown));
const tools = [{ type: "function", function: { name: "look_up", parameters: { type: "object" } } }];
const unsupported = { status: 400, code: "unsupported_parameter", param: "tools" };
await check("tools of the client", () => expectError(() => client.chat.completions.create({ model, messages, tools }), OpenAI.BadRequestError, unsupported));

const failing = { model, messages: [{ role: "user", content: "fail, please" }] };
const failed = { status: 422, type: "server_error", code: "run_failed" };
await check("a run that fails", () => expectError(() => client.chat.completions.create(failing, { maxRetries: 3 }), OpenAI.UnprocessableEntityError, failed));

await check("a model that was busy", async () => {
  requests = 0;
  const { output_text } = await client.responses.create({ model, input: "busy for a moment, please" }, { maxRetries: 1 });
  assert.deepEqual([output_text, requests], ["It was busy.", 2]);
  return "the client repeated the request";
});
