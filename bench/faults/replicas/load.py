"""Clients of both revision families that call `record` until they are told to stop, and what became of each call."""

import asyncio
import itertools
import time
from collections import Counter, namedtuple

from http_client import Broken, Connection
from mcp_client import McpClient

# `began` and `ended` are times of time.monotonic().
Call = namedtuple("Call", "entry legacy began ended outcome detail")


class Load:
    """Every client makes one call after the other; every second client is legacy and keeps its session."""

    def __init__(self, port, clients=16, pause=0.01, delay_ms=0):
        self.port, self.clients, self.pause, self.delay_ms = port, clients, pause, delay_ms
        self.calls, self.in_flight, self.is_stopping = [], {}, False
        self.tasks = []

    async def __aenter__(self):
        # A name that no other load of this trial uses.
        self.name = f"load{next(_NUMBERS)}"
        self.tasks = [asyncio.create_task(self._client(number)) for number in range(self.clients)]
        return self

    async def __aexit__(self, *_):
        self.is_stopping = True
        await asyncio.gather(*self.tasks)

    async def _client(self, number):
        legacy = number % 2 == 0
        client = McpClient(Connection(self.port), legacy)
        for count in itertools.count():
            if self.is_stopping:
                break
            entry, began = f"{self.name}-{number}-{count}", time.monotonic()
            try:
                outcome, detail = await client.call("record", {"entry": entry, "delay_ms": self.delay_ms})
                if outcome == "ok" and detail != entry:
                    outcome = "wrong answer"
            except Broken as error:
                outcome, detail = "broken connection", str(error)
            self.calls.append(Call(entry, legacy, began, time.monotonic(), outcome, detail))
            await asyncio.sleep(self.pause)
        client.connection.close()

    def failed(self):
        return [call for call in self.calls if call.outcome != "ok"]

    def summary(self):
        """The kinds of failures with their numbers, and one example."""
        failed = self.failed()
        if not failed:
            return ""
        kinds = ", ".join(f"{count}× {kind}" for kind, count in Counter(call.outcome for call in failed).most_common())
        return f"{kinds}; first: {failed[0].detail[:160].strip()!r}"


_NUMBERS = itertools.count(1)
