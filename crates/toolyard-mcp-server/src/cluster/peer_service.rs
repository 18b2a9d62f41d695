//! Serves the other processes of a cluster: takes responses to input requests, resumes suspended calls, cancels requests and ends
//! sessions on behalf of clients that are connected elsewhere.

use std::sync::{Arc, Weak, atomic::Ordering};

use bytes::Bytes;
use tokio::sync::watch;
use toolyard_core::{BoxFuture, Exchange, JsonCursor, JsonKind, PeerService, RawJson};
use toolyard_mcp::{RequestId, raw_field};

use crate::{
    cluster::peer_messages::{
        ForwardedCall, ForwardedResponse, PeerMessageError, PeerNotification, PeerReply, PeerRequest, decode,
        encode,
    },
    dispatch::outcome::Outcome,
    interaction::{
        request_channel::NotificationPreferences,
        request_task::{RequestTask, TaskEvent},
    },
    server::McpServer,
    session::{log_level::LogLevel, request_state::RequestState, session_id::SessionScope},
};

/// The name under which [`McpServer::peer_service`] must be registered with [`toolyard_core::Peers`].
pub const PEER_SERVICE_NAME: &str = "mcp";

/// Counts the calls that this process continues for clients of other processes.
#[derive(Debug, Default)]
pub(crate) struct CallsForPeers(watch::Sender<usize>);

/// Counts a call until dropped.
#[derive(Debug)]
struct CountedCall<'a>(&'a CallsForPeers);

#[derive(Debug)]
struct McpPeerService {
    /// The server holds its peers, which hold this service.
    server: Weak<McpServer>,
}

impl McpServer {
    /// What this server does for the other processes of its cluster. Register it as [`PEER_SERVICE_NAME`].
    pub fn peer_service(self: &Arc<Self>) -> Arc<dyn PeerService> {
        Arc::new(McpPeerService { server: Arc::downgrade(self) })
    }

    /// Takes a response that another process received.
    fn take_forwarded_response(&self, forwarded: ForwardedResponse) -> PeerReply {
        let ForwardedResponse { session_number, number, response } = forwarded;
        let is_accepted = !self.clients.has_ended(session_number)
            && self.input_requests.resolve(session_number, number, response.into());
        if is_accepted { PeerReply::Accepted } else { PeerReply::Unknown }
    }

    /// The suspended call that another process wants to continue; none if the state names none.
    fn take_forwarded_call(&self, call: &ForwardedCall) -> Result<Option<RequestTask>, PeerMessageError> {
        let kind = |json: &RawJson| JsonCursor::of(json).kind();
        if call.input_responses.as_ref().is_some_and(|responses| kind(responses) != Some(JsonKind::Object)) {
            return Err(PeerMessageError::Unexpected("input_responses is not an object"));
        }
        let is_token = |token: &RawJson| matches!(kind(token), Some(JsonKind::String | JsonKind::Number));
        if !call.progress_token.as_ref().is_none_or(is_token) {
            return Err(PeerMessageError::Unexpected("progress_token is neither string nor number"));
        }
        let log_level = match &call.log_level {
            Some(name) => {
                Some(LogLevel::from_name(name).ok_or(PeerMessageError::Unexpected("unknown log_level"))?)
            }
            None => None,
        };
        let scope = SessionScope { profile: &call.profile, owner_hash: &call.owner_hash };
        let (keys, max_age) = (&self.config.session_keys, self.config.limits.suspended_call_timeout);
        // Opened again here: what binds the call to its caller and request holds without trust in the other process.
        let state = RequestState::open(keys, &scope, &call.request_hash, &call.request_state, max_age);
        let Some(RequestState::Suspended { process_instance, call_id }) = state else { return Ok(None) };
        if process_instance != self.process_instance {
            return Ok(None);
        }
        let preferences = NotificationPreferences { progress_token: call.progress_token.clone(), log_level };
        Ok(self.take_suspended(call_id, preferences, call.input_responses.as_ref()))
    }

