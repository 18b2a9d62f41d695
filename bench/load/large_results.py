#!/usr/bin/env python3
"""Measures whether large results slow down the calls of others: latency of small calls without large results, with large
results of plain text, and with large results full of `token=`, which redaction has to replace. The phases alternate in one
run, so that their ratios mean something on a busy machine, too.

usage: just large-results [--megabytes N] [--seconds N] [--rounds N] [--period SECONDS] [--callers N]
"""

import argparse, http.client, json, multiprocessing, os, pathlib, subprocess, sys, tempfile, time

SERVER = r"""
import json, sys
prefix, size = sys.argv[1], int(sys.argv[2])
def text(unit):
    return unit * (size // len(unit))
texts = {"small": "done", "plain": text("tokens and words, "), "secrets": text("token=hunter2secret ")}
results = {name: json.dumps({"content": [{"type": "text", "text": text}]}) for name, text in texts.items()}
tools = [{"name": f"{prefix}_{name}", "description": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
         for name in results]
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if "id" not in request:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        result = json.dumps(result)
    elif method == "tools/list":
        result = json.dumps({"tools": tools})
    elif method == "tools/call":
        result = results[request["params"]["name"].removeprefix(prefix + "_")]
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    sys.stdout.write('{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (json.dumps(request["id"]), result))
    sys.stdout.flush()
"""


class Client:
    """A legacy MCP client on one connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
        response, _ = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
        self.headers["MCP-Protocol-Version"] = "2025-06-18"
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message):
        self.connection.request("POST", "/mcp", json.dumps(message), self.headers)
        response = self.connection.getresponse()
        return response, response.read()

    def call(self, tool):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        response, body = self.post(message)
        if response.status != 200 or b'"content"' not in body:
            sys.exit(f"{tool}: HTTP {response.status}: {body[:300]!r}")
        return len(body)


def small_calls(port, until, interval, queue):
    client, latencies = Client(port), []
    while (start := time.monotonic()) < until:
        client.call("few_small")
        latencies.append(time.monotonic() - start)
        time.sleep(max(0, start + interval - time.monotonic()))
    queue.put(latencies)


def large_calls(port, tool, until, period, queue):
    client, latencies = Client(port), []
    while (start := time.monotonic()) < until:
        client.call(tool)
        latencies.append(time.monotonic() - start)
        time.sleep(max(0, min(until, start + period) - time.monotonic()))
    queue.put(latencies)


def phase(port, tool, options):
    """Latencies of small calls while `tool` is called once per period."""
    small, large = multiprocessing.Queue(), multiprocessing.Queue()
    until = time.monotonic() + options.seconds
    callers = [multiprocessing.Process(target=small_calls, args=(port, until, 0.005, small)) for _ in range(options.callers)]
    if tool:
        callers.append(multiprocessing.Process(target=large_calls, args=(port, tool, until, options.period, large)))
    for caller in callers:
        caller.start()
    latencies = [latency for _ in range(options.callers) for latency in small.get()]
    slow = large.get() if tool else []
    for caller in callers:
        caller.join()
    return latencies, slow


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] * 1_000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--megabytes", type=float, default=12)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--period", type=float, default=2.5)
    parser.add_argument("--callers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(home, "config/toolyard")
        folder.mkdir(parents=True)
        pathlib.Path(home, "server.py").write_text(SERVER)
        size = int(options.megabytes * 1_000_000)
        server = '[servers.%s]\ncommand = "python3"\nargs = ["%s/server.py", "%s", "%d"]\n'
        folder.joinpath("toolyard.toml").write_text(server % ("few", home, "few", 1_000) + server % ("much", home, "much", size))
        environment = {"PATH": os.environ["PATH"], "HOME": home, "XDG_CONFIG_HOME": f"{home}/config",
                       "XDG_DATA_HOME": f"{home}/data", "XDG_CACHE_HOME": f"{home}/cache"}
        # A gateway knows the tools of a server once it has been started.
        subprocess.run([options.binary, "servers", "test"], env=environment, cwd=home, check=True, capture_output=True)
        command = [options.binary, "serve", "--http", "127.0.0.1:0", "--no-auth"]
        hub = subprocess.Popen(command, env=environment, cwd=home, stderr=subprocess.PIPE, text=True)
        try:
            port = None
            while port is None:
                line = hub.stderr.readline() or sys.exit("toolyard ended")
                if "http://127.0.0.1:" in line:
                    port = int(line.split("http://127.0.0.1:")[1].split("/")[0])
            client = Client(port)
            client.call("few_small"), client.call("much_plain"), client.call("much_secrets")
            phases = {"no large results": None, "large plain results": "much_plain", "large results of token=": "much_secrets"}
            measured = {name: ([], []) for name in phases}
            for _ in range(options.rounds):
                for name, tool in phases.items():
                    for kept, new in zip(measured[name], phase(port, tool, options)):
                        kept.extend(new)
        finally:
            hub.terminate()
            hub.wait()
    print(f"{options.megabytes} MB every {options.period} s, {options.callers} small callers, {options.rounds} rounds of {options.seconds} s")
    print(f"{'milliseconds':26}{'calls':>8}{'p50':>8}{'p99':>8}{'worst':>9}{'large calls':>13}{'their p50':>11}")
    for name, (small, large) in measured.items():
        figures = [percentile(small, 0.5), percentile(small, 0.99), max(small) * 1_000]
        own = f"{percentile(large, 0.5):.0f}" if large else "-"
        print(f"{name:26}{len(small):8}{figures[0]:8.2f}{figures[1]:8.2f}{figures[2]:9.1f}{len(large):13}{own:>11}")
    p99 = {name: percentile(small, 0.99) for name, (small, _) in measured.items()}
    none, plain, secrets = p99.values()
    print(f"p99 with token= against plain text of the same size: {secrets / plain:.2f}; against no large results: {secrets / none:.2f}")


main()
