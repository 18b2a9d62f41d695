//! A hub with the first tools of a task set, served with both surfaces.

use std::{collections::BTreeMap, sync::Arc};

use toolyard_agent::{O200k, TokenCounter as _};
use toolyard_core::{
    BoxFuture, CallContext, Catalogue, ClientInfo, ServiceCall, SourceInfo, SourceKind, Tool,
    ToolCallRequest, ToolError, ToolOutput, ToolService as _, ToolSpec,
};
use toolyard_gateway::HubService;
use toolyard_hub::{Profile, Surface, ToolHub};

use crate::{client::SurfaceKind, task_set::TaskSet};

/// A line of a tool's output. Five of them have about 200 tokens, like a small page of data.
const OUTPUT_LINE: &str = "{\"id\":\"a81f\",\"title\":\"Quarterly report\",\"owner\":\"ann\",\"changed\":\"2026-11-02T09:30:00Z\",\"state\":\"open\"}\n";

pub(crate) struct ServedTools {
    full: HubService,
    search: HubService,
}

struct FixedOutputTool(ToolSpec);

impl Tool for FixedOutputTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolCallRequest,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text(OUTPUT_LINE.repeat(5))) })
    }
}

impl ServedTools {
    /// The first `size` tools of a set; `None` if it has fewer.
    pub(crate) fn new(set: &TaskSet, size: usize) -> Option<Self> {
        let tools = set.tools.get(..size)?;
        let mut by_server: BTreeMap<&str, Vec<Arc<dyn Tool>>> = BTreeMap::new();
        for tool in tools {
            let spec: ToolSpec = serde_json::from_value(tool.definition.clone()).ok()?;
            let spec = spec.with_raw(tool.definition.clone().into());
            by_server.entry(&tool.server).or_default().push(Arc::new(FixedOutputTool(spec)));
        }
        let hub = Arc::new(ToolHub::default());
        for (server, tools) in by_server {
            hub.register(SourceInfo::new(server, SourceKind::Mcp), tools);
        }
        let service = |surface| HubService::new(Arc::clone(&hub), Profile { surface, ..Profile::default() });
        Some(Self { full: service(Surface::Full), search: service(Surface::Search) })
    }

    fn service(&self, kind: SurfaceKind) -> &HubService {
        match kind {
            SurfaceKind::Full => &self.full,
            SurfaceKind::Search => &self.search,
        }
    }

    fn list(&self, kind: SurfaceKind) -> Arc<Catalogue> {
        self.service(kind).catalogue(&ClientInfo::default())
    }

    /// Tokens of the tool list as a model gets it: names, descriptions, parameters.
    pub(crate) fn list_tokens(&self, kind: SurfaceKind) -> usize {
        let as_function = |definition: &serde_json::Value| {
            let field = |key| definition.get(key).cloned().unwrap_or_default();
            serde_json::json!({"name": field("name"), "description": field("description"), "parameters": field("inputSchema")})
        };
        let definitions = self
            .list(kind)
            .tools
            .iter()
            .map(|tool| as_function(&tool.definition.to_value()).to_string())
            .collect::<Vec<_>>();
        O200k.count(&definitions.join("\n"))
    }

    /// Bytes of all definitions in the full list.
    pub(crate) fn list_bytes(&self) -> usize {
        self.list(SurfaceKind::Full).tools.iter().map(|tool| tool.definition.get().len()).sum()
    }

    /// The listed name of a server's tool, and its definition.
    pub(crate) fn listed_tool(&self, server: &str, tool: &str) -> Option<(String, serde_json::Value)> {
        let list = self.list(SurfaceKind::Full);
        let qualified = format!("{server}.{tool}");
        let find = |name: &str| list.tools.iter().find(|known| &*known.name == name);
        let found = find(&qualified).or_else(|| find(tool))?;
        Some((found.name.to_string(), found.definition.to_value()))
    }

    /// The output of a call, or its error, as a client shows it to the model.
    pub(crate) async fn call_tool(
        &self,
        kind: SurfaceKind,
        tool: &str,
        arguments: &serde_json::Value,
    ) -> String {
        let request = ToolCallRequest::new(tool, arguments.clone());
        let call = ServiceCall { request, caller: None, caller_name: "task-tokens".into() };
        match self.service(kind).call(&call).await {
            Ok(output) => output.to_text(),
            Err(error) => format!("{error} {}", error.hint().unwrap_or_default()),
        }
    }
}
