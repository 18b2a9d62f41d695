//! Forwards what this process received from a client to the process that waits for it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::StatusCode;
use toolyard_core::{JsonCursor, JsonKind, PeerError, Peers, RawJson, text::join_json_lines};
use toolyard_mcp::{ResponseId, raw_field};

use crate::{
    cluster::{
        PEER_SERVICE_NAME,
        peer_messages::{
            ForwardedCall, ForwardedResponse, PeerMessageError, PeerNotification, PeerReply, PeerRequest,
            decode, encode,
        },
    },
    dispatch::{
        incoming_request::IncomingRequest,
        outcome::{Outcome, RequiredFields, invalid_request_state, suspending_process_gone},
        served_endpoint::ServedEndpoint,
    },
    interaction::{
        input_requests::{InputResponse, WaitingProcess},
        request_channel::RequestChannel,
        request_task::RequestTask,
    },
    server::McpServer,
    session::log_level::LogLevel,
};

/// How long a client that responds to an input request waits until the other process has taken the response.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer request ids are refused in requests, so they name none.
const MAX_REQUEST_ID_BYTES: usize = 1_024;

/// Why another process did not continue a call.
#[derive(Debug, thiserror::Error)]
enum ForwardingError {
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error(transparent)]
    Message(#[from] PeerMessageError),
    /// Another gateway ended its part of an exchange early.
    ///
    /// Remedy: see the log of the other gateway; run the same version everywhere.
    #[error("another process of the cluster ended an exchange early")]
    Ended,
    /// Another gateway has a version with other messages.
    ///
    /// Remedy: run the same version of Toolyard in all gateways.
    #[error(
        "another process of the cluster could not read a request; do all processes have the same version?"
    )]
    Rejected,
}

impl McpServer {
    /// Delivers a response to an input request, in this process or another one. Returns false if no process of the cluster waits for
    /// this response of this client.
    pub(crate) async fn deliver_input_response(
        &self,
        session_number: u64,
        id: &ResponseId,
        response: InputResponse,
    ) -> bool {
        match (self.input_requests.waiting_process(id), &self.config.peers) {
            (Some(WaitingProcess::This { number }), _) => {
                self.input_requests.resolve(session_number, number, response)
            }
            (Some(WaitingProcess::Other { process, number }), Some(peers)) => {
                // The other process checks that it asked this session.
                let response = ForwardedResponse { session_number, number, response: response.into() };
                let delivery = Box::pin(forward_response(&**peers, process, response));
                match tokio::time::timeout(DELIVERY_TIMEOUT, delivery).await {
                    Ok(Ok(is_accepted)) => is_accepted,
                    // Clients choose the ids of their responses: this must not fill the log.
                    Ok(Err(ForwardingError::Peer(PeerError::NotReached(_)))) => false,
                    Ok(Err(error)) => {
                        tracing::warn!(process, %error, "failed to forward the response to an input request");
                        false
                    }
                    Err(_) => {
                        tracing::warn!(
                            process,
                            "no confirmation of the response to an input request in time"
                        );
                        false
                    }
                }
            }
            (Some(WaitingProcess::Other { .. }), None) | (None, _) => false,
        }
    }

    /// Cancels the request of a legacy client that the parameters of `notifications/cancelled` name, wherever it runs.
    pub(crate) fn cancel_request(&self, session_number: u64, params: &RawJson) {
        let Some(request_id) = raw_field(params, "requestId") else { return };
        if self.cancellations.cancel_id(session_number, &request_id) {
            return;
        }
        let is_id = matches!(JsonCursor::of(&request_id).kind(), Some(JsonKind::Number | JsonKind::String));
        if is_id && request_id.get().len() <= MAX_REQUEST_ID_BYTES {
            self.notify_peers(&PeerNotification::RequestCancelled { session_number, request_id });
        }
    }

    /// Ends a session in this process.
    pub(crate) fn end_session(&self, endpoint: &Arc<ServedEndpoint>, session_number: u64) {
        let subscribed = self.clients.end_session(session_number);
        self.release_subscriptions(endpoint, subscribed);
    }

    /// Tells the other processes that a client ended its session.
    pub(crate) fn announce_ended_session(&self, profile: &str, session_number: u64) {
        self.notify_peers(&PeerNotification::SessionEnded { session_number, profile: profile.to_owned() });
    }

