//! Who may see the cluster, and what a gateway without one answers.

use std::sync::Arc;

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use toolyard_core::{BoxFuture, CallerIdentity};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteRequest};
use toolyard_telemetry::metrics::{ClusterGauges, Metrics};

use crate::{
    ClusterGateway, ClusterMemberState, ClusterProvider, ClusterReport, ClusterSessions, HttpApi,
    HttpApiConfig,
};

#[derive(Debug)]
struct FakeCluster;

impl ClusterProvider for FakeCluster {
    fn cluster(&self, with_sessions: bool) -> BoxFuture<'_, ClusterReport> {
        let gateway = ClusterGateway {
            process: "0a".to_owned(),
            name: None,
            version: None,
            state: ClusterMemberState::Lost,
            is_this: false,
            last_seen_at: None,
        };
        let sessions = ClusterSessions { server: "notes".to_owned(), gateway: "0a".to_owned(), sessions: 2 };
        Box::pin(std::future::ready(ClusterReport {
            nats_connected: true,
            gateways: vec![gateway],
            workers: Vec::new(),
            sessions: with_sessions.then(|| vec![sessions]),
        }))
    }

    fn gauges(&self) -> ClusterGauges {
        ClusterGauges { gateways: 2, ..ClusterGauges::default() }
    }
}

async fn get(config: HttpApiConfig, path: &str, identity: CallerIdentity) -> (u16, String) {
    let request = RouteRequest {
        method: Method::GET,
        path: path.split('?').next().unwrap_or_default().to_owned(),
        query: path.split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default(),
        headers: HeaderMap::new(),
        identity: Arc::new(identity),
        body: String::new(),
    };
    let response = HttpApi::new(config).handle(request).await;
    let RouteBody::Json(body) = response.body else { panic!("no body") };
    (response.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

fn config() -> HttpApiConfig {
    HttpApiConfig {
        cluster: Some(Arc::new(FakeCluster)),
        metrics: Some(Arc::new(Metrics::default())),
        ..HttpApiConfig::default()
    }
}

#[tokio::test]
async fn the_gateways_own_token_shows_the_cluster_and_callers_do_not_see_it() {
    let (status, text) = get(config(), "/api/v1/cluster", CallerIdentity::local_token([7; 32])).await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200, "{text}");
    assert_eq!(report["gateways"][0]["state"], "lost");
    assert_eq!(report["sessions"], json!([{"server": "notes", "gateway": "0a", "sessions": 2}]));
    let (_, text) =
        get(config(), "/api/v1/cluster?sessions=false", CallerIdentity::local_token([7; 32])).await;
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["sessions"], Value::Null, "{text}");
    let caller = CallerIdentity::principal("https://id.example", "eve");
    assert_eq!(get(config(), "/api/v1/cluster", caller).await.0, 403);
}

#[tokio::test]
async fn a_gateway_in_no_cluster_says_so() {
    let (status, text) =
        get(HttpApiConfig::default(), "/api/v1/cluster", CallerIdentity::local_token([7; 32])).await;
    let error: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, error["error"]["code"].as_str()), (404, Some("not_offered")), "{text}");
}

#[tokio::test]
async fn metrics_have_those_of_the_cluster() {
    let (_, text) = get(config(), "/metrics", CallerIdentity::local_token([7; 32])).await;
    assert!(text.contains("toolyard_cluster_gateways 2\n"), "{text}");
}
