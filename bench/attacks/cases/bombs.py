"""Resource bombs: servers that answer with too much, too deep or never; other callers must not notice."""

import concurrent.futures
import statistics
import time
import zlib

from mcp_clients import ModernClient
from sandbox import READ_ONLY, tool, wait_until
from trial import OTHER, attack
from web_servers import WebServer


def resident_bytes(process):
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


@attack(
    "parser-bombs",
    "huge lines, deep JSON and floods end with an error; memory stays bounded and others are served",
    OTHER,
    quick=False,
)
def parser_bombs(trial):
    deep = 100_000
    bombs = {
        "huge_line": {"line": {"text": "x" * 1_000_000, "times": 100}},
        "deep_json": {"line": {"text": "[" * deep + "]" * deep, "times": 1}},
        "deep_message": {
            "line": {"text": '{"jsonrpc":"2.0","id":3,"result":' + '{"a":' * deep + "1" + "}" * deep + "}", "times": 1}
        },
        "half_message": {"line": {"text": '{"jsonrpc":"2.0","id":3,"result":{"content":[', "times": 1}},
        "stderr_flood": {"stderr": "flood " * 2_000_000, "text": "ok"},
        "large": {"repeat": {"text": "x", "bytes": 12_000_000}},
        "never": {"sleep": 600},
    }
    box = trial.box()
    for name, behaviour in bombs.items():
        box.server(f"s-{name.replace('_', '-')}", [tool(name, **READ_ONLY)], {"call_timeout": "3s"}, behaviour={name: behaviour})
    box.server("good", [tool("fine", **READ_ONLY)])
    box.meet()
    base = box.serve()
    good = ModernClient(base)
    trial.control(good.call("fine").succeeded, "fine does not work")
    before = resident_bytes(box.gateway)

    def call(name):
        began = time.monotonic()
        ModernClient(base).call(name, timeout=30)
        return name, time.monotonic() - began

    with concurrent.futures.ThreadPoolExecutor(len(bombs)) as pool:
        running = [pool.submit(call, name) for name in bombs]
        times = []
        while not all(future.done() for future in running):
            began = time.monotonic()
            trial.must(good.call("fine").succeeded, "another server's call failed")
            times.append(time.monotonic() - began)
            time.sleep(0.02)
        for future in running:
            name, seconds = future.result()
            trial.must(seconds < 20, f"{name} took {seconds:.0f} s")
    trial.must(box.gateway.poll() is None, "the gateway ended")
    grown = (resident_bytes(box.gateway) - before) >> 20
    trial.must(grown < 150, f"memory grew by {grown} MiB")
    trial.note(f"others: slowest {max(times) * 1000:.0f} ms, memory +{grown} MiB")


@attack(
    "definition-bombs", "100,000 tools, endless pages, reference and pattern bombs in schemas end at a limit", OTHER, quick=False
)
def definition_bombs(trial):
    cycle = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a", "type": "object"}
    exponential = {
        "type": "object",
        "$defs": {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 10} for n in range(12)} | {"l12": {"type": "string"}},
        "properties": {"x": {"$ref": "#/$defs/l0"}},
    }
    pattern = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    elsewhere = {
        "type": "object",
        "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}, "y": {"$ref": "file:///etc/passwd"}},
    }
    scripts = {
        "many": {"tools": [tool(f"t{n}") for n in range(100_000)]},
        "pages": {"tools": [tool("p")], "pages": True},
        "schemas": {
            "tools": [
                {**tool(name), "inputSchema": schema}
                for name, schema in (
                    ("cycle", cycle),
                    ("exponential", exponential),
                    ("pattern", pattern),
                    ("elsewhere", elsewhere),
                )
            ]
        },
        "long": {"tools": [tool("long", "x" * 10_000_000)]},
    }
    box = trial.box()
    for name, script in scripts.items():
        box.server(name, **script)
    box.server("good", [tool("fine")])
    began = time.monotonic()
    box.run("servers", "test", timeout=60)
    trial.must(time.monotonic() - began < 40, "reading the tools took too long")
    began = time.monotonic()
    box.call("pattern", {"x": "a" * 40 + "!"})
    box.call("cycle", {"x": 1})
    box.call("exponential", {"x": 1})
    seconds = time.monotonic() - began
    trial.must(seconds < 10, f"schema bombs took {seconds:.0f} s")
    trial.must(box.call("fine").code == 0, "another server's tool no longer works")


@attack(
    "redaction-stalls-others",
    "a 12 MB result full of `token=` does not stall the calls of others",
    OTHER,
    quick=False,
    alone=True,
)
def redaction_stall(trial):
    box = trial.box()
    for name, text in (("tokens", "token="), ("bearer", "Bearer "), ("mixed", "password: api_key=sk-")):
        box.server(f"s-{name}", [tool(name, **READ_ONLY)], behaviour={name: {"repeat": {"text": text, "bytes": 12_000_000}}})
    box.server("good", [tool("fine", **READ_ONLY)])
    box.settings(top='journal = "always"\n')
    box.meet()
    base = box.serve()
    good = ModernClient(base)
    trial.control(good.call("fine").succeeded, "fine does not work")

    def sample(seconds, until=None):
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end or (until and not until()):
            began = time.monotonic()
            good.call("fine")
            times.append((time.monotonic() - began) * 1000)
            time.sleep(0.005)
        return times

    quiet = sample(1.0)
    for name in ("tokens", "bearer", "mixed"):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(lambda name=name: ModernClient(base).call(name, timeout=60))
            times = sample(0.5, running.done)
        # The worst call counts: the whole gateway stood still for 1,300 to 1,800 ms when redaction ran on the event loop.
        limit = max(300, 5 * max(quiet))
        trial.must(max(times) < limit, f"{name}: a call of another waited {max(times):.0f} ms (quiet: {max(quiet):.0f})")
        trial.note(f"{name}: worst {max(times):.0f} ms, median {statistics.median(times):.1f}")
    trial.note(f"quiet: worst {max(quiet):.0f} ms")


@attack("compression-bomb", "a compressed response of an HTTP server is not expanded beyond the limit", OTHER, quick=False)
def compression_bomb(trial):
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join(bomb.compress(b" " * 1_000_000) for _ in range(300)) + bomb.flush()
    server = trial.keep(WebServer(lambda request: (200, {"Content-Encoding": "gzip"}, body)))
    box = trial.box()
    box.settings(f'[servers.remote]\nurl = "{server.url}/mcp"\nstartup_timeout = "5s"\n')
    box.serve()
    wait_until(lambda: server.requests, 5)
    peak = 0
    for _ in range(20):
        peak = max(peak, resident_bytes(box.gateway))
        time.sleep(0.1)
    trial.control(server.requests, "the server was not asked")
    trial.must(peak < 150 << 20, f"the gateway uses {peak >> 20} MiB")
    trial.note(f"at most {peak >> 20} MiB for 300 MB in {len(body) >> 10} KiB")
