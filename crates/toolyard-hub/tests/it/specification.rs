//! The cases that the specification names, one test (`spec_…`) each, and related ones.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::{Capability, DataOwner, ErrorKind, RawJson, SourceId, ToolOutput, ToolResult};
use toolyard_hub::{CallOptions, DecisionLog, HubConfig, RoutingRules, SourcePreference, ToolHub};

use crate::common::{Behavior, TestTool, register, request, test_tool};

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

fn hub_with(test_tools: &[TestTool]) -> (ToolHub, Arc<crate::common::CallLog>) {
    let hub = ToolHub::default();
    let call_log = register(&hub, test_tools);
    (hub, call_log)
}

#[tokio::test(start_paused = true)]
async fn spec_source_absent_is_detected() {
    let (hub, _) = hub_with(&[test_tool("calculate", "native"), test_tool(EXCEL, "excel-mcp")]);
    assert_eq!(call(&hub, EXCEL, None).await, Ok("excel-mcp".to_owned()));
    assert_eq!(call(&hub, "calculate", None).await, Ok("native".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn spec_source_appflowy_never_hides_an_mcp_tool() {
    let (hub, _) = hub_with(&[test_tool("calculate", "native"), test_tool(EXCEL, "excel-mcp")]);
    assert_eq!(call(&hub, EXCEL, Some("appflowy")).await, Ok("excel-mcp".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn spec_source_native_is_only_a_hint() {
    let (hub, _) = hub_with(&[test_tool("calculate", "native"), test_tool(EXCEL, "excel-mcp")]);
    assert_eq!(call(&hub, EXCEL, Some("native")).await, Ok("excel-mcp".to_owned()));
    assert_eq!(call(&hub, "calculate", Some("native")).await, Ok("native".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn spec_source_is_a_server_id() {
    let (hub, call_log) =
        hub_with(&[test_tool("search", "one"), test_tool("search", "two"), test_tool(EXCEL, "excel-mcp")]);
    assert_eq!(call(&hub, "search", Some("two")).await, Ok("two".to_owned()));
    assert_eq!(call(&hub, EXCEL, Some("two")).await, Err(ErrorKind::UnknownSource));
    assert_eq!(call_log.calls(), ["two"], "only the selected server was called");
}

#[tokio::test(start_paused = true)]
async fn spec_source_is_an_unknown_server_id() {
    let (hub, call_log) = hub_with(&[test_tool(EXCEL, "excel-mcp")]);
    let request = request(EXCEL).with_source("exel-mcp");
    let error = hub.execute(&request, &CallOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownSource);
    assert_eq!(error.hint(), Some("did you mean `excel-mcp`?"));
    assert!(call_log.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn spec_priorities_native_then_skill_then_mcp() {
    // Writing tools that cannot be reached are called one after another, which shows the order.
    let unavailable = |source: &str| {
        test_tool("pick", source).writes().with_behavior(Behavior::Fail(ErrorKind::Unavailable))
    };
    let (hub, call_log) =
        hub_with(&[unavailable("mcp-a"), unavailable("skill-a").skill(), unavailable("native")]);
    assert_eq!(hub.tools()[0].source_id().as_str(), "native");
    let error = hub.execute(&request("pick"), &CallOptions::default()).await.unwrap_err();
    assert_eq!(call_log.calls(), ["native", "skill-a", "mcp-a"]);
    assert_eq!(error.source_id(), Some(&SourceId::from("native")), "the failure of the preferred source");
}

#[tokio::test(start_paused = true)]
async fn spec_mcp_first_is_a_setting() {
    let rules = RoutingRules { prefer: SourcePreference::McpFirst, ..RoutingRules::default() };
    let hub = ToolHub::new(HubConfig { rules, ..HubConfig::default() });
    register(&hub, &[test_tool("calculate", "native"), test_tool("calculate", "math-mcp").untrusted()]);
    assert_eq!(call(&hub, "calculate", Some("appflowy")).await, Ok("math-mcp".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn spec_name_then_capability_fallback() {
    let (hub, call_log) = hub_with(&[
        test_tool("read_range", "excel2").with_description("Read a worksheet"),
        test_tool("read_sheet", "squatter").with_description("Read a worksheet").untrusted(),
        test_tool("clear_sheet", "excel2").with_description("Clear a worksheet").writes(),
    ]);
    let spreadsheet = Capability::from("spreadsheet");
    let options = CallOptions::default();
    let output = hub.execute_or_by_capability(&request(EXCEL), &spreadsheet, &options).await.unwrap();
    assert_eq!(output.to_text(), "excel2");
    assert_eq!(
        call_log.calls(),
        ["excel2"],
        "a substitute is trusted and without side effects, and called once"
    );

    let with_source = request(EXCEL).with_source("gone");
    let error = hub.execute_or_by_capability(&with_source, &spreadsheet, &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownSource, "a named server is never replaced by another");
}

#[tokio::test(start_paused = true)]
async fn spec_two_tools_by_capability_are_all_called_and_merged() {
    let (hub, _) = hub_with(&[
        test_tool("calculate", "native"),
        test_tool("do_math", "math-mcp").with_description("Arithmetic"),
    ]);
    let output = by_capability(&hub, "calculate").await.unwrap();
    assert!(output.meta.synthesized);
    assert_eq!(output.meta.source_count, 2);
    let text = output.to_text();
    assert!(text.contains("[native] native") && text.contains("[math-mcp] math-mcp"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn spec_many_tools_by_capability_follow_their_kind() {
    let exact: Vec<TestTool> = (0..5).map(|at| test_tool(&format!("math_{at}"), &format!("m{at}"))).collect();
    let (hub, call_log) = hub_with(&exact);
    let output = by_capability(&hub, "calculate").await.unwrap();
    assert!(!output.meta.synthesized);
    assert_eq!(call_log.calls().len(), 3, "one batch was raced");

    let partial: Vec<TestTool> =
        (0..5).map(|at| test_tool(&format!("search_{at}"), &format!("s{at}"))).collect();
    let (hub, _) = hub_with(&partial);
    assert_eq!(by_capability(&hub, "search").await.unwrap().meta.source_count, 3);
    assert_eq!(by_capability(&hub, "cooking").await, Err(ErrorKind::UnknownCapability));
}

#[tokio::test(start_paused = true)]
async fn spec_same_priority_is_shuffled_by_capability() {
    let tools: Vec<TestTool> =
        (0..6).map(|at| test_tool(&format!("math_{at}"), &format!("m{at}")).with_delay_ms(0)).collect();
    let (hub, call_log) = hub_with(&tools);
    let mut firsts = std::collections::HashSet::new();
    for _ in 0..40 {
        let before = call_log.calls().len();
        by_capability(&hub, "calculate").await.unwrap();
        firsts.insert(call_log.calls()[before].clone());
    }
    assert!(firsts.len() > 2, "a success does not fix the order: {firsts:?}");
}

#[tokio::test(start_paused = true)]
async fn spec_same_name_search_is_synthesized_and_calculate_is_picked() {
    let (hub, _) = hub_with(&[
        test_tool("search", "a"),
        test_tool("search", "b"),
        test_tool("calculate", "a"),
        test_tool("calculate", "b"),
    ]);
    assert_eq!(call(&hub, "search", None).await, Ok("[a] a\n\n[b] b".to_owned()));
    assert_eq!(call(&hub, "calculate", None).await, Ok("a".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn spec_recent_success_goes_first_among_equals() {
    let failing = |source: &str| {
        test_tool("calculate", source).with_behavior(Behavior::Fail(ErrorKind::Failed)).with_delay_ms(0)
    };
    let mut test_tools: Vec<TestTool> = ["a", "b", "c", "d"].map(failing).to_vec();
    test_tools.push(test_tool("calculate", "e").with_delay_ms(0));
    let (hub, call_log) = hub_with(&test_tools);
    assert_eq!(call(&hub, "calculate", None).await, Ok("e".to_owned()));
    assert_eq!(call_log.calls().len(), 5, "three at once, then one after another");
    assert_eq!(call(&hub, "calculate", None).await, Ok("e".to_owned()));
    assert_eq!(call_log.calls()[5], "e", "the source that succeeded is called first");
}

#[tokio::test(start_paused = true)]
async fn spec_each_call_has_thirty_seconds() {
    let (hub, _) = hub_with(&[test_tool("slow", "a").with_behavior(Behavior::Hang)]);
    let started = tokio::time::Instant::now();
    assert_eq!(call(&hub, "slow", None).await, Err(ErrorKind::Timeout));
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn spec_result_format() {
    let (hub, _) = hub_with(&[test_tool("search", "a"), test_tool("search", "b")]);
    let outcome = hub.execute(&request("search"), &CallOptions::default()).await;
    let shape = serde_json::to_value(ToolResult::of(&outcome)).unwrap();
    assert_eq!(
        shape,
        json!({"success": true, "result": "[a] a\n\n[b] b", "error": null, "_meta": {"source": "a",
            "synthesized": true, "source_count": 2, "sources": ["a", "b"], "attempts": 2}})
    );
}

#[tokio::test(start_paused = true)]
async fn spec_long_results_are_cut_and_stay_readable() {
    let text = "One sentence of a long answer. ".repeat(100);
    let config = HubConfig::default();
    let hub = ToolHub::new(config.clone());
    register(&hub, &[test_tool("describe", "a").with_behavior(Behavior::Answer(text.clone()))]);
    let output = hub.execute(&request("describe"), &CallOptions::default()).await.unwrap();
    let omitted = output.meta.truncation.unwrap();
    assert!(omitted.kept <= 500 && omitted.total == text.chars().count());
    assert_eq!(output.content[0].as_text().unwrap().chars().last(), Some('.'));
    let page =
        config.results.read(&omitted.reference.unwrap(), DataOwner::Operator, 0, usize::MAX).await.unwrap();
    assert_eq!(page.text, text);
}

#[tokio::test(start_paused = true)]
async fn every_decision_is_explained() {
    let (hub, _) = hub_with(&[
        test_tool("search", "a").with_behavior(Behavior::Fail(ErrorKind::ResponseLost)),
        test_tool("search", "b"),
        test_tool("search", "needy").requires("key"),
        test_tool("search", "evil").untrusted(),
        test_tool("search", "last"),
    ]);
    let decision_log = Arc::new(DecisionLog::default());
    let options = CallOptions::default().with_decision_log(Arc::clone(&decision_log));
    hub.execute(&request("search"), &options).await.unwrap();
    let stages: Vec<&str> = decision_log.decisions().iter().map(|decision| decision.stage).collect();
    assert_eq!(stages, ["route", "order", "strategy", "call", "call", "call", "merge", "result"]);
    assert_eq!(
        decision_log.decisions()[0].detail,
        "3 candidates: a (mcp, trusted), b (mcp, trusted), last (mcp, trusted); source not given: automatic; \
         arguments do not fit: search@needy; skipped: `evil`"
    );
    let order = |decision_log: &DecisionLog| decision_log.decisions()[1].detail.clone();
    let registered = "search@a: priority 2, as registered; search@b: priority 2, as registered; \
                      search@last: priority 2, as registered";
    assert_eq!(order(&decision_log), registered);
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
    register(
        &hub,
        &[test_tool("search", "a"), test_tool("search", "b"), test_tool("search", "skill-a").skill()],
    );
    let (by_name, by_chance) = (Arc::new(DecisionLog::default()), Arc::new(DecisionLog::default()));
    let options = CallOptions::default().with_decision_log(Arc::clone(&by_name));
    hub.execute(&request("search"), &options).await.unwrap();
    let expected_order = "search@b: pinned; search@skill-a: priority 1; search@a: priority 2";
    assert_eq!(by_name.decisions()[1].detail, expected_order);

    register(&hub, &[test_tool("search_too", "c"), test_tool("search_needy", "d").requires("key")]);
    let options = CallOptions::default().with_decision_log(Arc::clone(&by_chance));
    hub.execute_by_capability(&"search".into(), RawJson::empty_object(), &options).await.unwrap();
    let [route, order] = [0, 1].map(|at| by_chance.decisions()[at].detail.clone());
    assert!(route.ends_with("; arguments do not fit: search_needy@d"), "{route}");
    assert!(order.starts_with("search@b: pinned; search@skill-a: priority 1; "), "{order}");
    assert!(order.contains("search@a: priority 2, by chance"), "success does not count: {order}");
}

#[tokio::test(start_paused = true)]
async fn an_untrusted_tool_of_the_same_name_gets_no_arguments() {
    let (hub, call_log) = hub_with(&[
        test_tool("calculate", "native").with_behavior(Behavior::Fail(ErrorKind::Unavailable)),
        test_tool("calculate", "evil").untrusted(),
    ]);
    let error = hub.execute(&request("calculate"), &CallOptions::default()).await.unwrap_err();
    assert!(call_log.calls().iter().all(|source| source == "native"), "{:?}", call_log.calls());
    let hint = error.hint().unwrap();
    let expected = "not called, because not known to be equivalent: `evil`; to use it, call `evil.calculate`";
    assert!(hint.contains(expected), "{hint}");
    assert_eq!(hub.snapshot().collisions()[0].others[0].source_id(), &SourceId::from("evil"));
}

#[tokio::test(start_paused = true)]
async fn the_operator_pins_a_source_and_declares_equivalents() {
    let rules = RoutingRules {
        pins: [("search".to_owned(), "b".into())].into(),
        equivalent: [("search".to_owned(), vec!["a".into(), "b".into()])].into(),
        ..RoutingRules::default()
    };
    let hub = ToolHub::new(HubConfig { rules, ..HubConfig::default() });
    let call_log =
        register(&hub, &[test_tool("search", "a").untrusted(), test_tool("search", "b").untrusted()]);
    assert_eq!(call(&hub, "search", None).await, Ok("b".to_owned()));
    assert_eq!(
        call_log.calls(),
        ["b"],
        "untrusted hints do not make a tool repeatable, so only one is called"
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_reach_no_tool() {
    let (hub, call_log) = hub_with(&[test_tool("calculate", "a")]);
    let list = toolyard_core::ToolCallRequest::new("calculate", json!([1]));
    let error = hub.execute(&list, &CallOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(call_log.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_own_call_only() {
    let (hub, _) = hub_with(&[test_tool("bad", "a").with_behavior(Behavior::Panic), test_tool("good", "a")]);
    assert_eq!(call(&hub, "bad", None).await, Err(ErrorKind::Internal));
    assert_eq!(call(&hub, "good", None).await, Ok("a".to_owned()));
    let (hub, _) =
        hub_with(&[test_tool("bad", "a").with_behavior(Behavior::PanicBeforeFuture), test_tool("good", "a")]);
    assert_eq!(
        call(&hub, "bad", None).await,
        Err(ErrorKind::Internal),
        "also if `call` panics before it returns a future"
    );
    assert_eq!(call(&hub, "good", None).await, Ok("a".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_hint_suggests_to_pin_a_native_tool_instead_of_naming_its_source() {
    let rules = RoutingRules { prefer: SourcePreference::McpFirst, ..RoutingRules::default() };
    let hub = ToolHub::new(HubConfig { rules, ..HubConfig::default() });
    let failing = test_tool("calculate", "math").untrusted().with_behavior(Behavior::Fail(ErrorKind::Failed));
    register(&hub, &[test_tool("calculate", "native"), failing]);
    let error = hub.execute(&request("calculate"), &CallOptions::default()).await.unwrap_err();
    assert_eq!(
        error.hint(),
        Some(
            "not called, because not known to be equivalent: `native`; to use the tool of `native`, pin it for this name"
        )
    );
    let misspelt = hub.execute(&request("calculate").with_source("nativ"), &CallOptions::default()).await;
    assert!(
        !misspelt.unwrap_err().hint().unwrap().contains("native"),
        "`native` is not suggested, because it selects nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn no_server_takes_a_reserved_id() {
    for id in ["native", "appflowy"] {
        let (hub, _) = hub_with(&[test_tool("calculate", "native")]);
        let squatter = toolyard_core::SourceInfo::new(id, toolyard_core::SourceKind::Mcp);
        let tools = vec![test_tool("steal", id).tool(&Arc::default())];
        let registration = hub.register(squatter.clone(), tools);
        assert_eq!(registration.tools, 0);
        assert_eq!(&*registration.rejected[0].0, "steal");
        assert!(registration.rejected[0].1.contains("reserved"), "{:?}", registration.rejected);
        assert_eq!(
            hub.register(squatter, Vec::new()).rejected.len(),
            1,
            "the id is rejected without tools, too"
        );
        assert_eq!(call(&hub, "steal", None).await, Err(ErrorKind::UnknownTool));
        assert_eq!(
            call(&hub, "calculate", None).await,
            Ok("native".to_owned()),
            "the native source keeps its id"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_native_tool_does_not_open_the_breaker_of_others() {
    let (hub, _) = hub_with(&[
        test_tool("search_web", "native").with_behavior(Behavior::Fail(ErrorKind::ResponseLost)).writes(),
        test_tool("calculate", "native"),
    ]);
    for _ in 0..6 {
        let _ = call(&hub, "search_web", None).await;
    }
    assert_eq!(call(&hub, "search_web", None).await, Err(ErrorKind::CircuitOpen));
    assert_eq!(call(&hub, "calculate", None).await, Ok("native".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_source_is_written_to_by_one_call_at_a_time() {
    let (hub, call_log) =
        hub_with(&[test_tool("write", "db").writes().exclusive(), test_tool("read", "db").exclusive()]);
    let (write, read) = (request("write"), request("read"));
    let options = CallOptions::default();
    let calls = [hub.execute(&write, &options), hub.execute(&write, &options)];
    futures_util::future::join_all(calls).await;
    assert_eq!(call_log.max_running.load(std::sync::atomic::Ordering::SeqCst), 1);
    futures_util::future::join_all([hub.execute(&read, &options), hub.execute(&read, &options)]).await;
    assert_eq!(call_log.max_running.load(std::sync::atomic::Ordering::SeqCst), 2, "readers run together");
}
