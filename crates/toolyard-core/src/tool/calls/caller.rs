//! The caller of a tool: receives progress and log messages of a call, and answers its input requests.

use std::{fmt, sync::Arc};

use crate::{BoxFuture, CallerIdentity, Conversation, RawJson, SourceId, telemetry::SpanContext};

/// The caller of a tool, as far as a call can interact with it. By default it supports nothing.
pub trait Caller: Send + Sync + fmt::Debug {
    /// Which input it can provide, as the JSON object of MCP's client capabilities.
    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }

    /// The session that the call belongs to; equal for all calls of one client.
    fn session_id(&self) -> u64;

    /// Identifies the client across its sessions. A client without sessions, whose every connection counts as one, has the
    /// same id on all of them.
    fn client_id(&self) -> u64 {
        self.session_id()
    }

    /// Identifies the client even after it has reconnected in another session. Weaker than [`Caller::client_id`]: two
    /// instances of one program with one credential have the same.
    fn program_id(&self) -> u64 {
        self.client_id()
    }

    /// Who it is; `None` if nobody asked.
    fn identity(&self) -> Option<&Arc<CallerIdentity>> {
        None
    }

    /// Identifies the owner of what the call leaves behind ([`CallerIdentity::owner_hash`]).
    fn owner_hash(&self) -> [u8; 32] {
        self.identity().map_or([0; 32], |identity| identity.owner_hash())
    }

    /// The conversation that the call belongs to, if it belongs to one.
    fn conversation(&self) -> Option<&Conversation> {
        None
    }

    /// Whether it wants progress reports.
    fn wants_progress(&self) -> bool {
        false
    }

    /// Reports progress of the call.
    fn progress(&self, progress: &CallProgress) {
        let _ = progress;
    }

    /// Forwards a log message of the tool: the parameters of MCP's log notification, unchanged.
    fn log(&self, message: &RawJson) {
        let _ = message;
    }

    /// The minimum level of log messages it wants, as MCP names it; none if it did not say.
    fn log_level(&self) -> Option<&str> {
        None
    }

    /// The trace context to propagate: `traceparent`, `tracestate` and `baggage` as the caller sent them.
    fn trace_context(&self) -> &[(String, String)] {
        &[]
    }

    /// The `_meta` that the caller sent with its request, a JSON object, for the server of the tool. The progress token, the trace
    /// context, and fields that begin with `io.modelcontextprotocol/` or `toolyard/` are not passed on. All other fields are
    /// forwarded, including those with prefixes that MCP reserves (such as `com.mcp.`).
    fn request_meta(&self) -> Option<&RawJson> {
        None
    }

    /// The span that caused the call: the caller's own, or the one that the caller received as `traceparent`.
    fn span(&self) -> Option<SpanContext> {
        SpanContext::from_trace_context(self.trace_context())
    }

    /// Requests input, all requests at once. Returns the responses in the same order.
    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        let _ = requests;
        Box::pin(std::future::ready(Err(CallInputError::unsupported())))
    }

    /// Notes that a request was not sent to it because it lacks the capability.
    fn note_unsupported(&self, request: &CallInputRequest) {
        let _ = request;
    }

    /// Whether it accepts input requests as the result of the call ([`crate::ToolOutput::input_required`]) and calls again
    /// with [`Caller::input_responses`], so that no call has to wait meanwhile.
    fn accepts_input_required(&self) -> bool {
        false
    }

    /// Its responses to the input requests of an earlier call that this call continues.
    fn input_responses(&self) -> Option<&CallInputResponses> {
        None
    }
}

/// The progress of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallProgress {
    /// How much is done.
    pub progress: f64,
    /// How much there is to do, if known.
    pub total: Option<f64>,
    /// What the tool is doing.
    pub message: Option<String>,
}

/// Input that a tool needs before it can continue.
#[derive(Debug, Clone, PartialEq)]
pub struct CallInputRequest {
    /// The tool's name for the request; unique among requests made at once.
    pub key: String,
    /// The source that requests it.
    pub source: SourceId,
    /// What is requested.
    pub kind: CallInputKind,
    /// The request as the source sent it.
    pub params: Option<RawJson>,
}

/// What a tool can request from its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallInputKind {
    /// Data from the user: a form or a page to visit.
    Elicitation,
    /// A reply of the caller's language model.
    Sampling,
    /// The folders that the caller works on.
    Roots,
}

/// The responses to the input requests of an earlier call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallInputResponses {
    /// A JSON object of the responses by [`CallInputRequest::key`].
    pub responses: RawJson,
    /// The state that the tool attached to its requests.
    pub state: Option<String>,
}

/// Why there is no response to an input request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallInputError {
    /// The client of the caller cannot answer questions of a tool.
    ///
    /// Remedy: call the tool with a client that supports elicitation, or pass the values as arguments.
    #[error("{0}")]
    Unsupported(String),
    /// The request is malformed.
    #[error("{0}")]
    InvalidRequest(String),
    /// The question of a tool, or the answer to it, got lost.
    ///
    /// Remedy: call the tool again if it had no effect yet.
    #[error("{0}")]
    Failed(String),
    /// The caller responded with an error.
    #[error("{message}")]
    Rejected {
        /// The caller's error code, passed on unchanged.
        code: i64,
        /// The caller's message.
        message: String,
    },
}

impl CallInputError {
    /// The caller cannot provide any input.
    pub fn unsupported() -> Self {
        Self::Unsupported("the caller cannot provide input".to_owned())
    }
}
