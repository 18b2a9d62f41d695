//! The cases that the seed documents name, each as a test with its name.

mod common;

use std::sync::Arc;

use common::{Act, Part, part, register, request};
use serde_json::json;
use toolyard_core::{Capability, ErrorKind, RawJson, SourceId, ToolOutput, ToolResult};
use toolyard_hub::{CallOptions, DecisionLog, HubConfig, RoutingRules, SourcePreference, ToolHub};

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
    // Writers that could not be reached: each is asked after the one before it, so that the order can be seen.
    let gone = |source: &str| part("pick", source).writes().act(Act::Fail(ErrorKind::Unavailable));
    let (hub, ledger) = hub_with(&[gone("mcp-a"), gone("skill-a").skill(), gone("native")]);
    assert_eq!(hub.specs()[0].source_id().as_str(), "native");
    let error = hub.execute(&request("pick"), &CallOptions::default()).await.unwrap_err();
    assert_eq!(ledger.calls(), ["native", "skill-a", "mcp-a"]);
    assert_eq!(error.source_id(), Some(&SourceId::from("native")), "the failure of whoever was preferred");
}

#[tokio::test(start_paused = true)]
async fn seed_mcp_first_is_a_setting() {
    let rules = RoutingRules { prefer: SourcePreference::McpFirst, ..RoutingRules::default() };
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
    let (hub, ledger) = hub_with(&tools);
    let mut firsts = std::collections::HashSet::new();
    for _ in 0..40 {
        let before = ledger.calls().len();
        by_capability(&hub, "calculate").await.unwrap();
        firsts.insert(ledger.calls()[before].clone());
    }
    assert!(firsts.len() > 2, "a success does not settle who is asked from now on: {firsts:?}");
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
    let omitted = output.meta.truncation.unwrap();
    assert!(omitted.kept <= 500 && omitted.total == text.chars().count());
    assert_eq!(output.content[0].as_text().unwrap().chars().last(), Some('.'));
    let page = config.results.read(&omitted.reference.unwrap(), 0, usize::MAX).await.unwrap();
    assert_eq!(page.text, text);
}

#[tokio::test(start_paused = true)]
async fn every_decision_is_explained() {
    let (hub, _) = hub_with(&[
        part("search", "a").act(Act::Fail(ErrorKind::ResponseLost)),
        part("search", "b"),
        part("search", "needy").requires("key"),
        part("search", "evil").untrusted(),
        part("search", "last"),
    ]);
    let trail = Arc::new(DecisionLog::default());
    let options = CallOptions::default().with_decision_log(Arc::clone(&trail));
    hub.execute(&request("search"), &options).await.unwrap();
    let stages: Vec<&str> = trail.decisions().iter().map(|decision| decision.stage).collect();
    assert_eq!(stages, ["route", "order", "strategy", "call", "call", "call", "merge", "result"]);
    assert_eq!(
        trail.decisions()[0].detail,
        "3 candidates: a (mcp, trusted), b (mcp, trusted), last (mcp, trusted); source not given: automatic; \
         arguments do not fit: search@needy; skipped: `evil`"
    );
    let order = |trail: &DecisionLog| trail.decisions()[1].detail.clone();
    let registered = "search@a: priority 2, as registered; search@b: priority 2, as registered; \
                      search@last: priority 2, as registered";
    assert_eq!(order(&trail), registered);
    let again = Arc::new(DecisionLog::default());
    let _ =
        hub.execute(&request("search"), &CallOptions::default().with_decision_log(Arc::clone(&again))).await;
    assert_eq!(
        order(&again),
        "search@last: succeeded last; search@b: succeeded before; search@a: priority 2"
    );
}

