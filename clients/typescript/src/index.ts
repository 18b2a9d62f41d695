// Client for the HTTP API of Toolyard. Start with `Toolyard`; README.md has an example.
export { type AskOptions, type ClientOptions, type CreateRunOptions, type Decision, type Page, type PageOptions, Run, Toolyard } from "./client.js";
export {
  ApiError, ConnectionFailed, LimitReached, PartialAnswer, RunCancelled, RunError, RunFailed, RunIsSuspended, TimedOut, ToolyardError,
} from "./errors.js";
export type { EventOptions } from "./events.js";
export type * from "./types.js";
