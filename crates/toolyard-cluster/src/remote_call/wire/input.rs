//! Input requests of a tool to its caller, and the answers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use toolyard_core::{CallInputError, CallInputKind, CallInputRequest, RawJson, SourceId};

use super::field::present;

#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireInputRequest<'a> {
    key: Cow<'a, str>,
    source: SourceId,
    kind: WireInputKind,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    params: Option<RawJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireInputKind {
    Elicitation,
    Sampling,
    Roots,
}

impl<'a> From<&'a CallInputRequest> for WireInputRequest<'a> {
    fn from(request: &'a CallInputRequest) -> Self {
        Self {
            key: Cow::Borrowed(&request.key),
            source: request.source.clone(),
            kind: match request.kind {
                CallInputKind::Elicitation => WireInputKind::Elicitation,
                CallInputKind::Sampling => WireInputKind::Sampling,
                CallInputKind::Roots => WireInputKind::Roots,
            },
            params: request.params.clone(),
        }
    }
}

impl From<WireInputRequest<'static>> for CallInputRequest {
    fn from(wire: WireInputRequest<'static>) -> Self {
        Self {
            key: wire.key.into_owned(),
            source: wire.source,
            kind: match wire.kind {
                WireInputKind::Elicitation => CallInputKind::Elicitation,
                WireInputKind::Sampling => CallInputKind::Sampling,
                WireInputKind::Roots => CallInputKind::Roots,
            },
            params: wire.params,
        }
    }
}

/// The answer to the input requests with this number.
#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireAnswer {
    pub(in crate::remote_call) number: u64,
    result: WireAnswerResult,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireAnswerResult {
    Responses(Vec<RawJson>),
    Unsupported(String),
    InvalidRequest(String),
    Failed(String),
    Rejected { code: i64, message: String },
}

impl WireAnswer {
    pub(in crate::remote_call) fn new(number: u64, answer: Result<Vec<RawJson>, CallInputError>) -> Self {
        let result = match answer {
            Ok(responses) => WireAnswerResult::Responses(responses),
            Err(CallInputError::Unsupported(message)) => WireAnswerResult::Unsupported(message),
            Err(CallInputError::InvalidRequest(message)) => WireAnswerResult::InvalidRequest(message),
            Err(CallInputError::Failed(message)) => WireAnswerResult::Failed(message),
            Err(CallInputError::Rejected { code, message }) => WireAnswerResult::Rejected { code, message },
        };
        Self { number, result }
    }

    pub(in crate::remote_call) fn into_result(self) -> Result<Vec<RawJson>, CallInputError> {
        Err(match self.result {
            WireAnswerResult::Responses(responses) => return Ok(responses),
            WireAnswerResult::Unsupported(message) => CallInputError::Unsupported(message),
            WireAnswerResult::InvalidRequest(message) => CallInputError::InvalidRequest(message),
            WireAnswerResult::Failed(message) => CallInputError::Failed(message),
            WireAnswerResult::Rejected { code, message } => CallInputError::Rejected { code, message },
        })
    }
}
