"""Sends requests with `http.client` and reads streams of server-sent events. Every request has its own connection, so threads may share a client."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import quote, urlencode, urlsplit

from .errors import ApiError, ConnectionFailed

API_PATH = "/api/v1"
MAX_ATTEMPTS = 3
MAX_RETRY_DELAY_SECONDS = 10.0
#: The server sends a comment at least every 30 seconds; a stream without any byte for longer is dead.
STREAM_IDLE_TIMEOUT_SECONDS = 90.0
NO_CONTENT = 204
#: Statuses after which the same request may succeed later.
TEMPORARY_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})


class ServerSentEvent(NamedTuple):
    """A message of an event stream; `retry_ms` is the delay before reconnecting that the server asked for so far."""

    name: str
    data: str
    id: Optional[str]
    retry_ms: Optional[int]


class EventStream:
    """An open stream; `is_empty` if the server has nothing to send (204)."""

    def __init__(self, response: Optional[http.client.HTTPResponse], connected: socket.socket, read_timeout: Callable[[], float]) -> None:
        self.is_empty = response is None
        self._response = response
        self._connected = connected
        self._read_timeout = read_timeout

    def __iter__(self) -> Iterator[ServerSentEvent]:
        return parse_events(self._lines())

    def _lines(self) -> Iterator[bytes]:
        while self._response is not None:
            self._connected.settimeout(self._read_timeout())
            line = self._response.readline()
            if not line:
                return
            yield line

    def shut_down(self) -> None:
        """Ends a read that blocks in another thread."""
        try:
            self._connected.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # It is closed already.


class Transport:
    def __init__(self, base_url: str, token: Optional[str], timeout: float, tls: Optional[ssl.SSLContext]) -> None:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"base_url {base_url!r} is not an http or https URL")
        if token is not None and (not token.isascii() or not token.isprintable()):
            raise ValueError("the token has characters that cannot be sent in a header")
        self._url = url
        self._base_path = url.path.rstrip("/") + API_PATH
        self._token = token
        self._timeout = timeout
        self._tls = tls

    def request(
        self,
        method: str,
        template: str,
        *,
        path: Optional[Mapping[str, object]] = None,
        query: Optional[Mapping[str, object]] = None,
        body: Any = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> Any:
        """Sends a request and returns the JSON of the response, `None` if it is empty.

        A request is repeated after a broken connection if that cannot execute it twice, and whenever the server says so.
        """
        is_repeatable = method == "GET" or "Idempotency-Key" in (headers or {})
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                with self._exchange(method, self._target(template, path, query), body, headers or {}, self._timeout) as (response, _):
                    content = response.read()
                    if response.status >= 300:
                        raise _api_error(response, content)
                    return _parse(content) if content else None
            except ConnectionFailed:
                if not is_repeatable or attempt == MAX_ATTEMPTS:
                    raise
                time.sleep(0.2 * attempt)
            except (http.client.HTTPException, OSError) as error:
                if not is_repeatable or attempt == MAX_ATTEMPTS:
                    raise ConnectionFailed(f"{method} {template}: the connection broke: {error or type(error).__name__}") from error
                time.sleep(0.2 * attempt)
            except ApiError as error:
                if error.retry_after is None or attempt == MAX_ATTEMPTS:
                    raise
                time.sleep(error.retry_after)
        raise AssertionError("unreachable")

    @contextmanager
    def stream(
        self, template: str, path: Mapping[str, object], headers: Mapping[str, str], read_timeout: Callable[[], float]
    ) -> Iterator["EventStream"]:
        """Opens an event stream. `read_timeout` is asked before each read. Errors of the connection are `OSError` or `HTTPException`."""
        all_headers = {"Accept": "text/event-stream", **headers}
        with self._exchange("GET", self._target(template, path, None), None, all_headers, read_timeout()) as (response, connected):
            if response.status == NO_CONTENT:
                yield EventStream(None, connected, read_timeout)
            elif response.status != 200:
                raise _api_error(response, response.read())
            elif (response.getheader("Content-Type") or "").split(";")[0].strip().lower() != "text/event-stream":
                raise ApiError(502, "not_an_event_stream", "the response is not an event stream")
            else:
                yield EventStream(response, connected, read_timeout)

    @contextmanager
    def _exchange(
        self, method: str, target: str, body: Any, headers: Mapping[str, str], timeout: float
    ) -> Iterator[Tuple[http.client.HTTPResponse, socket.socket]]:
        host, port = self._url.hostname or "", self._url.port
        connection: http.client.HTTPConnection
        if self._url.scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._tls)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        all_headers: Dict[str, str] = {"Accept": "application/json", "User-Agent": "toolyard-client-python/0.1.0", **headers}
        if self._token is not None:
            all_headers["Authorization"] = f"Bearer {self._token}"
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            all_headers["Content-Type"] = "application/json"
        response = None
        try:
            try:
                connection.connect()
            except OSError as error:
                raise ConnectionFailed(f"{self._url.scheme}://{self._url.netloc} cannot be reached: {error}") from error
            # The connection forgets its socket when the server closes after the response.
            connected: socket.socket = connection.sock
            connection.request(method, target, body=content, headers=all_headers)
            response = connection.getresponse()
            yield response, connected
        finally:
            if response is not None:
                response.close()
            connection.close()

    def _target(self, template: str, path: Optional[Mapping[str, object]], query: Optional[Mapping[str, object]]) -> str:
        filled = template.format(**{name: quote(str(value), safe="") for name, value in (path or {}).items()})
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        return self._base_path + filled + ("?" + urlencode(parameters) if parameters else "")


def parse_events(lines: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Parses server-sent events; an event that is not complete at the end is dropped, as the specification says."""
    name, last_id, retry_ms = "", None, None
    data: List[str] = []
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield ServerSentEvent(name or "message", "\n".join(data), last_id, retry_ms)
            name, data, last_id = "", [], None
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            last_id = value
        elif field == "retry" and value.isdigit():
            retry_ms = int(value)


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise ApiError(502, "not_json", f"the response is not JSON: {content[:200]!r}") from error


def _api_error(response: http.client.HTTPResponse, content: bytes) -> ApiError:
    code, message, param, hint = "", content[:500].decode("utf-8", "replace") or response.reason, None, None
    try:
        error = json.loads(content)["error"]
        code, message, param = str(error.get("code") or ""), str(error.get("message") or message), error.get("param")
        hint = error.get("hint")
    except (ValueError, LookupError, TypeError, AttributeError):
        pass  # Not an error of this API, such as one of a proxy.
    retry_after = None
    if response.getheader("x-should-retry") == "true":
        try:
            retry_after = min(max(float(response.getheader("Retry-After") or 1), 0.0), MAX_RETRY_DELAY_SECONDS)
        except ValueError:
            retry_after = 1.0
    return ApiError(response.status, code, message, param, retry_after, hint)
