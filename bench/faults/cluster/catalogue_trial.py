"""The tools of a server in a cluster of two gateways, on a real NATS and PostgreSQL: one gateway learns them, both have them.

1. Both gateways start without knowing the server: it is started once, and both list its tool.
2. The server announces a new tool: both list it within a second, and the server is not started again.
3. The definition of a tool changes, and the operator approves it with a command: both offer it again within the poll period.
4. NATS is away while the server announces another tool: both list it within the poll period.
Prints one line per part, and fails if a promise does not hold.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# What the trials share; before the imports that need it.
sys.path.append(str(FOLDER.parents[1] / "common"))

from blocking_http import modern_request
from gateway_process import GatewayProcess, create_home, stopping
from http_client import TOKEN
from nats import start_nats
from postgres import started_server
from processes import block_until

# Seconds: the longest time between two polls, and some for a busy machine.
POLL = 6 + 2
SETTINGS = """
store = "{store}"

[cluster]
nats = "nats://127.0.0.1:{nats}"

[serve]
token = "${{SERVE_TOKEN}}"
agents = false
drain = "0s"

[servers.catalogue]
command = "python3"
args = ["{server}", "{tools}", "{starts}"]
hold_new_tools = "none"
"""


def listed_tools(gateway):
    answer = modern_request(gateway.port, "catalogue-trial", "tools/list", {}, headers=[("Authorization", f"Bearer {TOKEN}")])
    return {tool["name"]: tool.get("description", "") for tool in answer["result"]["tools"]}


def wait_for_all(gateways, is_there, seconds):
    """Seconds until all gateways list what is wanted; None if they do not."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if all(is_there(listed_tools(gateway)) for gateway in gateways):
            return time.monotonic() - began
        time.sleep(0.02)
    return None


def described(after):
    return "never" if after is None else f"after {after:.2f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="toolyard")
    options = parser.parse_args()
    store = f"{started_server()}/postgres"
    failures = []
    with tempfile.TemporaryDirectory(prefix="toolyard-catalogue-") as folder:
        folder = Path(folder)
        nats, port = start_nats(folder)
        tools, starts = folder / "tools", folder / "starts"
        starts.touch()

        def offer(**definitions):
            """Replaces the file at once, so that the server never reads half of it."""
            new = folder / "new"
            new.write_text("".join(f"{name} {text}\n" for name, text in definitions.items()))
            new.rename(tools)

        def check(part, holds, text):
            print(f"{part}: {text}; {len(starts.read_text().split())} starts of the server so far")
            if not holds:
                failures.append(part)

        offer(alpha="The first tool")
        settings = SETTINGS.format(store=store, nats=port, server=FOLDER / "catalogue_server.py", tools=tools, starts=starts)
        homes = [folder / f"gateway-{number}" for number in range(2)]
        gateways = [GatewayProcess(options.binary, home, create_home(home, settings)) for home in homes]
        with stopping(gateways, nats):
            # The first command creates the tables.
            gateways[0].command("store", "check")
            for gateway in gateways:
                gateway.spawn()
            for gateway in gateways:
                gateway.wait_until_serving()
            after = wait_for_all(gateways, lambda found: "alpha" in found, 30)
            time.sleep(1)
            count = len(starts.read_text().split())
            check("unknown server", after is not None and count == 1, f"both gateways list its tool {described(after)}")

            offer(alpha="The first tool", beta="The second tool")
            after = wait_for_all(gateways, lambda found: "beta" in found, 10)
            check("announced tool", after is not None and after <= 1 and len(starts.read_text().split()) == count, f"both list it {described(after)}")

            offer(alpha="Another definition", beta="The second tool")
            held = wait_for_all(gateways, lambda found: "alpha" not in found, 10)
            gateways[1].command("servers", "approve", "catalogue", "--yes")
            after = wait_for_all(gateways, lambda found: found.get("alpha") == "Another definition", POLL + 10)
            text = f"both hold the changed definition {described(held)}, and offer it {described(after)} the approval (wanted ≤ {POLL} s)"
            check("approval", held is not None and after is not None and after <= POLL, text)

            nats.kill()
            nats.wait()
            for gateway in gateways:
                block_until(lambda: "connection to NATS lost" in gateway.latest_log(), 10, f"{gateway.home.name} notices that NATS is away")
            offer(alpha="Another definition", beta="The second tool", gamma="The third tool")
            after = wait_for_all(gateways, lambda found: "gamma" in found, POLL + 10)
            check("without NATS", after is not None and after <= POLL, f"both list another tool {described(after)} (wanted ≤ {POLL} s)")
    if failures:
        sys.exit(f"failed: {', '.join(failures)}")


main()
