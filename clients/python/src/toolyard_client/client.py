"""The client: `Toolyard` and its groups of requests."""

from __future__ import annotations

import asyncio
import ssl
import uuid
from typing import Any, Awaitable, Callable, Dict, Generic, Iterator, List, Optional, Sequence, TypeVar, Union, cast

from .errors import ApiError, ConnectionFailed
from .run import Run
from .run_errors import RunIsSuspended, error_of_end
from .transport import Transport
from .types import (
    Agent, Approval, ApprovalRequested, CreatedRun, Event, Message, ResultPart, RunDetails, RunEnded, RunSummary, RunSuspended, Scope,
    Server, Tool, ToolCallResult, ToolDetails, ToolMatch, ToolStatistics, UnknownStep,
)

DEFAULT_URL = "http://127.0.0.1:7300"

T = TypeVar("T")
#: `True` or "once" allows this call, "run" every call of the tool in this run, `False` denies; `None` leaves it undecided.
Decision = Union[bool, Scope, None]


class Page(List[T], Generic[T]):
    """A part of a list; `next` is the cursor of the following part, to be given as `after`."""

    next: Optional[str] = None


class _Group:
    def __init__(self, http: Transport) -> None:
        self._http = http


class Tools(_Group):
    """The tools of the gateway."""

    def list(self, *, source: Optional[str] = None, limit: Optional[int] = None, after: Optional[str] = None) -> Page[Tool]:
        """One page of all tools."""
        return _page(self._http.request("GET", "/tools", query={"source": source, "limit": limit, "after": after}), "tools")

    def iterate(self, *, source: Optional[str] = None) -> Iterator[Tool]:
        """All tools, page by page."""
        return _all_pages(lambda after: self.list(source=source, after=after))

    def search(self, query: str, *, source: Optional[str] = None, limit: Optional[int] = None) -> Page[ToolMatch]:
        """The tools that fit a request best, with a `score`."""
        return _page(self._http.request("GET", "/tools", query={"query": query, "source": source, "limit": limit}), "tools")

    def get(self, name: str, *, source: Optional[str] = None) -> ToolDetails:
        """One tool with its schemas; `source` chooses if several sources have it."""
        return cast(ToolDetails, self._http.request("GET", "/tools/{name}", path={"name": name}, query={"source": source}))

    def call(
        self,
        name: str,
        arguments: Optional[Dict[str, Any]] = None,
        *,
        source: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> ToolCallResult:
        """Calls a tool. A failure that the tool reports is a result with `is_error`.

        Without an `idempotency_key`, the call is sent again only if the gateway says that nothing was called. With one, such as a UUID, it is
        also sent again after a broken connection, and the gateway makes it once. It keeps a key for a day, or until the caller has used 1,000
        others; another gateway does not know it, nor the same one after a restart.
        Give the `source`: a tool of the same name may be added at another one.
        """
        body: Dict[str, Any] = {"arguments": arguments or {}}
        if source is not None:
            body["source"] = source
        headers: Dict[str, str] = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        response = self._http.request("POST", "/tools/{name}/call", path={"name": name}, body=body, headers=headers)
        return cast(ToolCallResult, response)

    def result(self, result_id: str) -> str:
        """The whole of a result that was too long for its answer, by its `result_id`."""
        text, offset = "", cast(Optional[int], 0)
        while offset is not None:
            part = cast(ResultPart, self._http.request("GET", "/results/{id}", path={"id": result_id}, query={"offset": offset}))
            text += part["text"]
            offset = part["next"]
        return text


class Servers(_Group):
    """The upstream MCP servers."""

    def list(self) -> Page[Server]:
        return _page(self._http.request("GET", "/servers"), "servers")

    def get(self, name: str) -> Server:
        return cast(Server, self._http.request("GET", "/servers/{name}", path={"name": name}))


class Agents(_Group):
    """The agents. Only those kept in the store can be changed; the others are in the settings file (409 `agent_read_only`)."""

    def list(self) -> Page[Agent]:
        return _page(self._http.request("GET", "/agents"), "agents")

    def get(self, name: str) -> Agent:
        return cast(Agent, self._http.request("GET", "/agents/{name}", path={"name": name}))

    def create(self, name: str, **config: Any) -> Agent:
        """Creates an agent; `config` has the fields of `[agents.NAME]` in toolyard.toml."""
        return cast(Agent, self._http.request("POST", "/agents", body={"name": name, "config": config}))

    def replace(self, name: str, **config: Any) -> Agent:
        """Replaces all fields of an agent."""
        return cast(Agent, self._http.request("PUT", "/agents/{name}", path={"name": name}, body={"config": config}))

    def delete(self, name: str) -> None:
        self._http.request("DELETE", "/agents/{name}", path={"name": name})


class Runs(_Group):
    """The runs of agents."""

    def create(
        self,
        question: str,
        *,
        agent: Optional[str] = None,
        history: Optional[Sequence[Message]] = None,
        conversation: Optional[str] = None,
        plan_only: Optional[bool] = None,
        dry_run: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
    ) -> Run:
        """Starts a run, which continues if this client disconnects. The request is executed once even if it has to be repeated."""
        fields = {"agent": agent, "history": history, "conversation": conversation, "plan_only": plan_only, "dry_run": dry_run}
        body = {"question": question, **{name: value for name, value in fields.items() if value is not None}}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        created = cast(CreatedRun, self._http.request("POST", "/runs", body=body, headers=headers))
        return self.open(created["run"])

    def open(self, run: str) -> Run:
        """A run by its id, without a request."""
        return Run(self._http, run)

    def get(self, run: str) -> RunDetails:
        return cast(RunDetails, self._http.request("GET", "/runs/{run}", path={"run": run}))

    def list(
        self, *, state: Optional[str] = None, agent: Optional[str] = None, limit: Optional[int] = None, after: Optional[str] = None
    ) -> Page[RunSummary]:
        """One page of the runs, newest first."""
        query = {"state": state, "agent": agent, "limit": limit, "after": after}
        return _page(self._http.request("GET", "/runs", query=query), "runs")

    def iterate(self, *, state: Optional[str] = None, agent: Optional[str] = None) -> Iterator[RunSummary]:
        """All runs, newest first, page by page."""
        return _all_pages(lambda after: self.list(state=state, agent=agent, after=after))

    def unknown(self) -> Page[UnknownStep]:
        """The steps of all runs whose outcome is unknown."""
        return _page(self._http.request("GET", "/unknown-steps"), "steps")


class Approvals(_Group):
    """Tool calls that wait for approval."""

    def list(self) -> Page[Approval]:
        return _page(self._http.request("GET", "/approvals"), "approvals")

    def decide(self, approval: int, *, allow: bool, scope: Optional[Scope] = None) -> Any:
        """Allows or denies a call; with `scope="run"` every call of this tool in this run.

        Allowing is refused (403 `approval_not_permitted`) unless the operator set `[serve] remote_approval = true`.
        """
        return self._http.request("POST", "/approvals/{approval}", path={"approval": approval}, body=_decision(allow, scope))


class Audit(_Group):
    """The audit log."""

    def list(self, *, limit: Optional[int] = None, after: Optional[str] = None) -> Page[Dict[str, Any]]:
        """One page of the records, newest first."""
        return _page(self._http.request("GET", "/audit", query={"limit": limit, "after": after}), "records")

    def iterate(self) -> Iterator[Dict[str, Any]]:
        """All records, newest first, page by page."""
        return _all_pages(lambda after: self.list(after=after))

    def verify(self) -> Dict[str, Any]:
        """Verifies the hash chain of the log."""
        return cast(Dict[str, Any], self._http.request("GET", "/audit/verify"))


class Toolyard:
    """A client of a gateway. It has no connection of its own and may be shared by threads.

    `token` is the token of `toolyard serve`; `timeout` is that of a request, in seconds, not of a run.
    """

    def __init__(
        self, base_url: str = DEFAULT_URL, token: Optional[str] = None, *, timeout: float = 60.0, tls: Optional[ssl.SSLContext] = None
    ) -> None:
        self._http = Transport(base_url, token, timeout, tls)
        self.tools = Tools(self._http)
        self.servers = Servers(self._http)
        self.agents = Agents(self._http)
        self.runs = Runs(self._http)
        self.approvals = Approvals(self._http)
        self.audit = Audit(self._http)

    def statistics(self) -> Page[ToolStatistics]:
        """Calls, failures and latencies by tool and source."""
        return _page(self._http.request("GET", "/statistics"), "statistics")

    def ask(
        self,
        question: str,
        *,
        on_approval: Optional[Callable[[ApprovalRequested], Decision]] = None,
        on_event: Optional[Callable[[Event], Any]] = None,
        timeout: Optional[float] = None,
        agent: Optional[str] = None,
        history: Optional[Sequence[Message]] = None,
        conversation: Optional[str] = None,
    ) -> str:
        """Asks an agent and returns its answer.

        `on_approval` decides on tool calls that need approval. Raises `RunIsSuspended` if a decision is missing (the run still waits for it),
        another `RunError` if the run ends without a complete answer, and `TimeoutError`. After a timeout or an interrupt the run is cancelled.
        """
        run = self.runs.create(question, agent=agent, history=history, conversation=conversation)
        approvals = _ApprovalTracker()
        try:
            for event in run.events(timeout=timeout):
                if on_event is not None:
                    on_event(event)
                if event["type"] == "approval_requested" and on_approval is not None:
                    approvals.record(event, on_approval(event), self)
                elif (answer := approvals.check(run, event)) is not None:
                    return answer
        except (TimeoutError, KeyboardInterrupt):
            _cancel_quietly(run)
            raise
        return _answer_of(run)

    async def ask_async(
        self,
        question: str,
        *,
        on_approval: Optional[Callable[[ApprovalRequested], Union[Decision, Awaitable[Decision]]]] = None,
        on_event: Optional[Callable[[Event], Any]] = None,
        timeout: Optional[float] = None,
        agent: Optional[str] = None,
        history: Optional[Sequence[Message]] = None,
        conversation: Optional[str] = None,
    ) -> str:
        """The same as `ask` for asyncio; `on_approval` may be a coroutine function. Cancelling the task cancels the run."""
        run = await asyncio.to_thread(self.runs.create, question, agent=agent, history=history, conversation=conversation)
        approvals = _ApprovalTracker()
        events = run.events_async(timeout=timeout)
        try:
            async for event in events:
                if on_event is not None:
                    on_event(event)
                if event["type"] == "approval_requested" and on_approval is not None:
                    decision = on_approval(event)
                    if isinstance(decision, Awaitable):
                        decision = await decision
                    await asyncio.to_thread(approvals.record, event, decision, self)
                elif (answer := approvals.check(run, event)) is not None:
                    return answer
        except (TimeoutError, asyncio.CancelledError):
            await asyncio.shield(asyncio.to_thread(_cancel_quietly, run))
            raise
        finally:
            await events.aclose()
        return await asyncio.to_thread(_answer_of, run)


class _ApprovalTracker:
    """Knows which approvals of a run were decided here."""

    def __init__(self) -> None:
        self._decided: set[int] = set()

    def record(self, event: ApprovalRequested, decision: Decision, client: Toolyard) -> None:
        if decision is None:
            return
        self._decided.add(event["approval"])
        try:
            scope: Optional[Scope] = "run" if decision == "run" else None
            # Anything else that a callback returns does not allow the call.
            client.approvals.decide(event["approval"], allow=decision is True or decision in ("once", "run"), scope=scope)
        except ApiError as error:
            # Decided elsewhere in the meantime, or by an earlier decision for the whole run.
            if error.status not in (404, 409):
                raise

    def check(self, run: Run, event: Event) -> Optional[str]:
        """The answer if this event ends the run; raises if the run ended otherwise or waits for someone else."""
        if event["type"] == "run_ended":
            return _answer_or_error(run, event)
        if event["type"] == "run_suspended":
            undecided = [each for each in event.get("approvals") or [] if each not in self._decided]
            if undecided or event.get("unknown_steps"):
                raise RunIsSuspended(run, cast(RunSuspended, {**event, "approvals": undecided}))
        return None


def _decision(allow: bool, scope: Optional[Scope]) -> Dict[str, Any]:
    return {"allow": allow} if scope is None else {"allow": allow, "scope": scope}


def _answer_or_error(run: Run, event: RunEnded) -> str:
    if event.get("state") == "answered":
        return event.get("answer") or ""
    raise error_of_end(run, event)


def _answer_of(run: Run) -> str:
    """The answer of a run whose stream had nothing more to send."""
    return _answer_or_error(run, cast(RunEnded, run.get()))


def _cancel_quietly(run: Run) -> None:
    try:
        run.cancel()
    except (ApiError, ConnectionFailed):
        pass  # The run is over already, or the error that led here says more.


def _page(body: Any, key: str) -> Page[Any]:
    if not isinstance(body, dict) or not isinstance(body.get(key), list):
        raise ApiError(502, "unexpected_response", f"the response has no list `{key}`")
    page: Page[Any] = Page(body[key])
    page.next = body.get("next")
    return page


def _all_pages(load: Callable[[Optional[str]], Page[T]]) -> Iterator[T]:
    after: Optional[str] = None
    while True:
        page = load(after)
        yield from page
        if page.next is None or page.next == after:
            return
        after = page.next
