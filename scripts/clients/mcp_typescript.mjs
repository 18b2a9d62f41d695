// Lists and calls tools through the gateway with an official TypeScript client:
// typescript.mjs PACKAGES VERSION legacy|modern http URL | stdio COMMAND…
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, version, family, transportKind, ...target] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${packages}/package.json`));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const names =
  version === "1"
    ? ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js", "@modelcontextprotocol/sdk/client/streamableHttp.js"]
    : ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio", "@modelcontextprotocol/client"];
const [{ Client }, { StdioClientTransport }, { StreamableHTTPClientTransport }] = await Promise.all(names.map(load));

const mode = family === "modern" ? { pin: "2026-07-28" } : "legacy";
const options = version === "1" ? {} : { versionNegotiation: { mode } };
const client = new Client({ name: "judge", version: "1" }, options);
const transport =
  transportKind === "http"
    ? new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers: { Authorization: `Bearer ${process.env.TOKEN}` } } })
    : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env, stderr: "ignore" });
await client.connect(transport);
const { tools } = await client.listTools();
const answer = await client.callTool({ name: "calculate", arguments: { expression: "6*7" } });
const upstream = await client.callTool({ name: "get_current_time", arguments: { timezone: "UTC" } });
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), answer: answer.content[0].text, upstream: upstream.content[0].text }));
process.exit(0);
