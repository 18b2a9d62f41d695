//! The search of Toolyard.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toolyard_core::{RawJson, ToolSpec, extract_capabilities};
use toolyard_hub::tool_text;
use toolyard_search::{Hit, SearchIndex, SourceText, ToolText};

use super::Retriever;
use crate::dataset::records::{ParamRecord, ToolRecord};

/// An index over a catalogue, keyed by position.
#[derive(Debug)]
pub struct ToolyardRetriever {
    index: SearchIndex,
    /// Server of every tool.
    servers: Vec<String>,
}

impl ToolyardRetriever {
    /// Indexes a catalogue.
    pub fn new(catalogue: &[ToolRecord]) -> Self {
        let mut index = SearchIndex::default();
        let mut servers: BTreeMap<&str, Vec<(usize, &ToolRecord)>> = BTreeMap::new();
        for (position, tool) in catalogue.iter().enumerate() {
            servers.entry(&tool.server).or_default().push((position, tool));
        }
        for (id, tools) in servers {
            let description =
                tools.first().map(|(_, tool)| format!("{} {}", tool.server_description, tool.category));
            let server = SourceText { id: id.into(), description: description.unwrap_or_default() };
            let texts: Vec<_> = tools.iter().map(|(position, tool)| text(*position, tool)).collect();
            index.put(&server, &texts);
        }
        Self { index, servers: catalogue.iter().map(|tool| tool.server.clone()).collect() }
    }
}

/// The text that the hub indexes for a tool.
fn text(position: usize, tool: &ToolRecord) -> ToolText {
    let spec = tool.definition.as_deref().cloned().unwrap_or_else(|| {
        let properties: Map<String, Value> = tool.params.iter().map(property).collect();
        let schema = json!({"type": "object", "properties": properties});
        ToolSpec::new(tool.name.as_str(), tool.description.as_str())
            .with_input_schema(RawJson::from_value(&schema))
    });
    let capabilities = extract_capabilities(&spec.name, &spec.description);
    let text = tool_text(tool.name.as_str().into(), &spec, &spec.params(), &capabilities);
    ToolText { key: position.to_string().into(), ..text }
}

fn property(param: &ParamRecord) -> (String, Value) {
    (param.name.clone(), json!({"description": param.description}))
}

fn positions(hits: &[Hit]) -> Vec<usize> {
    hits.iter().filter_map(|hit| hit.key.parse().ok()).collect()
}

impl Retriever for ToolyardRetriever {
    fn search(&self, text: &str, limit: usize) -> Vec<usize> {
        positions(&self.index.search(text, limit))
    }

    fn search_steps(&self, task: &str, steps: &[String], limit: usize) -> Vec<usize> {
        positions(&self.index.search_steps(task, steps.iter().map(String::as_str), limit))
    }

    fn record_use(&mut self, tool: usize, request: &str) -> bool {
        let Some(server) = self.servers.get(tool) else { return false };
        self.index.record_use(server, &tool.to_string(), request);
        true
    }
}
