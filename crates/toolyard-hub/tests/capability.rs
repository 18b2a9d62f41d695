//! Who may answer when only a capability is known, and who may stand in for a tool that was named.

mod common;

use std::sync::Arc;

use common::{Act, Ledger, Part, part, register, request};
use serde_json::{Value, json};
use toolyard_core::{Capability, ErrorKind, RawJson, ToolCallRequest, ToolError, ToolOutput};
use toolyard_hub::{CallOptions, ToolHub};

fn hub_with(parts: &[Part]) -> (ToolHub, Arc<Ledger>) {
    let hub = ToolHub::default();
    let ledger = register(&hub, parts);
    (hub, ledger)
}

async fn with_arguments(hub: &ToolHub, capability: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
    hub.execute_by_capability(&capability.into(), arguments.into(), &CallOptions::default()).await
}

async fn by_capability(hub: &ToolHub, capability: &str) -> Result<ToolOutput, ToolError> {
    with_arguments(hub, capability, json!({})).await
}

async fn by_either(hub: &ToolHub, tool: &str, capability: &str) -> Result<ToolOutput, ToolError> {
    let capability = Capability::from(capability);
    hub.execute_or_by_capability(&request(tool), &capability, &CallOptions::default()).await
}

fn fails(part: Part, kind: ErrorKind) -> Part {
    part.act(Act::Fail(kind))
}

