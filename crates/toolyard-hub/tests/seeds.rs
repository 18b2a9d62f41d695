//! The cases that the seed documents name, each as a test with its name.

mod common;

use std::sync::Arc;

use common::{Act, Part, part, register, request};
use serde_json::json;
use toolyard_core::{Capability, ErrorKind, RawJson, SourceId, ToolOutput, ToolResult};
use toolyard_hub::{CallOptions, HubConfig, Prefer, RoutingRules, ToolHub, Trail};

const EXCEL: &str = "read_data_from_excel";

async fn call(hub: &ToolHub, tool: &str, source: Option<&str>) -> Result<String, ErrorKind> {
    let mut request = request(tool);
    request.source = source.map(str::to_owned);
    hub.execute(&request, &CallOptions::default()).await.map(|o| o.to_text()).map_err(|e| e.kind())
}

async fn by_capability(hub: &ToolHub, capability: &str) -> Result<ToolOutput, ErrorKind> {
    let arguments = RawJson::from(json!({}));
    let outcome = hub.execute_by_capability(&capability.into(), arguments, &CallOptions::default()).await;
    outcome.map_err(|error| error.kind())
}

fn hub_with(parts: &[Part]) -> (ToolHub, Arc<common::Ledger>) {
    let hub = ToolHub::default();
    let ledger = register(&hub, parts);
    (hub, ledger)
}

