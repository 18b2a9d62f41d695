//! [`IncomingRequest`]: a request and its client. Also runs, suspends and resumes its task.

use std::sync::Arc;

use toolyard_core::{
    CallerIdentity, ClientInfo, RawJson, RevisionFamily,
    telemetry::{SpanContext, Transport},
};
use toolyard_mcp::{JsonObject, RequestId, input_method::input_method};

use crate::{
    dispatch::{
        operation::{self, RequestFacts},
        outcome::{Outcome, invalid_request_state},
        params::Params,
        served_endpoint::ServedEndpoint,
    },
    interaction::{
        request_channel::{NotificationPreferences, RequestChannel},
        request_task::{RequestTask, TaskEvent},
    },
    server::McpServer,
    session::{
        peer::Peer,
        request_state::{RequestFingerprint, RequestState},
        session_id::SessionScope,
    },
};

#[derive(Debug)]
pub(crate) struct IncomingRequest {
    pub(crate) endpoint: Arc<ServedEndpoint>,
    /// Who sent it.
    pub(crate) identity: Arc<CallerIdentity>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Params,
    /// Whether messages can be sent before the response.
    pub(crate) can_notify: bool,
    pub(crate) transport: Transport,
    /// The span of the request, or the one that the client sent.
    pub(crate) span: Option<SpanContext>,
}

impl IncomingRequest {
    pub(crate) fn scope(&self) -> SessionScope<'_> {
        SessionScope { profile: &self.endpoint.profile, owner_hash: self.identity.owner_hash_ref() }
    }

    /// The client and who uses it: its list of tools depends on both.
    pub(crate) fn client_info(&self) -> ClientInfo {
        ClientInfo { identity: Some(Arc::clone(&self.identity)), ..self.peer.client.clone() }
    }

    /// The name in the audit log: that of the caller if callers are told apart, else the one that the client claims.
    pub(crate) fn caller_name(&self) -> Arc<str> {
        if self.identity.is_distinguished() {
            self.identity.audit_name()
        } else {
            Arc::clone(&self.peer.caller_name)
        }
    }

    pub(crate) fn facts(&self) -> RequestFacts<'_> {
        RequestFacts {
            id: &self.id,
            method: &self.method,
            params: &self.params,
            peer: Some(&self.peer),
            identity: &self.identity,
            transport: self.transport,
        }
    }

    pub(crate) fn preferences(&self, server: &McpServer) -> NotificationPreferences {
        let meta = self.params.meta.as_ref();
        let log_level = match self.peer.family() {
            RevisionFamily::Modern => meta.and_then(|meta| meta.log_level),
            RevisionFamily::Legacy => Some(server.clients.log_level(self.peer.session_number)),
        };
        NotificationPreferences {
            progress_token: meta.and_then(|meta| meta.progress_token.clone()),
            log_level,
        }
    }

    /// Identifies this request; a sealed `requestState` is valid only for a request with the same fingerprint.
    pub(crate) fn fingerprint(&self) -> RequestFingerprint {
        let params = &self.params;
        let target = params.name.as_deref().or(params.uri.as_deref()).unwrap_or_default().to_owned();
        RequestFingerprint { method: self.method.clone(), target, arguments: params.arguments.clone() }
    }
}

impl McpServer {
    pub(crate) fn open_channel(&self, incoming: &IncomingRequest) -> RequestChannel {
        let (peer, input_requests) = (Arc::clone(&incoming.peer), Arc::clone(&self.input_requests));
        let mut channel = RequestChannel::new(peer, input_requests, incoming.preferences(self));
        channel.identity = Some(Arc::clone(&incoming.identity));
        channel.can_notify = incoming.can_notify;
        channel.can_request_input =
            matches!(incoming.method.as_str(), "tools/call" | "prompts/get" | "resources/read");
        channel.trace_context =
            incoming.params.meta.as_ref().map(|meta| meta.trace_context.clone()).unwrap_or_default();
        channel.span = incoming.span;
        // A client without capabilities never gets input requests.
        let may_suspend = incoming.peer.family() == RevisionFamily::Modern && channel.can_request_input;
        channel.fingerprint =
            (may_suspend && incoming.peer.capabilities != Default::default()).then(|| incoming.fingerprint());
        channel
    }

