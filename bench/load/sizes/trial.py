"""How large one gateway can be: starts it with a store full of tools, and measures start, memory, calls, searches, lists, one more server, and idle
clients. usage: python3 bench/load/sizes/trial.py --binary PATH [--tools 100 10000 …] [--folder KEPT] [--clients N] [--json FILE]
"""

import argparse
import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import catalogue
from gateway import Gateway, Upstream
from http_client import TOKEN, Connection
from mcp_client import McpClient
from mcp_messages import last_message, legacy_headers, modern_headers, modern_meta

UPSTREAM_PORT = 7411


def client(gateway, legacy=False, name="sizes"):
    return McpClient(Connection(gateway.port, timeout=600), legacy=legacy, name=name)


async def timed(count, action):
    """Milliseconds of each of `count` actions."""
    times = []
    for number in range(count):
        began = time.perf_counter()
        await action(number)
        times.append((time.perf_counter() - began) * 1000)
    return times


async def list_page(one, path="/mcp", cursor=None):
    status, content = await one.post("tools/list", {"cursor": cursor} if cursor else {}, path=path)
    assert status == 200, content[:300]
    return last_message(content)["result"]


async def call_succeeds(one, name, arguments):
    outcome, detail = await one.call(name, arguments)
    assert outcome == "ok", f"{outcome}: {detail}"
    return detail


def first_tool(number):
    """The name and arguments of the first tool of a server."""
    definition = catalogue.tools(number)[0]
    return json.loads(definition)["name"], catalogue.arguments(definition)