    /// Continues a suspended call and sends its messages and its outcome to the other process.
    async fn continue_forwarded_call(
        &self,
        call: &ForwardedCall,
        exchange: &mut dyn Exchange,
    ) -> Result<(), PeerMessageError> {
        let mut task = match self.take_forwarded_call(call) {
            Ok(Some(task)) => task,
            Ok(None) => return reply(exchange, &PeerReply::Unknown).await.map(drop),
            Err(error) => {
                reply(exchange, &PeerReply::Rejected).await?;
                return Err(error);
            }
        };
        let _counted = self.calls_for_peers.count_call();
        let outcome = loop {
            let event = tokio::select! {
                biased;
                received = exchange.receive() => {
                    // The client or its process has disconnected. Dropping the task cancels the call.
                    return match received {
                        Ok(Some(_)) => Err(PeerMessageError::Unexpected("nothing follows this request")),
                        Ok(None) | Err(_) => Ok(()),
                    };
                }
                event = task.next_event() => event,
            };
            match event {
                TaskEvent::Message(message) => {
                    if !reply(exchange, &PeerReply::Message(parse_line(message)?)).await? {
                        return Ok(());
                    }
                }
                TaskEvent::InputRequired => {
                    let scope = SessionScope { profile: &call.profile, owner_hash: &call.owner_hash };
                    break outcome_reply(self.suspend(&scope, task), false)?;
                }
                TaskEvent::Completed(outcome) => {
                    break outcome_reply(outcome, task.channel.is_tool_error.load(Ordering::Relaxed))?;
                }
                TaskEvent::Cancelled => return Ok(()),
            }
        };
        reply(exchange, &outcome).await?;
        Ok(())
    }

    fn receive_notification(&self, message: &[u8]) -> Result<(), PeerMessageError> {
        match decode(message)? {
            PeerNotification::RequestCancelled { session_number, request_id } => {
                self.cancellations.cancel_id(session_number, &request_id);
            }
            PeerNotification::SessionEnded { session_number, profile } => match self.endpoint(&profile) {
                Some(endpoint) => self.end_session(&endpoint, session_number),
                // Its endpoint was removed here, with its subscriptions.
                None => drop(self.clients.end_session(session_number)),
            },
        }
        Ok(())
    }
}

impl PeerService for McpPeerService {
    fn serve(self: Arc<Self>, request: Vec<u8>, mut exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else { return };
            let served = match decode(&request) {
                Ok(PeerRequest::DeliverResponse(response)) => {
                    let taken = server.take_forwarded_response(response);
                    reply(&mut *exchange, &taken).await.map(drop)
                }
                Ok(PeerRequest::Resume(call)) => server.continue_forwarded_call(&call, &mut *exchange).await,
                Err(error) => reply(&mut *exchange, &PeerReply::Rejected).await.and(Err(error)),
            };
            if let Err(error) = served {
                tracing::warn!(%error, "ended an exchange with another process");
            }
        })
    }

    fn notified(&self, message: &[u8]) {
        let Some(server) = self.server.upgrade() else { return };
        if let Err(error) = server.receive_notification(message) {
            tracing::warn!(%error, "ignored a notification of another process");
        }
    }
}

impl CallsForPeers {
    fn count_call(&self) -> CountedCall<'_> {
        self.0.send_modify(|count| *count += 1);
        CountedCall(self)
    }

    pub(crate) async fn wait_until_none(&self) {
        // The sender is not dropped while this waits.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for CountedCall<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

/// Sends a reply. Returns false if the other process is gone.
async fn reply(exchange: &mut dyn Exchange, reply: &PeerReply) -> Result<bool, PeerMessageError> {
    Ok(exchange.send(encode(reply)?).await.is_ok())
}

fn outcome_reply(outcome: Outcome, is_tool_error: bool) -> Result<PeerReply, PeerMessageError> {
    let status = outcome.status().as_u16();
    // The other process knows the id of the client's request.
    let no_id = RequestId(RawJson::from_value(&serde_json::Value::Null));
    let message = parse_line(outcome.into_chunks(&no_id).to_line())?;
    let (is_error, body) = match raw_field(&message, "error") {
        Some(error) => (true, error),
        None => (false, raw_field(&message, "result").ok_or(PeerMessageError::Unencodable)?),
    };
    Ok(PeerReply::Outcome { status, is_error, is_tool_error, body })
}

fn parse_line(line: Bytes) -> Result<RawJson, PeerMessageError> {
    let text = String::from_utf8(line.into()).map_err(|_| PeerMessageError::Unencodable)?;
    RawJson::parse(text).map_err(|_| PeerMessageError::Unencodable)
}
