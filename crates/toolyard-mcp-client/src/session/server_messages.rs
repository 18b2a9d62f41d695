//! Handles requests and notifications of a server.

use std::{collections::HashMap, sync::Arc};

use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
};
use toolyard_core::RawJson;
use toolyard_mcp::{RequestId, error_code::INTERNAL_ERROR, input_method::input_kind, jsonrpc};

use crate::{
    session::{inner::SessionInner, input_requests::unsupported_method},
    transport::{error::TransportError, requests::pending::ServerMessage},
};

/// Requests of a server that are handled at a time; further ones are declined.
const MAX_CONCURRENT_REQUESTS: usize = 8;
/// Immediate responses that may be on their way at a time; further requests get none.
const MAX_CONCURRENT_RESPONSES: usize = 32;
const MAX_URI_BYTES: usize = 8 << 10;

/// What has changed in a session since it began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionStatus {
    /// How often the server announced changed tools.
    pub tools_changed: u64,
    /// How often the server announced changed prompts.
    pub prompts_changed: u64,
    /// How often the server announced changed resources.
    pub resources_changed: u64,
    /// Why the connection is closed, once it is.
    pub closed: Option<TransportError>,
}

pub(crate) async fn handle_messages(
    session: Arc<SessionInner>,
    mut messages: mpsc::Receiver<ServerMessage>,
    status: watch::Sender<SessionStatus>,
) {
    let mut handlers: JoinSet<()> = JoinSet::new();
    // By request id, for cancellation.
    let mut running: HashMap<String, AbortHandle> = HashMap::new();
    let mut responses: JoinSet<()> = JoinSet::new();
    loop {
        // A full queue may have dropped `ServerMessage::Closed`.
        if let Some(error) = session.requests.closed().filter(|_| messages.is_empty()) {
            status.send_modify(|status| status.closed = Some(error));
            return;
        }
        let Some(message) = messages.recv().await else { return };
        while handlers.try_join_next().is_some() || responses.try_join_next().is_some() {}
        running.retain(|_, task| !task.is_finished());
        match message {
            ServerMessage::Notification { method, params } if method == "notifications/cancelled" => {
                let task = cancelled_request(params.as_ref()).and_then(|id| running.remove(&id));
                task.inspect(AbortHandle::abort);
            }
            ServerMessage::Notification { method, params } => {
                handle_notification(&session, &status, &method, params.as_ref());
            }
            ServerMessage::Request { id, method, params, related_request } => {
                if let Some(body) = immediate_response(&id, &method, handlers.len()) {
                    if responses.len() < MAX_CONCURRENT_RESPONSES {
                        let session = Arc::clone(&session);
                        responses.spawn(async move { session.respond(body, None).await });
                    }
                    continue;
                }
                let key = id.0.get().to_owned();
                let task =
                    handlers.spawn(handle_request(Arc::clone(&session), id, method, params, related_request));
                running.insert(key, task);
            }
            ServerMessage::Closed(error) => {
                status.send_modify(|status| status.closed = Some(error));
                return;
            }
        }
    }
}

/// The response to a ping, or to a request while `running_count` others are handled.
fn immediate_response(id: &RequestId, method: &str, running_count: usize) -> Option<Vec<u8>> {
    if method == "ping" {
        return Some(jsonrpc::response(id, &RawJson::empty_object()));
    }
    (running_count >= MAX_CONCURRENT_REQUESTS)
        .then(|| jsonrpc::error_response(id, INTERNAL_ERROR, "too many concurrent requests"))
}

fn handle_notification(
    session: &SessionInner,
    status: &watch::Sender<SessionStatus>,
    method: &str,
    params: Option<&RawJson>,
) {
    match method {
        "notifications/tools/list_changed" => status.send_modify(|status| status.tools_changed += 1),
        "notifications/prompts/list_changed" => status.send_modify(|status| status.prompts_changed += 1),
        "notifications/resources/list_changed" => status.send_modify(|status| status.resources_changed += 1),
        "notifications/resources/updated" => {
            if let Some(uri) =
                params.and_then(|params| toolyard_mcp::text_field(params, "uri", MAX_URI_BYTES))
            {
                // There may be no receiver.
                let _ = session.resource_updates.send(uri);
            }
        }
        _ => tracing::trace!(server = %session.server, method, "notification"),
    }
}

fn cancelled_request(params: Option<&RawJson>) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CancelledParams {
        request_id: RawJson,
    }
    params?.read::<CancelledParams>().ok().map(|cancelled| cancelled.request_id.get().to_owned())
}

async fn handle_request(
    session: Arc<SessionInner>,
    id: RequestId,
    method: String,
    params: Option<RawJson>,
    related_request: Option<u64>,
) {
    let (outcome, identity) = match input_kind(&method) {
        Some(_) => session.answer_input_request(method, params, related_request).await,
        None => (Err(unsupported_method(&method)), None),
    };
    let body = match outcome {
        Ok(result) => jsonrpc::response(&id, &result),
        Err(error) => jsonrpc::error_response(&id, error.code, &error.message),
    };
    session.respond(body, identity).await;
}