    pub(crate) fn open_state(&self, incoming: &IncomingRequest, sealed: &str) -> Option<RequestState> {
        let (keys, max_age) = (&self.config.session_keys, self.config.limits.suspended_call_timeout);
        RequestState::open(keys, &incoming.scope(), &incoming.fingerprint().hash(), sealed, max_age)
    }

    /// Resumes the call that the sealed state `sealed` names, in this process or in the one that suspended it.
    pub(crate) fn resume(
        &self,
        incoming: &IncomingRequest,
        sealed: &str,
        process_instance: u64,
        call_id: u64,
    ) -> Result<RequestTask, Outcome> {
        let responses = incoming.params.input_responses.as_ref();
        if process_instance == self.process_instance {
            let task = self.take_suspended(call_id, incoming.preferences(self), responses);
            return task.ok_or_else(invalid_request_state);
        }
        let peers = self.config.peers.as_ref().ok_or_else(invalid_request_state)?;
        Ok(self.resume_at_peer(peers, process_instance, incoming, sealed))
    }

    /// Takes out a suspended call of this process and provides it with the responses of its client.
    pub(crate) fn take_suspended(
        &self,
        call_id: u64,
        preferences: NotificationPreferences,
        responses: Option<&RawJson>,
    ) -> Option<RequestTask> {
        let task = self.suspended_calls.take(call_id)?;
        task.channel.set_preferences(preferences);
        if let Some(responses) = responses {
            task.channel.provide_responses(responses);
        }
        Some(task)
    }

    /// Suspends a call until its client provides input, and returns the input requests.
    pub(crate) fn suspend(&self, scope: &SessionScope<'_>, mut task: RequestTask) -> Outcome {
        let operation = task.operation.take().map(|operation| *operation);
        let outcome = self.suspend_task(scope, task);
        operation::end(operation, &outcome, false);
        outcome
    }

    fn suspend_task(&self, scope: &SessionScope<'_>, task: RequestTask) -> Outcome {
        let mut requests = JsonObject::new();
        for (key, input) in task.channel.pending_requests() {
            let mut request = JsonObject::new().with_text("method", input_method(input.kind));
            request = match &input.params {
                Some(params) => request.with_raw("params", params),
                None => request.with_object("params", &JsonObject::new()),
            };
            requests = requests.with_object(&key, &request);
        }
        let limits = &self.config.limits;
        let Some(fingerprint) = task.channel.fingerprint.clone() else {
            return Outcome::internal_error("this request cannot request input");
        };
        let Some(call_id) =
            self.suspended_calls.insert(task, limits.suspended_calls, limits.suspended_call_timeout)
        else {
            return Outcome::internal_error("too many suspended calls; the outcome of this call is unknown");
        };
        let state = RequestState::Suspended { process_instance: self.process_instance, call_id };
        let Some(sealed) = state.seal(&self.config.session_keys, scope, &fingerprint) else {
            return Outcome::internal_error("failed to seal requestState");
        };
        let result = JsonObject::new()
            .with_text("resultType", "input_required")
            .with_object("inputRequests", &requests)
            .with_text("requestState", &sealed);
        Outcome::result(result.to_string())
    }

    /// Runs a task until it completes or needs input, which suspends it. Passes messages for the client to `send`. None if the
    /// request was cancelled.
    pub(crate) async fn run_until_response<F>(
        &self,
        scope: &SessionScope<'_>,
        mut task: RequestTask,
        mut send: impl FnMut(bytes::Bytes) -> F,
    ) -> Option<Outcome>
    where
        F: Future<Output = ()>,
    {
        loop {
            match task.next_event().await {
                TaskEvent::Message(message) => send(message).await,
                TaskEvent::InputRequired => return Some(self.suspend(scope, task)),
                TaskEvent::Completed(outcome) => return Some(outcome),
                TaskEvent::Cancelled => return None,
            }
        }
    }
}
