//! Error codes of JSON-RPC 2.0 and MCP, by name.

/// The message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a valid request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist, or the other side did not offer it.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The request failed for a reason on the responding side.
pub const INTERNAL_ERROR: i64 = -32603;

/// A failure of the responding server without a code of its own.
pub const SERVER_ERROR: i64 = -32000;
/// No session has the given id.
pub const SESSION_NOT_FOUND: i64 = -32001;
/// No resource has the given URI (revisions before 2026-07-28; later ones use [`INVALID_PARAMS`]).
pub const RESOURCE_NOT_FOUND: i64 = -32002;

/// The user must open a page before the request can be processed (2025-11-25).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// A header contradicts the message in the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare (2026-07-28).
pub const MISSING_CAPABILITY: i64 = -32021;
/// The server does not speak the revision of the request (2026-07-28).
pub const UNSUPPORTED_VERSION: i64 = -32022;
