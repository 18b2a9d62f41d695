//! Reports requests to [`Telemetry`]: what they were about, and how they ended.

use std::{borrow::Cow, sync::Arc};

use toolyard_core::{
    CallerIdentity,
    telemetry::{OperationKind, RunningOperation, SpanContext, Telemetry, Transport},
};
use toolyard_mcp::{RequestId, raw_field};

use crate::{
    dispatch::{outcome::Outcome, params::Params},
    server::McpServer,
    session::peer::Peer,
};

/// The `error.type` of a tool that reports an error.
const TOOL_ERROR: &str = "tool_error";
/// Longer names, URIs and ids of a client are truncated.
const MAX_TEXT_BYTES: usize = 256;
/// The name of all methods that MCP does not have: clients choose them freely.
const OTHER_METHOD: &str = "_OTHER";
static METHODS: [&str; 22] = [
    "tools/call",
    "tools/list",
    "tools/describe",
    "initialize",
    "server/discover",
    "ping",
    LISTEN,
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "skills/list",
    "skills/get",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/list",
    "tasks/cancel",
];
const LISTEN: &str = "subscriptions/listen";

/// What telemetry says about a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    pub(crate) id: &'a RequestId,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Params,
    /// The client; none if it is not known because the request was rejected.
    pub(crate) peer: Option<&'a Peer>,
    /// Who sent the request.
    pub(crate) identity: &'a Arc<CallerIdentity>,
    pub(crate) transport: Transport,
}

impl McpServer {
    /// Starts the operation of a request; none without telemetry.
    pub(crate) fn start_operation(&self, facts: RequestFacts<'_>) -> Option<RunningOperation> {
        self.config.telemetry.as_ref().map(|telemetry| start(telemetry, facts))
    }
}

fn start(telemetry: &Arc<dyn Telemetry>, facts: RequestFacts<'_>) -> RunningOperation {
    let RequestFacts { id, method, params, peer, identity, transport } = facts;
    let context = params.meta.as_ref().map(|meta| meta.trace_context.as_slice()).unwrap_or_default();
    let text = |text: &Option<String>| text.as_deref().map(|text| Arc::from(truncated(text)));
    let parent = if telemetry.records_spans() { SpanContext::from_trace_context(context) } else { None };
    RunningOperation::start_with(telemetry, parent, |details| OperationKind::ServerRequest {
        method: Cow::Borrowed(METHODS.iter().find(|known| **known == method).unwrap_or(&OTHER_METHOD)),
        target: if details { text(&params.name) } else { None },
        resource: if details { text(&params.uri) } else { None },
        revision: peer.map_or("", |peer| peer.revision),
        request_id: details.then(|| truncated(id.0.get().trim_matches('"')).to_owned()),
        transport,
        caller: (details && identity.is_distinguished()).then(|| identity.audit_name()),
        client: peer.filter(|_| details).map(|peer| Arc::clone(&peer.caller_name)),
    })
}

/// Sets what is known of a client only after `initialize`.
pub(crate) fn set_peer(operation: &mut RunningOperation, peer: &Peer) {
    if let Some(OperationKind::ServerRequest { revision, client, .. }) = operation.kind_mut() {
        (*revision, *client) = (peer.revision, Some(Arc::clone(&peer.caller_name)));
    }
}

/// Ends the operation of a request whose response is `outcome`.
pub(crate) fn end(operation: Option<RunningOperation>, outcome: &Outcome, is_tool_error: bool) {
    let Some(operation) = operation else { return };
    let code = match outcome {
        Outcome::Error { error, .. } => Some(error.code.to_string()),
        Outcome::RawError { raw, .. } => {
            Some(raw_field(raw, "code").map_or_else(String::new, |code| truncated(code.get()).to_owned()))
        }
        Outcome::Result(_) | Outcome::SharedTail { .. } | Outcome::RawResult { .. } => None,
    };
    operation.end(code.map(Cow::Owned).or(is_tool_error.then_some(Cow::Borrowed(TOOL_ERROR))));
}

/// Ends the operation of a request that was dropped: a change stream has no other end, anything else was cancelled.
pub(crate) fn end_dropped(mut operation: RunningOperation) {
    if let Some(OperationKind::ServerRequest { method, .. }) = operation.kind_mut()
        && method == LISTEN
    {
        operation.end(None);
    }
}

fn truncated(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default()
}
