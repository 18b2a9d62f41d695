#!/usr/bin/env python3
"""Drives two `toolyard serve` processes with one PostgreSQL store beyond a quota of calls, and checks what they admit together.

usage: just quota-trial [--limit 600] [--seconds 75] [--clients 4] [--uneven]

Every client of both replicas calls the tool `calculate` as fast as it is answered. In no minute may they admit more than the limit, and over the
first minute at least 95 % of it. With --uneven, one replica gets a hundredth of the calls. The binary is $TOOLYARD_BIN, or that of the release build.
"""

import argparse
import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench/common"))

from postgres import query, started_server  # noqa: E402
from processes import free_port  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
TOOLYARD = os.environ.get("TOOLYARD_BIN") or str(TARGET / "release/toolyard")
WINDOW_SECONDS = 60
SETTINGS = """store = "${STORE}"
[serve]
token = "${SERVE_TOKEN}"
[[quotas]]
name = "trial"
calls = { limit = LIMIT, window = "60s" }
"""


def new_database():
    """A database of its own on the test server."""
    name = f"quota_{uuid.uuid4().hex}"
    query(f"{started_server()}/postgres", f"CREATE DATABASE {name}")
    return f"{started_server()}/{name}"


class Client(threading.Thread):
    """Calls one replica until the end; notes when a call was admitted."""

    def __init__(self, port, token, end, pause):
        super().__init__(daemon=True)
        self.port, self.token, self.end, self.pause = port, token, end, pause
        self.admitted, self.refused, self.other = [], 0, []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        body = json.dumps({"arguments": {"expression": "1+1"}})
        while time.monotonic() < self.end:
            connection.request("POST", "/api/v1/tools/calculate/call", body, headers)
            response = connection.getresponse()
            text = response.read()
            if response.status == 200:
                self.admitted.append(time.monotonic())
            elif response.status == 429 and int(response.headers["retry-after"]) >= 0:
                self.refused += 1
            else:
                self.other.append((response.status, text[:200]))
            time.sleep(self.pause)


def start_replica(folder, settings, variables):
    port = free_port()
    home = Path(folder) / str(port)
    home.mkdir()
    command = [TOOLYARD, "--config", str(settings), "serve", "--http", f"127.0.0.1:{port}"]
    environment = {**variables, "HOME": str(home), "PATH": os.environ["PATH"]}
    log = open(home / "log", "w")
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, port
        time.sleep(0.1)
    sys.exit(f"a replica does not start: {(home / 'log').read_text()}")


def most_in_window(times):
    """The largest number of calls within any window."""
    start = most = 0
    for end, at in enumerate(times):
        while at - times[start] >= WINDOW_SECONDS:
            start += 1
        most = max(most, end - start + 1)
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--seconds", type=int, default=75)
    parser.add_argument("--clients", type=int, default=4, help="per replica")
    parser.add_argument("--uneven", action="store_true")
    arguments = parser.parse_args()
    token = secrets.token_hex(24)
    variables = {"STORE": new_database(), "SERVE_TOKEN": token}
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "toolyard.toml"
        settings.write_text(SETTINGS.replace("LIMIT", str(arguments.limit)))
        replicas = []
        try:
            for _ in range(2):
                replicas.append(start_replica(folder, settings, variables))
            end = time.monotonic() + arguments.seconds
            pauses = [0.002, 0.5] if arguments.uneven else [0.002, 0.002]
            clients = [
                [Client(port, token, end, pause) for _ in range(arguments.clients)]
                for (_, port), pause in zip(replicas, pauses)
            ]
            for client in sum(clients, []):
                client.start()
            for client in sum(clients, []):
                client.join()
        finally:
            for process, _ in replicas:
                process.terminate()
            for process, _ in replicas:
                process.wait(30)
    other = sum((client.other for client in sum(clients, [])), [])
    if other:
        sys.exit(f"unexpected answers: {other[:3]}")
    times = sorted(sum((client.admitted for client in sum(clients, [])), []))
    refused = sum(client.refused for client in sum(clients, []))
    first_minute = sum(1 for at in times if at - times[0] < WINDOW_SECONDS)
    most = most_in_window(times)
    shares = [sum(len(client.admitted) for client in of_replica) for of_replica in clients]
    print(
        f"limit {arguments.limit} per minute; admitted {len(times)} in {arguments.seconds} s ({shares[0]} + {shares[1]}), refused {refused}; "
        f"first minute {first_minute} ({100 * first_minute / arguments.limit:.1f} %), most in any minute {most} ({100 * most / arguments.limit:.1f} %)"
    )
    if most > arguments.limit:
        sys.exit("more than the limit")
    if first_minute < 0.95 * arguments.limit:
        sys.exit("less than 95 % of the limit")


main()
