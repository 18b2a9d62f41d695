// Errors of the client: of the connection, of the API, and of runs that end without a complete answer.
import type { Run } from "./client.js";
import type { RunSuspended } from "./types.js";

/** Any error of this package. */
export class ToolyardError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server cannot be reached, or the connection broke and could not be restored. */
export class ConnectionFailed extends ToolyardError {}

/** A run is not over within the time limit. */
export class TimedOut extends ToolyardError {}

/** The server refused a request. `status` is the HTTP status (502 if the response is not one of this API), `code` a stable word such as `run_not_found`. */
export class ApiError extends ToolyardError {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** The field or parameter that is wrong, if the server names one. */
    readonly param: string | null = null,
    /** Milliseconds after which the request may be repeated, if the server says so. */
    readonly retryAfterMs: number | null = null,
    /** What to do about it, if the server says so. */
    readonly hint: string | null = null,
  ) {
    super((code ? `${status} ${code}: ${message}` : `${status}: ${message}`) + (hint ? ` (hint: ${hint})` : ""));
  }
}

/** A run has no complete answer; `answer` is set if there is a partial one. */
export class RunError extends ToolyardError {
  constructor(
    readonly run: Run,
    readonly state: string,
    message: string,
    readonly hint: string | null = null,
    readonly answer: string | null = null,
  ) {
    super(`run ${run.id} ${state}: ${message}${hint ? ` (hint: ${hint})` : ""}`);
  }
}

/** The run ended, but did not do all that was requested. */
export class PartialAnswer extends RunError {}

/** The run failed. */
export class RunFailed extends RunError {}

/** The run was cancelled. */
export class RunCancelled extends RunError {}

/** The run reached a limit, such as its number of tool calls. */
export class LimitReached extends RunError {}

/** The run waits for an approval, or for a step whose outcome is unknown to be resolved. It continues afterwards. */
export class RunIsSuspended extends RunError {
  readonly approvals: number[];
  readonly unknownSteps: string[];

  constructor(run: Run, event: Partial<RunSuspended>) {
    const approvals = event.approvals ?? [];
    const unknownSteps = event.unknown_steps ?? [];
    const waitsFor = [...approvals.map((id) => `approval ${id}`), ...unknownSteps.map((step) => `the outcome of step \`${step}\``)];
    super(run, "suspended", `waits for ${waitsFor.join(", ") || "a decision"}`);
    this.approvals = approvals;
    this.unknownSteps = unknownSteps;
  }
}

/** The end of a run: the fields of `run_ended` and of the run itself that tell how it ended. */
export interface RunOutcome {
  state?: string;
  answer?: string | null;
  message?: string;
  hint?: string;
}

/** The answer of a run that is over; throws if it has no complete one. */
export function answerOrError(run: Run, end: RunOutcome): string {
  const state = end.state ?? "failed";
  if (state === "answered") return end.answer ?? "";
  const errors: Record<string, typeof RunError> = { partial: PartialAnswer, cancelled: RunCancelled, limit_reached: LimitReached };
  const message = end.message ?? "the run ended without a complete answer";
  throw new (errors[state] ?? RunFailed)(run, state, message, end.hint ?? null, end.answer ?? null);
}
