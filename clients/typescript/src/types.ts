// JSON objects of the API and events of runs. Durations are in milliseconds (`_ms`), times are Unix milliseconds (`_at`). A newer server may
// add fields; they are kept.

export type RunState = "running" | "suspended" | "answered" | "partial" | "planned" | "failed" | "cancelled" | "limit_reached";
export type Scope = "once" | "run";

/** An upstream MCP server. */
export interface Server {
  name: string;
  state: string;
  transport: string;
  trusted: boolean;
  tools: number;
  private_instances: number;
  revision: string | null;
  problem: string | null;
  /** How many of its tools await the operator's approval. */
  awaiting_approval: number;
  awaiting_approval_tools: string[];
  needs_sign_in: boolean;
}

/** A tool. */
export interface Tool {
  name: string;
  source: string;
  kind: string;
  title: string | null;
  description: string;
  read_only: boolean;
  destructive: boolean;
  idempotent: boolean;
  effect: string;
  open_world: boolean | null;
  /** The name by which a call reaches it, if one does. */
  call_as: string | null;
  /** Whether the operator denies its calls. */
  denied: boolean;
}

/** A tool found by a search; a higher `score` is a better match. */
export interface ToolMatch extends Tool {
  score: number;
}

/** A tool with its schemas and what earlier calls showed. */
export interface ToolDetails extends Tool {
  input_schema: Record<string, unknown>;
  output_schema: Record<string, unknown> | null;
  capabilities: unknown[];
  statistics: Record<string, unknown> | null;
}

/** The result of a call. `structured` is the same as JSON, if the tool provides it. */
export interface ToolCallResult {
  output: string;
  structured?: unknown;
  /** Set if texts and lists in `structured` were shortened. */
  structured_truncated?: boolean;
  is_error: boolean;
  source: string | null;
  attempts: number;
  duration_ms: number;
  /** Set if `output` is cut: `tools.result` returns the whole. */
  result_id?: string;
}

/** A part of a long result; sizes are in bytes. */
export interface ResultPart {
  text: string;
  offset: number;
  next: number | null;
  total: number;
}

/** Calls of a tool at a source, as far as the store knows them. */
export interface ToolStatistics {
  tool: string;
  source: string;
  /** Older calls count less, so that these are not whole numbers. */
  weighted_calls: number;
  weighted_failures: number;
  success_rate: number | null;
  p50_ms: number | null;
  p95_ms: number | null;
  last_used_at: number | null;
}

/** An agent; `config` has the fields of `[agents.NAME]` in toolyard.toml. */
export interface Agent {
  name: string;
  description: string;
  model: string | null;
  origin: "settings" | "store" | "built_in";
  config: Record<string, unknown>;
}

/** An earlier message of the conversation. */
export interface Message {
  role: string;
  content: string;
}

/** The body of a request that starts a run. */
export interface RunRequest {
  question: string;
  agent?: string;
  history?: Message[];
  conversation?: string;
  plan_only?: boolean;
  dry_run?: boolean;
}

/** The response to a request that starts a run. */
export interface CreatedRun {
  run: string;
  state: RunState;
  events: string;
}

/** A run in a list; `pending_approvals` is their number. */
export interface RunSummary {
  run: string;
  state: RunState;
  agent: string;
  question: string;
  conversation: string | null;
  created_at: number;
  pending_approvals: number;
}

/** A tool call that waits for approval; `text` shows all its arguments. */
export interface Approval {
  approval: number;
  run: string;
  step: string;
  tool: string;
  source: string;
  text: string;
  /** The parts of `text`, if the run records them. `notes` are for the approver. */
  arguments: Record<string, unknown> | null;
  /** The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped. */
  arguments_text: string | null;
  effects: string | null;
  notes: string[];
  requested_at: number;
}

/** A step whose outcome is unknown. */
export interface UnknownStep {
  run: string;
  step: string;
  tool: string;
  source: string | null;
  arguments: Record<string, unknown> | null;
  /** The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped. */
  arguments_text: string | null;
  started_at: number;
}

/** What became of a planned call of a tool that may change something, from the records of the run. */
export interface Effect {
  step: string;
  tool: string;
  source?: string;
  target?: string;
  state: "done" | "not_done" | "unknown";
  cause?: string;
  reason?: string;
  called: boolean;
}

/** What a model says of an answer: an opinion. */
export interface Review {
  fulfilled: "yes" | "no" | "unsure";
  missing: string[];
}

/** One start of a step. */
export interface StepAttempt {
  started_at: number;
  duration_ms: number | null;
  arguments: Record<string, unknown> | null;
  arguments_text: string | null;
  error: string | null;
}

/** A step of a run. Texts are redacted and shortened. */
export interface RunStep {
  id: string;
  /** Null if a model reasons out the result. */
  tool: string | null;
  source: string | null;
  description: string;
  depends_on: string[];
  state: string;
  started_at: number | null;
  duration_ms: number | null;
  arguments: Record<string, unknown> | null;
  /** The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped. */
  arguments_text: string | null;
  output: string | null;
  attempts: StepAttempt[];
  verification: { verified: boolean; confidence: number; issues: string[] } | null;
  error: string | null;
  hint: string | null;
  notes: string[];
}

