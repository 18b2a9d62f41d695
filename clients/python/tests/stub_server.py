"""A server that speaks the HTTP API with canned data, and misbehaves on request: streams that break, statuses, dropped connections."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import parse_qs, urlsplit

TOKEN = "a-token"
TOOLS = [
    {"name": f"tool_{index}", "source": "native", "kind": "native", "title": None, "description": "", "effect": "read-only", "read_only": True,
     "destructive": False, "idempotent": True, "open_world": False}
    for index in range(5)
]
RUN = "01RUN"


def event(number: Optional[int], kind: str, **fields: Any) -> Dict[str, Any]:
    numbered = {} if number is None else {"number": number}
    return {"type": kind, "run": RUN, **numbered, **fields}


def encode(each: Dict[str, Any]) -> bytes:
    head = f"id: {each['number']}\n" if "number" in each else ""
    return f"{head}event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode()


class StubServer(ThreadingHTTPServer):
    """`script` is the log of the run; the fields below it choose how the stub misbehaves."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests: List[Tuple[str, str, Dict[str, str], Any]] = []
        self.script = [event(0, "run_created", agent="assistant", question="q"), event(1, "run_ended", state="answered", answer="42")]
        #: Bytes of a stream after which the connection breaks, one per connection.
        self.cut_after: List[int] = []
        #: Statuses of the next requests for events.
        self.event_statuses: List[int] = []
        #: Whether the next response to POST /runs, or to a call of a tool, is lost after the run was started or the call made.
        self.lose_response = False
        #: The number of the event that waits for a decision, and the decisions so far.
        self.waits_before: Optional[int] = None
        self.decisions: List[Any] = []
        self.decision_status = 200
        self.decided = threading.Event()
        self.cancelled = threading.Event()
        self.keys: set[str] = set()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # Broken connections are the point.


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StubServer

    def log_message(self, *_: Any) -> None:
        pass

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parsed = json.loads(body) if body else None
        self.server.requests.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, parsed))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._error(401, "invalid_api_key", "invalid bearer token")
        url = urlsplit(self.path)
        parts = url.path.split("/")[3:] if url.path.startswith("/api/v1/") else []
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        group = parts[0].replace("-", "_") if parts else "nothing"
        getattr(self, "_" + group, self._nothing)(parts[1:], query, parsed)

    do_GET = do_POST = do_PUT = do_DELETE = _handle

    def _nothing(self, *_: Any) -> None:
        self._error(404, "not_found", "no such route")

    def _tools(self, rest: List[str], query: Dict[str, str], body: Any) -> None:
        if rest == ["gone", "call"]:
            error = {"code": "tool_not_found", "message": "no tool `gone`", "param": None, "hint": "did you mean `tool_0`?"}
            return self._json(404, {"error": error})
        if rest[1:] == ["call"] and self.server.lose_response:
            self.server.lose_response = False
            return self._drop()
        if rest[1:] == ["call"]:
            return self._json(200, {"output": "12…", "is_error": False, "source": body.get("source"), "result_id": "r_1"})
        if rest == ["odd%2Fname"]:
            return self._json(200, {**TOOLS[0], "name": "odd/name", "input_schema": {}, "added_later": 1})
        if rest:
            return self._error(404, "tool_not_found", f"no tool `{rest[0]}`")
        if "query" in query:
            return self._json(200, {"tools": [{**TOOLS[1], "score": 0.9}], "next": None})
        start = int(query.get("after") or 0)
        self._json(200, {"tools": TOOLS[start:start + 2], "next": str(start + 2) if start + 2 < len(TOOLS) else None})

    def _results(self, rest: List[str], query: Dict[str, str], _: Any) -> None:
        first, second = {"text": "12", "offset": 0, "next": 2, "total": 3}, {"text": "3", "offset": 2, "next": None, "total": 3}
        self._json(200, first if query["offset"] == "0" else second)

    def _servers(self, *_: Any) -> None:
        self._json(200, {"servers": [{"name": "time", "state": "stopped", "tools": 2}], "next": None})

    def _statistics(self, *_: Any) -> None:
        self._json(200, {"statistics": [{"tool": "tool_0", "weighted_calls": 3}], "next": None})

    def _audit(self, rest: List[str], *_: Any) -> None:
        self._json(200, {"valid": True} if rest == ["verify"] else {"records": [{"record": 1}], "next": None})

    def _agents(self, rest: List[str], _: Any, body: Any) -> None:
        if self.command == "GET":
            agent = {"name": "assistant", "origin": "built_in", "config": {}}
            return self._json(200, agent if rest else {"agents": [agent], "next": None})
        if rest == ["assistant"]:
            return self._error(409, "agent_read_only", "agent `assistant` is built in")
        if self.command == "DELETE":
            return self._empty(204)
        self._json(201 if self.command == "POST" else 200, {"origin": "store", "name": (rest or [body.get("name")])[0], "config": body})

    def _approvals(self, rest: List[str], _: Any, body: Any) -> None:
        if not rest:
            return self._json(200, {"approvals": [{"approval": 7, "run": RUN, "step": "write", "tool": "write_note", "text": "{}"}]})
        self.server.decisions.append((rest[0], body))
        if self.server.decision_status != 200:
            return self._error(self.server.decision_status, "approval_not_permitted", "HTTP clients may only deny tool calls")
        self._json(200, {})
        self.server.decided.set()

    def _unknown_steps(self, _: List[str], __: Any, body: Any) -> None:
        step = {"run": RUN, "step": "write#2"}
        self._json(200, {"steps": [step]}) if self.command == "GET" else self._json(202, {**body, "resumed": True})

    def _runs(self, rest: List[str], _: Any, body: Any) -> None:
        if not rest and self.command == "POST":
            self.server.keys.add(self.headers["Idempotency-Key"])
            if self.server.lose_response:
                self.server.lose_response = False
                return self._drop()
            return self._json(202, {"run": RUN, "state": "running", "events": f"/api/v1/runs/{RUN}/events"})
        if not rest:
            return self._json(200, {"runs": [{"run": RUN, "state": "running"}], "next": None})
        if rest[0] != RUN:
            return self._error(404, "run_not_found", f"no run `{rest[0]}`")
        if rest[1:] == ["events"]:
            return self._events()
        if rest[1:] == ["cancel"]:
            self.server.cancelled.set()
        ended = {name: value for name, value in self.server.script[-1].items() if name in ("state", "answer")}
        self._json(200, {"run": RUN, **ended})

    def _events(self) -> None:
        if self.server.event_statuses:
            status = self.server.event_statuses.pop(0)
            return self._drop() if status == 0 else self._error(status, "store_unavailable", "not now")
        last = int(self.headers.get("Last-Event-ID") or -1)
        if last >= self.server.script[-1].get("number", 0):
            return self._empty(204)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        left = self.server.cut_after.pop(0) if self.server.cut_after else None
        for each in self.server.script:
            if each.get("number", last + 1) <= last:
                continue
            if "number" in each and each["number"] == self.server.waits_before:
                self.server.decided.wait(5)
            content = b": keep-alive\n\n" + encode(each)
            if left is not None and len(content) >= left:
                self._chunk(content[:left])
                return self._drop()
            left = None if left is None else left - len(content)
            self._chunk(content)
        if self.server.script[-1]["type"] != "run_ended":
            self.server.cancelled.wait(5)
            return self._drop()
        self._chunk(b"")

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def _drop(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _json(self, status: int, body: Any, **headers: str) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def _empty(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()

    def _error(self, status: int, code: str, message: str) -> None:
        self._json(status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}})
