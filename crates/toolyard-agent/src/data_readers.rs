//! Adds to the tools for a task those that read what the task works on.
//!
//! "Add up the sales column of sales.xlsx and write the total into B6" mentions nothing that reads, so a search finds tools
//! that insert, delete and write columns. A plan needs one that reads them first.

use std::sync::Arc;

use toolyard_core::{DataOwner, SourceId, SourceKind};
use toolyard_hub::{ToolCandidate, ToolHub};

use crate::planning::tool_name::is_read_only_name;

/// How many of the best tools tell which sources the task is about.
const CONSIDERED_TOOLS: usize = 10;
/// A source with fewer of them is there by chance.
const MIN_TOOLS_OF_SOURCE: usize = 2;
const MAX_SOURCES: usize = 2;
const MAX_READERS_PER_SOURCE: usize = 2;
/// Readers come after this many tools.
const READER_POSITION: usize = 3;
const MAX_SEARCH_RESULTS: usize = 100;

/// Inserts the tools that read, of the sources that the task seems to be about, if none is among the best tools.
pub(crate) fn add_data_readers(
    hub: &ToolHub,
    owner: DataOwner,
    task: &str,
    tools: &mut Vec<Arc<ToolCandidate>>,
) {
    let sources = sources_without_reader(tools);
    if sources.is_empty() {
        return;
    }
    let found = hub.search_for(owner, &format!("read data: {task}"), MAX_SEARCH_RESULTS);
    for source in sources {
        let is_reader = |tool: &&Arc<ToolCandidate>| *tool.source_id() == source && reads(tool);
        let readers = found.iter().map(|hit| &hit.tool).filter(is_reader).take(MAX_READERS_PER_SOURCE);
        for (at, reader) in readers.enumerate() {
            tools.retain(|tool| !Arc::ptr_eq(tool, reader));
            tools.insert(tools.len().min(READER_POSITION + at), Arc::clone(reader));
        }
    }
}

/// The sources of several of the best tools, none of which reads; those with the most first.
fn sources_without_reader(tools: &[Arc<ToolCandidate>]) -> Vec<SourceId> {
    let mut counts: Vec<(SourceId, usize, bool)> = Vec::new();
    let of_servers = tools.iter().filter(|tool| tool.source.info.kind != SourceKind::Native);
    for tool in of_servers.take(CONSIDERED_TOOLS) {
        match counts.iter_mut().find(|(source, ..)| source == tool.source_id()) {
            Some((_, count, has_reader)) => {
                *count += 1;
                *has_reader |= reads(tool);
            }
            None => counts.push((tool.source_id().clone(), 1, reads(tool))),
        }
    }
    counts.retain(|(_, count, has_reader)| *count >= MIN_TOOLS_OF_SOURCE && !has_reader);
    counts.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    counts.into_iter().take(MAX_SOURCES).map(|(source, ..)| source).collect()
}

fn reads(tool: &ToolCandidate) -> bool {
    is_read_only_name(&tool.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_core::{
        BoxFuture, CallContext, SourceInfo, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
    };

    use super::*;

    struct Listed(ToolSpec);

    impl Tool for Listed {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn call<'a>(
            &'a self,
            _: &'a ToolCallRequest,
            _: &'a CallContext,
        ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
            Box::pin(std::future::ready(Ok(ToolOutput::json(json!({})))))
        }
    }

    fn hub() -> ToolHub {
        let hub = ToolHub::default();
        let sheet = [
            ("insert_columns", "Insert columns into a sheet of a workbook"),
            ("delete_columns", "Delete columns of a sheet"),
            ("write_data_to_excel", "Write data to a sheet"),
            ("read_data_from_excel", "Read data from a sheet"),
            ("get_workbook_metadata", "Get metadata of a workbook"),
        ];
        for (source, tools) in [("excel", &sheet[..]), ("mail", &[("send_mail", "Send a mail")][..])] {
            let tools = tools
                .iter()
                .map(|(name, text)| Arc::new(Listed(ToolSpec::new(*name, *text))) as Arc<dyn Tool>);
            hub.register(SourceInfo::new(source, SourceKind::Mcp), tools.collect());
        }
        hub
    }

    fn with_readers(task: &str, found: &[&str]) -> Vec<String> {
        let hub = hub();
        let snapshot = hub.snapshot();
        let all: Vec<Arc<ToolCandidate>> =
            snapshot.sources().iter().flat_map(|entry| entry.tools.iter().cloned()).collect();
        let find = |name: &&str| all.iter().find(|tool| &*tool.name == *name).cloned();
        let mut tools: Vec<Arc<ToolCandidate>> = found.iter().filter_map(find).collect();
        add_data_readers(&hub, DataOwner::Operator, task, &mut tools);
        tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    #[test]
    fn a_task_on_a_workbook_is_shown_what_reads_it() {
        let task = "add up the sales column of sales.xlsx and write the total into B6";
        let names =
            with_readers(task, &["insert_columns", "write_data_to_excel", "delete_columns", "send_mail"]);
        assert_eq!(names[3], "read_data_from_excel", "{names:?}");
        assert!(names.contains(&"send_mail".to_owned()), "{names:?}");
    }

    #[test]
    fn nothing_is_added_where_a_reader_was_found_or_a_source_is_there_by_chance() {
        let found = ["insert_columns", "read_data_from_excel", "send_mail"];
        assert_eq!(with_readers("add a column", &found), found);
        assert_eq!(
            with_readers("write to Bob", &["send_mail", "insert_columns"]),
            ["send_mail", "insert_columns"]
        );
    }
}
