//! `/healthz` says that the process is alive, `/readyz` whether to send it requests. Both need no token.

use std::fmt;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Serialize;
use toolyard_core::BoxFuture;

use crate::http::{body::ResponseBody, response};

/// Liveness: a process that does not answer is to be restarted.
pub(crate) const LIVENESS_PATH: &str = "/healthz";
/// Readiness: while it fails, load balancers send requests elsewhere.
pub(crate) const READINESS_PATH: &str = "/readyz";

/// Checks whether a load balancer should send requests to this process. Clients without a token can ask at any rate, so
/// that a check must be cheap or cached.
pub trait ReadinessProbe: Send + Sync + fmt::Debug {
    /// The outcome of every check; the process is ready if all that are required passed.
    fn check(&self) -> BoxFuture<'_, Vec<ReadinessCheck>>;
}

/// The outcome of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadinessCheck {
    /// What was checked, such as `store`.
    pub name: &'static str,
    /// Whether the check passed.
    pub ok: bool,
    /// Why it failed. Clients without a token get it too, so it names nothing of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// More, for clients with a token only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether a failure makes the process unready.
    #[serde(skip)]
    pub is_required: bool,
}

impl ReadinessCheck {
    /// A check that passed.
    pub fn passed(name: &'static str) -> Self {
        Self { name, ok: true, reason: None, detail: None, is_required: true }
    }

    /// A required check that failed.
    pub fn failed(name: &'static str, reason: &'static str) -> Self {
        Self { name, ok: false, reason: Some(reason), detail: None, is_required: true }
    }

    /// Makes the check informational: a failure is reported, but the process stays ready.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.is_required = false;
        self
    }

    /// The same check with details.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

#[derive(Serialize)]
struct ReadinessReport {
    status: &'static str,
    checks: Vec<ReadinessCheck>,
}

pub(crate) fn liveness() -> Response<ResponseBody> {
    response::json(StatusCode::OK, Bytes::from_static(br#"{"status":"ok"}"#))
}

/// The readiness of a process: its own checks, and whether it is stopping.
pub(crate) async fn readiness(
    is_stopping: bool,
    probe: Option<&dyn ReadinessProbe>,
    shows_details: bool,
) -> Response<ResponseBody> {
    let mut checks = vec![match is_stopping {
        false => ReadinessCheck::passed("running"),
        true => ReadinessCheck::failed("running", "stopping"),
    }];
    if let Some(probe) = probe {
        checks.extend(probe.check().await);
    }
    let (status_code, report) = report(checks, shows_details);
    let text = serde_json::to_string(&report).unwrap_or_default();
    response::json(status_code, text.into())
}

fn report(mut checks: Vec<ReadinessCheck>, shows_details: bool) -> (StatusCode, ReadinessReport) {
    if !shows_details {
        checks.iter_mut().for_each(|check| check.detail = None);
    }
    match checks.iter().all(|check| check.ok || !check.is_required) {
        true => (StatusCode::OK, ReadinessReport { status: "ready", checks }),
        false => (StatusCode::SERVICE_UNAVAILABLE, ReadinessReport { status: "not ready", checks }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn one_failed_check_is_enough_and_details_need_a_token(
            outcomes in proptest::collection::vec(any::<bool>(), 0..5), shows_details: bool,
        ) {
            let check = |ok: &bool| match ok {
                true => ReadinessCheck::passed("a"),
                false => ReadinessCheck::failed("b", "unreachable").with_detail("postgres://secret-host"),
            };
            let (status, report) = report(outcomes.iter().map(check).collect(), shows_details);
            prop_assert_eq!(status == StatusCode::OK, outcomes.iter().all(|ok| *ok));
            let text = serde_json::to_string(&report).unwrap();
            prop_assert_eq!(text.contains("secret-host"), shows_details && status != StatusCode::OK);
            prop_assert_eq!(text.contains("unreachable"), status != StatusCode::OK);
        }
    }

    #[test]
    fn an_optional_check_that_failed_is_reported_and_leaves_the_process_ready() {
        let failed = ReadinessCheck::failed("store", "unreachable");
        let (status, report) = report(vec![ReadinessCheck::passed("running"), failed.optional()], false);
        assert_eq!(status, StatusCode::OK);
        let expected = r#"{"status":"ready","checks":[{"name":"running","ok":true},{"name":"store","ok":false,"reason":"unreachable"}]}"#;
        assert_eq!(serde_json::to_string(&report).unwrap(), expected);
    }
}
