//! [`HttpCaller`]: the caller of a tool over the HTTP API. It cannot be asked for input.

use std::sync::Arc;

use toolyard_core::{Caller, CallerIdentity, telemetry::SpanContext};

/// The caller of a tool over the HTTP API. All requests of a caller are of one session.
#[derive(Debug)]
pub(super) struct HttpCaller {
    identity: Arc<CallerIdentity>,
    /// The span of the request, which causes the call.
    span: Option<SpanContext>,
}

impl HttpCaller {
    pub(super) fn new(identity: Arc<CallerIdentity>, span: Option<SpanContext>) -> Self {
        Self { identity, span }
    }
}

impl Caller for HttpCaller {
    fn session_id(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.identity.owner_hash();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    fn identity(&self) -> Option<&Arc<CallerIdentity>> {
        Some(&self.identity)
    }

    fn span(&self) -> Option<SpanContext> {
        self.span
    }
}
