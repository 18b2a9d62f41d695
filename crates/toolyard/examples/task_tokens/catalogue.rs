//! A hub with the first tools of a set, served with each surface.

use std::{collections::BTreeMap, sync::Arc};

use toolyard::{
    agent::{O200k, TokenCounter as _},
    core::{
        BoxFuture, CallContext, Catalogue, ClientInfo, ServiceCall, SourceInfo, SourceKind, Tool,
        ToolCallRequest, ToolError, ToolOutput, ToolService as _, ToolSpec,
    },
    hub::{Profile, Surface, ToolHub},
};
use toolyard_gateway::HubService;

use crate::{client::Kind, task_set::TaskSet};

/// What every tool answers: some 200 tokens, as a small page of data has.
const ANSWER: &str = "{\"id\":\"a81f\",\"title\":\"Quarterly report\",\"owner\":\"ann\",\"changed\":\"2026-11-02T09:30:00Z\",\"state\":\"open\"}\n";

pub(crate) struct Yard {
    full: HubService,
    search: HubService,
}

struct Answers(ToolSpec);

impl Tool for Answers {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolCallRequest,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text(ANSWER.repeat(5))) })
    }
}

impl Yard {
    /// The first tools of a set; none if there are fewer.
    pub(crate) fn with(set: &TaskSet, size: usize) -> Option<Self> {
        let tools = set.tools.get(..size)?;
        let mut by_server: BTreeMap<&str, Vec<Arc<dyn Tool>>> = BTreeMap::new();
        for tool in tools {
            let spec: ToolSpec = serde_json::from_value(tool.definition.clone()).ok()?;
            let spec = spec.with_raw(tool.definition.clone().into());
            by_server.entry(&tool.server).or_default().push(Arc::new(Answers(spec)));
        }
        let hub = Arc::new(ToolHub::default());
        for (server, tools) in by_server {
            hub.register(SourceInfo::new(server, SourceKind::Mcp), tools);
        }
        let with = |surface| HubService::new(Arc::clone(&hub), Profile { surface, ..Profile::default() });
        Some(Self { full: with(Surface::Full), search: with(Surface::Search) })
    }

    fn service(&self, kind: Kind) -> &HubService {
        match kind {
            Kind::Full => &self.full,
            Kind::Search => &self.search,
        }
    }

    fn list(&self, kind: Kind) -> Arc<Catalogue> {
        self.service(kind).catalogue(&ClientInfo::default())
    }

    /// What the list of tools costs, as a model gets it: name, description, parameters.
    pub(crate) fn list_tokens(&self, kind: Kind) -> usize {
        let shown = |definition: &serde_json::Value| {
            let word = |key| definition.get(key).cloned().unwrap_or_default();
            serde_json::json!({"name": word("name"), "description": word("description"), "parameters": word("inputSchema")})
        };
        let definitions = self
            .list(kind)
            .tools
            .iter()
            .map(|tool| shown(&tool.definition.to_value()).to_string())
            .collect::<Vec<_>>();
        O200k.count(&definitions.join("\n"))
    }

    /// How many bytes the whole list has.
    pub(crate) fn list_bytes(&self) -> usize {
        self.list(Kind::Full).tools.iter().map(|tool| tool.definition.get().len()).sum()
    }

    /// The name under which a tool of a server is offered, and its definition.
    pub(crate) fn offered(&self, server: &str, tool: &str) -> Option<(String, serde_json::Value)> {
        let list = self.list(Kind::Full);
        let qualified = format!("{server}.{tool}");
        let named = |name: &str| list.tools.iter().find(|known| &*known.name == name);
        let found = named(&qualified).or_else(|| named(tool))?;
        Some((found.name.to_string(), found.definition.to_value()))
    }

    /// What a call of a client brings.
    pub(crate) async fn answer(&self, kind: Kind, tool: &str, arguments: &serde_json::Value) -> String {
        let request = ToolCallRequest::new(tool, arguments.clone());
        let call = ServiceCall { request, caller: None, caller_name: "task-tokens".into() };
        match self.service(kind).call(&call).await {
            Ok(output) => output.to_text(),
            Err(error) => format!("{error} {}", error.hint().unwrap_or_default()),
        }
    }
}
