// Errors of the connection and of the API.

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
