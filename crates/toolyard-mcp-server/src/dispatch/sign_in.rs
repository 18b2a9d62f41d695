//! Tells a client that the caller must sign in to a source: in the form that its revision and capabilities have for it.

use http::StatusCode;
use serde_json::{Value, json};
use toolyard_core::{RawJson, RevisionFamily, SignInLink, ToolCallRequest, ToolError};
use toolyard_mcp::{JsonObject, error_code::URL_ELICITATION_REQUIRED, jsonrpc::notification};

use crate::{
    dispatch::outcome::Outcome,
    interaction::request_channel::RequestChannel,
    json_fields::{each_field, text_field},
    server::McpServer,
    session::{
        request_state::{RequestFingerprint, RequestState},
        session_id::SessionScope,
    },
};

/// The revision that introduced pages for users to open.
const URL_ELICITATION_REVISION: &str = "2025-11-25";
/// The key of the input request.
const INPUT_KEY: &str = "sign_in";

impl McpServer {
    /// The response to a call that needs a sign-in; `None` if the client can only show text.
    pub(super) fn sign_in_outcome(
        &self,
        scope: &SessionScope<'_>,
        channel: &RequestChannel,
        request: &ToolCallRequest,
        error: &ToolError,
    ) -> Option<Outcome> {
        let (link, peer) = (error.sign_in()?, &channel.peer);
        if !peer.capabilities.elicitation_url || !peer.supports(URL_ELICITATION_REVISION) {
            return None;
        }
        if peer.family() == RevisionFamily::Legacy {
            self.elicitations.record(&link.id, Some(peer.session_number));
            let outcome =
                Outcome::error_with_status(StatusCode::OK, URL_ELICITATION_REQUIRED, error.to_string());
            return Some(outcome.with_data(&json!({ "elicitations": [elicitation(link)] })));
        }
        let source = error.source_id().map(ToString::to_string).unwrap_or_default();
        let fingerprint = RequestFingerprint {
            method: "tools/call".to_owned(),
            target: request.tool_name.clone(),
            arguments: Some(request.arguments.clone()),
        };
        let state = RequestState::SignIn { source, id: link.id.clone() };
        let sealed = state.seal(&self.config.session_keys, scope, &fingerprint)?;
        self.elicitations.record(&link.id, None);
        let requests = json!({ INPUT_KEY: { "method": "elicitation/create", "params": elicitation(link) } });
        let result = JsonObject::new()
            .with_text("resultType", "input_required")
            .with_value("inputRequests", &requests)
            .with_text("requestState", &sealed);
        Some(Outcome::result(result.to_string()))
    }
}

impl McpServer {
    /// Tells clients that the user has finished, or given up, what a page was opened for: calls that wait for it go on, and legacy
    /// clients are notified of a success on their streams.
    pub fn end_elicitation(&self, id: &str, is_successful: bool) {
        let sessions = self.elicitations.end(id);
        for session in sessions.into_iter().filter(|_| is_successful) {
            if let Some(stream) = self.clients.change_stream(session).and_then(|stream| stream.upgrade()) {
                let params = JsonObject::new().with_text("elicitationId", id);
                stream.send(notification("notifications/elicitation/complete", &params));
            }
        }
    }
}

fn elicitation(link: &SignInLink) -> Value {
    json!({ "mode": "url", "elicitationId": link.id, "url": link.url(), "message": link.message() })
}

/// Whether the user agreed to open the page, according to the responses of the client.
pub(super) fn is_accepted(responses: Option<&RawJson>) -> bool {
    let Some(responses) = responses else { return false };
    let mut is_accepted = false;
    // Fields before a syntax error count.
    let _ = each_field(responses.get(), |key, value| {
        if key == INPUT_KEY {
            is_accepted = text_field(value.get(), "action").as_deref() == Some("accept");
        }
        Ok(())
    });
    is_accepted
}
