"""One caller of the trial: its key, its clients, and what it found in what it received."""

import asyncio
import json
import random
import time
from collections import Counter

from http_client import Broken, Connection
from mcp_client import McpClient
from operations import STEP_TIMEOUT, Failed, Trespass, choose, expect, same_idempotency_key

MAX_ATTEMPTS = 10
ENDED = {"answered", "partial", "failed", "cancelled", "suspended", "limit_reached", "planned"}


class Caller:
    def __init__(self, number, name, key, deployment, canaries, board, findings, is_operator=False):
        self.number, self.name, self.canaries, self.board, self.findings = number, name, canaries, board, findings
        self.is_operator = is_operator
        self.random = random.Random(number)
        self.connection = Connection(deployment.port, key, self.inspect, timeout=120)
        self.modern, self.legacy = McpClient(self.connection, False), McpClient(self.connection, True)
        self.modern_found, self.legacy_found = McpClient(self.connection, False), McpClient(self.connection, True)
        self.first_word = canaries.new(number)
        self.operation, self.bytes, self.responses, self.own = "", 0, 0, 0

    def inspect(self, content, what):
        """Called with every byte that arrives."""
        self.bytes += len(content)
        self.responses += 1
        self.own += self.canaries.own(self.number, content) > 0
        # The operator may see everything.
        if not self.is_operator:
            for canary in self.canaries.crossed(self.number, content):
                self.findings.add(self, what, canary, content)

    def any_client(self):
        return self.random.choice([self.modern, self.legacy])

    def any_found_client(self):
        """A client of the endpoint with the search surface, which has sessions of its own."""
        return self.random.choice([self.modern_found, self.legacy_found])

    async def api(self, method, path, body=None, headers=()):
        """Status and content. A gateway under load may ask to try again later."""
        for _ in range(MAX_ATTEMPTS):
            status, _, content = await self.connection.request(method, path, headers, body)
            if status != 503:
                break
            await asyncio.sleep(0.5)
        return status, content

    async def start_run(self, body):
        status, content = await self.api("POST", "/api/v1/runs", body)
        expect(status == 202, content)
        return json.loads(content)["run"]

    async def wait_for_run(self, run):
        deadline = time.monotonic() + STEP_TIMEOUT
        while True:
            status, content = await self.api("GET", f"/api/v1/runs/{run}")
            expect(status == 200, content)
            details = json.loads(content)
            if details["state"] in ENDED or time.monotonic() > deadline:
                return details
            await asyncio.sleep(0.05)

    async def work(self, calls):
        for number in range(calls):
            # Everybody uses the key that everybody else uses, at about the same time.
            operation = same_idempotency_key if number == 1 else choose(self.random)
            self.operation = operation.__name__
            if self.is_operator and self.operation.startswith(("steal", "operators")):
                continue
            self.findings.operations[self.operation] += 1
            try:
                await operation(self, self.canaries.new(self.number))
            except Trespass as error:
                self.findings.trespass(self, error)
            except (Failed, Broken) as error:
                self.findings.failed(self, error)
            if self.legacy.session and len(self.board.sessions) <= self.number:
                self.board.sessions.append((self.number, self.legacy.session))
        self.connection.close()


class Findings:
    """What all callers found."""

    def __init__(self, limit=20):
        self.operations, self.failures, self.crossed, self.limit = Counter(), Counter(), Counter(), limit
        self.examples, self.failure_examples = [], []

    def add(self, caller, what, canary, content):
        self.crossed[caller.operation] += 1
        # An example or two of each operation.
        if len(self.examples) < self.limit and self.crossed[caller.operation] <= 2:
            at = content.lower().find(canary.encode())
            context = content[max(0, at - 80) : at + 80].decode("utf-8", "replace")
            self.examples.append(f"{caller.name} received {canary} in {what} ({caller.operation}): …{context}…")

    def trespass(self, caller, error):
        self.crossed[caller.operation] += 1
        if len(self.examples) < self.limit and self.crossed[caller.operation] <= 2:
            self.examples.append(f"{caller.name}, {caller.operation}: {error}")

    def failed(self, caller, error):
        self.failures[caller.operation] += 1
        if len(self.failure_examples) < self.limit:
            self.failure_examples.append(f"{caller.name}, {caller.operation}: {error}")
