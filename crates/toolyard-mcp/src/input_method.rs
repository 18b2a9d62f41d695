//! Maps the input that a call requests to the MCP methods that request it.

use toolyard_core::{CallInputError, CallInputKind};

use crate::error_code;

/// The method that requests this kind of input from a client.
pub fn input_method(kind: CallInputKind) -> &'static str {
    match kind {
        CallInputKind::Elicitation => "elicitation/create",
        CallInputKind::Sampling => "sampling/createMessage",
        CallInputKind::Roots => "roots/list",
    }
}

/// The kind of input that a method requests; none for any other method.
pub fn input_kind(method: &str) -> Option<CallInputKind> {
    [CallInputKind::Elicitation, CallInputKind::Sampling, CallInputKind::Roots]
        .into_iter()
        .find(|kind| input_method(*kind) == method)
}

/// The JSON-RPC error code of a failed input request.
pub fn input_error_code(error: &CallInputError) -> i64 {
    match error {
        CallInputError::Unsupported(_) => error_code::METHOD_NOT_FOUND,
        CallInputError::InvalidRequest(_) => error_code::INVALID_PARAMS,
        CallInputError::Failed(_) => error_code::INTERNAL_ERROR,
        CallInputError::Rejected { code, .. } => *code,
    }
}
