"""`Run`: the requests about one run."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, AsyncGenerator, Iterator, Optional, cast

from .events import EventReader
from .transport import Transport
from .types import Event, RunDetails


class Run:
    """A run of an agent."""

    def __init__(self, http: Transport, run: str) -> None:
        self.id = run
        self._http = http

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    def get(self) -> RunDetails:
        """The run as it is now."""
        return cast(RunDetails, self._http.request("GET", "/runs/{run}", path={"run": self.id}))

    def events(self, *, after: Optional[int] = None, timeout: Optional[float] = None) -> Iterator[Event]:
        """The events of the run, from the first (or the one after number `after`) to `run_ended`.

        A broken connection is restored, and the stream continues after the last numbered event. Events without a number, such as pieces of
        the answer, may be lost then; `run_ended` has the whole answer. A suspended run sends `run_suspended`, and the stream waits for it to
        continue. Raises `TimeoutError` after `timeout` seconds.
        """
        return EventReader(self._http, self.id, after, timeout).read()

    async def events_async(self, *, after: Optional[int] = None, timeout: Optional[float] = None) -> AsyncGenerator[Event, None]:
        """The same as `events` for asyncio. A thread reads the stream."""
        reader = EventReader(self._http, self.id, after, timeout)
        loop = asyncio.get_running_loop()
        received: asyncio.Queue[Any] = asyncio.Queue()

        def deliver(item: Any) -> None:
            try:
                loop.call_soon_threadsafe(received.put_nowait, item)
            except RuntimeError:
                reader.stop()  # The loop is closed.

        def pump() -> None:
            try:
                for event in reader.read():
                    deliver(event)
                deliver(None)
            except BaseException as error:
                deliver(error)

        threading.Thread(target=pump, name=f"events of run {self.id}", daemon=True).start()
        try:
            while True:
                item = await received.get()
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            reader.stop()

    def wait(self, *, timeout: Optional[float] = None) -> RunDetails:
        """Waits until the run is over, also through suspensions, and returns it. Raises `TimeoutError` after `timeout` seconds."""
        for _ in self.events(timeout=timeout):
            pass
        return self.get()

    def cancel(self) -> Any:
        return self._http.request("POST", "/runs/{run}/cancel", path={"run": self.id}, body={})

    def resolve(self, step: str, outcome: str) -> Any:
        """Records whether a step with an unknown outcome took effect (`done`) or not (`not_done`), and resumes the run."""
        return self._http.request("POST", "/unknown-steps", body={"run": self.id, "step": step, "outcome": outcome})
