"""What the laboratory consists of: twenty upstream servers, the callers, and the limits that the checker knows. Pure data."""

import hashlib
from dataclasses import dataclass

MODERN, LEGACY = "2026-07-28", "2025-11-25"
GATEWAYS = ("a", "b", "c")
NATS_NODES = (1, 2, 3)
# Seconds. The deadline of every call is `[call] timeout`: nothing in the laboratory reports progress, which would extend it.
DEADLINE = 6.0
LATE_MARGIN = 0.25
LEASE = 4
RUN_LEASE = 5
DRAIN = 1


@dataclass(frozen=True)
class Server:
    """An upstream server with one tool, whose name is its kind and the name of the server."""

    name: str
    transport: str
    revision: str
    # counter: counts the calls of a session; record: a side effect; slow: the same, but answers later;
    # read: changes nothing; put: idempotent.
    kind: str
    # `isolation` of the settings; empty for the default, which is one instance for each caller if the server is stateful.
    isolation: str = "shared"
    is_stateless: bool = False

    @property
    def tool(self):
        return f"{self.kind}_{self.name}"

    @property
    def is_repeatable(self):
        """Whether the gateway may repeat a call: the tool says so, and the server is trusted."""
        return self.kind in ("read", "put")

    @property
    def is_counter(self):
        return self.kind == "counter"

    @property
    def has_session(self):
        return not self.is_stateless and (self.transport == "stdio" or self.revision == LEGACY)


SERVERS = (
    Server("s01", "stdio", LEGACY, "counter", isolation=""),
    Server("s02", "stdio", MODERN, "counter", isolation=""),
    Server("s03", "stdio", LEGACY, "counter"),
    Server("s04", "stdio", LEGACY, "record"),
    Server("s05", "stdio", MODERN, "record", is_stateless=True),
    Server("s06", "stdio", LEGACY, "record", is_stateless=True),
    Server("s07", "stdio", MODERN, "slow"),
    Server("s08", "stdio", LEGACY, "read", is_stateless=True),
    Server("s09", "stdio", MODERN, "put"),
    Server("s10", "stdio", LEGACY, "record", isolation=""),
    Server("h01", "http", LEGACY, "counter", isolation=""),
    Server("h02", "http", LEGACY, "counter"),
    Server("h03", "http", LEGACY, "record"),
    Server("h04", "http", MODERN, "record"),
    Server("h05", "http", MODERN, "record"),
    Server("h06", "http", MODERN, "slow"),
    Server("h07", "http", LEGACY, "slow"),
    Server("h08", "http", MODERN, "read"),
    Server("h09", "http", LEGACY, "put", is_stateless=True),
    Server("h10", "http", LEGACY, "record", is_stateless=True),
)
# Tools of the group of workers, if there are any: only workers have these servers.
WORKER_GROUP = "lab"
WORKER_SERVERS = (
    Server("w01", "stdio", LEGACY, "record", is_stateless=True),
    Server("w02", "stdio", MODERN, "slow", is_stateless=True),
    Server("w03", "stdio", LEGACY, "read", is_stateless=True),
)
BY_NAME = {server.name: server for server in SERVERS + WORKER_SERVERS}
STDIO = tuple(server.name for server in SERVERS if server.transport == "stdio")
HTTP = tuple(server.name for server in SERVERS if server.transport == "http")
# How callers talk to the gateways: MCP of both revision families, and the HTTP API, whose errors have a code.
PROTOCOLS = ("legacy", "modern", "api")


def worker_names(count):
    return tuple(f"worker-{number}" for number in range(1, count + 1))


def value_of(call_id):
    """What a call with this id returns. Another value belongs to another call."""
    return "v" + hashlib.sha256(f"lab {call_id}".encode()).hexdigest()[:12]