    /// Tells all other processes something that may get lost: MCP has no response to a cancellation, which may come too late
    /// anyway, and sessions end by themselves in time.
    fn notify_peers(&self, notification: &PeerNotification) {
        let Some(peers) = &self.config.peers else { return };
        match encode(notification) {
            Ok(message) => peers.notify_all(PEER_SERVICE_NAME, message),
            Err(error) => tracing::warn!(%error, "failed to notify the cluster"),
        }
    }

    /// Resumes a call that another process suspended. Dropping the task cancels the call, as it does in that process.
    ///
    /// The call is never made again here: it may have had an effect.
    pub(crate) fn resume_at_peer(
        &self,
        peers: &Arc<dyn Peers>,
        process: u64,
        incoming: &IncomingRequest,
        sealed: &str,
    ) -> RequestTask {
        let preferences = incoming.preferences(self);
        let scope = incoming.scope();
        let request = PeerRequest::Resume(ForwardedCall {
            profile: scope.profile.to_owned(),
            owner_hash: *scope.owner_hash,
            request_hash: incoming.fingerprint().hash(),
            request_state: sealed.to_owned(),
            input_responses: incoming.params.input_responses.clone(),
            progress_token: preferences.progress_token,
            log_level: preferences.log_level.map(|level| LogLevel::name(level).to_owned()),
        });
        let channel = Arc::new(self.open_channel(incoming));
        let (peers, sender) = (Arc::clone(peers), Arc::clone(&channel));
        let future = Box::pin(async move {
            match relay_call(&*peers, process, &request, &sender).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    tracing::warn!(process, %error, "lost a call that another process continues");
                    match error {
                        ForwardingError::Peer(_) | ForwardingError::Ended => suspending_process_gone(),
                        ForwardingError::Message(_) | ForwardingError::Rejected => Outcome::internal_error(
                            "failed to continue the call in the process that suspended it; the outcome of the call is unknown",
                        ),
                    }
                }
            }
        });
        RequestTask::new(channel, future)
    }
}

/// Returns whether the other process took the response.
async fn forward_response(
    peers: &dyn Peers,
    process: u64,
    response: ForwardedResponse,
) -> Result<bool, ForwardingError> {
    let request = encode(&PeerRequest::DeliverResponse(response))?;
    let mut exchange = peers.open(process, PEER_SERVICE_NAME, request).await?;
    match decode(&exchange.receive().await?.ok_or(ForwardingError::Ended)?)? {
        PeerReply::Accepted => Ok(true),
        PeerReply::Unknown => Ok(false),
        PeerReply::Rejected => Err(ForwardingError::Rejected),
        PeerReply::Message(_) | PeerReply::Outcome { .. } => {
            Err(PeerMessageError::Unexpected("not about an input request").into())
        }
    }
}

/// Passes on the messages of a call that another process continues, and returns its outcome.
async fn relay_call(
    peers: &dyn Peers,
    process: u64,
    request: &PeerRequest,
    channel: &RequestChannel,
) -> Result<Outcome, ForwardingError> {
    let mut exchange = peers.open(process, PEER_SERVICE_NAME, encode(request)?).await?;
    loop {
        match decode(&exchange.receive().await?.ok_or(ForwardingError::Ended)?)? {
            PeerReply::Message(message) => {
                // A line break would end an event.
                let mut line = message.get().as_bytes().to_vec();
                join_json_lines(&mut line);
                channel.send(line);
                // Lets the client receive it before the next one: the queue of the channel is limited.
                tokio::task::yield_now().await;
            }
            PeerReply::Outcome { status, is_error, is_tool_error, body } => {
                channel.is_tool_error.store(is_tool_error, Ordering::Relaxed);
                let status = StatusCode::from_u16(status)
                    .map_err(|_| PeerMessageError::Unexpected("not an HTTP status"))?;
                return Ok(match is_error {
                    true => Outcome::RawError { raw: body, status },
                    false => Outcome::RawResult { raw: body, required: RequiredFields::None },
                });
            }
            PeerReply::Unknown => return Ok(invalid_request_state()),
            PeerReply::Rejected => return Err(ForwardingError::Rejected),
            PeerReply::Accepted => {
                return Err(PeerMessageError::Unexpected("not about a suspended call").into());
            }
        }
    }
}
