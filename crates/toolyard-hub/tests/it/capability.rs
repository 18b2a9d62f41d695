//! Which tools a call by capability may use, and which may replace a tool that was called by name.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_core::{Capability, ErrorKind, RawJson, ToolCallRequest, ToolError, ToolOutput};
use toolyard_hub::{CallOptions, ToolHub};

use crate::common::{Behavior, CallLog, TestTool, register, request, test_tool};

fn hub_with(test_tools: &[TestTool]) -> (ToolHub, Arc<CallLog>) {
    let hub = ToolHub::default();
    let call_log = register(&hub, test_tools);
    (hub, call_log)
}

async fn call_by_capability_with(
    hub: &ToolHub,
    capability: &str,
    arguments: Value,
) -> Result<ToolOutput, ToolError> {
    hub.execute_by_capability(&capability.into(), arguments.into(), &CallOptions::default()).await
}

async fn call_by_capability(hub: &ToolHub, capability: &str) -> Result<ToolOutput, ToolError> {
    call_by_capability_with(hub, capability, json!({})).await
}

async fn call_by_name_or_capability(
    hub: &ToolHub,
    tool: &str,
    capability: &str,
) -> Result<ToolOutput, ToolError> {
    let capability = Capability::from(capability);
    hub.execute_or_by_capability(&request(tool), &capability, &CallOptions::default()).await
}

fn failing(test_tool: TestTool, kind: ErrorKind) -> TestTool {
    test_tool.with_behavior(Behavior::Fail(kind))
}

