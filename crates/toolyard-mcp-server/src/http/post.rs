//! Handles POST requests: messages of all revisions.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use toolyard_core::{CallerIdentity, RevisionFamily, telemetry::Transport};
use toolyard_mcp::{Message, RequestId, ResponseId, error_code};

use crate::{
    config::ServedRevisions,
    dispatch::{
        incoming_request::IncomingRequest,
        methods::Dispatch,
        operation::{self, RequestFacts},
        outcome::{MessageChunks, Outcome, invalid_message},
        params::Params,
        revision::{BATCH_REVISION, DeclaredRevision, anonymous_peer, modern_peer, revision_family},
        served_endpoint::ServedEndpoint,
    },
    http::{
        body::{ResponseBody, TaskEventStream},
        connection::{AcceptedTypes, Connection, SessionLookup, accepted_types, session_not_found},
        event_stream::{KeepAlive, sse_event, sse_event_from_chunks},
        header_validation::validate_headers,
        response,
    },
    interaction::request_task::{RequestTask, TaskEvent},
    session::{
        peer::Peer,
        session_id::{SessionScope, seal_session_id},
    },
};

impl Connection {
    pub(crate) async fn post(
        &self,
        mut request: Request<Incoming>,
        endpoint: &Arc<ServedEndpoint>,
        identity: &Arc<CallerIdentity>,
    ) -> Response<ResponseBody> {
        let headers = std::mem::take(request.headers_mut());
        let accepted = accepted_types(&headers);
        if !is_json(&headers) {
            let text = "unsupported media type: send Content-Type: application/json";
            return response::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, error_code::SERVER_ERROR, text);
        }
        if headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            let text = "unsupported Content-Encoding: send messages uncompressed";
            return response::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, error_code::SERVER_ERROR, text);
        }
        if !accepted.json && !accepted.events {
            let text = "not acceptable: send Accept: application/json, text/event-stream";
            return response::error(StatusCode::NOT_ACCEPTABLE, error_code::SERVER_ERROR, text);
        }
        let text = match self.read_text(request).await {
            Ok(text) => text,
            Err(response) => return response,
        };
        let is_batch = text.trim_ascii_start().starts_with('[');
        match Message::read(text, &self.http.server.config.limits.wire_limits()) {
            Ok(messages) if is_batch => self.handle_batch(&headers, endpoint, identity, messages).await,
            Ok(mut messages) => match messages.pop() {
                Some(Message::Request { id, method, params }) => {
                    let call = (id, method, Params::read(params));
                    self.handle_request(&headers, endpoint, identity, accepted, call).await
                }
                Some(message) => {
                    self.handle_notification_or_response(&headers, endpoint, identity, message).await
                }
                None => response::status(StatusCode::BAD_REQUEST),
            },
            Err(error) => response::message(StatusCode::BAD_REQUEST, invalid_message(&error)),
        }
    }

    /// Handles notifications and responses to input requests.
    async fn handle_notification_or_response(
        &self,
        headers: &HeaderMap,
        endpoint: &Arc<ServedEndpoint>,
        identity: &CallerIdentity,
        message: Message,
    ) -> Response<ResponseBody> {
        let session_number = match self.lookup_session(headers, endpoint, identity) {
            SessionLookup::Found(peer) => Some(peer.session_number),
            SessionLookup::Missing => None,
            SessionLookup::Unknown => return session_not_found(),
        };
        let server = &self.http.server;
        match (message, session_number) {
            (Message::Response { id: Some(id), outcome }, Some(session_number)) => {
                if server.deliver_input_response(session_number, &id, outcome).await {
                    response::status(StatusCode::ACCEPTED)
                } else {
                    no_pending_request(Some(&id))
                }
            }
            (Message::Response { id, .. }, _) => no_pending_request(id.as_ref()),
            (Message::Notification { method, params: Some(params) }, Some(session_number))
                if method == "notifications/cancelled" =>
            {
                server.cancel_request(session_number, &params);
                response::status(StatusCode::ACCEPTED)
            }
            _ => response::status(StatusCode::ACCEPTED),
        }
    }

    async fn handle_request(
        &self,
        headers: &HeaderMap,
        endpoint: &Arc<ServedEndpoint>,
        identity: &Arc<CallerIdentity>,
        accepted: AcceptedTypes,
        (id, method, mut params): (RequestId, String, Params),
    ) -> Response<ResponseBody> {
        let peer = match self.peer(headers, endpoint, identity, &method, &mut params) {
            Ok(peer) => peer,
            Err(PeerError::Rejected(outcome)) => {
                let (method, params) = (method.as_str(), &params);
                let (peer, transport) = (None, Transport::Http);
                let facts = RequestFacts { id: &id, method, params, peer, identity, transport };
                operation::end(self.http.server.start_operation(facts), &outcome, false);
                return response::outcome(&id, outcome);
            }
            Err(PeerError::SessionNotFound) => return session_not_found(),
        };
        params.add_trace_headers(headers);
        let family = peer.family();
        if method == "initialize" && family == RevisionFamily::Legacy {
            let facts = RequestFacts {
                id: &id,
                method: &method,
                params: &params,
                peer: Some(&peer),
                identity,
                transport: Transport::Http,
            };
            return self.initialize(endpoint, identity, accepted, facts);
        }
        let (endpoint, identity) = (Arc::clone(endpoint), Arc::clone(identity));
        let can_notify = accepted.events;
        let (transport, span) = (Transport::Http, None);
        let incoming =
            IncomingRequest { endpoint, identity, peer, id, method, params, can_notify, transport, span };
        if family == RevisionFamily::Modern
            && let Err(outcome) = validate_headers(headers, &incoming)
        {
            operation::end(self.http.server.start_operation(incoming.facts()), &outcome, false);
            return response::outcome(&incoming.id, outcome);
        }
        let (id, endpoint) = (incoming.id.clone(), Arc::clone(&incoming.endpoint));
        let owner_hash = incoming.identity.owner_hash();
        match self.http.server.dispatch(incoming) {
            Dispatch::Completed(outcome) => complete_response(accepted, &id, outcome),
            Dispatch::Pending(task) if family == RevisionFamily::Legacy => {
                let task = task.cancellable(&self.http.server.cancellations, &id).surviving_disconnect();
                self.drive_task(accepted, endpoint, owner_hash, id, task).await
            }
            Dispatch::Pending(task) => self.drive_task(accepted, endpoint, owner_hash, id, task).await,
        }
    }

    /// The client of a request; a modern request declares it in its parameters.
    fn peer(
        &self,
        headers: &HeaderMap,
        endpoint: &Arc<ServedEndpoint>,
        identity: &CallerIdentity,
        method: &str,
        params: &mut Params,
    ) -> Result<Arc<Peer>, PeerError> {
        let meta = params.meta.as_ref().and_then(|meta| meta.revision.as_deref());
        let header = Self::revision_header(headers);
        let declared = DeclaredRevision { method, header, meta, over_http: true };
        match revision_family(self.http.server.config.revisions, declared)? {
            RevisionFamily::Modern => {
                // Over HTTP nothing links the requests of a client, and names are not unique: a random key keeps input
                // requests of one client from reaching another.
                Ok(modern_peer(params, fastrand::u64(..))?)
            }
            // A client that initializes again has no session, even if it still sends the id of one.
            RevisionFamily::Legacy if method == "initialize" => Ok(anonymous_peer(header, fastrand::u64(..))),
            RevisionFamily::Legacy => match self.lookup_session(headers, endpoint, identity) {
                SessionLookup::Found(peer) => Ok(peer),
                SessionLookup::Missing => Ok(anonymous_peer(header, fastrand::u64(..))),
                SessionLookup::Unknown => Err(PeerError::SessionNotFound),
            },
        }
    }

    fn initialize(
        &self,
        endpoint: &Arc<ServedEndpoint>,
        identity: &CallerIdentity,
        accepted: AcceptedTypes,
        facts: RequestFacts<'_>,
    ) -> Response<ResponseBody> {
        let (server, id) = (&self.http.server, facts.id);
        let (outcome, peer) = server.initialize_peer(endpoint, facts);
        let scope = SessionScope { profile: &endpoint.profile, owner_hash: &identity.owner_hash() };
        let session = seal_session_id(&server.config.session_keys, &scope, &peer);
        let Some(session) = session.and_then(|session| HeaderValue::try_from(session).ok()) else {
            return response::outcome(id, Outcome::internal_error("failed to create a session"));
        };
        let mut response = complete_response(accepted, id, outcome);
        response.headers_mut().insert(&response::SESSION_HEADER, session);
        response
    }

    /// Runs a task to its response. The first message turns the response into an event stream that runs the rest.
    async fn drive_task(
        &self,
        accepted: AcceptedTypes,
        endpoint: Arc<ServedEndpoint>,
        owner_hash: [u8; 32],
        id: RequestId,
        mut task: RequestTask,
    ) -> Response<ResponseBody> {
        let server = &self.http.server;
        loop {
            match task.next_event().await {
                TaskEvent::Message(message) if accepted.events => {
                    let events = TaskEventStream {
                        server: Arc::clone(server),
                        endpoint,
                        owner_hash,
                        id: Some(id),
                        task: Some(task),
                        first: Some(sse_event(&message)),
                        keep_alive: KeepAlive::new(self.http.config.keep_alive_interval),
                    };
                    return response::stream(ResponseBody::Task(Box::new(events)));
                }
                TaskEvent::Message(_) => {}
                TaskEvent::InputRequired => {
                    let scope = SessionScope { profile: &endpoint.profile, owner_hash: &owner_hash };
                    return complete_response(accepted, &id, server.suspend(&scope, task));
                }
                TaskEvent::Completed(outcome) => return complete_response(accepted, &id, outcome),
                // No response is expected.
                TaskEvent::Cancelled => return response::status(StatusCode::ACCEPTED),
            }
        }
    }

    async fn handle_batch(
        &self,
        headers: &HeaderMap,
        endpoint: &Arc<ServedEndpoint>,
        identity: &Arc<CallerIdentity>,
        messages: Vec<Message>,
    ) -> Response<ResponseBody> {
        let peer = match self.lookup_session(headers, endpoint, identity) {
            SessionLookup::Found(peer) => peer,
            SessionLookup::Missing => anonymous_peer(Self::revision_header(headers), fastrand::u64(..)),
            SessionLookup::Unknown => return session_not_found(),
        };
        // The headers cannot be checked against each message of a batch, as other revisions require.
        let declares_other = Self::revision_header(headers).is_some_and(|version| version != BATCH_REVISION);
        if declares_other
            || peer.revision != BATCH_REVISION
            || self.http.server.config.revisions == ServedRevisions::Modern
        {
            let text = "only revision 2025-03-26 has batches: send messages one by one";
            return response::error(StatusCode::BAD_REQUEST, error_code::INVALID_REQUEST, text);
        }
        let mut responses = Vec::new();
        for message in messages {
            let Message::Request { id, method, params } = message else {
                self.handle_notification_or_response(headers, endpoint, identity, message).await;
                continue;
            };
            let (endpoint, owner_hash, peer) =
                (Arc::clone(endpoint), identity.owner_hash(), Arc::clone(&peer));
            let params = Params::read(params);
            let incoming = IncomingRequest {
                endpoint: Arc::clone(&endpoint),
                identity: Arc::clone(identity),
                peer,
                id: id.clone(),
                method,
                params,
                can_notify: false,
                transport: Transport::Http,
                span: None,
            };
            responses.push(async move {
                let outcome = match self.http.server.dispatch(incoming) {
                    Dispatch::Completed(outcome) => Some(outcome),
                    Dispatch::Pending(task) => {
                        let task =
                            task.cancellable(&self.http.server.cancellations, &id).surviving_disconnect();
                        let scope = SessionScope { profile: &endpoint.profile, owner_hash: &owner_hash };
                        self.http.server.run_until_response(&scope, task, |_| std::future::ready(())).await
                    }
                };
                outcome.map(|outcome| outcome.into_chunks(&id).to_line())
            });
        }
        if responses.is_empty() {
            return response::status(StatusCode::ACCEPTED);
        }
        let responses = futures_util::future::join_all(responses).await;
        let texts: Vec<bytes::Bytes> = responses.into_iter().flatten().collect();
        let body = [b"[".as_slice(), &texts.join(b",".as_slice()), b"]"].concat();
        response::json(StatusCode::OK, body.into())
    }
}

enum PeerError {
    Rejected(Outcome),
    SessionNotFound,
}

impl From<Outcome> for PeerError {
    fn from(outcome: Outcome) -> Self {
        Self::Rejected(outcome)
    }
}

/// A complete response in a content type that the client accepts.
fn complete_response(accepted: AcceptedTypes, id: &RequestId, outcome: Outcome) -> Response<ResponseBody> {
    if accepted.json {
        return response::outcome(id, outcome);
    }
    let event =
        MessageChunks { head: sse_event_from_chunks(&outcome.into_chunks(id)), ..MessageChunks::default() };
    response::stream(ResponseBody::complete(event))
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// The error for a response to no pending request of this client.
fn no_pending_request(id: Option<&ResponseId>) -> Response<ResponseBody> {
    let text = match id.and_then(ResponseId::number) {
        Some(id) => format!("no pending request has id {id}"),
        None => "a response needs the id of a pending request".to_owned(),
    };
    response::error(StatusCode::BAD_REQUEST, error_code::INVALID_REQUEST, &text)
}
