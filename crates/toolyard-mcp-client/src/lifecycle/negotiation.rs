//! Decides from responses, never from their timing, which family of revisions a server speaks.

use serde::Deserialize;
use toolyard_mcp::{
    RpcError,
    error_code::{HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION},
    versions::{LEGACY_REVISIONS, MODERN_REVISION},
};

use crate::transport::error::TransportError;

/// What to do after a failed `server/discover`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AfterDiscover {
    /// The server seems to be legacy.
    Initialize,
    /// The server refuses the revision that it says it supports: worth one retry.
    Retry(RpcError),
    /// The server is modern and refuses: `initialize` would only hide the reason.
    Refused(RpcError),
    /// The failure says nothing about revisions.
    Failed(TransportError),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum AfterInitialize {
    /// The server may speak HTTP+SSE.
    TrySse,
    Failed(TransportError),
}

/// Decides after an error response to `server/discover`.
pub(super) fn after_discover_error(error: RpcError) -> AfterDiscover {
    match error.code {
        UNSUPPORTED_VERSION if supports(&error, |revision| revision == MODERN_REVISION) => {
            AfterDiscover::Retry(error)
        }
        UNSUPPORTED_VERSION if supports(&error, |revision| legacy_revision(revision).is_some()) => {
            AfterDiscover::Initialize
        }
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION => AfterDiscover::Refused(error),
        _ => AfterDiscover::Initialize,
    }
}

/// Decides after a failure of the transport during `server/discover`. Only a response that a legacy server would give
/// counts; failures of authorization, connection or gateway say nothing about revisions.
pub(super) fn after_discover_failure(failure: TransportError) -> AfterDiscover {
    match failure {
        TransportError::Status { error: Some(error), status: 400..=499, .. } => after_discover_error(error),
        TransportError::Status { status: 401 | 403 | 407 | 429 | 502..=504, .. } => {
            AfterDiscover::Failed(failure)
        }
        TransportError::Status { .. } | TransportError::UnexpectedResponse(_) => AfterDiscover::Initialize,
        other => AfterDiscover::Failed(other),
    }
}

/// Decides after a failed `initialize` over HTTP: a server of revision 2024-11-05 does not accept a POST there.
pub(super) fn after_initialize_failure(failure: TransportError) -> AfterInitialize {
    match failure {
        TransportError::Status { status: 400 | 404 | 405 | 406 | 415 | 501, .. }
        | TransportError::UnexpectedResponse(_) => AfterInitialize::TrySse,
        other => AfterInitialize::Failed(other),
    }
}

pub(super) fn legacy_revision(name: &str) -> Option<&'static str> {
    LEGACY_REVISIONS.into_iter().find(|known| *known == name)
}

/// Whether the supported revisions that an error lists include one that `matches`.
fn supports(error: &RpcError, matches: impl Fn(&str) -> bool) -> bool {
    #[derive(Deserialize)]
    struct SupportedVersions {
        #[serde(default)]
        supported: Vec<String>,
    }
    let data = error.data.as_ref().and_then(|data| data.read::<SupportedVersions>().ok());
    data.is_some_and(|data| data.supported.iter().any(|revision| matches(revision)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_core::RawJson;
    use toolyard_mcp::error_code::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, SERVER_ERROR};

    use super::*;

    fn error(code: i64, data: serde_json::Value) -> RpcError {
        RpcError { code, message: "no".to_owned(), data: Some(RawJson::from(data)) }
    }

    fn status(status: u16, error: Option<RpcError>) -> TransportError {
        TransportError::Status { status, error, excerpt: None, challenge: None, retry_after_seconds: None }
    }

    #[test]
    fn an_error_that_is_not_modern_means_legacy() {
        for code in [METHOD_NOT_FOUND, INVALID_PARAMS, INVALID_REQUEST, SERVER_ERROR, 0, 7] {
            assert_eq!(after_discover_error(error(code, json!({}))), AfterDiscover::Initialize);
            let failure = status(400, Some(error(code, json!({}))));
            assert_eq!(after_discover_failure(failure), AfterDiscover::Initialize);
        }
    }

    #[test]
    fn a_modern_refusal_is_final() {
        for code in [HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION] {
            let refusal = error(code, json!({"supported": ["2027-01-01"]}));
            assert_eq!(after_discover_error(refusal.clone()), AfterDiscover::Refused(refusal));
        }
    }

    #[test]
    fn a_server_that_supports_only_legacy_revisions_is_initialized() {
        let old = error(UNSUPPORTED_VERSION, json!({"supported": ["2025-11-25"]}));
        assert_eq!(after_discover_error(old), AfterDiscover::Initialize);
    }

    #[test]
    fn a_server_that_supports_our_revision_is_asked_again_and_never_initialized() {
        for supported in [json!([MODERN_REVISION]), json!(["2025-11-25", MODERN_REVISION])] {
            let refusal =
                error(UNSUPPORTED_VERSION, json!({"supported": supported, "requested": MODERN_REVISION}));
            assert_eq!(after_discover_error(refusal.clone()), AfterDiscover::Retry(refusal.clone()));
            let failure = status(400, Some(refusal.clone()));
            assert_eq!(after_discover_failure(failure), AfterDiscover::Retry(refusal));
        }
    }

    #[test]
    fn other_failures_say_nothing_about_revisions() {
        let down = TransportError::Unreachable("refused".to_owned());
        for failure in [status(401, None), status(403, None), status(503, None), down] {
            assert_eq!(after_discover_failure(failure.clone()), AfterDiscover::Failed(failure));
        }
        for code in [404, 405, 500] {
            assert_eq!(after_discover_failure(status(code, None)), AfterDiscover::Initialize);
        }
    }

    #[test]
    fn a_server_of_the_first_revision_refuses_posts() {
        for code in [404, 405, 400] {
            assert_eq!(after_initialize_failure(status(code, None)), AfterInitialize::TrySse);
        }
        assert!(matches!(after_initialize_failure(status(401, None)), AfterInitialize::Failed(_)));
    }
}
