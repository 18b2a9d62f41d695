// Client for the HTTP API of Toolyard. Start with `Toolyard`; README.md has an example.
export { type AskOptions, type ClientOptions, type CreateRunOptions, type Decision, type Page, type PageOptions, Toolyard } from "./client.js";
export { ApiError, ConnectionFailed, TimedOut, ToolyardError } from "./errors.js";
export type { EventOptions } from "./events.js";
export { Run } from "./run.js";
export { LimitReached, PartialAnswer, RunCancelled, RunError, RunFailed, RunIsSuspended } from "./run_errors.js";
export type * from "./types.js";
