//! The search of Toolyard.

use std::{collections::BTreeMap, sync::Arc};

use toolyard_core::extract_capabilities;
use toolyard_search::{self as search, Hit, SearchIndex, SourceText, lexicon::Lexicons};

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
    pub fn new(tools: &[ToolRecord], lexicons: Lexicons) -> Self {
        Self::with_index(tools, SearchIndex::with_lexicon(Arc::new(lexicons)))
    }

    /// Indexes a catalogue in an empty index.
    pub fn with_index(catalogue: &[ToolRecord], mut index: SearchIndex) -> Self {
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

fn text(position: usize, tool: &ToolRecord) -> search::ToolText {
    let param = |param: &ParamRecord| search::ParamText {
        name: param.name.clone(),
        description: param.description.clone(),
    };
    search::ToolText {
        key: position.to_string().into(),
        name: tool.name.clone(),
        description: tool.description.clone(),
        params: tool.params.iter().map(param).collect(),
        // As the hub does on registration.
        capabilities: extract_capabilities(&tool.name, &tool.description)
            .iter()
            .map(ToString::to_string)
            .collect(),
        ..search::ToolText::default()
    }
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
