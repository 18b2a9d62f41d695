//! What scrapers and the overview get for recorded operations.

use std::{borrow::Cow, sync::Arc, time::SystemTime};

use super::*;

fn operation(kind: OperationKind, millis: u64, error_type: Option<&'static str>) -> Operation {
    Operation {
        kind,
        span: None,
        started_at: SystemTime::now(),
        duration: Duration::from_millis(millis),
        error_type: error_type.map(Cow::Borrowed),
    }
}

fn call(tool: &str, source: Option<&str>, millis: u64, error_type: Option<&'static str>) -> Operation {
    let source = source.map(SourceId::from);
    let kind = OperationKind::ToolCall { tool: tool.into(), source, attempts: 1, call: None, content: None };
    operation(kind, millis, error_type)
}

fn model_call(model: &str, input: u64, output: u64, cost: Option<f64>) -> Operation {
    let (provider, model): (Arc<str>, Arc<str>) = ("openai".into(), model.into());
    let usage = TokenUsage { input, output };
    let kind =
        OperationKind::ModelCall { provider, model, max_tokens: None, finish_reason: None, usage, cost };
    operation(kind, 900, None)
}

fn exposition(metrics: &Metrics, detail: LabelDetail) -> String {
    let gauges = Gauges {
        version: "1.2".to_owned(),
        servers: [("ready", 2), ("down", 1)].into(),
        sources: ["git", "time"]
            .map(|source| SourceGauges {
                source: source.to_owned(),
                tools: 3,
                in_flight: 1,
                queued: 0,
                breaker: BreakerGauge::Open,
            })
            .into(),
        results: Some(ResultsGauges { stored: 3, stored_bytes: 4_096, evicted: Some(2) }),
        store: Some(StoreGauges {
            is_reachable: true,
            spill_bytes: 512,
            lost_audit_records: 4,
            audit_outage_seconds: 35,
            failed_audit_writes: 6,
            ..StoreGauges::default()
        }),
        ..Gauges::default()
    };
    metrics.exposition(&gauges, ExpositionFormat::OpenMetrics, detail)
}

