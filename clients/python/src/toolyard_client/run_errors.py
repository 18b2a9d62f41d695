"""Errors of runs that end without a complete answer."""

from __future__ import annotations

from typing import List, Optional

from .errors import ToolyardError
from .run import Run
from .types import RunEnded, RunSuspended


class RunError(ToolyardError):
    """A run has no complete answer. `run` can be inspected further; `answer` is set if there is a partial one."""

    def __init__(self, run: Run, state: str, message: str, hint: Optional[str] = None, answer: Optional[str] = None) -> None:
        super().__init__(f"run {run.id} {state}: {message}" + (f" (hint: {hint})" if hint else ""))
        self.run = run
        self.state = state
        self.message = message
        self.hint = hint
        self.answer = answer


class PartialAnswer(RunError):
    """The run ended, but did not do all that was requested."""


class RunFailed(RunError):
    """The run failed."""


class RunCancelled(RunError):
    """The run was cancelled."""


class LimitReached(RunError):
    """The run reached a limit, such as its number of tool calls."""


class RunIsSuspended(RunError):
    """The run waits for an approval, or for a step whose outcome is unknown to be resolved. It continues afterwards."""

    def __init__(self, run: Run, event: RunSuspended) -> None:
        self.approvals: List[int] = list(event.get("approvals") or [])
        self.unknown_steps: List[str] = list(event.get("unknown_steps") or [])
        waits_for = [f"approval {each}" for each in self.approvals] + [f"the outcome of step `{each}`" for each in self.unknown_steps]
        super().__init__(run, "suspended", "waits for " + (", ".join(waits_for) or "a decision"))


_ERRORS = {"partial": PartialAnswer, "cancelled": RunCancelled, "limit_reached": LimitReached}


def error_of_end(run: Run, event: RunEnded) -> RunError:
    """The error for a run that ended in another state than `answered`."""
    state = event.get("state", "failed")
    message = event.get("message") or "the run ended without a complete answer"
    return _ERRORS.get(state, RunFailed)(run, state, message, event.get("hint"), event.get("answer"))
