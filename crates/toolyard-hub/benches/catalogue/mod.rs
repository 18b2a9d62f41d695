//! A catalogue of any size for the benches: servers of 50 tools each, with schemas and descriptions of a usual length.

use std::sync::Arc;

use toolyard_core::{
    BoxFuture, CallContext, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput,
    ToolSpec,
};
use toolyard_hub::ToolHub;

/// Number of tools of each server.
pub(crate) const TOOLS_PER_SERVER: usize = 50;

pub(crate) struct EchoTool(ToolSpec);

impl EchoTool {
    /// The work of the tool, without a hub.
    pub(crate) async fn echo(arguments: &str) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(arguments))
    }
}

impl Tool for EchoTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(Self::echo(request.arguments.get()))
    }
}

/// One tool of one server; `version` changes its description.
fn tool(server: usize, index: usize, version: usize) -> Arc<dyn Tool> {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path of the document"},
            "limit": {"type": "integer", "default": 10},
            "deep": {"type": "boolean"}
        },
        "required": ["path"]
    });
    let spec = ToolSpec::new(
        format!("read_document_{server}_{index}"),
        format!(
            "Reads document {index} of server {server} and returns its text, version {version}. Use it to look at what was written before."
        ),
    );
    Arc::new(EchoTool(spec.with_input_schema(schema).with_hints(ToolHints::READ_ONLY)))
}

/// The tools of one server.
pub(crate) fn server(number: usize, version: usize) -> (SourceInfo, Vec<Arc<dyn Tool>>) {
    let info = SourceInfo::new(format!("server-{number}"), SourceKind::Mcp).trusted(true);
    (info, (0..TOOLS_PER_SERVER).map(|index| tool(number, index, version)).collect())
}

/// A hub with this many tools.
pub(crate) fn hub_with(tools: usize) -> ToolHub {
    let hub = ToolHub::default();
    for number in 0..tools.div_ceil(TOOLS_PER_SERVER) {
        let (info, tools) = server(number, 1);
        hub.register(info, tools);
    }
    hub
}

/// One source with one tool, whose name all sources of [`hub_with_shared_name`] share.
pub(crate) fn source_with_shared_name(number: usize, version: usize) -> (SourceInfo, Vec<Arc<dyn Tool>>) {
    let info = SourceInfo::new(format!("popular-{number}"), SourceKind::Mcp).trusted(true);
    (info, vec![tool(0, 0, version)])
}

/// A hub in which this many sources share one name.
pub(crate) fn hub_with_shared_name(sources: usize) -> ToolHub {
    let hub = ToolHub::default();
    for number in 0..sources {
        let (info, tools) = source_with_shared_name(number, 1);
        hub.register(info, tools);
    }
    hub
}

/// A call to a tool of the first server.
pub(crate) fn request() -> ToolCallRequest {
    ToolCallRequest::new("read_document_0_7", serde_json::json!({"path": "a.txt", "limit": 3}))
}
