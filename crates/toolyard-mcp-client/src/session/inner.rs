//! What a session shares with its background tasks: sending requests, notifications and responses.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{sync::broadcast, time::timeout};
use toolyard_core::{
    Caller, CallerIdentity, ExtendableDeadline, RawJson, RevisionFamily, SourceId,
    telemetry::{RunningOperation, SpanContext},
};
use toolyard_mcp::{JsonObject, WireLimits, jsonrpc};

use crate::{
    server_secrets::ServerSecrets,
    session::{
        error::RequestError,
        operation::{self, SessionTelemetry},
        protocol_context::ProtocolContext,
    },
    transport::{
        error::TransportError,
        message::{OutgoingMessage, Transport},
        requests::{in_flight::RequestOrigin, pending::PendingRequests},
    },
};

/// The request that stays open for as long as a modern session lives.
pub(super) const LISTEN_METHOD: &str = "subscriptions/listen";
/// How long a server may take to accept a message that needs no response.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct SessionInner {
    pub(crate) server: SourceId,
    pub(crate) requests: Arc<PendingRequests>,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) protocol: ArcSwap<ProtocolContext>,
    /// Redacted in results, errors and messages.
    pub(crate) secrets: Arc<ServerSecrets>,
    pub(crate) limits: WireLimits,
    /// Receives the requests that have ended.
    pub(crate) telemetry: Option<SessionTelemetry>,
    /// URIs of resources that changed.
    pub(crate) resource_updates: broadcast::Sender<String>,
}

pub(crate) struct OutgoingRequest<'a> {
    pub(crate) method: &'static str,
    pub(crate) fields: JsonObject,
    /// The name or URI it is about, which modern HTTP requests repeat in a header.
    pub(crate) subject: Option<&'a str>,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) idle_timeout: Option<Duration>,
    pub(super) origin: RequestOrigin,
    /// The span that causes the request, in place of that of the caller; then the span of the request itself.
    pub(super) span: Option<SpanContext>,
}

impl OutgoingRequest<'_> {
    pub(crate) fn new(method: &'static str, fields: JsonObject) -> Self {
        Self {
            method,
            fields,
            subject: None,
            headers: &[],
            idle_timeout: None,
            origin: RequestOrigin::Internal,
            span: None,
        }
    }

    /// Makes the request on behalf of a caller, who answers its input requests; without one, nobody does.
    pub(super) fn on_behalf_of(
        mut self,
        caller: Option<&Arc<dyn Caller>>,
        deadline: Option<&Arc<ExtendableDeadline>>,
    ) -> Self {
        self.origin = match caller {
            Some(caller) => RequestOrigin::Caller(Arc::clone(caller), deadline.cloned()),
            None => RequestOrigin::Detached,
        };
        self
    }

    pub(super) fn caller(&self) -> Option<&dyn Caller> {
        self.origin.caller()
    }

    fn into_message(self, protocol: &ProtocolContext, id: u64) -> OutgoingMessage {
        let mut headers = protocol.headers(self.method, self.subject);
        if protocol.family == RevisionFamily::Modern {
            headers.extend(self.headers.iter().cloned());
        }
        let caller = self.origin.caller();
        let has_progress = self.method == "tools/call" || caller.is_some_and(Caller::wants_progress);
        let params = protocol.params(self.fields, has_progress.then_some(id), &self.origin, self.span);
        let body = jsonrpc::request(id, self.method, &params);
        let identity = caller.and_then(Caller::identity).cloned();
        OutgoingMessage { id: Some(id), method: self.method, body, headers, identity }
    }
}

impl SessionInner {
    /// Sends a request and waits for its result. Dropping the future cancels the request.
    pub(crate) async fn request(
        self: &Arc<Self>,
        request: OutgoingRequest<'_>,
    ) -> Result<RawJson, RequestError> {
        let (response, operation) = self.request_operation(request).await;
        operation::end_with_result(operation, false);
        response
    }

    /// Like [`Self::request`]. The caller ends the operation of a successful request, when it has read the result.
    pub(crate) async fn request_operation(
        self: &Arc<Self>,
        request: OutgoingRequest<'_>,
    ) -> (Result<RawJson, RequestError>, Option<RunningOperation>) {
        let protocol = self.protocol.load_full();
        let mut operation = None;
        let response = self.exchange(&protocol, request, &mut operation).await;
        let response = response.map_err(RequestError::into_session_error);
        if let Err(error) = &response {
            operation::end_with_error(operation.take(), error);
        }
        (response, operation)
    }

