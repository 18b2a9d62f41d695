//! Tools that the operator denies are called on no path.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::{Capability, ErrorKind, ToolCallRequest};
use toolyard_hub::{CallOptions, HubConfig, RoutingRules, ToolHub};

use crate::common::{CallLog, TestTool, register, request, test_tool};

fn hub_denying(patterns: &[&str], test_tools: &[TestTool]) -> (ToolHub, Arc<CallLog>) {
    let deny = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
    let rules = RoutingRules { deny, ..RoutingRules::default() };
    let hub = ToolHub::new(HubConfig { rules, ..HubConfig::default() });
    let call_log = register(&hub, test_tools);
    (hub, call_log)
}

fn named(tool: &str, source: &str) -> ToolCallRequest {
    let mut request = request(tool);
    request.source = Some(source.to_owned());
    request
}

#[tokio::test(start_paused = true)]
async fn a_denied_tool_is_refused_by_name_by_source_and_by_capability() {
    for pattern in ["email_send", "email_*", "*@mail", "*"] {
        let (hub, call_log) = hub_denying(&[pattern], &[test_tool("email_send", "mail")]);
        let options = CallOptions::default();
        let capability = Capability::from("email");
        let refusals = [
            hub.execute(&request("email_send"), &options).await.unwrap_err(),
            hub.execute(&named("email_send", "mail"), &options).await.unwrap_err(),
            hub.execute(&named("email_send", "native"), &options).await.unwrap_err(),
            hub.execute_by_capability(&capability, json!({}).into(), &options).await.unwrap_err(),
            hub.execute_or_by_capability(&request("email_send"), &capability, &options).await.unwrap_err(),
        ];
        for error in refusals {
            assert_eq!(error.kind(), ErrorKind::Refused, "{pattern}: {error}");
            assert!(error.hint().unwrap().contains("[approvals] deny"), "{error}");
        }
        let fallback = hub.execute_or_by_capability(&request("unknown"), &capability, &options).await;
        assert_eq!(fallback.unwrap_err().kind(), ErrorKind::UnknownTool, "the first failure is reported");
        assert!(call_log.calls().is_empty(), "{pattern}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_equivalent_source_that_is_not_denied_is_called_instead() {
    let tools = [test_tool("search", "a"), test_tool("search", "b")];
    let (hub, call_log) = hub_denying(&["search@a"], &tools);
    hub.execute(&request("search"), &CallOptions::default()).await.unwrap();
    assert_eq!(call_log.calls(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn denied_tools_are_neither_listed_nor_found() {
    let tools = [
        test_tool("read_mail", "mail").with_description("Reads a letter"),
        test_tool("send_mail", "mail").with_description("Sends a letter"),
        test_tool("lookup", "a").with_description("Looks up a letter"),
        test_tool("lookup", "b").with_description("Looks up a letter"),
    ];
    let (hub, _) = hub_denying(&["send_*", "lookup@a"], &tools);
    let listed = hub.tools();
    let listed: Vec<_> = listed.iter().map(|tool| (&*tool.name, tool.source_id().as_str())).collect();
    assert_eq!(
        listed,
        [("lookup", "b"), ("read_mail", "mail")],
        "an equivalent takes the place of a denied tool"
    );
    let found = hub.search("letter", 10);
    let mut found: Vec<_> = found
        .iter()
        .map(|hit| (&*hit.tool.name, hit.tool.source_id().as_str(), hit.reachable_by_name))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [("lookup", "b", true), ("read_mail", "mail", true)]);
    assert!(
        hub.snapshot().find_in("send_mail", "mail").is_some_and(|tool| tool.denied),
        "a denied tool is still known"
    );
}

#[tokio::test(start_paused = true)]
async fn the_bare_name_of_a_denied_tool_does_not_reach_another_source() {
    let tools = [test_tool("pay", "bank").writes(), test_tool("pay", "evil").untrusted()];
    let (hub, call_log) = hub_denying(&["pay@bank"], &tools);
    let error = hub.execute(&request("pay"), &CallOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(call_log.calls().is_empty());
}
