"""The error types of the workspace, and how their messages are built: what scripts/rust_messages.py looks for."""

import re

# Where the message is among the arguments of each constructor, and the kind of message.
CONSTRUCTORS = {
    "CliError::new": (1, "cli"),
    "CliError::failed": (0, "cli"),
    "CliError::usage": (0, "cli"),
    "CliError::denied": (0, "cli"),
    "CliError::unreachable": (0, "cli"),
    "CliError::file": (0, "cli"),
    "output.error": (0, "cli"),
    "ToolError::new": (1, "tool"),
    "ToolError::failed": (0, "tool"),
    "ModelError::new": (2, "model"),
    "reporter.error": (1, "model"),
    "ApiError::bad_request": (0, "http"),
    "ApiError::invalid_param": (1, "http"),
    "ApiError::not_found": (1, "http"),
    "ApiError::refused": (1, "http"),
    "ApiError::failed": (1, "http"),
    "ApiError::conflict": (1, "http"),
    "ApiError::internal": (0, "http"),
    "ApiError::unavailable": (1, "http"),
    "ApiError::quota_exceeded": (0, "http"),
    "ApiError::model_unavailable": (0, "http"),
    "ApiError::store_unavailable": (0, "http"),
    "refusal": (1, "page"),
    "Finding::problem": (1, "doctor"),
    "Finding::note": (1, "doctor"),
    "Outcome::error": (1, "rpc"),
    "Outcome::invalid_params": (0, "rpc"),
    "Outcome::internal_error": (0, "rpc"),
    "Outcome::error_with_status": (2, "rpc"),
    "response::error": (2, "rpc"),
    "rpc_error": (1, "rpc"),
    "error_without_id": (1, "rpc"),
    "Error::custom": (0, "detail"),
    "E::custom": (0, "detail"),
    "io::Error::other": (0, "detail"),
    "std::io::Error::other": (0, "detail"),
    "output.message": (0, "note"),
    "notes.push": (0, "detail"),
    "invalid_answer": (0, "detail"),
    "io::Error::new": (1, "detail"),
}
OPAQUE_TYPES = ("CliError", "ToolError", "ApiError", "RpcError", "Outcome", "Finding", "ModelError")
KIND_OF_TYPE = {"CliError": "cli", "ToolError": "tool", "ApiError": "http", "RpcError": "rpc", "Outcome": "rpc", "Finding": "doctor", "ModelError": "model"}
EXIT_CODES = {"failed": 1, "file": 1, "usage": 2, "unreachable": 3, "denied": 4}
HTTP_STATUS = {"bad_request": 400, "invalid_param": 400, "not_found": 404, "failed": 422, "conflict": 409, "internal": 500, "unavailable": 503, "quota_exceeded": 429, "store_unavailable": 503}
HTTP_CODE = {"bad_request": "invalid_request", "invalid_param": "invalid_request", "internal": "internal_error", "quota_exceeded": "quota_exceeded", "model_unavailable": "model_unavailable", "store_unavailable": "store_unavailable"}
HTTP_NAMES = {"BAD_REQUEST": 400, "UNAUTHORIZED": 401, "FORBIDDEN": 403, "NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405, "NOT_ACCEPTABLE": 406, "CONFLICT": 409, "PAYLOAD_TOO_LARGE": 413, "UNSUPPORTED_MEDIA_TYPE": 415, "UNPROCESSABLE_ENTITY": 422, "TOO_MANY_REQUESTS": 429, "INTERNAL_SERVER_ERROR": 500, "NOT_IMPLEMENTED": 501, "BAD_GATEWAY": 502, "SERVICE_UNAVAILABLE": 503, "GATEWAY_TIMEOUT": 504}
TEXT_TYPE = re.compile(r"(?:&(?:'\w+ )?str|String|(?:&\s*)?impl (?:Into<(?:String|Cow<.*>)>|(?:fmt::|std::fmt::)?Display|AsRef<str>|ToString)|Cow<.*>|fmt::Arguments.*)$")
MESSAGE_PARAMETER = r"message|problem|reason|detail|error|text|what|why|cause|description|failure|fault|explanation"
MESSAGE_FIELDS = {"message", "problem", "reason", "detail", "cause", "why", "expected", "error", "explanation"}
NOT_MESSAGES = {"name", "path", "kind", "code", "status", "param", "retry_after", "source", "target", "id", "known", "data", "key", "tool", "server", "file", "step", "hint", "model", "subject"}
# Constructors whose name means something else in other folders.
ONLY_IN = {"notes.push": ("crates/toolyard-mcp-client/src/config/", "crates/toolyard-mcp/src/definition/")}
NOT_ERRORS = {"Finding::ok", "Outcome::result"}
# Of the notes that commands print, those that something did not work.
FAILURE_NOTE = re.compile(r"\s*note: .*(?:fail|could not|did not|skipped|ignored|not known|not encrypted|disabled)")
# An expression that passes the text of another error on.
PASSED_ON = re.compile(r"(?:&?\w*(?:error|failure|exceeded|other|denied|problem|invalid|refused|rejection|causes)\w*(?:\(&?\w+\))?(?:\.(?:to_string|into|message|clone|reason|to_owned|as_ref|without_url|description|body_text|0)(?:\(\))?)*|.*[^\"]\.to_string\(\)|ToString::to_string|.*\.(?:message|reason)(?:\(\))?(?:\.(?:to_owned|clone)\(\))?|source(?:\.into\(\))?|(?:Box::new|Arc::new)\(\w*\))")