#[tokio::test(start_paused = true)]
async fn several_that_write_are_refused_and_named() {
    let (hub, ledger) = hub_with(&[
        part("email_send", "mail").writes(),
        part("email_queue", "post").idempotent(),
        part("email_squat", "evil").untrusted(),
    ]);
    let error = by_capability(&hub, "email").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let hint = error.hint().unwrap();
    assert!(hint.starts_with("name one of: "), "{hint}");
    assert!(hint.contains("email_send (mail)") && hint.contains("email_queue (post)"), "{hint}");
    assert!(!hint.contains("evil"), "{hint}");
    assert!(ledger.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_writes_is_called_alone_and_once() {
    let (hub, ledger) = hub_with(&[
        fails(part("email_send", "mail").writes(), ErrorKind::ResponseLost),
        part("email_read", "reader").requires("mailbox"),
        part("email_squat", "evil").untrusted(),
    ]);
    assert_eq!(by_capability(&hub, "email").await.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(ledger.calls(), ["mail"]);

    let (hub, ledger) = hub_with(&[fails(part("email_send", "mail").idempotent(), ErrorKind::ResponseLost)]);
    assert_eq!(by_capability(&hub, "email").await.unwrap_err().kind(), ErrorKind::ResponseLost);
    assert_eq!(ledger.calls(), ["mail", "mail", "mail"], "repeated, because that is harmless");
}

#[tokio::test(start_paused = true)]
async fn what_writes_never_answers_for_what_reads() {
    let (hub, ledger) = hub_with(&[
        part("email_send", "native").writes(),
        part("email_move", "mail").idempotent(),
        fails(part("email_read", "one"), ErrorKind::Unavailable),
        fails(part("email_list", "two"), ErrorKind::Failed),
    ]);
    assert!(by_capability(&hub, "email").await.is_err());
    let mut called = ledger.calls();
    called.sort();
    assert_eq!(called, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn an_untrusted_tool_is_asked_alone_or_not_at_all() {
    let (hub, ledger) =
        hub_with(&[part("email_a", "evil").untrusted(), part("email_b", "mail").requires("mailbox")]);
    assert_eq!(by_capability(&hub, "email").await.unwrap().to_text(), "evil");
    with_arguments(&hub, "email", json!({"mailbox": 1})).await.unwrap();
    assert_eq!(ledger.calls(), ["evil", "mail"], "a trusted one that takes the arguments goes before it");

    let (hub, ledger) = hub_with(&[part("email_a", "evil").untrusted(), part("email_b", "bad").untrusted()]);
    for _ in 0..10 {
        let error = by_capability(&hub, "email").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.hint().unwrap().contains("email_a (evil)"), "{:?}", error.hint());
    }
    assert!(ledger.calls().is_empty(), "chance never decides who gets the arguments");
}

#[tokio::test(start_paused = true)]
async fn no_tool_that_fits_is_lost_among_those_that_do_not() {
    let mut parts: Vec<Part> =
        (0..500).map(|at| part(&format!("math_{at}"), &format!("m{at}")).requires("key")).collect();
    parts.push(part("math_plain", "plain"));
    let (hub, ledger) = hub_with(&parts);
    for _ in 0..5 {
        assert_eq!(by_capability(&hub, "calculate").await.unwrap().to_text(), "plain");
    }
    assert_eq!(ledger.calls().len(), 5);
    let nobody = ToolHub::default();
    register(&nobody, &parts[..3]);
    assert_eq!(by_capability(&nobody, "calculate").await.unwrap_err().kind(), ErrorKind::InvalidArguments);
}

#[tokio::test(start_paused = true)]
async fn what_is_only_idempotent_does_not_stand_in() {
    let (hub, ledger) = hub_with(&[part("email_mark", "mail").idempotent()]);
    assert_eq!(by_either(&hub, "email_list", "email").await.unwrap_err().kind(), ErrorKind::UnknownTool);
    assert!(ledger.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_stands_in_where_something_may_have_happened() {
    let substitute = || part("email_read", "reader");
    for kind in [ErrorKind::Failed, ErrorKind::ResponseLost, ErrorKind::Internal, ErrorKind::Refused] {
        let (hub, ledger) = hub_with(&[fails(part("email_send", "mail").writes(), kind), substitute()]);
        assert!(by_either(&hub, "email_send", "email").await.is_err());
        assert_eq!(ledger.calls(), ["mail"], "{kind:?}");
    }
    let (hub, ledger) =
        hub_with(&[fails(part("email_mark", "mail").idempotent(), ErrorKind::Failed), substitute()]);
    assert!(by_either(&hub, "email_mark", "email").await.is_err());
    assert_eq!(ledger.calls(), ["mail"], "idempotent is not harmless");

    // The first was not reached, the second failed half-way: the first one's error alone would say "no effect".
    let (hub, ledger) = hub_with(&[
        fails(part("email_send", "one").writes(), ErrorKind::Unavailable),
        fails(part("email_send", "two").writes(), ErrorKind::Failed),
        substitute(),
    ]);
    let error = by_either(&hub, "email_send", "email").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "what may have changed something is said first");
    assert_eq!(ledger.calls(), ["one", "two"]);

    // The last attempt was not sent, an earlier one was.
    let turns = vec![ErrorKind::ResponseLost, ErrorKind::Unavailable];
    let (hub, ledger) =
        hub_with(&[part("email_mark", "mail").idempotent().act(Act::FailInTurn(turns)), substitute()]);
    assert!(by_either(&hub, "email_mark", "email").await.is_err());
    assert_eq!(ledger.calls(), ["mail", "mail", "mail"]);
}

#[tokio::test(start_paused = true)]
async fn a_substitute_says_whom_it_stands_in_for() {
    let substitute = || part("email_read", "reader");
    let (hub, _) =
        hub_with(&[fails(part("email_send", "mail").writes(), ErrorKind::Unavailable), substitute()]);
    let output = by_either(&hub, "email_send", "email").await.unwrap();
    assert_eq!(output.to_text(), "reader");
    assert_eq!(output.meta.failed, ["email_send (mail): as scripted"]);

    let (hub, _) = hub_with(&[fails(part("email_list", "mail"), ErrorKind::Failed), substitute()]);
    let output = by_either(&hub, "email_list", "email").await.unwrap();
    assert_eq!(output.meta.failed, ["email_list (mail): as scripted"]);

    let (hub, _) = hub_with(&[substitute()]);
    let output = by_either(&hub, "email_lst", "email").await.unwrap();
    assert_eq!(output.meta.failed, ["tool `email_lst` does not exist"]);
}

#[tokio::test(start_paused = true)]
async fn who_failed_beside_an_answer_is_listed() {
    let failing = |tool: &str, source: &str| fails(part(tool, source).takes(0), ErrorKind::Failed);
    let (hub, _) = hub_with(&[failing("calculate", "a"), part("calculate", "b"), failing("calculate", "c")]);
    let raced = hub.execute(&request("calculate"), &CallOptions::default()).await.unwrap();
    assert_eq!(raced.meta.failed, ["calculate (a): as scripted", "calculate (c): as scripted"]);

    let (hub, _) = hub_with(&[failing("search", "a"), part("search", "b"), part("search", "c")]);
    let merged = hub.execute(&request("search"), &CallOptions::default()).await.unwrap();
    assert_eq!(merged.meta.failed, ["search (a): as scripted"]);
    assert_eq!(merged.meta.source_count, 2);

    let gone = fails(part("store", "a").writes(), ErrorKind::Unavailable);
    let (hub, _) = hub_with(&[gone, part("store", "b").writes()]);
    let in_order = hub.execute(&request("store"), &CallOptions::default()).await.unwrap();
    assert_eq!(in_order.meta.failed, ["store (a): as scripted"]);
}

#[tokio::test(start_paused = true)]
async fn of_a_lost_race_the_preferred_ones_failure_is_told() {
    let failing = |tool: &str, source: &str, takes| fails(part(tool, source), ErrorKind::Failed).takes(takes);
    for tool in ["calculate", "search"] {
        let (hub, _) =
            hub_with(&[failing(tool, "slow", 900), failing(tool, "quick", 1), failing(tool, "next", 5)]);
        let error = hub.execute(&request(tool), &CallOptions::default()).await.unwrap_err();
        assert_eq!(error.source_id().unwrap().as_str(), "slow");
        let others = format!("also failed: {tool} (quick): as scripted; {tool} (next): as scripted");
        assert_eq!(error.hint(), Some(others.as_str()));
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_no_object_are_refused_by_capability_too() {
    let (hub, ledger) = hub_with(&[part("math", "a"), part("math_too", "b")]);
    let error = with_arguments(&hub, "calculate", json!([1])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    let list = ToolCallRequest::new("math", RawJson::from(json!([1])));
    assert!(hub.execute_or_by_capability(&list, &"calculate".into(), &CallOptions::default()).await.is_err());
    assert!(ledger.calls().is_empty());
}
