"""Load on the MCP server behind the replicas: an outage of the server, and one caller with very many slow calls."""

import asyncio
import statistics
import time

from http_client import Broken, Connection
from load import Load
from mcp_client import McpClient


async def upstream_outage(yard, report, options):
    """The MCP server is away under load. Each replica uses it again soon after its return."""
    outage = 10 if options.quick else 45
    fault = f"MCP server away {outage} s"
    async with Load(yard.port, options.clients, options.pause) as load:
        await asyncio.sleep(1)
        yard.stop_ledger()
        await asyncio.sleep(outage)
        await yard.start_ledger()
        back = time.monotonic()
        times = await asyncio.gather(*(time_to_success(replica, back) for replica in yard.replicas))
        await asyncio.sleep(1)
    slowest = max(times)
    report.check(fault, "used again after its return, slower replica", f"{slowest:.1f} s", "≤ 5 s", slowest <= 5)
    failed = sum(call.outcome != "ok" and call.began > back + slowest for call in load.calls)
    report.check(fault, "calls that failed later", failed, 0, failed == 0)


async def time_to_success(replica, since):
    client = McpClient(Connection(replica.port), legacy=False, name="probe")
    while time.monotonic() - since < 120:
        try:
            if (await client.call("record", {"entry": f"probe-{time.monotonic_ns()}"}))[0] == "ok":
                break
        except Broken:
            pass
        await asyncio.sleep(0.1)
    client.connection.close()
    return time.monotonic() - since


async def hog(yard, report, options):
    """More slow calls of one caller than a server may get at once (1,024 from each replica); another caller's take their own time."""
    fault, slow_calls, slow_ms, own_ms = "2,200 slow calls of one caller", 2200, 20_000, 500
    name = f"hog{time.monotonic_ns()}-"

    async def timed_calls():
        client, times = McpClient(Connection(yard.port), legacy=False, name="other"), []
        for _ in range(6):
            began = time.monotonic()
            outcome, detail = await client.call("record", {"entry": f"other-{time.monotonic_ns()}", "delay_ms": own_ms}, timeout=60)
            assert outcome == "ok", f"{outcome}: {detail}"
            times.append(time.monotonic() - began)
        client.connection.close()
        return times

    async def slow_call(number):
        client = McpClient(Connection(yard.port), legacy=False, name="hog")
        try:
            await client.call("record", {"entry": f"{name}{number}", "delay_ms": slow_ms}, timeout=120)
        except Broken:
            pass
        finally:
            client.connection.close()

    alone = statistics.median(await timed_calls())
    slow = []
    for number in range(slow_calls):
        slow.append(asyncio.create_task(slow_call(number)))
        # In steps, so that connecting does not fail.
        if number % 64 == 63:
            await asyncio.sleep(0.02)
    executing = await stable_count(lambda: len(yard.entries(name)))
    times = await timed_calls()
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    ratio = max(times) / alone
    report.check(fault, "slowest call of another caller, against alone", f"{ratio:.2f}×", "≤ 2×", ratio <= 2,
                 f"{alone * 1000:.0f} ms alone, {max(times) * 1000:.0f} ms beside {executing} slow calls at the server")


async def stable_count(count):
    """A count once it has not changed for a second."""
    last, since = count(), time.monotonic()
    while time.monotonic() - since < 1:
        await asyncio.sleep(0.1)
        if (now := count()) != last:
            last, since = now, time.monotonic()
    return last
