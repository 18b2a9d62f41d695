//! A catalogue of any size for the benches: servers of 50 tools each, with schemas and descriptions of a usual length.

use std::sync::Arc;

use toolyard_core::{
    BoxFuture, CallContext, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput,
    ToolSpec,
};
use toolyard_hub::ToolHub;

/// How many tools each server has.
pub(crate) const PER_SERVER: usize = 50;

pub(crate) struct Nothing(ToolSpec);

impl Nothing {
    /// What the tool does, without a hub around it.
    pub(crate) async fn answer(arguments: &str) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(arguments))
    }
}

impl Tool for Nothing {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(Self::answer(request.arguments.get()))
    }
}

/// One tool of one server; `version` changes its description.
fn tool(number: usize, at: usize, version: usize) -> Arc<dyn Tool> {
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
        format!("read_document_{number}_{at}"),
        format!(
            "Reads document {at} of server {number} and returns its text, version {version}. Use it to look at what was written before."
        ),
    );
    Arc::new(Nothing(spec.with_input_schema(schema).with_hints(ToolHints::READ_ONLY)))
}

/// The tools of one server.
pub(crate) fn server(number: usize, version: usize) -> (SourceInfo, Vec<Arc<dyn Tool>>) {
    let info = SourceInfo::new(format!("server-{number}"), SourceKind::Mcp).trusted(true);
    (info, (0..PER_SERVER).map(|at| tool(number, at, version)).collect())
}

/// A hub with this many tools.
pub(crate) fn hub_with(tools: usize) -> ToolHub {
    let hub = ToolHub::default();
    for number in 0..tools.div_ceil(PER_SERVER) {
        let (info, tools) = server(number, 1);
        hub.register(info, tools);
    }
    hub
}

/// One source with one tool, whose name all sources of [`popular`] share.
pub(crate) fn popular_source(number: usize, version: usize) -> (SourceInfo, Vec<Arc<dyn Tool>>) {
    let info = SourceInfo::new(format!("popular-{number}"), SourceKind::Mcp).trusted(true);
    (info, vec![tool(0, 0, version)])
}

/// A hub in which this many sources share one name.
pub(crate) fn popular(sources: usize) -> ToolHub {
    let hub = ToolHub::default();
    for number in 0..sources {
        let (info, tools) = popular_source(number, 1);
        hub.register(info, tools);
    }
    hub
}

/// A call to a tool of the first server.
pub(crate) fn request() -> ToolCallRequest {
    ToolCallRequest::new("read_document_0_7", serde_json::json!({"path": "a.txt", "limit": 3}))
}
