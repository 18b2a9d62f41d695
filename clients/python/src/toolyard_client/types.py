"""JSON objects of the API and events of runs.

All of them are ordinary dictionaries, so fields that a newer server adds are kept. Durations are in milliseconds (`_ms`), times are Unix
milliseconds (`_at`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    # Known to every type checker, needed by none at run time.
    from typing_extensions import NotRequired

RunState = Literal["running", "suspended", "answered", "partial", "planned", "failed", "cancelled", "limit_reached"]
Scope = Literal["once", "run"]


class Server(TypedDict):
    """An upstream MCP server."""

    name: str
    state: str
    transport: str
    trusted: bool
    tools: int
    private_instances: int
    revision: Optional[str]
    problem: Optional[str]
    #: How many of its tools await the operator's approval.
    awaiting_approval: int
    awaiting_approval_tools: List[str]
    needs_sign_in: bool


class Tool(TypedDict):
    """A tool."""

    name: str
    source: str
    kind: str
    title: Optional[str]
    description: str
    read_only: bool
    destructive: bool
    idempotent: bool
    effect: str
    open_world: Optional[bool]
    #: The name by which a call reaches it, if one does.
    call_as: Optional[str]
    #: Whether the operator denies its calls.
    denied: bool


class ToolMatch(Tool):
    """A tool found by a search; a higher `score` is a better match."""

    score: float


class ToolDetails(Tool):
    """A tool with its schemas and what earlier calls showed."""

    input_schema: Dict[str, Any]
    output_schema: Optional[Dict[str, Any]]
    capabilities: List[Any]
    statistics: Optional[Dict[str, Any]]


class ToolCallResult(TypedDict):
    """The result of a call. `structured` is the same as JSON, if the tool provides it."""

    output: str
    structured: NotRequired[Any]
    #: Set if texts and lists in `structured` were shortened.
    structured_truncated: NotRequired[bool]
    is_error: bool
    source: Optional[str]
    attempts: int
    duration_ms: int
    #: Set if `output` is cut: `tools.result` returns the whole.
    result_id: NotRequired[str]


class ResultPart(TypedDict):
    """A part of a long result; sizes are in bytes."""

    text: str
    offset: int
    next: Optional[int]
    total: int


class ToolStatistics(TypedDict):
    """Calls of a tool at a source, as far as the store knows them."""

    tool: str
    source: str
    #: Older calls count less, so that these are not whole numbers.
    weighted_calls: float
    weighted_failures: float
    success_rate: Optional[float]
    p50_ms: Optional[int]
    p95_ms: Optional[int]
    last_used_at: Optional[int]


class Agent(TypedDict):
    """An agent; `config` has the fields of `[agents.NAME]` in toolyard.toml."""

    name: str
    description: str
    model: Optional[str]
    origin: Literal["settings", "store", "built_in"]
    config: Dict[str, Any]


class Message(TypedDict):
    """An earlier message of the conversation."""

    role: str
    content: str


class RunRequest(TypedDict):
    """The body of a request that starts a run."""

    question: str
    agent: NotRequired[str]
    history: NotRequired[List[Message]]
    conversation: NotRequired[str]
    plan_only: NotRequired[bool]
    dry_run: NotRequired[bool]


class CreatedRun(TypedDict):
    """The response to a request that starts a run."""

    run: str
    state: RunState
    events: str


class RunSummary(TypedDict):
    """A run in a list; `pending_approvals` is their number."""

    run: str
    state: RunState
    agent: str
    question: str
    conversation: Optional[str]
    created_at: int
    pending_approvals: int


class Approval(TypedDict):
    """A tool call that waits for approval; `text` shows all its arguments."""

    approval: int
    run: str
    step: str
    tool: str
    source: str
    text: str
    #: The parts of `text`, if the run records them. `notes` are for the approver.
    arguments: Optional[Dict[str, Any]]
    #: The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped.
    arguments_text: Optional[str]
    effects: Optional[str]
    notes: List[str]
    requested_at: int


class UnknownStep(TypedDict):
    """A step whose outcome is unknown."""

    run: str
    step: str
    tool: str
    source: Optional[str]
    arguments: Optional[Dict[str, Any]]
    #: The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped.
    arguments_text: Optional[str]
    started_at: int


class Effect(TypedDict):
    """What became of a planned call of a tool that may change something, from the records of the run."""

    step: str
    tool: str
    source: NotRequired[str]
    target: NotRequired[str]
    state: Literal["done", "not_done", "unknown"]
    cause: NotRequired[str]
    reason: NotRequired[str]
    called: bool


class Review(TypedDict):
    """What a model says of an answer: an opinion."""

    fulfilled: Literal["yes", "no", "unsure"]
    missing: List[str]


class StepAttempt(TypedDict):
    """One start of a step."""

    started_at: int
    duration_ms: Optional[int]
    arguments: Optional[Dict[str, Any]]
    arguments_text: Optional[str]
    error: Optional[str]


class RunStep(TypedDict):
    """A step of a run. Texts are redacted and shortened."""

    id: str
    #: None if a model reasons out the result.
    tool: Optional[str]
    source: Optional[str]
    description: str
    depends_on: List[str]
    state: str
    started_at: Optional[int]
    duration_ms: Optional[int]
    arguments: Optional[Dict[str, Any]]
    #: The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped.
    arguments_text: Optional[str]
    output: Optional[str]
    attempts: List[StepAttempt]
    verification: Optional[Dict[str, Any]]
    error: Optional[str]
    hint: Optional[str]
    notes: List[str]


class RunDetails(TypedDict):
    """A run. `receipt` is `effects` in words, `opinion` is `review` in words."""

    run: str
    state: RunState
    agent: str
    question: str
    conversation: Optional[str]
    created_at: int
    answer: Optional[str]
    sources: Optional[List[str]]
    message: Optional[str]
    hint: Optional[str]
    plan: Any
    steps: List[RunStep]
    pending_approvals: List[Dict[str, Any]]
    unknown_steps: List[Any]
    usage: Dict[str, Any]
    #: The number of the newest event: the value of `after` of `run.events` that reads what follows.
    last_event: Optional[int]
    effects: List[Effect]
    review: Optional[Review]
    receipt: List[str]
    opinion: Optional[str]


class EventBase(TypedDict):
    """Fields of every event. Numbers start at 0; events that are not logged have none and are not sent again after a reconnection."""

    run: str
    number: NotRequired[int]


class RunCreated(EventBase):
    type: Literal["run_created"]
    agent: str
    question: str
    conversation: NotRequired[Optional[str]]
    created_at: NotRequired[int]


class ModelRequested(EventBase):
    type: Literal["model_requested"]
    task: Literal["plan", "reason", "repair", "judge", "answer", "review"]
    step: NotRequired[str]


class ModelReplied(EventBase):
    type: Literal["model_replied"]
    task: Literal["plan", "reason", "repair", "judge", "answer", "review"]
    step: NotRequired[str]
    duration_ms: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_micros: int


class ModelFailed(EventBase):
    type: Literal["model_failed"]
    task: Literal["plan", "reason", "repair", "judge", "answer", "review"]
    step: NotRequired[str]
    message: str
    hint: NotRequired[str]
    error_kind: NotRequired[str]


class PlannedStep(TypedDict):
    """A step of a plan."""

    id: str
    description: str
    tool: NotRequired[str]
    source: NotRequired[str]
    arguments: Dict[str, Any]
    depends_on: List[str]
    permission: NotRequired[Literal["allow", "ask", "deny"]]


class Planned(EventBase):
    type: Literal["planned"]
    steps: List[PlannedStep]


class PlanRejected(EventBase):
    type: Literal["plan_rejected"]
    problems: List[str]


class ToolsSearched(EventBase):
    type: Literal["tools_searched"]
    words: str


class StepStarted(EventBase):
    type: Literal["step_started"]
    step: str
    arguments: NotRequired[Dict[str, Any]]
    #: The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped.
    arguments_text: NotRequired[str]
    target: NotRequired[str]
    notes: NotRequired[List[str]]


class StepProgress(EventBase):
    type: Literal["step_progress"]
    step: str
    message: str


class StepEnded(EventBase):
    type: Literal["step_ended"]
    step: str
    state: Literal["done", "failed", "skipped", "denied", "unknown", "simulated"]
    duration_ms: int
    source: NotRequired[str]
    output: NotRequired[str]
    size: NotRequired[int]
    reasoned: NotRequired[bool]
    message: NotRequired[str]
    hint: NotRequired[str]
    error_kind: NotRequired[str]
    because: NotRequired[str]
    denied_by: NotRequired[str]


class StepRepaired(EventBase):
    type: Literal["step_repaired"]
    step: str
    arguments: Dict[str, Any]
    notes: NotRequired[List[str]]


class RepairFailed(EventBase):
    type: Literal["repair_failed"]
    step: str
    message: str


class StepResolved(EventBase):
    type: Literal["step_resolved"]
    step: str
    outcome: Literal["done", "not_done"]


class StepVerified(EventBase):
    type: Literal["step_verified"]
    step: str
    verified: bool
    confidence: float
    issues: List[str]


class ApprovalRequested(EventBase):
    type: Literal["approval_requested"]
    step: str
    approval: int
    text: str


class ApprovalDecided(EventBase):
    type: Literal["approval_decided"]
    step: str
    allow: bool
    scope: Scope
    by: str


class AnswerDelta(EventBase):
    type: Literal["answer_delta"]
    text: str
    tentative: bool


class ReasoningDelta(EventBase):
    type: Literal["reasoning_delta"]
    text: str


class AnswerDiscarded(EventBase):
    """The pieces of the answer so far are void; another answer follows."""

    type: Literal["answer_discarded"]


class UsageChanged(EventBase):
    type: Literal["usage_changed"]
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_micros: int


class Answered(EventBase):
    """The answer stands; a model is asked for its opinion of it."""

    type: Literal["answered"]
    answer: str


class RunSuspended(EventBase):
    type: Literal["run_suspended"]
    approvals: List[int]
    unknown_steps: List[str]
    effects: NotRequired[List[Effect]]


class RunResumed(EventBase):
    type: Literal["run_resumed"]
    owner: str


class RunEnded(EventBase):
    type: Literal["run_ended"]
    effects: NotRequired[List[Effect]]
    review: NotRequired[Review]
    state: Literal["answered", "partial", "planned", "failed", "cancelled", "limit_reached"]
    answer: NotRequired[str]
    sources: NotRequired[List[str]]
    truncated: NotRequired[bool]
    unfinished_steps: NotRequired[List[str]]
    message: NotRequired[str]
    hint: NotRequired[str]
    error_kind: NotRequired[str]
    limit: NotRequired[str]


#: An event of a run. Servers may send further types; ignore those that you do not know.
Event = Union[
    RunCreated, ModelRequested, ModelReplied, ModelFailed, Planned, PlanRejected, ToolsSearched, StepStarted, StepProgress, StepEnded,
    StepRepaired, RepairFailed, StepResolved, StepVerified, ApprovalRequested, ApprovalDecided, AnswerDelta, ReasoningDelta,
    AnswerDiscarded, UsageChanged, Answered, RunSuspended, RunResumed, RunEnded,
]
