//! [`Operation`]: a finished request, tool call, model call or run. The names follow the OpenTelemetry conventions for MCP and
//! generative AI.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::SpanContext;
use crate::{RunId, SourceId};

/// An operation that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// What was done.
    pub kind: OperationKind,
    /// Its place in a trace; `None` if it is not recorded in one.
    pub span: Option<OperationSpan>,
    /// When it began.
    pub started_at: SystemTime,
    /// How long it took.
    pub duration: Duration,
    /// `tool_error` if a tool reported an error, the kind of error or the JSON-RPC code otherwise; `None` on success.
    pub error_type: Option<Cow<'static, str>>,
}

/// The place of an operation in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationSpan {
    /// Identifies its span.
    pub context: SpanContext,
    /// The span that caused it, here or in another process.
    pub parent: Option<SpanContext>,
}

/// What was done. Details are absent unless they are wanted ([`super::Telemetry::wants_details`]): `target`, `resource`,
/// `request_id`, `caller` and `client` of requests.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OperationKind {
    /// A request of an MCP client was handled.
    ServerRequest {
        /// Such as `tools/call`; `_OTHER` for methods that MCP does not have.
        method: Cow<'static, str>,
        /// The name of the tool or prompt as the client sent it; it need not exist.
        target: Option<Arc<str>>,
        /// The URI of the resource.
        resource: Option<Arc<str>>,
        /// The MCP revision.
        revision: &'static str,
        /// The JSON-RPC id of the request.
        request_id: Option<String>,
        /// How the client is connected.
        transport: Transport,
        /// The authenticated caller; `None` if the request has no identity of its own.
        caller: Option<Arc<str>>,
        /// The name that the client gives itself. Nothing proves it.
        client: Option<Arc<str>>,
    },
    /// A request was sent to an upstream MCP server.
    ClientRequest {
        /// Such as `tools/call`.
        method: Cow<'static, str>,
        /// The name of the tool or prompt.
        target: Option<Arc<str>>,
        /// The URI of the resource.
        resource: Option<Arc<str>>,
        /// The MCP revision.
        revision: &'static str,
        /// The upstream server.
        server: SourceId,
        /// The JSON-RPC id of the request; `None` if it could not be sent.
        request_id: Option<u64>,
        /// How the server is connected.
        transport: Transport,
        /// Host and port of a server that is connected over HTTP.
        address: Option<(Arc<str>, u16)>,
    },
    /// A tool call was executed by the hub, whatever its source.
    ToolCall {
        /// The name of the tool at its source; as it was requested if none was called.
        tool: Arc<str>,
        /// The source that answered or failed, or that was called when the call was cancelled; `None` if none was called.
        source: Option<SourceId>,
        /// How often a source was called.
        attempts: u32,
        /// The id of the call, as in the audit record and the log; only if the span is sampled.
        call: Option<String>,
        /// Arguments and result, if they are captured.
        content: Option<Box<CallContent>>,
    },
    /// A request of the HTTP API was handled.
    HttpRequest {
        /// The HTTP method.
        method: Cow<'static, str>,
        /// The pattern of the path, such as `/api/v1/runs/{id}`; `None` if the path is unknown.
        route: Option<Arc<str>>,
        /// The path, which may be anything.
        path: Arc<str>,
        /// The authenticated caller; `None` if the request has no identity of its own.
        caller: Option<Arc<str>>,
        /// The status of the response; `None` if the client disconnected before.
        status: Option<u16>,
    },
    /// Tools were searched.
    ToolSearch {
        /// How many were found.
        found: usize,
    },
    /// A run of an agent, from its start or resumption until it ended or was suspended.
    AgentRun {
        /// The agent.
        agent: Arc<str>,
        /// The run.
        run: RunId,
        /// The conversation that the run belongs to.
        conversation: Option<Arc<str>>,
    },
    /// An agent made or repaired a plan.
    Planning {
        /// The agent.
        agent: Arc<str>,
    },
    /// A step of a plan was executed.
    Step {
        /// The tool of the step; `None` for a step without one.
        tool: Option<Arc<str>>,
        /// Whether there is such a tool: models invent names.
        is_known_tool: bool,
        /// The step's id in its plan.
        step: Arc<str>,
    },
    /// A language model was called.
    ModelCall {
        /// The provider, such as `openai`.
        provider: Arc<str>,
        /// The model.
        model: Arc<str>,
        /// The limit of tokens in the reply, if the request has one.
        max_tokens: Option<u32>,
        /// Why the model stopped, such as `stop` or `length`; `None` if it failed.
        finish_reason: Option<Cow<'static, str>>,
        /// Tokens, as far as the provider says.
        usage: TokenUsage,
        /// The cost in the operator's currency; `None` if the model has no price.
        cost: Option<f64>,
    },
}

/// What a caller of a tool sent and received. It is not redacted yet.
#[derive(Debug, Clone, PartialEq)]
pub struct CallContent {
    /// The arguments as JSON. Those longer than [`Self::MAX_BYTES`] are left out: secrets cannot be found reliably in a part of
    /// a JSON text.
    pub arguments: Option<String>,
    /// The text of the result or error, at most the first [`Self::MAX_BYTES`].
    pub result: String,
}

impl CallContent {
    /// Longer content is not kept, because operations wait in memory for their export. It is more than is exported, so that a
    /// secret at the end of that is still recognized.
    pub const MAX_BYTES: usize = 64 << 10;

    /// Copies the arguments, unless they are too long, and the start of the result.
    pub fn new(arguments: &str, result: &str) -> Self {
        let result = result.get(..result.floor_char_boundary(Self::MAX_BYTES)).unwrap_or_default();
        Self {
            arguments: (arguments.len() <= Self::MAX_BYTES).then(|| arguments.to_owned()),
            result: result.to_owned(),
        }
    }
}

/// Tokens of a model call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
}

/// How a client or server is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Standard input and output.
    Stdio,
    /// HTTP.
    Http,
}
