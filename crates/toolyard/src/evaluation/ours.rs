//! The search of the hub, as it is measured.

use std::{collections::BTreeMap, sync::Arc};

use toolyard_core::extract_capabilities;
use toolyard_hub::search::{self, Hit, SearchIndex, ServerText, lexicon::Lexicons};

use super::{Retriever, ToolText, data::ParamText};

/// An index of the hub over a catalogue; tools are known by their places in it.
#[derive(Debug)]
pub struct Ours {
    index: SearchIndex,
    /// The server of every tool.
    servers: Vec<String>,
}

impl Ours {
    /// Indexes a catalogue.
    pub fn new(tools: &[ToolText], lexicons: Lexicons) -> Self {
        Self::with_index(tools, SearchIndex::with_lexicon(Arc::new(lexicons)))
    }

    /// Indexes a catalogue in an index that is still empty.
    pub fn with_index(tools_of: &[ToolText], mut index: SearchIndex) -> Self {
        let mut servers: BTreeMap<&str, Vec<(usize, &ToolText)>> = BTreeMap::new();
        for (place, tool) in tools_of.iter().enumerate() {
            servers.entry(&tool.server).or_default().push((place, tool));
        }
        for (id, tools) in servers {
            let said =
                tools.first().map(|(_, tool)| format!("{} {}", tool.server_description, tool.category));
            let server = ServerText { id: id.into(), description: said.unwrap_or_default() };
            let texts: Vec<_> = tools.iter().map(|(place, tool)| text(*place, tool)).collect();
            index.put(&server, &texts);
        }
        Self { index, servers: tools_of.iter().map(|tool| tool.server.clone()).collect() }
    }
}

fn text(place: usize, tool: &ToolText) -> search::ToolText {
    let param = |param: &ParamText| search::ParamText {
        name: param.name.clone(),
        description: param.description.clone(),
    };
    search::ToolText {
        key: place.to_string().into(),
        name: tool.name.clone(),
        description: tool.description.clone(),
        params: tool.params.iter().map(param).collect(),
        // As the hub tags them when they are registered.
        capabilities: extract_capabilities(&tool.name, &tool.description)
            .iter()
            .map(ToString::to_string)
            .collect(),
        ..search::ToolText::default()
    }
}

fn places(hits: &[Hit]) -> Vec<usize> {
    hits.iter().filter_map(|hit| hit.key.parse().ok()).collect()
}

impl Retriever for Ours {
    fn search(&self, text: &str, limit: usize) -> Vec<usize> {
        places(&self.index.search(text, limit))
    }

    fn search_steps(&self, task: &str, steps: &[String], limit: usize) -> Vec<usize> {
        places(&self.index.search_steps(task, steps.iter().map(String::as_str), limit))
    }

    fn remember(&mut self, tool: usize, request: &str) -> bool {
        let Some(server) = self.servers.get(tool) else { return false };
        self.index.remember(server, &tool.to_string(), request);
        true
    }
}
