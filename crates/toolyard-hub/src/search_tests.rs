//! Searching a hub whose sources come and go.

use toolyard_core::{
    BoxFuture, CallContext, SourceId, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolOutput,
    ToolSpec,
};

use super::*;

struct Named(ToolSpec);

impl Tool for Named {
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
    Arc::new(Named(ToolSpec::new(name, description)))
}

fn server(id: &str) -> SourceInfo {
    SourceInfo::new(id, SourceKind::Mcp)
}

fn names(hub: &ToolHub, request: &str) -> Vec<String> {
    hub.search(request, 10)
        .iter()
        .map(|found| format!("{}@{}", found.tool.name, found.tool.source_id()))
        .collect()
}

#[test]
fn sources_that_come_and_go_are_found_and_lost_at_once() {
    let hub = ToolHub::default();
    assert!(names(&hub, "send mail").is_empty());
    hub.register(server("post"), vec![tool("send_mail", "Sends a mail")]);
    assert_eq!(names(&hub, "send mail"), ["send_mail@post"]);
    hub.register(server("post"), vec![tool("read_mail", "Reads a mail")]);
    assert_eq!(names(&hub, "send mail"), ["read_mail@post"]);
    hub.remove(&SourceId::from("post"));
    assert!(names(&hub, "send mail").is_empty());
}

#[test]
fn of_copies_the_one_that_a_call_reaches_is_shown() {
    let hub = ToolHub::default();
    hub.register(server("b"), vec![tool("send_mail", "Sends a mail")]);
    hub.register(server("a"), vec![tool("send_mail", "Sends a mail")]);
    let found = hub.search("send mail", 10);
    assert_eq!(found.len(), 1);
    assert!(found[0].by_name);
    assert_eq!(found[0].tool.source_id().as_str(), "b", "whoever came first is asked");
    assert_eq!(found[0].same.len(), 1);
}

#[test]
fn another_tool_of_the_same_name_says_that_it_must_be_named() {
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
    assert!(!found[0].by_name);
}

#[test]
fn a_request_in_chinese_finds_tools_described_in_english() {
    let hub = ToolHub::default();
    hub.register(server("git"), vec![tool("delete_branch", "Delete a branch"), tool("log", "Show the log")]);
    assert_eq!(names(&hub, "删除这个分支")[0], "delete_branch@git");
}