#[tokio::test(start_paused = true)]
async fn seed_source_absent_is_detected() {
    let (hub, _) = hub_with(&[part("calculate", "native"), part(EXCEL, "excel-mcp")]);
    assert_eq!(call(&hub, EXCEL, None).await, Ok("excel-mcp".to_owned()));
    assert_eq!(call(&hub, "calculate", None).await, Ok("native".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn seed_source_appflowy_never_hides_an_mcp_tool() {
    let (hub, _) = hub_with(&[part("calculate", "native"), part(EXCEL, "excel-mcp")]);
    assert_eq!(call(&hub, EXCEL, Some("appflowy")).await, Ok("excel-mcp".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn seed_source_native_is_only_a_hint() {
    let (hub, _) = hub_with(&[part("calculate", "native"), part(EXCEL, "excel-mcp")]);
    assert_eq!(call(&hub, EXCEL, Some("native")).await, Ok("excel-mcp".to_owned()));
    assert_eq!(call(&hub, "calculate", Some("native")).await, Ok("native".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn seed_source_is_a_server_id() {
    let (hub, ledger) = hub_with(&[part("search", "one"), part("search", "two"), part(EXCEL, "excel-mcp")]);
    assert_eq!(call(&hub, "search", Some("two")).await, Ok("two".to_owned()));
    assert_eq!(call(&hub, EXCEL, Some("two")).await, Err(ErrorKind::UnknownSource));
    assert_eq!(ledger.calls(), ["two"], "nobody but the selected server was called");
}

#[tokio::test(start_paused = true)]
async fn seed_source_is_an_unknown_server_id() {
    let (hub, ledger) = hub_with(&[part(EXCEL, "excel-mcp")]);
    let request = request(EXCEL).from_source("exel-mcp");
    let error = hub.execute(&request, &CallOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownSource);
    assert_eq!(error.hint(), Some("did you mean `excel-mcp`?"));
    assert!(ledger.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn seed_priorities_native_then_skill_then_mcp() {
    let slow = |source: &str| part("pick", source).takes(10).act(Act::Fail(ErrorKind::Failed));
    let (hub, ledger) =
        hub_with(&[slow("mcp-a").writes(), slow("skill-a").skill().writes(), slow("native").writes()]);
    assert_eq!(hub.specs()[0].source_id().as_str(), "native");
    let _ = call(&hub, "pick", None).await;
    assert_eq!(ledger.calls(), ["native"]);
}

#[tokio::test(start_paused = true)]
async fn seed_mcp_first_is_a_setting() {
    let rules = RoutingRules { prefer: Prefer::McpFirst, ..RoutingRules::default() };
    let hub = ToolHub::new(HubConfig { rules, ..HubConfig::default() });
    register(&hub, &[part("calculate", "native"), part("calculate", "math-mcp").untrusted()]);
    assert_eq!(call(&hub, "calculate", Some("appflowy")).await, Ok("math-mcp".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn seed_name_then_capability_fallback() {
    let (hub, ledger) = hub_with(&[
        part("read_range", "excel2").described("Read a worksheet"),
        part("read_sheet", "squatter").described("Read a worksheet").untrusted(),
        part("clear_sheet", "excel2").described("Clear a worksheet").writes(),
    ]);
    let spreadsheet = Capability::from("spreadsheet");
    let options = CallOptions::default();
    let output = hub.execute_or_by_capability(&request(EXCEL), &spreadsheet, &options).await.unwrap();
    assert_eq!(output.to_text(), "excel2");
    assert_eq!(
        ledger.calls(),
        ["excel2"],
        "a substitute is trusted and without side effects, and called once"
    );

    let to_a_server = request(EXCEL).from_source("gone");
    let error = hub.execute_or_by_capability(&to_a_server, &spreadsheet, &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownSource, "a named server is never replaced by another");
}

#[tokio::test(start_paused = true)]
async fn seed_two_tools_by_capability_are_all_called_and_merged() {
    let (hub, _) =
        hub_with(&[part("calculate", "native"), part("do_math", "math-mcp").described("Arithmetic")]);
    let output = by_capability(&hub, "calculate").await.unwrap();
    assert!(output.meta.synthesized);
    assert_eq!(output.meta.source_count, 2);
    let text = output.to_text();
    assert!(text.contains("[native] native") && text.contains("[math-mcp] math-mcp"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn seed_many_tools_by_capability_follow_their_kind() {
    let exact: Vec<Part> = (0..5).map(|at| part(&format!("math_{at}"), &format!("m{at}"))).collect();
    let (hub, ledger) = hub_with(&exact);
    let output = by_capability(&hub, "calculate").await.unwrap();
    assert!(!output.meta.synthesized);
    assert_eq!(ledger.calls().len(), 3, "one batch was raced");

    let partial: Vec<Part> = (0..5).map(|at| part(&format!("search_{at}"), &format!("s{at}"))).collect();
    let (hub, _) = hub_with(&partial);
    assert_eq!(by_capability(&hub, "search").await.unwrap().meta.source_count, 3);
    assert_eq!(by_capability(&hub, "cooking").await, Err(ErrorKind::UnknownCapability));
}

#[tokio::test(start_paused = true)]
async fn seed_same_priority_is_shuffled_by_capability() {
    let tools: Vec<Part> = (0..6).map(|at| part(&format!("math_{at}"), &format!("m{at}")).takes(0)).collect();
    let mut firsts = std::collections::HashSet::new();
    for _ in 0..40 {
        let (hub, ledger) = hub_with(&tools);
        by_capability(&hub, "calculate").await.unwrap();
        firsts.insert(ledger.calls()[0].clone());
    }
    assert!(firsts.len() > 2, "{firsts:?}");
}

#[tokio::test(start_paused = true)]
async fn seed_same_name_search_is_synthesized_and_calculate_is_picked() {
    let (hub, _) =
        hub_with(&[part("search", "a"), part("search", "b"), part("calculate", "a"), part("calculate", "b")]);
    assert_eq!(call(&hub, "search", None).await, Ok("[a] a\n\n[b] b".to_owned()));
    assert_eq!(call(&hub, "calculate", None).await, Ok("a".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn seed_recent_success_goes_first_among_equals() {
    let failing = |source: &str| part("calculate", source).act(Act::Fail(ErrorKind::Failed)).takes(0);
    let mut parts: Vec<Part> = ["a", "b", "c", "d"].map(failing).to_vec();
    parts.push(part("calculate", "e").takes(0));
    let (hub, ledger) = hub_with(&parts);
    assert_eq!(call(&hub, "calculate", None).await, Ok("e".to_owned()));
    assert_eq!(ledger.calls().len(), 5, "three at once, then one after another");
    assert_eq!(call(&hub, "calculate", None).await, Ok("e".to_owned()));
    assert_eq!(ledger.calls()[5], "e", "it goes first from now on");
}

#[tokio::test(start_paused = true)]
async fn seed_each_call_has_thirty_seconds() {
    let (hub, _) = hub_with(&[part("slow", "a").act(Act::Hang)]);
    let started = tokio::time::Instant::now();
    assert_eq!(call(&hub, "slow", None).await, Err(ErrorKind::Timeout));
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn seed_result_shape() {
    let (hub, _) = hub_with(&[part("search", "a"), part("search", "b")]);
    let outcome = hub.execute(&request("search"), &CallOptions::default()).await;
    let shape = serde_json::to_value(ToolResult::of(&outcome)).unwrap();
    assert_eq!(
        shape,
        json!({"success": true, "result": "[a] a\n\n[b] b", "error": null, "_meta": {"source": "a",
            "synthesized": true, "source_count": 2, "sources": ["a", "b"], "attempts": 2}})
    );
}

#[tokio::test(start_paused = true)]
async fn seed_long_results_are_cut_and_stay_readable() {
    let text = "One sentence of a long answer. ".repeat(100);
    let config = HubConfig::default();
    let hub = ToolHub::new(config.clone());
    register(&hub, &[part("describe", "a").act(Act::Answer(text.clone()))]);
    let output = hub.execute(&request("describe"), &CallOptions::default()).await.unwrap();
    let omitted = output.meta.omitted.unwrap();
    assert!(omitted.kept <= 500 && omitted.total == text.chars().count());
    assert_eq!(output.content[0].as_text().unwrap().chars().last(), Some('.'));
    let page = config.results.read(&omitted.reference.unwrap(), 0, usize::MAX).await.unwrap();
    assert_eq!(page.text, text);
}

#[tokio::test(start_paused = true)]
async fn every_decision_is_explained() {
    let (hub, _) = hub_with(&[part("search", "a"), part("search", "b").act(Act::Fail(ErrorKind::Lost))]);
    let trail = Arc::new(Trail::default());
    let options = CallOptions::default().with_trail(Arc::clone(&trail));
    hub.execute(&request("search"), &options).await.unwrap();
    let stages: Vec<&str> = trail.decisions().iter().map(|decision| decision.stage).collect();
    assert_eq!(stages, ["route", "strategy", "call", "call", "merge", "result"]);
    assert_eq!(
        trail.decisions()[0].detail,
        "2 candidates: a (mcp, trusted), b (mcp, trusted); source not given: automatic"
    );
}

#[tokio::test(start_paused = true)]
async fn a_squatter_on_a_name_gets_no_argument() {
    let (hub, ledger) = hub_with(&[
        part("calculate", "native").act(Act::Fail(ErrorKind::Unavailable)),
        part("calculate", "evil").untrusted(),
    ]);
    let error = hub.execute(&request("calculate"), &CallOptions::default()).await.unwrap_err();
    assert!(ledger.calls().iter().all(|source| source == "native"), "{:?}", ledger.calls());
    assert!(error.hint().unwrap().contains("not asked, because not known to be equivalent: `evil`"));
    assert_eq!(hub.snapshot().collisions()[0].passed_over[0].source_id(), &SourceId::from("evil"));
}

#[tokio::test(start_paused = true)]
async fn the_operator_pins_and_declares_equals() {
    let rules = RoutingRules {
        pins: [("search".to_owned(), "b".into())].into(),
        equivalent: [("search".to_owned(), vec!["a".into(), "b".into()])].into(),
        ..RoutingRules::default()
    };
    let hub = ToolHub::new(HubConfig { rules, ..HubConfig::default() });
    let ledger = register(&hub, &[part("search", "a").untrusted(), part("search", "b").untrusted()]);
    assert_eq!(call(&hub, "search", None).await, Ok("b".to_owned()));
    assert_eq!(ledger.calls(), ["b"], "untrusted hints do not make them repeatable, so only one is asked");
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_bother_nobody() {
    let (hub, ledger) = hub_with(&[part("calculate", "a")]);
    let list = toolyard_core::ToolCallRequest::new("calculate", json!([1]));
    let error = hub.execute(&list, &CallOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(ledger.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_panic_harms_its_own_call_only() {
    let (hub, _) = hub_with(&[part("bad", "a").act(Act::Panic), part("good", "a")]);
    assert_eq!(call(&hub, "bad", None).await, Err(ErrorKind::Internal));
    assert_eq!(call(&hub, "good", None).await, Ok("a".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_failing_native_tool_does_not_shut_out_the_others() {
    let (hub, _) = hub_with(&[
        part("search_web", "native").act(Act::Fail(ErrorKind::Lost)).writes(),
        part("calculate", "native"),
    ]);
    for _ in 0..6 {
        let _ = call(&hub, "search_web", None).await;
    }
    assert_eq!(call(&hub, "search_web", None).await, Err(ErrorKind::CircuitOpen));
    assert_eq!(call(&hub, "calculate", None).await, Ok("native".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_source_is_written_to_by_one_call_at_a_time() {
    let (hub, ledger) = hub_with(&[part("write", "db").writes().exclusive(), part("read", "db").exclusive()]);
    let (write, read) = (request("write"), request("read"));
    let options = CallOptions::default();
    let calls = [hub.execute(&write, &options), hub.execute(&write, &options)];
    futures_util::future::join_all(calls).await;
    assert_eq!(ledger.most_running.load(std::sync::atomic::Ordering::SeqCst), 1);
    futures_util::future::join_all([hub.execute(&read, &options), hub.execute(&read, &options)]).await;
    assert_eq!(ledger.most_running.load(std::sync::atomic::Ordering::SeqCst), 2, "readers run together");
}
