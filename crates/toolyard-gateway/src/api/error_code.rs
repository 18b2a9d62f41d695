//! [`ErrorCode`]: the values of `error.code` that the HTTP API sends.

use serde::Serialize;
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

/// What is wrong, as a stable word: `run_not_found`. Clients compare it, so a word is not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErrorCode {
    AgentExists,
    AgentNotFound,
    AgentReadOnly,
    AgentUnavailable,
    AgentsNotOffered,
    AlreadyExecuted,
    AlreadyStarted,
    ApprovalNotFound,
    ApprovalNotPermitted,
    ApprovalsUnavailable,
    CallDenied,
    ChangeNotPermitted,
    CircuitOpen,
    ContextLengthExceeded,
    DefinitionChanged,
    Forbidden,
    IdempotencyKeyReused,
    InputRequired,
    InternalError,
    InvalidApiKey,
    InvalidArguments,
    InvalidRequest,
    MethodNotAllowed,
    ModelNotFound,
    ModelUnavailable,
    NoStore,
    NotOffered,
    OperatorOnly,
    OutcomeUnknown,
    QuotaExceeded,
    RequestTooLarge,
    ResponseLost,
    ResultNotFound,
    RouteNotFound,
    RunActive,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunInterrupted,
    RunNotFound,
    RunNotResumable,
    RunWaits,
    ServerConflicts,
    ServerExists,
    ServerNotFound,
    ServerUnreachable,
    SessionLost,
    SettingsNotChanged,
    SettingsUnreadable,
    ShuttingDown,
    SignInNotOffered,
    SignInRequired,
    SourceNotFound,
    SourceUnavailable,
    StoreUnavailable,
    TooManyKeys,
    TooManyTickets,
    ToolAmbiguous,
    ToolCallsNotOffered,
    ToolFailed,
    ToolNotApproved,
    ToolNotFound,
    ToolTimeout,
    UnknownStepNotFound,
    UnsupportedParameter,
}

impl ErrorCode {
    /// All words, for the OpenAPI document.
    pub(super) fn all() -> Vec<Value> {
        match Self::schema() {
            RefOr::T(Schema::Object(object)) => object.enum_values.unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}
