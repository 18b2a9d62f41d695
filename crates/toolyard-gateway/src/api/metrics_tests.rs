//! Who may read `/metrics`, in which format, and what the overview shows.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Method;
use serde_json::Value;
use toolyard_core::{
    CallerIdentity,
    telemetry::{Operation, OperationKind},
};
use toolyard_mcp_server::{AccessToken, HttpRoutes as _, RouteBody, RouteRequest};
use toolyard_telemetry::{OperationObserver as _, metrics::Metrics};

use super::*;
use crate::{HttpApi, HttpApiConfig};

const TOKEN_HASH: [u8; 32] = [7; 32];

fn api(metrics_access: MetricsAccess) -> (HttpApi, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::default());
    let config =
        HttpApiConfig { metrics: Some(Arc::clone(&metrics)), metrics_access, ..HttpApiConfig::default() };
    (HttpApi::new(config), metrics)
}

fn call(tool: &str, source: &str, error_type: Option<&'static str>) -> Operation {
    Operation {
        kind: OperationKind::ToolCall {
            tool: tool.into(),
            source: Some(source.into()),
            attempts: 1,
            call: None,
            content: None,
        },
        span: None,
        started_at: SystemTime::now(),
        duration: Duration::from_micros(2_500),
        error_type: error_type.map(Cow::Borrowed),
    }
}

async fn get(api: &HttpApi, path: &str, accept: &str, credential_hash: [u8; 32]) -> (u16, String, String) {
    get_as(api, path, accept, CallerIdentity::local_token(credential_hash)).await
}

async fn get_as(api: &HttpApi, path: &str, accept: &str, identity: CallerIdentity) -> (u16, String, String) {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, accept.parse().unwrap());
    let request = RouteRequest {
        method: Method::GET,
        path: path.to_owned(),
        query: String::new(),
        headers,
        identity: Arc::new(identity),
        body: String::new(),
    };
    let response = api.handle(request).await;
    let content_type = response.headers.iter().find(|(name, _)| name == header::CONTENT_TYPE);
    let content_type = content_type.map(|(_, value)| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let RouteBody::Json(body) = response.body else { panic!("no body") };
    (response.status.as_u16(), content_type, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn metrics_need_the_token_unless_the_operator_opens_them() {
    let (closed, metrics) = api(MetricsAccess::Token);
    metrics.observe(&call("commit", "git", None));
    assert!(
        closed.matches("/metrics") && !closed.matches("/metrics-of-mine") && !closed.is_public("/metrics")
    );
    let (status, _, text) = get(&closed, "/metrics", "*/*", TOKEN_HASH).await;
    assert!(status == 200 && text.contains("source=\"git\""), "{text}");

    let (open, metrics) = api(MetricsAccess::Open);
    metrics.observe(&call("commit", "git", None));
    assert!(open.is_public("/metrics") && !open.is_public("/api/v1/overview"));
    let (status, _, text) = get(&open, "/metrics", "*/*", [0; 32]).await;
    assert!(status == 200 && !text.contains("git") && text.contains("toolyard_tool_calls_total"), "{text}");
    let (_, _, text) = get(&open, "/metrics", "*/*", TOKEN_HASH).await;
    assert!(text.contains("source=\"git\""), "{text}");

    let (off, _) = api(MetricsAccess::Off);
    assert!(!off.is_public("/metrics"));
    assert_eq!(get(&off, "/metrics", "*/*", TOKEN_HASH).await.0, 404);
}

#[tokio::test]
async fn the_token_of_scrapers_opens_no_other_path() {
    let metrics_token = Some(AccessToken::new("scrape"));
    let api = HttpApi::new(HttpApiConfig { metrics_token, ..HttpApiConfig::default() });
    assert!(api.token_holder("/metrics", "scrape").is_some());
    for (path, token) in [
        ("/metrics", "scrap"),
        ("/metrics", ""),
        ("/metrics/", "scrape"),
        ("/api/v1/overview", "scrape"),
        ("/v1/models", "scrape"),
    ] {
        assert!(api.token_holder(path, token).is_none(), "{path} {token}");
    }
}

#[tokio::test]
async fn open_metrics_show_a_caller_no_names() {
    let (open, metrics) = api(MetricsAccess::Open);
    metrics.observe(&call("commit", "git", None));
    let caller = CallerIdentity::principal("https://id.example", "eve");
    let (status, _, text) = get_as(&open, "/metrics", "*/*", caller).await;
    assert!(status == 200 && !text.contains("git") && text.contains("toolyard_tool_calls_total"), "{text}");
}

#[tokio::test]
async fn scrapers_get_the_format_that_they_ask_for() {
    let (api, _) = api(MetricsAccess::Token);
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let (_, content_type, text) = get(&api, "/metrics", accept, TOKEN_HASH).await;
    assert_eq!(content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(text.ends_with("# EOF\n"));
    let (_, content_type, text) = get(&api, "/metrics", "*/*", TOKEN_HASH).await;
    assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert!(!text.contains("# EOF"));
}

#[tokio::test]
async fn the_overview_has_an_hour_of_calls_and_the_busiest_tools() {
    let (api, metrics) = api(MetricsAccess::Off);
    metrics.observe(&call("log", "git", None));
    metrics.observe(&call("commit", "git", None));
    metrics.observe(&call("commit", "git", Some("tool_error")));
    let (status, _, text) = get(&api, "/api/v1/overview", "*/*", TOKEN_HASH).await;
    let overview: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200);
    assert_eq!(overview["calls_per_minute"].as_array().unwrap().len(), 60);
    assert_eq!(
        (&overview["calls_per_minute"][59], &overview["failures_per_minute"][59]),
        (&3.into(), &1.into())
    );
    assert_eq!((&overview["calls_total"], &overview["failures_total"]), (&3.into(), &1.into()));
    assert!((2.4..2.6).contains(&overview["p50_ms"].as_f64().unwrap()), "{overview}");
    assert_eq!(overview["servers"]["ready"], 0);
    assert_eq!(overview["cost"], Value::Null);
    assert_eq!(overview["runs"]["active"], 0);
    assert_eq!(overview["top_tools"][0]["tool"], "commit");
    assert_eq!(overview["top_tools"][0]["failures"], 1);
}

#[tokio::test]
async fn a_gateway_that_counts_nothing_does_not_report_zero() {
    let api = HttpApi::new(HttpApiConfig::default());
    for path in ["/metrics", "/api/v1/overview"] {
        let (status, _, text) = get(&api, path, "*/*", TOKEN_HASH).await;
        assert_eq!(status, 404, "{path}: {text}");
    }
}
