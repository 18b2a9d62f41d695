//! Reports requests to an upstream server to telemetry.

use std::{borrow::Cow, sync::Arc};

use toolyard_core::{
    SourceId,
    telemetry::{OperationKind, RunningOperation, Telemetry, Transport},
};
use url::Url;

use crate::{
    session::{
        error::RequestError,
        inner::{LISTEN_METHOD, OutgoingRequest},
        protocol_context::ProtocolContext,
    },
    transport::error::TransportError,
};

/// The `error.type` of a tool that reports an error.
const TOOL_ERROR: &str = "tool_error";

/// Where the requests of a session are reported, and what they have in common.
#[derive(Debug)]
pub(crate) struct SessionTelemetry {
    telemetry: Arc<dyn Telemetry>,
    transport: Transport,
    address: Option<(Arc<str>, u16)>,
}

impl SessionTelemetry {
    /// `url` is that of the server; none over stdio.
    pub(crate) fn new(telemetry: &Arc<dyn Telemetry>, url: Option<&Url>) -> Self {
        Self {
            telemetry: Arc::clone(telemetry),
            transport: if url.is_some() { Transport::Http } else { Transport::Stdio },
            address: url.and_then(|url| Some((url.host_str()?.into(), url.port_or_known_default()?))),
        }
    }

    /// Starts the operation of a request and makes the request carry its span. None for a request that stays open as long
    /// as the session.
    pub(super) fn start(
        &self,
        server: &SourceId,
        protocol: &ProtocolContext,
        request: &mut OutgoingRequest<'_>,
        id: u64,
    ) -> Option<RunningOperation> {
        let method = request.method;
        if method == LISTEN_METHOD {
            return None;
        }
        let caller_span = || request.caller().filter(|_| self.telemetry.records_spans())?.span();
        let parent = request.span.or_else(caller_span);
        let operation = RunningOperation::start_with(&self.telemetry, parent, |details| {
            let subject = request.subject.filter(|_| details).map(Arc::from);
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
