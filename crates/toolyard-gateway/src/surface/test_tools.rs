//! Tools for the tests of this folder.

use toolyard_core::{BoxFuture, CallContext, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec};

/// Answers with its source and arguments.
pub(super) struct EchoTool(pub(super) ToolSpec, pub(super) String);

impl Tool for EchoTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::text(format!("{} {}", self.1, request.arguments.get()))) })
    }
}
