//! [`Operation`]: a finished request, tool call, model call or run. The names follow the OpenTelemetry conventions for MCP and
//! generative AI.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::SpanContext;
use crate::{RawJson, RunId, SourceId};

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
/// `request_id` and `caller` of requests.
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
        /// The name of the caller.
        caller: Option<Arc<str>>,
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
        /// The JSON-RPC id of the request.
        request_id: u64,
        /// How the server is connected.
        transport: Transport,
        /// Host and port of a server that is connected over HTTP.
        address: Option<(Arc<str>, u16)>,
    },
    /// A tool call was executed by the hub, whatever its source.
    ToolCall {
        /// The requested tool.
        tool: Arc<str>,
        /// The source that answered or failed; `None` if none was called.
        source: Option<SourceId>,
        /// How often a source was called.
        attempts: u32,
        /// Arguments and result, if they are captured.
        content: Option<Box<CallContent>>,
    },
    /// A request of the HTTP API was handled.
    HttpRequest {
        /// The HTTP method.
        method: Cow<'static, str>,
        /// The pattern of the path, such as `/api/v1/runs/{id}`.
        route: Arc<str>,
        /// The status of the response.
        status: u16,
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
        /// The step's id in its plan.
        step: Arc<str>,
    },
    /// A language model was called.
    ModelCall {
        /// The provider, such as `openai`.
        provider: Arc<str>,
        /// The model.
        model: Arc<str>,
        /// Tokens, as far as the provider says.
        usage: TokenUsage,
        /// The cost in the currency of the model's price, if that is known.
        cost_usd: Option<f64>,
    },
}

/// What a caller of a tool sent and received. It is not redacted yet.
#[derive(Debug, Clone, PartialEq)]
pub struct CallContent {
    /// The arguments.
    pub arguments: RawJson,
    /// The text of the result or error.
    pub result: String,
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
