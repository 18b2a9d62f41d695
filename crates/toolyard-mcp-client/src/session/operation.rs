//! Reports requests to an upstream server to telemetry.

use std::{borrow::Cow, sync::Arc};

use parking_lot::Mutex;
use toolyard_core::{
    SourceId,
    telemetry::{OperationKind, RootlessTelemetry, RunningOperation, SpanContext, Telemetry, Transport},
};
use url::Url;

use crate::{
    session::{
        error::RequestError,
        inner::{LISTEN_METHOD, OutgoingRequest},
        protocol_context::ProtocolContext,
    },
    transport::{error::TransportError, requests::in_flight::RequestOrigin},
};

/// The `error.type` of a tool that reports an error.
const TOOL_ERROR: &str = "tool_error";
/// Longer names and URIs are cut: clients choose them.
const MAX_SUBJECT_BYTES: usize = 256;

/// Where the requests of a session are reported, and what they have in common.
#[derive(Debug)]
pub(crate) struct SessionTelemetry {
    telemetry: Arc<dyn Telemetry>,
    /// For requests that nobody caused, such as pings.
    rootless: Arc<dyn Telemetry>,
    /// What started the session: the cause of its first requests.
    cause: Mutex<Option<SpanContext>>,
    transport: Transport,
    address: Option<(Arc<str>, u16)>,
}

impl SessionTelemetry {
    /// `url` is that of the server; none over stdio. `cause` starts the session.
    pub(crate) fn new(telemetry: &Arc<dyn Telemetry>, url: Option<&Url>, cause: Option<SpanContext>) -> Self {
        Self {
            telemetry: Arc::clone(telemetry),
            rootless: RootlessTelemetry::of(telemetry),
            cause: Mutex::new(cause),
            transport: if url.is_some() { Transport::Http } else { Transport::Stdio },
            address: url.and_then(|url| Some((url.host_str()?.into(), url.port_or_known_default()?))),
        }
    }

    /// Later requests of the session itself have no cause.
    pub(crate) fn forget_cause(&self) {
        *self.cause.lock() = None;
    }

    fn cause(&self) -> Option<SpanContext> {
        *self.cause.lock()
    }

    /// Starts the operation of a request and makes the request carry its span. None for a request that stays open as long
    /// as the session.
    pub(super) fn start(
        &self,
        server: &SourceId,
        protocol: &ProtocolContext,
        request: &mut OutgoingRequest<'_>,
        id: Option<u64>,
    ) -> Option<RunningOperation> {
        let method = request.method;
        if method == LISTEN_METHOD {
            return None;
        }
        let is_internal = matches!(request.origin, RequestOrigin::Internal);
        let telemetry = if is_internal { &self.rootless } else { &self.telemetry };
        let caller_span = || request.caller().filter(|_| telemetry.records_spans())?.span();
        let own_cause = || if is_internal { self.cause() } else { None };
        let parent = request.span.or_else(caller_span).or_else(own_cause);
        let operation = RunningOperation::start_with(telemetry, parent, |details| {
            let cut = |text: &str| {
                Arc::from(text.get(..text.floor_char_boundary(MAX_SUBJECT_BYTES)).unwrap_or_default())
            };
            let subject = request.subject.filter(|_| details).map(cut);
            let is_resource = method.starts_with("resources/");
            let (target, resource) = if is_resource { (None, subject) } else { (subject, None) };
            OperationKind::ClientRequest {
                method: Cow::Borrowed(method),
                target,
                resource,
                revision: protocol.revision,
                server: server.clone(),
                request_id: id,
                transport: self.transport,
                address: self.address.clone().filter(|_| details),
            }
        });
        request.span = operation.context();
        Some(operation)
    }
}

/// Ends the operation of a request that has a result.
pub(super) fn end_with_result(operation: Option<RunningOperation>, is_tool_error: bool) {
    if let Some(operation) = operation {
        operation.end(is_tool_error.then_some(Cow::Borrowed(TOOL_ERROR)));
    }
}

/// Ends the operation of a request that failed.
pub(super) fn end_with_error(operation: Option<RunningOperation>, error: &RequestError) {
    if let Some(operation) = operation {
        operation.end(Some(error_type(error)));
    }
}

fn error_type(error: &RequestError) -> Cow<'static, str> {
    match error {
        RequestError::Rpc(error) => error.code.to_string().into(),
        RequestError::Transport(error) | RequestError::Interrupted(error) => match error {
            TransportError::Status { status, .. } => format!("http_{status}").into(),
            TransportError::Unreachable(_) => "unreachable".into(),
            TransportError::Exited { .. } => "server_exited".into(),
            TransportError::ConnectionLost(_) | TransportError::Closed => "connection_lost".into(),
            TransportError::SignInRequired { .. } => "sign_in_required".into(),
            TransportError::SessionExpired => "session_expired".into(),
            TransportError::TooManyRequests(_) => "too_many_requests".into(),
            _ => "invalid_response".into(),
        },
        RequestError::IdleTimeout(_) => "timeout".into(),
        RequestError::Malformed(_) => "invalid_response".into(),
        RequestError::TooManyInputRounds(_)
        | RequestError::CannotResume
        | RequestError::InputUnavailable(_) => "input_unavailable".into(),
    }
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;