#[tokio::test(start_paused = true)]
async fn pins_and_chance_are_explained() {
    let rules = RoutingRules { pins: [("search".to_owned(), "b".into())].into(), ..RoutingRules::default() };
    let hub = ToolHub::new(HubConfig { rules, ..HubConfig::default() });
    register(&hub, &[part("search", "a"), part("search", "b"), part("search", "skill-a").skill()]);
    let (by_name, by_chance) = (Arc::new(DecisionLog::default()), Arc::new(DecisionLog::default()));
    let options = CallOptions::default().with_decision_log(Arc::clone(&by_name));
    hub.execute(&request("search"), &options).await.unwrap();
    let words = "search@b: pinned; search@skill-a: priority 1; search@a: priority 2";
    assert_eq!(by_name.decisions()[1].detail, words);

    register(&hub, &[part("search_too", "c"), part("search_needy", "d").requires("key")]);
    let options = CallOptions::default().with_decision_log(Arc::clone(&by_chance));
    hub.execute_by_capability(&"search".into(), RawJson::empty_object(), &options).await.unwrap();
    let [route, order] = [0, 1].map(|at| by_chance.decisions()[at].detail.clone());
    assert!(route.ends_with("; arguments do not fit: search_needy@d"), "{route}");
    assert!(order.starts_with("search@b: pinned; search@skill-a: priority 1; "), "{order}");
    assert!(order.contains("search@a: priority 2, by chance"), "success does not count: {order}");
}

#[tokio::test(start_paused = true)]
async fn a_squatter_on_a_name_gets_no_argument() {
    let (hub, ledger) = hub_with(&[
        part("calculate", "native").act(Act::Fail(ErrorKind::Unavailable)),
        part("calculate", "evil").untrusted(),
    ]);
    let error = hub.execute(&request("calculate"), &CallOptions::default()).await.unwrap_err();
    assert!(ledger.calls().iter().all(|source| source == "native"), "{:?}", ledger.calls());
    let hint = error.hint().unwrap();
    let expected =
        "not called, because not known to be equivalent: `evil`; to use it, name the source `evil`";
    assert!(hint.contains(expected), "{hint}");
    assert_eq!(hub.snapshot().collisions()[0].skipped[0].source_id(), &SourceId::from("evil"));
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
    let (hub, _) = hub_with(&[part("bad", "a").act(Act::PanicAtOnce), part("good", "a")]);
    assert_eq!(call(&hub, "bad", None).await, Err(ErrorKind::Internal), "before there is a future, too");
    assert_eq!(call(&hub, "good", None).await, Ok("a".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn native_is_pinned_and_not_named() {
    let rules = RoutingRules { prefer: SourcePreference::McpFirst, ..RoutingRules::default() };
    let hub = ToolHub::new(HubConfig { rules, ..HubConfig::default() });
    let failing = part("calculate", "math").untrusted().act(Act::Fail(ErrorKind::Failed));
    register(&hub, &[part("calculate", "native"), failing]);
    let error = hub.execute(&request("calculate"), &CallOptions::default()).await.unwrap_err();
    assert_eq!(
        error.hint(),
        Some(
            "not called, because not known to be equivalent: `native`; to use the tool of `native`, pin it for this name"
        )
    );
    let near = hub.execute(&request("calculate").from_source("nativ"), &CallOptions::default()).await;
    assert!(!near.unwrap_err().hint().unwrap().contains("native"), "what selects nothing is not suggested");
}

#[tokio::test(start_paused = true)]
async fn no_server_takes_a_reserved_id() {
    for id in ["native", "appflowy"] {
        let (hub, _) = hub_with(&[part("calculate", "native")]);
        let squatter = toolyard_core::SourceInfo::new(id, toolyard_core::SourceKind::Mcp);
        let tools = vec![part("steal", id).tool(&Arc::default())];
        let registration = hub.register(squatter.clone(), tools);
        assert_eq!(registration.tools, 0);
        assert_eq!(&*registration.rejected[0].0, "steal");
        assert!(registration.rejected[0].1.contains("reserved"), "{:?}", registration.rejected);
        assert_eq!(hub.register(squatter, Vec::new()).rejected.len(), 1, "said without tools, too");
        assert_eq!(call(&hub, "steal", None).await, Err(ErrorKind::UnknownTool));
        assert_eq!(call(&hub, "calculate", None).await, Ok("native".to_owned()), "who had the id keeps it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_native_tool_does_not_shut_out_the_others() {
    let (hub, _) = hub_with(&[
        part("search_web", "native").act(Act::Fail(ErrorKind::ResponseLost)).writes(),
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