async def calls(gateway, report):
    one = client(gateway)
    name, arguments = first_tool(gateway.servers // 2)
    request = {"name": name, "arguments": arguments}
    outcome, _ = await one.call("call_tool", request)
    if outcome != "ok":
        request["name"] = f"{catalogue.server_id(gateway.servers // 2)}.{name}"
        await call_succeeds(one, "call_tool", request)
    before = gateway.cpu_seconds()
    times = await timed(2000, lambda _: call_succeeds(one, "call_tool", request))
    report["call, CPU µs of the gateway"] = (gateway.cpu_seconds() - before) / 2000 * 1e6
    report["call, ms"] = statistics.median(times)


async def searches(gateway, report):
    one, requests = client(gateway), list(catalogue.requests(200))
    search = lambda number: call_succeeds(one, "search_tools", {"query": requests[number]})
    began = time.monotonic()
    await search(0)
    report["first search, s"] = time.monotonic() - began
    await timed(len(requests), search)
    before = gateway.cpu_seconds()
    times = await timed(len(requests), search)
    report["search, CPU ms of the gateway"] = (gateway.cpu_seconds() - before) / len(requests) * 1000
    report["search, ms"] = statistics.median(times)
    report["search, ms, mean"] = statistics.mean(times)
    report["B per tool after searches"] = gateway.memory()[0] / gateway.tools


async def lists(gateway, report):
    one = client(gateway)
    first = await timed(1, lambda _: list_page(one, path="/mcp/full"))
    report["first page of the full list, first time, ms"] = first[0]
    page = await list_page(one, path="/mcp/full")
    report["first page of the full list, ms"] = statistics.median(await timed(20, lambda _: list_page(one, path="/mcp/full")))
    count, pages, times = len(page["tools"]), 1, []
    while cursor := page.get("nextCursor"):
        began = time.perf_counter()
        page = await list_page(one, path="/mcp/full", cursor=cursor)
        times.append((time.perf_counter() - began) * 1000)
        count, pages = count + len(page["tools"]), pages + 1
    assert count >= gateway.tools, f"{count} tools on {pages} pages"
    if times:
        report["a later page of the full list, ms"] = statistics.median(times)
    report["pages of the full list"] = pages
    report["B per tool after the full list"] = gateway.memory()[0] / gateway.tools


async def until_callable(one, number):
    name, arguments = first_tool(number)
    request = {"name": f"{catalogue.server_id(number)}.{name}", "arguments": arguments}
    until = time.monotonic() + 300
    while time.monotonic() < until:
        for name_of_tool in (name, request["name"]):
            outcome, detail = await one.call("call_tool", dict(request, name=name_of_tool))
            if outcome == "ok" and detail.startswith(f"{number} "):
                return
        await asyncio.sleep(0.2)
    sys.exit(f"no tool of the new server can be called: {detail}")


async def add_server(gateway, report):
    one, number = client(gateway), 90_000
    await asyncio.sleep(2)
    rows, idle = gateway.rows(), gateway.cpu_seconds()
    await asyncio.sleep(2)
    idle, before, began = gateway.cpu_seconds() - idle, gateway.cpu_seconds(), time.monotonic()
    gateway.command("servers", "add", catalogue.server_id(number), "--url", gateway.url(number))
    await until_callable(one, number)
    report["a server added: until it is called, s"] = time.monotonic() - began
    report["a server added: until it is called, CPU s"] = gateway.cpu_seconds() - before
    before, times = gateway.cpu_seconds(), []
    words = first_tool(number)[0].replace("_", " ")
    times += await timed(1, lambda _: call_succeeds(one, "search_tools", {"query": words}))
    times += await timed(1, lambda _: list_page(one, path="/mcp/full"))
    report["a server added: next search, ms"], report["a server added: next full list, ms"] = times
    report["a server added: next search and list, CPU s"] = gateway.cpu_seconds() - before
    report["idle gateway, CPU s per s"] = idle / 2
    changed = {row[:3] for row in rows ^ gateway.rows()}
    report["a server added: rows written"] = len(changed)
    other = [row for row in changed if not row[1].startswith(catalogue.server_id(number))]
    assert not other, f"rows of other servers were written: {other[:3]}"


async def open_stream(gateway, method, headers, body=""):
    """A connection that waits for events."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    head = [f"{method} /mcp HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}", *(f"{name}: {value}" for name, value in headers)]
    head += ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body else []
    writer.write(("\r\n".join(head) + "\r\n\r\n" + body).encode())
    status = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in status.split(b"\r\n")[0] and b"text/event-stream" in status, status
    return writer


async def legacy_client(gateway, number):
    """A session that has listed the tools and waits at its event stream."""
    one = client(gateway, legacy=True, name=f"client{number}")
    await one.post("tools/list", {})
    stream = await open_stream(gateway, "GET", legacy_headers(one.session))
    one.connection.close()
    return stream


async def modern_client(gateway, number):
    """A connection over which the tools were listed."""
    one = client(gateway, name=f"client{number}")
    await one.post("tools/list", {})
    return one.connection


async def subscribed_client(gateway, number):
    """A modern client that waits for changes of the tools."""
    method = "subscriptions/listen"
    params = {"notifications": {"toolsListChanged": True}, "_meta": modern_meta(f"client{number}")}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return await open_stream(gateway, "POST", modern_headers(method), body)


async def idle_clients(gateway, count):
    """Bytes of memory per client that is connected and waits, each kind at a gateway of its own."""
    report = {"clients": count}
    for kind, connect in (("modern", modern_client), ("modern subscribed", subscribed_client), ("legacy", legacy_client)):
        gateway.measure_start()
        try:
            connections = [await connect(gateway, number) for number in range(100)]
            before = gateway.memory()[0]
            for start in range(100, count, 100):
                connections += await asyncio.gather(*(connect(gateway, number) for number in range(start, start + 100)))
            await asyncio.sleep(5)
            report[f"B per idle {kind} client"] = (gateway.memory()[0] - before) / (count - 100)
            for connection in connections:
                connection.close()
        finally:
            gateway.kill()
    return report


async def measure(gateway):
    report = {"tools": gateway.tools}
    if (filled := gateway.fill()) is not None:
        report["filling the store, s"] = filled
    report["start, s"] = gateway.measure_start()
    report["start, CPU s"] = gateway.cpu_seconds()
    try:
        resident, peak = gateway.memory()
        report["MB after the start"], report["MB at most during the start"] = resident / 1e6, peak / 1e6
        report["B per tool after the start"] = resident / gateway.tools
        one = client(gateway)
        began = time.monotonic()
        await list_page(one)
        report["first list of the search surface, s"] = time.monotonic() - began
        await calls(gateway, report)
        report["B per tool after calls"] = gateway.memory()[0] / gateway.tools
        await searches(gateway, report)
        if gateway.servers > 1:
            await lists(gateway, report)
            await add_server(gateway, report)
    finally:
        gateway.kill()
    return report


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True, type=Path)
    parser.add_argument("--tools", nargs="+", type=int, default=[100, 100_000, 1_000_000])
    parser.add_argument("--folder", type=Path, help="keeps the filled stores for the next trial")
    parser.add_argument("--clients", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    upstream, reports = Upstream(UPSTREAM_PORT), []
    try:
        with tempfile.TemporaryDirectory() as temporary:
            for tools in options.tools:
                home = (options.folder or Path(temporary)).resolve() / str(tools)
                gateway = Gateway(options.binary.resolve(), home, tools, UPSTREAM_PORT)
                report = asyncio.run(measure(gateway))
                if options.clients:
                    report |= asyncio.run(idle_clients(gateway, options.clients))
                reports.append(report)
                for name, value in report.items():
                    print(f"{name:52} {value:14,.3f}" if isinstance(value, float) else f"{name:52} {value:14,}", flush=True)
                print(flush=True)
    finally:
        upstream.stop()
    if options.json:
        options.json.write_text(json.dumps(reports, indent=1) + "\n")


main()
