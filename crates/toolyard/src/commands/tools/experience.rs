//! What was learned about a tool from earlier calls: how often it succeeds, with which arguments, and for which requests.

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_core::{ArgumentExample, DataOwner, ResultShape, ResultShapes as _};
use toolyard_hub::{ToolCandidate, definition_hash};
use toolyard_store::ToolStatistics;

use crate::terminal::Output;

/// Past requests that are shown, the newest.
const MAX_SHOWN_REQUESTS: usize = 5;
/// Tools whose result shapes are read.
const MAX_RESULT_SHAPES: usize = 10_000;

/// What was learned about all tools, as far as the user of this machine may see it.
pub(super) struct Experience {
    statistics: Vec<ToolStatistics>,
    shapes: Vec<ResultShape>,
    arguments: Vec<ArgumentExample>,
}

impl Experience {
    pub(super) async fn load(toolyard: &Toolyard) -> Self {
        let shapes = match toolyard.store() {
            Some(store) => store.recent(DataOwner::Operator, MAX_RESULT_SHAPES).await,
            None => Vec::new(),
        };
        let agents = toolyard.agents();
        let mut arguments = Vec::new();
        for agent in agents.names().iter().filter_map(|name| agents.config(name).ok()) {
            arguments.extend(agents.argument_examples(&agent).await);
        }
        Self { statistics: toolyard.statistics(), shapes, arguments }
    }

    fn of<'a>(&'a self, tool: &ToolCandidate, toolyard: &Toolyard) -> ToolExperience<'a> {
        let (name, source) = (&*tool.name, tool.source_id());
        let definition = definition_hash(tool.spec());
        let mut requests = toolyard.past_requests(name, source);
        requests.reverse();
        requests.truncate(MAX_SHOWN_REQUESTS);
        let is_current = |known: &&ArgumentExample| {
            known.tool == name && known.source == *source && known.definition == definition
        };
        ToolExperience {
            statistics: self.statistics.iter().find(|known| known.tool == name && known.source == *source),
            arguments: self.arguments.iter().find(is_current),
            shape: self.shapes.iter().find(|known| known.tool == name && known.source == *source),
            requests,
        }
    }

    pub(super) fn json(&self, tool: &ToolCandidate, toolyard: &Toolyard) -> Value {
        let ToolExperience { statistics, arguments, shape, requests } = self.of(tool, toolyard);
        json!({
            "statistics": statistics,
            "last_arguments": arguments.map(|example| example.arguments.to_value()),
            "result_shape": shape.map(|shape| &shape.shape),
            "past_requests": requests,
        })
    }

    pub(super) fn print(&self, tool: &ToolCandidate, toolyard: &Toolyard, output: &Output) {
        for line in self.of(tool, toolyard).lines() {
            output.line(&format!("  {line}"));
        }
    }
}

struct ToolExperience<'a> {
    statistics: Option<&'a ToolStatistics>,
    arguments: Option<&'a ArgumentExample>,
    shape: Option<&'a ResultShape>,
    /// The newest first.
    requests: Vec<String>,
}

impl ToolExperience<'_> {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(ToolStatistics { calls, success_rate, median_milliseconds, errors, .. }) = self.statistics
        {
            let mut errors: Vec<&str> = errors.keys().map(String::as_str).collect();
            errors.sort_unstable();
            let errors =
                if errors.is_empty() { String::new() } else { format!("; errors: {}", errors.join(", ")) };
            // Not a whole number, because older calls count less.
            lines.push(format!(
                "About {calls:.0} recent calls: {:.0} % succeeded{errors}; median {median_milliseconds:.0} ms",
                success_rate * 100.0
            ));
        }
        if let Some(example) = self.arguments {
            lines.push(format!("Last successful arguments of an agent: {}", example.arguments.get()));
        }
        if let Some(shape) = self.shape {
            lines.push(format!("Results look like: {}", shape.shape));
        }
        if !self.requests.is_empty() {
            lines.push("Was used for:".to_owned());
            lines.extend(self.requests.iter().map(|request| format!("  - {request}")));
        }
        lines
    }
}
