//! Searching a hub whose sources come and go.

use toolyard_core::{
    BoxFuture, CallContext, SourceId, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolOutput,
    ToolSpec,
};

use super::*;

struct SpecOnlyTool(ToolSpec);

impl Tool for SpecOnlyTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolCallRequest,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text("done")) })
    }
}

fn tool(name: &str, description: &str) -> Arc<dyn Tool> {
    Arc::new(SpecOnlyTool(ToolSpec::new(name, description)))
}

fn server(id: &str) -> SourceInfo {
    SourceInfo::new(id, SourceKind::Mcp)
}

fn found_names(hub: &ToolHub, request: &str) -> Vec<String> {
    hub.search(request, 10)
        .iter()
        .map(|found| format!("{}@{}", found.tool.name, found.tool.source_id()))
        .collect()
}

#[test]
fn added_and_removed_sources_change_the_results_at_once() {
    let hub = ToolHub::default();
    assert!(found_names(&hub, "send mail").is_empty());
    hub.register(server("post"), vec![tool("send_mail", "Sends a mail")]);
    assert_eq!(found_names(&hub, "send mail"), ["send_mail@post"]);
    hub.register(server("post"), vec![tool("read_mail", "Reads a mail")]);
    assert_eq!(found_names(&hub, "send mail"), ["read_mail@post"]);
    hub.remove(&SourceId::from("post"));
    assert!(found_names(&hub, "send mail").is_empty());
}

#[test]
fn of_identical_tools_the_one_that_a_call_reaches_is_shown() {
    let hub = ToolHub::default();
    hub.register(server("b"), vec![tool("send_mail", "Sends a mail")]);
    hub.register(server("a"), vec![tool("send_mail", "Sends a mail")]);
    let found = hub.search("send mail", 10);
    assert_eq!(found.len(), 1);
    assert!(found[0].reachable_by_name);
    assert_eq!(found[0].tool.source_id().as_str(), "b", "the source registered first is called");
    assert_eq!(found[0].duplicates.len(), 1);
}

#[test]
fn a_tool_that_a_call_by_name_does_not_reach_is_marked() {
    let hub = ToolHub::default();
    hub.register(
        server("a"),
        vec![tool("search", "Looks for hotels near an airport, with prices and ratings")],
    );
    hub.register(
        server("b"),
        vec![tool("search", "Full-text lookup across scientific papers and their authors")],
    );
    let found = hub.search("find scientific papers by author", 10);
    assert_eq!(found[0].tool.source_id().as_str(), "b");
    assert!(!found[0].reachable_by_name);
}

#[test]
fn a_request_in_chinese_finds_tools_described_in_english() {
    let hub = ToolHub::default();
    hub.register(server("git"), vec![tool("delete_branch", "Delete a branch"), tool("log", "Show the log")]);
    assert_eq!(found_names(&hub, "删除这个分支")[0], "delete_branch@git");
}