/** A run. */
export interface RunDetails {
  run: string;
  state: RunState;
  agent: string;
  question: string;
  conversation: string | null;
  created_at: number;
  answer: string | null;
  sources: string[] | null;
  message: string | null;
  hint: string | null;
  plan: unknown;
  steps: RunStep[];
  pending_approvals: Record<string, unknown>[];
  unknown_steps: unknown[];
  usage: Record<string, unknown>;
  /** The number of the newest event: the value of `after` of `run.events` that reads what follows. */
  last_event: number | null;
  effects: Effect[];
  review: Review | null;
  /** The effects in words. */
  receipt: string[];
  /** The review in words. */
  opinion: string | null;
}

/** Fields of every event. Numbers start at 0; events that are not logged have none and are not sent again after a reconnection. */
export interface EventBase {
  run: string;
  number?: number;
}

export interface RunCreated extends EventBase {
  type: "run_created";
  agent: string;
  question: string;
  conversation?: string | null;
  created_at?: number;
}

export interface ModelRequested extends EventBase {
  type: "model_requested";
  task: "plan" | "reason" | "repair" | "judge" | "answer" | "review";
  step?: string;
}

export interface ModelReplied extends EventBase {
  type: "model_replied";
  task: "plan" | "reason" | "repair" | "judge" | "answer" | "review";
  step?: string;
  duration_ms: number;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  cost_micros: number;
}

export interface ModelFailed extends EventBase {
  type: "model_failed";
  task: "plan" | "reason" | "repair" | "judge" | "answer" | "review";
  step?: string;
  message: string;
  hint?: string;
  error_kind?: string;
}

/** A step of a plan. */
export interface PlannedStep {
  id: string;
  description: string;
  tool?: string;
  source?: string;
  arguments: Record<string, unknown>;
  depends_on: string[];
  permission?: "allow" | "ask" | "deny";
}

export interface Planned extends EventBase {
  type: "planned";
  steps: PlannedStep[];
}

export interface PlanRejected extends EventBase {
  type: "plan_rejected";
  problems: string[];
}

export interface ToolsSearched extends EventBase {
  type: "tools_searched";
  words: string;
}

export interface StepStarted extends EventBase {
  type: "step_started";
  step: string;
  arguments?: Record<string, unknown>;
  /** The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped. */
  arguments_text?: string;
  target?: string;
  notes?: string[];
}

export interface StepProgress extends EventBase {
  type: "step_progress";
  step: string;
  message: string;
}

export interface StepEnded extends EventBase {
  type: "step_ended";
  step: string;
  state: "done" | "failed" | "skipped" | "denied" | "unknown" | "simulated";
  duration_ms: number;
  source?: string;
  output?: string;
  size?: number;
  reasoned?: boolean;
  message?: string;
  hint?: string;
  error_kind?: string;
  because?: string;
  denied_by?: string;
}

export interface StepRepaired extends EventBase {
  type: "step_repaired";
  step: string;
  arguments: Record<string, unknown>;
  notes?: string[];
}

export interface RepairFailed extends EventBase {
  type: "repair_failed";
  step: string;
  message: string;
}

export interface StepResolved extends EventBase {
  type: "step_resolved";
  step: string;
  outcome: "done" | "not_done";
}

export interface StepVerified extends EventBase {
  type: "step_verified";
  step: string;
  verified: boolean;
  confidence: number;
  issues: string[];
}

export interface ApprovalRequested extends EventBase {
  type: "approval_requested";
  step: string;
  approval: number;
  text: string;
}

export interface ApprovalDecided extends EventBase {
  type: "approval_decided";
  step: string;
  allow: boolean;
  scope: Scope;
  by: string;
}

export interface AnswerDelta extends EventBase {
  type: "answer_delta";
  text: string;
  tentative: boolean;
}

export interface ReasoningDelta extends EventBase {
  type: "reasoning_delta";
  text: string;
}

/** The pieces of the answer so far are void; another answer follows. */
export interface AnswerDiscarded extends EventBase {
  type: "answer_discarded";
}

export interface UsageChanged extends EventBase {
  type: "usage_changed";
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  cost_micros: number;
}

/** The answer stands; a model is asked for its opinion of it. */
export interface Answered extends EventBase {
  type: "answered";
  answer: string;
}

export interface RunSuspended extends EventBase {
  type: "run_suspended";
  approvals: number[];
  unknown_steps: string[];
  effects?: Effect[];
}

export interface RunResumed extends EventBase {
  type: "run_resumed";
  owner: string;
}

export interface RunEnded extends EventBase {
  type: "run_ended";
  effects?: Effect[];
  review?: Review;
  state: "answered" | "partial" | "planned" | "failed" | "cancelled" | "limit_reached";
  answer?: string;
  sources?: string[];
  truncated?: boolean;
  unfinished_steps?: string[];
  message?: string;
  hint?: string;
  error_kind?: string;
  limit?: string;
}

/** An event of a run. Servers may send further types; ignore those that you do not know. */
export type RunEvent =
  | RunCreated
  | ModelRequested
  | ModelReplied
  | ModelFailed
  | Planned
  | PlanRejected
  | ToolsSearched
  | StepStarted
  | StepProgress
  | StepEnded
  | StepRepaired
  | RepairFailed
  | StepResolved
  | StepVerified
  | ApprovalRequested
  | ApprovalDecided
  | AnswerDelta
  | ReasoningDelta
  | AnswerDiscarded
  | UsageChanged
  | Answered
  | RunSuspended
  | RunResumed
  | RunEnded;
