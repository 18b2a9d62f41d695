//! The request: which tool to call, with what, for whom, and how long it may take.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use toolyard_core::{
    CallContext, CallInputResponses, Caller, CallerIdentity, ContentHash, ExtendableDeadline, RawJson,
    SourceId, ToolCallRequest, telemetry::SpanContext,
};

use super::field::{MalformedMessage, owner_text, span_text};

/// The name under which processes serve tool calls to their peers.
pub const TOOL_CALL_SERVICE: &str = "tool_call";
/// The version of requests that this build writes, and the only one that it reads.
pub(in crate::remote_call) const REQUEST_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireRequest<'a> {
    version: u32,
    pub(in crate::remote_call) source: SourceId,
    pub(in crate::remote_call) tool: Cow<'a, str>,
    /// The hash of the tool's definition, as the caller knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) definition: Option<ContentHash>,
    pub(in crate::remote_call) id: Cow<'a, str>,
    /// The source that the request names, if it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) requested_source: Option<Cow<'a, str>>,
    pub(in crate::remote_call) arguments: RawJson,
    /// How much time is left. Clocks of machines differ, so a point in time would mean nothing.
    pub(in crate::remote_call) remaining_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) extension: Option<WireExtension>,
    pub(in crate::remote_call) attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) idempotency_key: Option<Arc<str>>,
    /// Its presented token is not serialized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) identity: Option<Arc<CallerIdentity>>,
    /// Always present: the operator may read everything, so nobody becomes the operator by omission.
    #[serde(with = "owner_text")]
    pub(in crate::remote_call) owner: toolyard_core::DataOwner,
    #[serde(default, with = "span_text", skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) span: Option<SpanContext>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) caller: Option<WireCaller<'a>>,
}

/// How activity extends the deadline.
#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireExtension {
    pub(in crate::remote_call) idle_timeout_ms: u64,
    /// The time until the current deadline.
    pub(in crate::remote_call) remaining_ms: u64,
    /// The time until the deadline that is not extended further.
    pub(in crate::remote_call) max_remaining_ms: u64,
}

/// What a tool may ask its caller without input of a person.
#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireCaller<'a> {
    pub(in crate::remote_call) capabilities: RawJson,
    pub(in crate::remote_call) session_id: u64,
    pub(in crate::remote_call) client_id: u64,
    pub(in crate::remote_call) program_id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) identity: Option<WireCallerIdentity>,
    pub(in crate::remote_call) owner_hash: ContentHash,
    pub(in crate::remote_call) wants_progress: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) log_level: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub(in crate::remote_call) trace_context: Cow<'a, [(String, String)]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) request_meta: Option<RawJson>,
    #[serde(default, with = "span_text", skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) span: Option<SpanContext>,
    pub(in crate::remote_call) accepts_input_required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) input_responses: Option<WireInputResponses<'a>>,
    /// Whether the call belongs to a conversation. The conversation itself does not cross.
    pub(in crate::remote_call) has_conversation: bool,
}

/// Who the caller is, which is mostly who the call is made for.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::remote_call) enum WireCallerIdentity {
    OfCall,
    Other(Arc<CallerIdentity>),
}

#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireInputResponses<'a> {
    pub(in crate::remote_call) responses: RawJson,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote_call) state: Option<Cow<'a, str>>,
}

/// Why a request was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::remote_call) enum RefusedRequest {
    /// Another process of the cluster has a later version of Toolyard.
    ///
    /// Remedy: update all gateways and workers to the same version: gateways first, then workers.
    #[error("unknown version {0} of the request (this process knows version {REQUEST_VERSION})")]
    Version(u64),
    /// Another process of the cluster sent a call that this version cannot read.
    ///
    /// Remedy: run the same version of Toolyard in all gateways and workers; check who else may publish to the NATS
    /// subjects.
    #[error("malformed request: {0}")]
    Malformed(#[from] MalformedMessage),
}

impl<'a> WireRequest<'a> {
    pub(in crate::remote_call) fn new(
        source: &SourceId,
        definition: Option<ContentHash>,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> Self {
        let now = tokio::time::Instant::now().into_std();
        let remaining_ms = milliseconds(context.deadline.saturating_duration_since(now));
        Self {
            version: REQUEST_VERSION,
            source: source.clone(),
            tool: Cow::Borrowed(&request.tool_name),
            definition,
            id: Cow::Borrowed(&request.id),
            requested_source: request.source.as_deref().map(Cow::Borrowed),
            arguments: request.arguments.clone(),
            remaining_ms,
            extension: context
                .extendable_deadline
                .as_deref()
                .map(|deadline| WireExtension::new(deadline, now)),
            attempt: context.attempt,
            idempotency_key: context.idempotency_key.clone(),
            identity: context.identity.clone(),
            owner: context.owner,
            span: context.span,
            caller: context.caller.as_deref().map(|caller| WireCaller::new(caller, context)),
        }
    }

    pub(in crate::remote_call) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

impl WireRequest<'static> {
    pub(in crate::remote_call) fn decode(message: &[u8]) -> Result<Self, RefusedRequest> {
        #[derive(Deserialize)]
        struct VersionOnly {
            version: u64,
        }
        let error = match serde_json::from_slice::<Self>(message) {
            Ok(request) if request.version == REQUEST_VERSION => return Ok(request),
            Ok(request) => return Err(RefusedRequest::Version(request.version.into())),
            Err(error) => error,
        };
        // A later version may have other fields.
        match serde_json::from_slice(message) {
            Ok(VersionOnly { version }) if version != u64::from(REQUEST_VERSION) => {
                Err(RefusedRequest::Version(version))
            }
            _ => Err(MalformedMessage::from(error).into()),
        }
    }
}

impl WireExtension {
    fn new(deadline: &ExtendableDeadline, now: std::time::Instant) -> Self {
        let until = |instant: std::time::Instant| milliseconds(instant.saturating_duration_since(now));
        Self {
            idle_timeout_ms: milliseconds(deadline.idle_timeout()),
            remaining_ms: until(deadline.deadline()),
            max_remaining_ms: until(deadline.max_deadline()),
        }
    }
}

impl<'a> WireCaller<'a> {
    fn new(caller: &'a dyn Caller, context: &CallContext) -> Self {
        Self {
            capabilities: caller.capabilities(),
            session_id: caller.session_id(),
            client_id: caller.client_id(),
            program_id: caller.program_id(),
            identity: caller.identity().map(|identity| match &context.identity {
                Some(of_call) if of_call == identity => WireCallerIdentity::OfCall,
                _ => WireCallerIdentity::Other(Arc::clone(identity)),
            }),
            owner_hash: caller.owner_hash().into(),
            wants_progress: caller.wants_progress(),
            log_level: caller.log_level().map(Cow::Borrowed),
            trace_context: Cow::Borrowed(caller.trace_context()),
            request_meta: caller.request_meta().cloned(),
            span: caller.span(),
            accepts_input_required: caller.accepts_input_required(),
            input_responses: caller.input_responses().map(|CallInputResponses { responses, state }| {
                WireInputResponses {
                    responses: responses.clone(),
                    state: state.as_deref().map(Cow::Borrowed),
                }
            }),
            has_conversation: caller.conversation().is_some(),
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