#[tokio::test(start_paused = true)]
async fn a_choice_between_writing_tools_is_refused_and_lists_them() {
    let (hub, call_log) = hub_with(&[
        test_tool("email_send", "mail").writes(),
        test_tool("email_queue", "post").idempotent(),
        test_tool("email_squat", "evil").untrusted(),
    ]);
    let error = call_by_capability(&hub, "email").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let hint = error.hint().unwrap();
    assert!(hint.starts_with("name one of: "), "{hint}");
    assert!(hint.contains("email_send (mail)") && hint.contains("email_queue (post)"), "{hint}");
    assert!(!hint.contains("evil"), "{hint}");
    assert!(call_log.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_choice_between_many_tools_lists_eight_in_order() {
    let sources: Vec<String> = (10..30).map(|number| format!("mail{number}")).collect();
    let test_tools: Vec<TestTool> =
        sources.iter().map(|source| test_tool("email_send", source).writes()).collect();
    let (hub, _) = hub_with(&test_tools);
    let error = call_by_capability(&hub, "email").await.unwrap_err();
    let listed: Vec<&str> = error.hint().unwrap().split("email_send ").skip(1).collect();
    assert_eq!(listed.len(), 8, "{listed:?}");
    assert!(listed.is_sorted(), "{listed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_single_writing_tool_is_called_alone_and_once() {
    let (hub, call_log) = hub_with(&[
        failing(test_tool("email_send", "mail").writes(), ErrorKind::ResponseLost),
        test_tool("email_read", "reader").requires("mailbox"),
        test_tool("email_squat", "evil").untrusted(),
    ]);
    assert_eq!(call_by_capability(&hub, "email").await.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(call_log.calls(), ["mail"]);

    let (hub, call_log) =
        hub_with(&[failing(test_tool("email_send", "mail").idempotent(), ErrorKind::ResponseLost)]);
    assert_eq!(call_by_capability(&hub, "email").await.unwrap_err().kind(), ErrorKind::ResponseLost);
    assert_eq!(call_log.calls(), ["mail", "mail", "mail"], "an idempotent call is repeated");
}

#[tokio::test(start_paused = true)]
async fn a_writing_tool_never_replaces_a_reading_one() {
    let (hub, call_log) = hub_with(&[
        test_tool("email_send", "native").writes(),
        test_tool("email_move", "mail").idempotent(),
        failing(test_tool("email_read", "one"), ErrorKind::Unavailable),
        failing(test_tool("email_list", "two"), ErrorKind::Failed),
    ]);
    assert!(call_by_capability(&hub, "email").await.is_err());
    let mut called = call_log.calls();
    called.sort();
    assert_eq!(called, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn an_untrusted_tool_is_called_only_without_alternatives() {
    let (hub, call_log) = hub_with(&[
        test_tool("email_a", "evil").untrusted(),
        test_tool("email_b", "mail").requires("mailbox"),
    ]);
    assert_eq!(call_by_capability(&hub, "email").await.unwrap().to_text(), "evil");
    call_by_capability_with(&hub, "email", json!({"mailbox": 1})).await.unwrap();
    assert_eq!(call_log.calls(), ["evil", "mail"], "a trusted tool that accepts the arguments is preferred");

    let (hub, call_log) =
        hub_with(&[test_tool("email_a", "evil").untrusted(), test_tool("email_b", "bad").untrusted()]);
    for _ in 0..10 {
        let error = call_by_capability(&hub, "email").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.hint().unwrap().contains("email_a (evil)"), "{:?}", error.hint());
    }
    assert!(call_log.calls().is_empty(), "arguments are never sent to an untrusted tool by chance");
}

#[tokio::test(start_paused = true)]
async fn the_only_tool_that_accepts_the_arguments_is_found() {
    let mut test_tools: Vec<TestTool> =
        (0..500).map(|at| test_tool(&format!("math_{at}"), &format!("m{at}")).requires("key")).collect();
    test_tools.push(test_tool("math_plain", "plain"));
    let (hub, call_log) = hub_with(&test_tools);
    for _ in 0..5 {
        assert_eq!(call_by_capability(&hub, "calculate").await.unwrap().to_text(), "plain");
    }
    assert_eq!(call_log.calls().len(), 5);
    let without_match = ToolHub::default();
    register(&without_match, &test_tools[..3]);
    assert_eq!(
        call_by_capability(&without_match, "calculate").await.unwrap_err().kind(),
        ErrorKind::InvalidArguments
    );
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_tool_is_no_substitute() {
    let (hub, call_log) = hub_with(&[test_tool("email_mark", "mail").idempotent()]);
    assert_eq!(
        call_by_name_or_capability(&hub, "email_list", "email").await.unwrap_err().kind(),
        ErrorKind::UnknownTool
    );
    assert!(call_log.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_substitute_is_called_after_a_call_that_may_have_taken_effect() {
    let substitute = || test_tool("email_read", "reader");
    for kind in [ErrorKind::Failed, ErrorKind::ResponseLost, ErrorKind::Internal, ErrorKind::Refused] {
        let (hub, call_log) =
            hub_with(&[failing(test_tool("email_send", "mail").writes(), kind), substitute()]);
        assert!(call_by_name_or_capability(&hub, "email_send", "email").await.is_err());
        assert_eq!(call_log.calls(), ["mail"], "{kind:?}");
    }
    let (hub, call_log) =
        hub_with(&[failing(test_tool("email_mark", "mail").idempotent(), ErrorKind::Failed), substitute()]);
    assert!(call_by_name_or_capability(&hub, "email_mark", "email").await.is_err());
    assert_eq!(call_log.calls(), ["mail"], "an idempotent call may still have an effect");

    // The first source was not reached, the second one failed: the error must not claim that nothing took effect.
    let (hub, call_log) = hub_with(&[
        failing(test_tool("email_send", "one").writes(), ErrorKind::Unavailable),
        failing(test_tool("email_send", "two").writes(), ErrorKind::Failed),
        substitute(),
    ]);
    let error = call_by_name_or_capability(&hub, "email_send", "email").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "the failure that may have had an effect is reported");
    assert_eq!(call_log.calls(), ["one", "two"]);

    // The last attempt was not sent, an earlier one was.
    let turns = vec![ErrorKind::ResponseLost, ErrorKind::Unavailable];
    let (hub, call_log) = hub_with(&[
        test_tool("email_mark", "mail").idempotent().with_behavior(Behavior::FailInTurn(turns)),
        substitute(),
    ]);
    assert!(call_by_name_or_capability(&hub, "email_mark", "email").await.is_err());
    assert_eq!(call_log.calls(), ["mail", "mail", "mail"]);
}

#[tokio::test(start_paused = true)]
async fn the_output_of_a_substitute_lists_the_tool_that_failed() {
    let substitute = || test_tool("email_read", "reader");
    let (hub, _) =
        hub_with(&[failing(test_tool("email_send", "mail").writes(), ErrorKind::Unavailable), substitute()]);
    let output = call_by_name_or_capability(&hub, "email_send", "email").await.unwrap();
    assert_eq!(output.to_text(), "reader");
    assert_eq!(output.meta.failed, ["email_send (mail): as scripted"]);

    let (hub, _) = hub_with(&[failing(test_tool("email_list", "mail"), ErrorKind::Failed), substitute()]);
    let output = call_by_name_or_capability(&hub, "email_list", "email").await.unwrap();
    assert_eq!(output.meta.failed, ["email_list (mail): as scripted"]);

    let (hub, _) = hub_with(&[substitute()]);
    let output = call_by_name_or_capability(&hub, "email_lst", "email").await.unwrap();
    assert_eq!(output.meta.failed, ["tool `email_lst` does not exist"]);
}

#[tokio::test(start_paused = true)]
async fn candidates_that_failed_beside_a_success_are_listed() {
    let fails =
        |tool: &str, source: &str| failing(test_tool(tool, source).with_delay_ms(0), ErrorKind::Failed);
    let (hub, _) = hub_with(&[fails("calculate", "a"), test_tool("calculate", "b"), fails("calculate", "c")]);
    let raced = hub.execute(&request("calculate"), &CallOptions::default()).await.unwrap();
    assert_eq!(raced.meta.failed, ["calculate (a): as scripted", "calculate (c): as scripted"]);

    let (hub, _) = hub_with(&[fails("search", "a"), test_tool("search", "b"), test_tool("search", "c")]);
    let merged = hub.execute(&request("search"), &CallOptions::default()).await.unwrap();
    assert_eq!(merged.meta.failed, ["search (a): as scripted"]);
    assert_eq!(merged.meta.source_count, 2);

    let unavailable = failing(test_tool("store", "a").writes(), ErrorKind::Unavailable);
    let (hub, _) = hub_with(&[unavailable, test_tool("store", "b").writes()]);
    let in_order = hub.execute(&request("store"), &CallOptions::default()).await.unwrap();
    assert_eq!(in_order.meta.failed, ["store (a): as scripted"]);
}

#[tokio::test(start_paused = true)]
async fn if_all_candidates_fail_the_error_of_the_preferred_one_is_returned() {
    let fails = |tool: &str, source: &str, delay| {
        failing(test_tool(tool, source), ErrorKind::Failed).with_delay_ms(delay)
    };
    for tool in ["calculate", "search"] {
        let (hub, _) = hub_with(&[fails(tool, "slow", 900), fails(tool, "quick", 1), fails(tool, "next", 5)]);
        let error = hub.execute(&request(tool), &CallOptions::default()).await.unwrap_err();
        assert_eq!(error.source_id().unwrap().as_str(), "slow");
        let others = format!("also failed: {tool} (quick): as scripted; {tool} (next): as scripted");
        assert_eq!(error.hint(), Some(others.as_str()));
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_no_object_are_refused_by_capability_too() {
    let (hub, call_log) = hub_with(&[test_tool("math", "a"), test_tool("math_too", "b")]);
    let error = call_by_capability_with(&hub, "calculate", json!([1])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    let list = ToolCallRequest::new("math", RawJson::from(json!([1])));
    assert!(hub.execute_or_by_capability(&list, &"calculate".into(), &CallOptions::default()).await.is_err());
    assert!(call_log.calls().is_empty());
}
