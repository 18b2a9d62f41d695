// Errors of runs that end without a complete answer.
import { ToolyardError } from "./errors.js";
import type { Run } from "./run.js";
import type { RunSuspended } from "./types.js";

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
