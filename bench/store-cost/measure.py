"""What a call and a run cost in the store: rows, bytes and transactions in PostgreSQL.

Starts a gateway on an empty database, makes calls and runs, and reads the sizes of all tables before and after.
usage: scripts/store-cost [--calls N] [--runs N]
"""

import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SETTINGS = """
store = "{store}"
journal = "{journal}"

[models.scripted]
url = "http://127.0.0.1:{model}/v1"
model = "scripted"

[approvals]
allow = ["calculate"]
"""
MODERN = "2026-07-28"


class ScriptedModel(BaseHTTPRequestHandler):
    """An OpenAI-compatible model that calls `calculate` twice, one call after the other, and then answers."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        done = sum(message["role"] == "tool" for message in request["messages"])
        if done < 2 and request.get("tools"):
            call = {"name": "calculate", "arguments": json.dumps({"expression": f"{done} + 41"})}
            message = {"role": "assistant", "content": None, "tool_calls": [{"id": f"call_{done}", "type": "function", "function": call}]}
        else:
            message = {"role": "assistant", "content": "The results are 41 and 42."}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "scripted", "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
        body["choices"] = [{"index": 0, "message": message, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}]
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Database:
    def __init__(self, url):
        self.url = url

    def rows(self, query):
        done = subprocess.run(["psql", self.url, "-Atc", query], capture_output=True, text=True, check=True)
        return [line.split("|") for line in done.stdout.splitlines()]

    def sizes(self):
        """Rows and bytes, with indexes, of each table."""
        tables = [name for (name,) in self.rows("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")]
        self.rows("CHECKPOINT")
        sizes = {}
        for table in tables:
            [[rows, size]] = self.rows(f"SELECT count(*), pg_total_relation_size('{table}') FROM {table}")
            sizes[table] = (int(rows), int(size))
        return sizes

    def transactions(self):
        [[commits]] = self.rows("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        return int(commits)

    def wal(self):
        [[position]] = self.rows("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
        return int(position)


class Gateway:
    def __init__(self, binary, home, settings):
        file = home / "config/toolyard/toolyard.toml"
        file.parent.mkdir(parents=True)
        file.write_text(settings)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
        environment |= {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}
        log = open(home / "log", "w")
        command = [binary, "serve", "--http", "127.0.0.1:0", "--no-auth"]
        self.process = subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=log)
        until = time.monotonic() + 30
        while not (found := re.search(r"serving at http://127\.0\.0\.1:(\d+)", (home / "log").read_text())):
            if time.monotonic() > until:
                sys.exit((home / "log").read_text())
            time.sleep(0.05)
        self.port = int(found[1])

    def post(self, connection, path, body, headers=()):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **dict(headers)})
        response = connection.getresponse()
        return json.loads(response.read() or b"null")

    def call(self, connection, number):
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "store-cost", "version": "1"},
        }
        params = {"name": "calculate", "arguments": {"expression": f"{number} + 1"}, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "calculate"}
        answer = self.post(connection, "/mcp", message, headers.items())
        if str(number + 1) not in json.dumps(answer):
            sys.exit(f"a call failed: {answer}")

    def run(self, connection, number):
        run = self.post(connection, "/api/v1/runs", {"question": f"Add 41 to 0 and to 1 (request {number})."})
        while True:
            connection.request("GET", f"/api/v1/runs/{run['run']}")
            state = json.loads(connection.getresponse().read())["state"]
            if state not in ("open", "running", "queued"):
                if state != "answered":
                    sys.exit(f"a run ended as {state}")
                return
            time.sleep(0.02)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def measure(name, count, database, work):
    """Does the work, waits until the store is written, and prints what it cost per piece."""
    work(0)
    time.sleep(3)
    before, transactions, wal = database.sizes(), database.transactions(), database.wal()
    for number in range(1, count + 1):
        work(number)
    time.sleep(3)
    after, transactions, wal = database.sizes(), database.transactions() - transactions, database.wal() - wal
    changed = {table: (after[table][0] - before[table][0], after[table][1] - before[table][1]) for table in after}
    rows = {table: round(rows / count, 2) for table, (rows, _) in changed.items() if rows}
    size = {table: round(size / count) for table, (_, size) in changed.items() if size}
    print(f"{name}: rows {sum(rows.values()):.2f}, bytes {sum(size.values())}, WAL bytes {round(wal / count)}, transactions {transactions / count:.2f}")
    for table in sorted(set(rows) | set(size)):
        print(f"    {table}: {rows.get(table, 0)} rows, {size.get(table, 0)} bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=300)
    arguments = parser.parse_args()
    model = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedModel)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    for journal in ("runs", "always"):
        admin = Database(f"{arguments.store}/postgres")
        admin.rows(f"CREATE DATABASE cost_{journal}")
        database = Database(f"{arguments.store}/cost_{journal}")
        with tempfile.TemporaryDirectory() as folder:
            settings = SETTINGS.format(store=database.url, journal=journal, model=model.server_port)
            gateway = Gateway(arguments.binary, Path(folder), settings)
            connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
            try:
                measure(f"call, journal = \"{journal}\"", arguments.calls, database, lambda number: gateway.call(connection, number))
                if journal == "runs":
                    measure("run with two steps", arguments.runs, database, lambda number: gateway.run(connection, number))
            finally:
                gateway.stop()


main()
