"""Client for the HTTP API of Toolyard. Start with `Toolyard`; README.md has an example."""

from .client import Decision, Page, Toolyard
from .errors import ApiError, ConnectionFailed, ToolyardError
from .run import Run
from .run_errors import LimitReached, PartialAnswer, RunCancelled, RunError, RunFailed, RunIsSuspended
from .types import Agent, Approval, ApprovalRequested, Event, RunDetails, RunState, RunSummary, Server, Tool, ToolDetails, ToolMatch, ToolStatistics

__version__ = "0.1.0"
__all__ = [
    "Agent", "ApiError", "Approval", "ApprovalRequested", "ConnectionFailed", "Decision", "Event", "LimitReached", "Page", "PartialAnswer",
    "Run", "RunCancelled", "RunDetails", "RunError", "RunFailed", "RunIsSuspended", "RunState", "RunSummary", "Server", "Tool",
    "ToolDetails", "ToolMatch", "Toolyard", "ToolyardError", "ToolStatistics",
]
