//! A tool of a server. Before its first call it is the seeds' `ConfigOnlyMcpTool`: a description and nothing running.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::{Instant, timeout_at};
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};

use super::{
    ConnectError, RequestError, Session, ToolCall,
    headers::header_values,
    server::{Server, Wanted},
};
use crate::{
    definition::{MirroredParameter, mirrored_parameters},
    shelf::InService,
    wire::CallResult,
};

/// Whoever waits for a start must hear of it before the call's own deadline: then nothing was sent, and that is certain.
const MARGIN: Duration = Duration::from_millis(50);

/// A tool of a server.
#[derive(Debug)]
pub struct McpTool {
    tool: InService,
    /// Arguments that are repeated in headers; found out at the first call, because most tools are never called.
    headers: OnceLock<Vec<MirroredParameter>>,
    server: Arc<Server>,
}

impl McpTool {
    pub(super) fn new(tool: InService, server: Arc<Server>) -> Self {
        Self { tool, headers: OnceLock::new(), server }
    }

    async fn carry_out(
        &self,
        request: &ToolCallRequest,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        // Tools whose marks are wrong are quarantined where headers are used; elsewhere the marks mean nothing.
        let marked = self
            .headers
            .get_or_init(|| mirrored_parameters(&self.tool.spec.input_schema).unwrap_or_default());
        let headers = header_values(marked, &request.arguments);
        let call = ToolCall {
            name: &self.tool.spec.name,
            arguments: &request.arguments,
            headers: &headers,
            silence: self.server.config.call_timeout,
            caller: context.caller.as_ref(),
            patience: context.patience.as_ref(),
        };
        let session = self.session(context).await?;
        let result = match self.ask(&session, call).await {
            // It was not looked at in a session that is gone, so it may be sent in a new one.
            Err(error)
                if error.session_is_gone() || (error.had_no_effect() && session.closed().is_some()) =>
            {
                self.server.expired(&session);
                let session = self.session(context).await?;
                self.ask(&session, call).await
            }
            result => result,
        };
        let result = result.map_err(|error| error.into_tool_error(&self.server.config.id))?;
        result.into_output().map_err(|error| error.on_source(&self.server.config.id))
    }

    async fn session(&self, context: &CallContext) -> Result<Arc<Session>, ToolError> {
        let id = &self.server.config.id;
        let deadline = Instant::from_std(context.deadline);
        let deadline = deadline.checked_sub(MARGIN).unwrap_or(deadline);
        let session = match timeout_at(deadline, self.server.session(Wanted::Call)).await {
            Ok(session) => session.map_err(|error| not_there(&error, id))?,
            Err(_elapsed) => {
                let error = ToolError::new(ErrorKind::Unavailable, "it is still starting; nothing was sent");
                return Err(error.with_hint("raise the limit with --timeout").on_source(id));
            }
        };
        self.server.check(&self.tool.spec.name, self.tool.pin)?;
        Ok(session)
    }

    async fn ask(&self, session: &Arc<Session>, call: ToolCall<'_>) -> Result<CallResult, RequestError> {
        let result = session.call_tool(call).await;
        // Over HTTP, nothing but a failed request tells that a server is gone.
        if let Err(RequestError::Transport(error @ super::TransportError::Unreachable(_))) = &result {
            self.server.unreachable(session, error.to_string());
        }
        result
    }
}

fn not_there(error: &ConnectError, server: &toolyard_core::SourceId) -> ToolError {
    let failure = ToolError::new(ErrorKind::Unavailable, error.to_string());
    let hint = match error {
        ConnectError::Configuration(_) => format!("see `toolyard servers show {server}`"),
        ConnectError::Resting { .. } => format!("try it now: toolyard servers connect {server}"),
        _ => format!("try `toolyard servers test {server}` · logs: toolyard servers logs {server}"),
    };
    failure.with_hint(hint).on_source(server)
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.carry_out(request, context))
    }
}
