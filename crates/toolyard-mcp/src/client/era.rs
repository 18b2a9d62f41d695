//! Which family of protocol revisions a server speaks: decided from what it answers, never from how fast.

use serde::Deserialize;

use super::TransportError;
use crate::wire::RpcError;

/// The revision of the modern era that we speak.
pub const MODERN: &str = "2026-07-28";
/// The revisions of the legacy era that we speak, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Errors that only a server of the modern era knows.
const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;

/// What to do after `server/discover` was answered with something other than a result.
#[derive(Debug, Clone, PartialEq)]
pub enum AfterDiscover {
    /// It is of the legacy era, as far as anyone can tell.
    Initialize,
    /// It says that it speaks our revision and refuses it all the same: it is worth asking once more, and no more than that.
    Again(RpcError),
    /// It is of the modern era and says no: trying the other era would only hide why.
    Refused(RpcError),
    /// It could not be asked at all.
    Failed(TransportError),
}

/// What to do after `initialize` failed over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub enum AfterInitialize {
    /// Perhaps it speaks HTTP+SSE.
    OpenEvents,
    /// That is that.
    Failed(TransportError),
}

/// Judges a JSON-RPC error that answered `server/discover`.
pub fn after_error(error: RpcError) -> AfterDiscover {
    match error.code {
        UNSUPPORTED_VERSION if offers(&error, |version| version == MODERN) => AfterDiscover::Again(error),
        UNSUPPORTED_VERSION if offers(&error, |version| legacy_version(version).is_some()) => {
            AfterDiscover::Initialize
        }
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION => AfterDiscover::Refused(error),
        _ => AfterDiscover::Initialize,
    }
}

/// Judges a failure of the transport that answered `server/discover`. Only an answer that a server of the legacy era
/// would give counts as one; whoever is not let in, not there or broken has not said anything about eras.
pub fn after_failure(failure: TransportError) -> AfterDiscover {
    match failure {
        TransportError::Status { error: Some(error), status: 400..=499, .. } => after_error(error),
        TransportError::Status { status: 401 | 403 | 407 | 429 | 502..=504, .. } => {
            AfterDiscover::Failed(failure)
        }
        TransportError::Status { .. } | TransportError::NotTheProtocol(_) => AfterDiscover::Initialize,
        other => AfterDiscover::Failed(other),
    }
}

/// Judges a failed `initialize` over HTTP: a server of 2024-11-05 does not know how to take a POST there.
pub fn after_initialize(failure: TransportError) -> AfterInitialize {
    match failure {
        TransportError::Status { status: 400 | 404 | 405 | 406 | 415 | 501, .. }
        | TransportError::NotTheProtocol(_) => AfterInitialize::OpenEvents,
        other => AfterInitialize::Failed(other),
    }
}

/// Which revision to speak with a server that answered `initialize` with `version`; none if we do not know it.
pub fn legacy_version(version: &str) -> Option<&'static str> {
    LEGACY.into_iter().find(|known| *known == version)
}

/// Whether a server that lists these revisions speaks ours.
pub fn speaks_modern(supported: &[String]) -> bool {
    supported.iter().any(|version| version == MODERN)
}

/// Whether an error names a version of this kind among those that it would take.
fn offers(error: &RpcError, kind: impl Fn(&str) -> bool) -> bool {
    #[derive(Deserialize)]
    struct Data {
        #[serde(default)]
        supported: Vec<String>,
    }
    let data = error.data.as_ref().and_then(|data| data.read::<Data>().ok());
    data.is_some_and(|data| data.supported.iter().any(|version| kind(version)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_core::RawJson;

    use super::*;

    fn error(code: i64, data: serde_json::Value) -> RpcError {
        RpcError { code, message: "no".to_owned(), data: Some(RawJson::from(data)) }
    }

    fn status(status: u16, error: Option<RpcError>) -> TransportError {
        TransportError::Status { status, error, excerpt: None, challenge: None }
    }

    #[test]
    fn any_error_that_is_not_modern_means_legacy() {
        for code in [-32601, -32602, -32600, -32000, 0, 7] {
            assert_eq!(after_error(error(code, json!({}))), AfterDiscover::Initialize);
            let failure = status(400, Some(error(code, json!({}))));
            assert_eq!(after_failure(failure), AfterDiscover::Initialize);
        }
    }

    #[test]
    fn a_modern_refusal_is_told_and_not_hidden_behind_the_other_era() {
        for code in [HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION] {
            let refusal = error(code, json!({"supported": ["2027-01-01"]}));
            assert_eq!(after_error(refusal.clone()), AfterDiscover::Refused(refusal));
        }
    }

    #[test]
    fn a_server_that_only_offers_old_versions_is_initialized() {
        let old = error(UNSUPPORTED_VERSION, json!({"supported": ["2025-11-25"]}));
        assert_eq!(after_error(old), AfterDiscover::Initialize);
    }

    #[test]
    fn a_server_that_speaks_our_version_is_asked_again_and_never_initialized() {
        for supported in [json!([MODERN]), json!(["2025-11-25", MODERN])] {
            let refusal = error(UNSUPPORTED_VERSION, json!({"supported": supported, "requested": MODERN}));
            assert_eq!(after_error(refusal.clone()), AfterDiscover::Again(refusal.clone()));
            let failure = status(400, Some(refusal.clone()));
            assert_eq!(after_failure(failure), AfterDiscover::Again(refusal));
        }
    }

    #[test]
    fn who_is_not_let_in_or_not_there_says_nothing_about_eras() {
        let down = TransportError::Unreachable("refused".to_owned());
        for failure in [status(401, None), status(403, None), status(503, None), down] {
            assert_eq!(after_failure(failure.clone()), AfterDiscover::Failed(failure));
        }
        for code in [404, 405, 500] {
            assert_eq!(after_failure(status(code, None)), AfterDiscover::Initialize);
        }
    }

    #[test]
    fn a_server_of_the_first_revision_is_found_by_its_refusal_of_posts() {
        for code in [404, 405, 400] {
            assert_eq!(after_initialize(status(code, None)), AfterInitialize::OpenEvents);
        }
        assert!(matches!(after_initialize(status(401, None)), AfterInitialize::Failed(_)));
    }
}
