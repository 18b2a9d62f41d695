//! A ledger as an MCP server: every call appends a line and syncs it to disk before it returns.

use std::{fs::OpenOptions, io::Write as _, path::PathBuf, process::ExitCode, sync::Arc};

use serde_json::{Value, json};
use toolyard_core::{
    BoxFuture, Catalogue, ClientInfo, ErrorKind, ListedTool, RawJson, ServiceCall, ToolError, ToolOutput,
    ToolService,
};
use toolyard_mcp_server::{Endpoint, McpServer, ServerConfig, SessionKeys, serve_stdio};

/// Serves the ledger over stdio until the client disconnects.
pub(crate) async fn serve(file: PathBuf) -> ExitCode {
    let config = ServerConfig::new("ledger", "1.0", SessionKeys::random().unwrap());
    let server = McpServer::new(config, Endpoint::new(Arc::new(Ledger::new(file))));
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    match serve_stdio(Arc::new(server), input, output, std::future::pending()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[derive(Debug)]
struct Ledger {
    file: PathBuf,
    catalogue: Arc<Catalogue>,
}

impl Ledger {
    fn new(file: PathBuf) -> Self {
        let schema = json!({"type": "object", "required": ["label", "line"], "properties": {
            "label": {"type": "string", "description": "Which run records the line"}, "line": {"type": "integer"}, "previous_line": {"type": "integer", "description": "The result of an earlier call; not recorded"}}});
        let tool = |name: &str, description: &str, read_only: bool| ListedTool {
            name: name.into(),
            definition: RawJson::from(
                json!({"name": name, "description": description, "inputSchema": schema,
                "annotations": {"readOnlyHint": read_only}}),
            ),
        };
        // Calls of both tools are recorded, so that a test can count them.
        let tools = vec![
            tool("look_at_line", "Looks at a line of the ledger", true),
            tool("record_line", "Records a line in the ledger", false),
        ];
        Self { file, catalogue: Arc::new(Catalogue { version: 1, tools }) }
    }

    fn record(&self, call: &ServiceCall) -> Result<ToolOutput, ToolError> {
        let failed = |error: std::io::Error| ToolError::new(ErrorKind::Failed, error.to_string());
        let arguments = call.request.arguments.to_value();
        let label = arguments.get("label").and_then(Value::as_str).unwrap_or_default();
        let line = arguments.get("line").cloned().unwrap_or_default();
        let mut file = OpenOptions::new().append(true).create(true).open(&self.file).map_err(failed)?;
        let written = format!("{label} {} {line}\n", call.request.tool_name);
        file.write_all(written.as_bytes()).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        Ok(ToolOutput::json(json!({ "line": line })))
    }
}

impl ToolService for Ledger {
    fn catalogue(&self, _client: &ClientInfo) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue)
    }

    fn changed(&self, _seen_version: u64) -> BoxFuture<'_, u64> {
        Box::pin(std::future::pending())
    }

    fn describe(&self, name: &str, _client: &ClientInfo) -> Option<RawJson> {
        self.catalogue.tools.iter().find(|tool| *tool.name == *name).map(|tool| tool.definition.clone())
    }

    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(self.record(call)))
    }
}
