//! [`RemoteCaller`]: stands for a caller that is connected to another process.

use std::{borrow::Cow, sync::Arc};

use toolyard_core::{
    BoxFuture, CallInputError, CallInputRequest, CallInputResponses, CallProgress, Caller, CallerIdentity,
    RawJson, telemetry::SpanContext,
};

use super::{
    outbox::Outbox,
    wire::request::{WireCaller, WireCallerIdentity, WireInputResponses},
};

/// Answers from what the request says about the caller; passes everything else on to the process of the caller.
#[derive(Debug)]
pub(super) struct RemoteCaller {
    capabilities: RawJson,
    session_id: u64,
    client_id: u64,
    program_id: u64,
    identity: Option<Arc<CallerIdentity>>,
    owner_hash: [u8; 32],
    wants_progress: bool,
    log_level: Option<String>,
    trace_context: Vec<(String, String)>,
    request_meta: Option<RawJson>,
    span: Option<SpanContext>,
    accepts_input_required: bool,
    input_responses: Option<CallInputResponses>,
    outbox: Arc<Outbox>,
}

impl RemoteCaller {
    /// The caller of a call that is made for `of_call`.
    pub(super) fn new(
        wire: WireCaller<'static>,
        of_call: Option<&Arc<CallerIdentity>>,
        outbox: Arc<Outbox>,
    ) -> Self {
        Self {
            capabilities: wire.capabilities,
            session_id: wire.session_id,
            client_id: wire.client_id,
            program_id: wire.program_id,
            identity: wire.identity.and_then(|identity| match identity {
                WireCallerIdentity::OfCall => of_call.map(Arc::clone),
                WireCallerIdentity::Other(identity) => Some(identity),
            }),
            owner_hash: *wire.owner_hash.as_bytes(),
            wants_progress: wire.wants_progress,
            log_level: wire.log_level.map(Cow::into_owned),
            trace_context: wire.trace_context.into_owned(),
            request_meta: wire.request_meta,
            span: wire.span,
            accepts_input_required: wire.accepts_input_required,
            input_responses: wire.input_responses.map(|WireInputResponses { responses, state }| {
                CallInputResponses { responses, state: state.map(Cow::into_owned) }
            }),
            outbox,
        }
    }
}

impl Caller for RemoteCaller {
    fn capabilities(&self) -> RawJson {
        self.capabilities.clone()
    }

    fn session_id(&self) -> u64 {
        self.session_id
    }

    fn client_id(&self) -> u64 {
        self.client_id
    }

    fn program_id(&self) -> u64 {
        self.program_id
    }

    fn identity(&self) -> Option<&Arc<CallerIdentity>> {
        self.identity.as_ref()
    }

    fn owner_hash(&self) -> [u8; 32] {
        self.owner_hash
    }

    fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    fn progress(&self, progress: &CallProgress) {
        self.outbox.push_progress(progress);
    }

    fn log(&self, message: &RawJson) {
        self.outbox.push_log(message);
    }

    fn log_level(&self) -> Option<&str> {
        self.log_level.as_deref()
    }

    fn trace_context(&self) -> &[(String, String)] {
        &self.trace_context
    }

    fn request_meta(&self) -> Option<&RawJson> {
        self.request_meta.as_ref()
    }

    fn span(&self) -> Option<SpanContext> {
        self.span
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        Box::pin(self.outbox.request_input(requests))
    }

    fn note_unsupported(&self, request: &CallInputRequest) {
        self.outbox.push_unsupported(request);
    }

    fn accepts_input_required(&self) -> bool {
        self.accepts_input_required
    }

    fn input_responses(&self) -> Option<&CallInputResponses> {
        self.input_responses.as_ref()
    }
}