#[test]
fn a_gateway_of_a_cluster_shows_it_and_others_do_not() {
    let metrics = Metrics::default();
    assert!(!exposition(&metrics, LabelDetail::All).contains("toolyard_cluster_"));
    let cluster = ClusterGauges {
        is_connected: false,
        gateways: 3,
        workers: 2,
        owned_sessions: 5,
        session_takeovers: 4,
        lost_sessions: 1,
        forwarded_calls: vec![("success", 7), ("response_lost", 0)],
        worker_calls: vec![("unavailable", 9)],
    };
    let gauges = Gauges { cluster: Some(cluster), ..Gauges::default() };
    // Everybody may see these: they name nothing.
    let text = metrics.exposition(&gauges, ExpositionFormat::OpenMetrics, LabelDetail::Public);
    for line in [
        "toolyard_cluster_nats_connected 0",
        "toolyard_cluster_gateways 3",
        "toolyard_cluster_workers 2",
        "toolyard_cluster_sessions_owned 5",
        "toolyard_cluster_session_takeovers_total 4",
        "toolyard_cluster_sessions_lost_total 1",
        r#"toolyard_cluster_forwarded_calls_total{outcome="success"} 7"#,
        r#"toolyard_cluster_forwarded_calls_total{outcome="response_lost"} 0"#,
        r#"toolyard_cluster_worker_calls_total{outcome="unavailable"} 9"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[test]
fn a_scrape_has_calls_tokens_cost_and_gauges() {
    let metrics = Metrics::default();
    metrics.observe(&call("commit", Some("git"), 12, None));
    metrics.observe(&call("commit", Some("git"), 30, Some("tool_error")));
    metrics.observe(&model_call("large", 100, 20, Some(0.25)));
    metrics.observe(&model_call("large", 100, 20, Some(0.25)));
    let search = operation(OperationKind::ToolSearch { found: 3 }, 0, None);
    metrics.observe(&Operation { duration: Duration::from_micros(300), ..search });
    let text = exposition(&metrics, LabelDetail::All);
    for line in [
        "# TYPE toolyard_tool_calls counter",
        r#"toolyard_tool_calls_total{tool="commit",source="git",outcome="success"} 1"#,
        r#"toolyard_tool_calls_total{tool="commit",source="git",outcome="tool_error"} 1"#,
        r#"toolyard_tool_call_duration_seconds_bucket{le="0.05",source="git"} 2"#,
        r#"toolyard_tool_call_duration_seconds_bucket{le="+Inf",source="git"} 2"#,
        r#"toolyard_tool_call_duration_seconds_count{source="git"} 2"#,
        r#"toolyard_model_tokens_total{gen_ai_provider_name="openai",gen_ai_request_model="large",gen_ai_token_type="input"} 200"#,
        r#"toolyard_model_cost_total{gen_ai_provider_name="openai",gen_ai_request_model="large"} 0.5"#,
        r#"gen_ai_client_operation_duration_seconds_bucket{le="1.28",gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="large"} 2"#,
        "toolyard_metric_series_limit_reached_total 0",
        "toolyard_results_stored_bytes 4096",
        "toolyard_results_evicted_total 2",
        r#"toolyard_tool_search_duration_seconds_bucket{le="0.0005"} 1"#,
        r#"toolyard_servers{state="ready"} 2"#,
        r#"toolyard_breaker_open{source="git",state="open"} 1"#,
        "toolyard_store_up 1",
        "toolyard_audit_spill_bytes 512",
        "toolyard_audit_records_lost_total 4",
        "toolyard_audit_outage_seconds 35",
        "toolyard_audit_write_failures_total 6",
        r#"toolyard_build_info{version="1.2"} 1"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is missing in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn public_metrics_name_no_tool_server_or_model() {
    let metrics = Metrics::default();
    metrics.observe(&call("commit", Some("git"), 12, None));
    metrics.observe(&call("log", Some("git"), 12, None));
    metrics.observe(&call("now", Some("time"), 12, None));
    metrics.observe(&model_call("large", 100, 20, Some(0.25)));
    let text = exposition(&metrics, LabelDetail::Public);
    for name in ["commit", "git", "\"time\"", "large", "openai"] {
        assert!(!text.contains(name), "{name} is in\n{text}");
    }
    for line in [
        r#"toolyard_tool_calls_total{outcome="success"} 3"#,
        "toolyard_tool_call_duration_seconds_count 3",
        "toolyard_calls_in_flight 2",
        "toolyard_model_cost_total 0.25",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is missing in\n{text}");
    }
}

#[test]
fn the_prometheus_format_describes_counters_by_their_full_name() {
    let metrics = Metrics::default();
    metrics.observe(&call("commit", Some("git"), 12, None));
    let gauges = Gauges { version: "1.2".to_owned(), ..Gauges::default() };
    let text = metrics.exposition(&gauges, ExpositionFormat::Prometheus, LabelDetail::All);
    for line in [
        "# HELP toolyard_tool_calls_total Tool calls by outcome",
        "# TYPE toolyard_tool_calls_total counter",
        "# TYPE toolyard_build_info gauge",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
}

#[test]
fn invented_tool_names_get_no_series() {
    let metrics = Metrics::default();
    for number in 0..10_000 {
        metrics.observe(&call(&format!("invented-{number}"), None, 1, Some("unknown_tool")));
    }
    assert_eq!(metrics.tool_calls.all().len(), 1);
    let text = exposition(&metrics, LabelDetail::All);
    assert!(text.contains(r#"{tool="other",source="none",outcome="unknown_tool"} 10000"#), "{text}");
    let activity = metrics.activity();
    assert_eq!((activity.failures_total, activity.top_tools, activity.sources), (10_000, vec![], vec![]));
}

#[test]
fn series_of_many_tools_are_limited() {
    let metrics = Metrics::default();
    for number in 0..5_000 {
        metrics.observe(&call(&format!("tool-{number}"), Some(&format!("server-{number}")), 1, None));
    }
    assert_eq!(metrics.tool_calls.all().len(), MAX_COUNTER_SERIES * 3 / 2 + 1);
    assert_eq!(metrics.sources.all().len(), MAX_HISTOGRAM_SERIES + 1);
    assert_eq!(metrics.activity().calls_total, 5_000);
}

fn client_request(method: &'static str, server: &str, error_type: Option<&str>) -> Operation {
    let kind = OperationKind::ClientRequest {
        method: method.into(),
        target: None,
        resource: None,
        revision: "2025-11-25",
        server: server.into(),
        request_id: Some(1),
        transport: Transport::Stdio,
        address: None,
    };
    Operation { error_type: error_type.map(|error| error.to_owned().into()), ..operation(kind, 1, None) }
}

#[test]
fn codes_that_a_server_invents_get_no_series() {
    let metrics = Metrics::default();
    metrics.observe(&client_request("tools/call", "good", Some("timeout")));
    for code in 0..10_000 {
        metrics.observe(&client_request("tools/call", "hostile", Some(&code.to_string())));
        metrics.observe(&client_request("tools/call", "hostile", Some(&format!("http_{code}"))));
    }
    metrics.observe(&client_request("tools/list", "hostile", Some("-32601")));
    let text = exposition(&metrics, LabelDetail::All);
    for line in [
        r#"mcp_client_operation_duration_seconds_count{mcp_method_name="tools/call",error_type="_OTHER",mcp_protocol_version="2025-11-25",network_transport="pipe"} 10000"#,
        r#"mcp_client_operation_duration_seconds_count{mcp_method_name="tools/call",error_type="timeout",mcp_protocol_version="2025-11-25",network_transport="pipe"} 1"#,
        r#"mcp_client_operation_duration_seconds_count{mcp_method_name="tools/list",error_type="-32601",mcp_protocol_version="2025-11-25",network_transport="pipe"} 1"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is missing in\n{text}");
    }
    assert!(metrics.client_requests.all().len() <= MAX_SERIES_PER_METHOD + 2);
    assert!(!text.contains("toolyard_metric_series_limit_reached_total 0"), "{text}");
}

#[test]
fn a_scrape_of_500_servers_takes_less_than_a_megabyte() {
    let (metrics, mut gauges) = (Metrics::default(), Gauges::default());
    for number in 0..500 {
        let server = format!("server-{number}");
        for method in ["initialize", "tools/list", "tools/call"] {
            metrics.observe(&client_request(method, &server, None));
        }
        metrics.observe(&call("record", Some(&server), 20, None));
        gauges.sources.push(SourceGauges {
            source: server,
            tools: 20,
            in_flight: 0,
            queued: 0,
            breaker: BreakerGauge::Closed,
        });
    }
    for format in [ExpositionFormat::OpenMetrics, ExpositionFormat::Prometheus] {
        let bytes = metrics.exposition(&gauges, format, LabelDetail::All).len();
        assert!(bytes < 1_000_000, "{bytes} bytes");
    }
}

#[test]
fn steps_with_invented_tools_and_long_streams_are_counted_apart() {
    let metrics = Metrics::default();
    for number in 0..100 {
        let tool: Arc<str> = format!("invented-{number}").into();
        // It fails, or another tool with its capability is called.
        for error in [Some("unknown_tool"), None] {
            let tool = Some(Arc::clone(&tool));
            let kind = OperationKind::Step { tool, is_known_tool: false, step: "s".into() };
            metrics.observe(&operation(kind, 1, error));
        }
    }
    let stream = OperationKind::ServerRequest {
        method: LISTEN_METHOD.into(),
        target: None,
        resource: None,
        revision: "2026-07-28",
        request_id: None,
        transport: Transport::Http,
        caller: None,
        client: None,
    };
    metrics.observe(&operation(stream, 3_600_000, None));
    let text = exposition(&metrics, LabelDetail::All);
    let line =
        r#"toolyard_step_duration_seconds_count{gen_ai_tool_name="other",error_type="unknown_tool"} 100"#;
    assert!(text.lines().any(|known| known == line), "{line} is missing in\n{text}");
    assert!(!text.contains("invented"), "{text}");
    assert!(!text.contains("mcp_server_operation_duration"), "{text}");
}

#[test]
fn series_of_removed_sources_make_room_for_new_ones() {
    let metrics = Metrics::default();
    for number in 0..MAX_HISTOGRAM_SERIES {
        metrics.observe(&call("tool", Some(&format!("server-{number}")), 1, None));
    }
    metrics.make_room(|source| source == "server-7");
    metrics.observe(&call("tool", Some("new"), 1, None));
    let mut sources: Vec<_> =
        metrics.activity().sources.into_iter().map(|activity| activity.source).collect();
    sources.sort();
    assert_eq!(sources, ["new", "server-7"]);
}

#[test]
fn labels_cannot_forge_lines() {
    let metrics = Metrics::default();
    metrics.observe(&call("a\"} 1\nforged_total 7\n# EOF", Some("s\\"), 1, None));
    let text = exposition(&metrics, LabelDetail::All);
    assert!(!text.lines().any(|line| line.starts_with("forged_total")), "{text}");
    assert_eq!(text.matches("# EOF").count(), 1 + text.matches("forged").count(), "{text}");
}

#[tokio::test(start_paused = true)]
async fn activity_follows_the_clock() {
    let metrics = Metrics::default();
    for millis in [10, 20, 1_000] {
        metrics.observe(&call("commit", Some("git"), millis, None));
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    metrics.observe(&call("now", Some("time"), 5, Some("timeout")));
    let activity = metrics.activity();
    assert_eq!(activity.uptime, Duration::from_secs(61));
    assert_eq!(activity.calls_per_minute[58..], [3, 1]);
    assert_eq!(activity.failures_per_minute[58..], [0, 1]);
    let [git, time] = activity.sources.as_slice() else { panic!("{activity:?}") };
    assert_eq!((git.source.as_str(), git.calls_last_minute, git.failures_last_minute), ("git", 3, 0));
    assert_eq!((time.source.as_str(), time.calls_last_minute, time.failures_last_minute), ("time", 1, 1));
    let near = |found: Option<Duration>, millis: u64| {
        found.is_some_and(|found| found.as_millis().abs_diff(millis.into()) <= u128::from(millis / 50))
    };
    assert!(near(git.p50, 20) && near(git.p95, 1_000) && near(activity.p50, 10), "{activity:?}");

    // Percentiles are those of the last five minutes, counts those of the last hour, totals those of all time.
    tokio::time::advance(Duration::from_mins(5)).await;
    let activity = metrics.activity();
    assert_eq!((activity.p50, activity.calls_per_minute[53..55].to_vec()), (None, vec![3, 1]));
    tokio::time::advance(Duration::from_mins(60)).await;
    let activity = metrics.activity();
    assert_eq!(activity.calls_per_minute, [0; 60]);
    assert_eq!((activity.calls_total, activity.failures_total), (4, 1));
    let [top, ..] = activity.top_tools.as_slice() else { panic!("{activity:?}") };
    assert_eq!((top.tool.as_str(), top.calls, top.mean.as_millis()), ("commit", 3, 343));
}

#[test]
fn a_cost_is_known_once_a_price_is() {
    let metrics = Metrics::default();
    metrics.observe(&model_call("local", 10, 5, None));
    assert_eq!(metrics.activity().cost, None);
    metrics.observe(&model_call("large", 10, 5, Some(0.0)));
    let activity = metrics.activity();
    assert_eq!((activity.input_tokens, activity.output_tokens, activity.cost), (20, 10, Some(0.0)));
}