    /// Sends a request in the given revision, which need not be the negotiated one.
    pub(crate) async fn request_with(
        self: &Arc<Self>,
        protocol: &ProtocolContext,
        request: OutgoingRequest<'_>,
    ) -> Result<RawJson, RequestError> {
        let mut operation = None;
        let response = self.exchange(protocol, request, &mut operation).await;
        match &response {
            Ok(_) => operation::end_with_result(operation, false),
            Err(error) => operation::end_with_error(operation, error),
        }
        response
    }

    /// Sends a request and waits for its result. Sets `operation`, which is cancelled if the future is dropped.
    async fn exchange(
        self: &Arc<Self>,
        protocol: &ProtocolContext,
        mut request: OutgoingRequest<'_>,
        operation: &mut Option<RunningOperation>,
    ) -> Result<RawJson, RequestError> {
        let mut start = |request: &mut OutgoingRequest<'_>, id| {
            let telemetry = self.telemetry.as_ref();
            *operation = telemetry.and_then(|telemetry| telemetry.start(&self.server, protocol, request, id));
        };
        let mut pending = match self.requests.register() {
            Ok(pending) => pending,
            Err(error) => {
                start(&mut request, None);
                return Err(not_sent(error).into());
            }
        };
        let (id, method, idle_timeout) = (pending.id, request.method, request.idle_timeout);
        let identity = request.caller().and_then(Caller::identity).cloned();
        let mut guard = RequestGuard { session: Arc::clone(self), id, method, identity, is_answered: false };
        // A listen request does not make a session busy.
        let in_flight =
            (method != LISTEN_METHOD).then(|| self.requests.in_flight.insert(id, request.origin.clone()));
        start(&mut request, Some(id));
        let message = request.into_message(protocol, id);
        let response = pending.response_to(self.transport.send(message));
        let response = match (idle_timeout, in_flight) {
            (Some(limit), Some(in_flight)) => {
                let response = in_flight.with_idle_timeout(limit, response).await;
                response.ok_or(RequestError::IdleTimeout(limit))?
            }
            _ => response.await,
        };
        guard.is_answered = true;
        match response.map_err(|error| self.secrets.redact_error(error.into()))? {
            // Names and URIs in lists must stay what the server calls them.
            Ok(result) if method.ends_with("/list") => Ok(result),
            Ok(result) => Ok(self.secrets.redact_result(result).await),
            Err(error) => Err(self.secrets.redact_error(error.into())),
        }
    }

    pub(crate) async fn notify(&self, method: &'static str, fields: JsonObject) {
        self.notify_for(method, fields, None).await;
    }

    /// Sends a notification about a request of a caller.
    async fn notify_for(
        &self,
        method: &'static str,
        fields: JsonObject,
        identity: Option<Arc<CallerIdentity>>,
    ) {
        let headers = self.protocol.load().headers(method, None);
        let body = jsonrpc::notification(method, &fields);
        self.send_oneway(OutgoingMessage { id: None, method, body, headers, identity }).await;
    }

    /// Responds to a request of the server, which belongs to a request of this caller.
    pub(super) async fn respond(&self, body: Vec<u8>, identity: Option<Arc<CallerIdentity>>) {
        let message = OutgoingMessage { id: None, method: "", body, headers: Vec::new(), identity };
        self.send_oneway(message).await;
    }

    /// Sends a message without a response. Failures are only logged.
    async fn send_oneway(&self, message: OutgoingMessage) {
        let method = message.method;
        match timeout(NOTIFY_TIMEOUT, self.transport.send(message)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(server = %self.server, method, %error, "message was not sent"),
            Err(_elapsed) => tracing::debug!(server = %self.server, method, "sending a message timed out"),
        }
    }
}

/// Nothing is sent on a closed connection.
fn not_sent(error: TransportError) -> TransportError {
    match error {
        TransportError::TooManyRequests(_) => error,
        closed => TransportError::Unreachable(closed.to_string()),
    }
}

/// Removes a request, and tells the server that it is cancelled if it was dropped before its response.
struct RequestGuard {
    session: Arc<SessionInner>,
    id: u64,
    method: &'static str,
    identity: Option<Arc<CallerIdentity>>,
    is_answered: bool,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let SessionInner { requests, transport, .. } = &*self.session;
        requests.in_flight.remove(self.id, self.is_answered);
        let was_pending = requests.remove(self.id);
        if self.is_answered || !was_pending || transport.cancels_on_drop() || self.method == "initialize" {
            return;
        }
        // Without a runtime nothing can be sent any more.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (session, id, identity) = (Arc::clone(&self.session), self.id, self.identity.take());
            runtime.spawn(async move {
                let fields = JsonObject::new().with_value("requestId", &id.into());
                session.notify_for("notifications/cancelled", fields, identity).await;
            });
        }
    }
}
