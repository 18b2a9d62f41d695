"""Reads the events of a run and reconnects when the connection breaks."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Iterator, Optional, cast

from .errors import ApiError, ConnectionFailed
from .transport import STREAM_IDLE_TIMEOUT_SECONDS, TEMPORARY_STATUSES, EventStream, ServerSentEvent, Transport
from .types import Event

MAX_FAILED_CONNECTIONS = 8
FIRST_RECONNECT_DELAY_SECONDS = 0.25
MAX_RECONNECT_DELAY_SECONDS = 5.0


class EventReader:
    """The events of a run up to `run_ended`, each numbered one once."""

    def __init__(self, transport: Transport, run: str, after: Optional[int], timeout: Optional[float]) -> None:
        self._http = transport
        self._run = run
        self._last = after
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._stopped = threading.Event()
        self._stream: Optional[EventStream] = None

    def stop(self) -> None:
        """Ends the iteration from another thread."""
        self._stopped.set()
        stream = self._stream
        if stream is not None:
            stream.shut_down()

    def read(self) -> Iterator[Event]:
        failures, retry_delay = 0, FIRST_RECONNECT_DELAY_SECONDS
        while not self._stopped.is_set():
            problem: Optional[BaseException] = None
            try:
                headers = {} if self._last is None else {"Last-Event-ID": str(self._last)}
                with self._http.stream("/runs/{run}/events", {"run": self._run}, headers, self._read_timeout) as stream:
                    self._stream = stream
                    if stream.is_empty:
                        return
                    for message in stream:
                        if message.retry_ms is not None:
                            retry_delay = min(message.retry_ms / 1000, MAX_RECONNECT_DELAY_SECONDS)
                        event = self._accept(message)
                        if event is None:
                            continue
                        failures = 0
                        yield event
                        if event["type"] == "run_ended":
                            return
            except ApiError as error:
                if error.status not in TEMPORARY_STATUSES:
                    raise
                problem = error
            except (ConnectionFailed, http.client.HTTPException, OSError) as error:
                self._read_timeout()
                problem = error
            failures += 1
            if failures > MAX_FAILED_CONNECTIONS:
                raise ConnectionFailed(f"the events of run {self._run} cannot be read: {problem or 'the stream ends early'}") from problem
            delay = min(retry_delay * 2 ** (failures - 1), MAX_RECONNECT_DELAY_SECONDS)
            self._stopped.wait(min(delay, self._read_timeout()))

    def _accept(self, message: ServerSentEvent) -> Optional[Event]:
        """The event of a message; `None` for one that is unreadable or was delivered before."""
        try:
            event = json.loads(message.data)
        except ValueError:
            return None
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            return None
        number = event.get("number")
        if number is None and message.id is not None and message.id.isdigit():
            number = int(message.id)
        if isinstance(number, int):
            if self._last is not None and number <= self._last:
                return None  # Sent again after a reconnection.
            self._last = number
        return cast(Event, event)

    def _read_timeout(self) -> float:
        """The longest time to wait for the next byte; raises `TimeoutError` after the deadline."""
        if self._deadline is None:
            return STREAM_IDLE_TIMEOUT_SECONDS
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"run {self._run} is not over yet")
        return min(STREAM_IDLE_TIMEOUT_SECONDS, left)
