//! The document describes every route, and every route that it describes exists.

use std::collections::BTreeSet;

use http::{HeaderMap, Method};
use serde_json::Value;
use toolyard_mcp_server::RouteBody;

use super::*;

/// Every route, as the documentation has them.
const ROUTES: &[&str] = &[
    "GET /api/openapi.json",
    "GET /api/v1/agents",
    "POST /api/v1/agents",
    "GET /api/v1/agents/{name}",
    "PUT /api/v1/agents/{name}",
    "DELETE /api/v1/agents/{name}",
    "GET /api/v1/approvals",
    "POST /api/v1/approvals/{approval}",
    "GET /api/v1/audit",
    "GET /api/v1/audit/verify",
    "GET /api/v1/cluster",
    "GET /api/v1/events.schema.json",
    "GET /api/v1/import",
    "POST /api/v1/import",
    "GET /api/v1/overview",
    "GET /api/v1/results/{result}",
    "GET /api/v1/runs",
    "POST /api/v1/runs",
    "GET /api/v1/runs/{run}",
    "POST /api/v1/runs/{run}/cancel",
    "GET /api/v1/runs/{run}/events",
    "GET /api/v1/runs/{run}/log",
    "POST /api/v1/runs/{run}/resume",
    "POST /api/v1/runs/{run}/stream-ticket",
    "GET /api/v1/servers",
    "POST /api/v1/servers",
    "GET /api/v1/servers/{name}",
    "PATCH /api/v1/servers/{name}",
    "POST /api/v1/servers/{name}/approve",
    "GET /api/v1/servers/{name}/details",
    "POST /api/v1/servers/{name}/sign-in",
    "POST /api/v1/servers/{name}/stop",
    "POST /api/v1/servers/{name}/connect",
    "GET /api/v1/settings",
    "GET /api/v1/statistics",
    "GET /api/v1/tools",
    "GET /api/v1/tools/{name}",
    "POST /api/v1/tools/{name}/call",
    "GET /api/v1/unknown-steps",
    "POST /api/v1/unknown-steps",
    "POST /v1/chat/completions",
    "GET /v1/models",
    "GET /v1/models/{name}",
    "POST /v1/responses",
];

async fn send(api: &HttpApi, method: &str, path: &str) -> (u16, Value) {
    let response = api.handle(RouteRequest {
        method: Method::from_bytes(method.as_bytes()).unwrap(),
        path: path.to_owned(),
        query: String::new(),
        headers: HeaderMap::new(),
        identity: Arc::default(),
        body: String::new(),
    });
    let response = response.await;
    match response.body {
        RouteBody::Json(text) => (response.status.as_u16(), serde_json::from_slice(&text).unwrap()),
        RouteBody::Empty | RouteBody::Events { .. } => panic!("no JSON"),
    }
}

#[tokio::test]
async fn the_document_and_the_routes_agree() {
    let api = HttpApi::new(HttpApiConfig::default());
    let (_, document) = send(&api, "GET", "/api/openapi.json").await;
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            described.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    assert_eq!(described, ROUTES.iter().map(|route| (*route).to_owned()).collect());
    for route in ROUTES {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path.replace("{approval}", "1").replace(['{', '}'], "");
        let (_, answer) = send(&api, method, &path).await;
        let code = answer["error"]["code"].as_str().unwrap_or_default();
        assert!(!["route_not_found", "method_not_allowed"].contains(&code), "{route}: {answer}");
        if let Some(path) = path.strip_prefix("/api/v1/runs") {
            let (_, answer) = send(&api, method, &format!("/runs{path}")).await;
            assert_eq!(answer["error"]["code"], "agents_not_offered", "the alias of {route}: {answer}");
        }
        // A method that no route has.
        let (status, _) = send(&api, "PROPFIND", &path).await;
        assert_eq!(status, 405, "{route}");
    }
}

#[tokio::test]
async fn the_document_marks_what_only_the_operator_may_do() {
    let api = HttpApi::new(HttpApiConfig::default());
    let (_, document) = send(&api, "GET", "/api/openapi.json").await;
    for route in ROUTES {
        let (method, path) = route.split_once(' ').unwrap();
        let operation = &document["paths"][path][method.to_lowercase()];
        let concrete = path.replace("{approval}", "1").replace(['{', '}'], "");
        let (_, answer) = send(&api, method, &concrete).await;
        let is_refused = answer["error"]["code"] == "operator_only";
        assert_eq!(operation["x-operator-only"] == true, is_refused, "{route}: {answer}");
        // What a gateway without any part answers is described.
        if let Some(code) = answer["error"]["code"].as_str() {
            let (status, _) = send(&api, method, &concrete).await;
            assert!(operation["responses"][status.to_string()].is_object(), "{route}: {status} {code}");
        }
    }
}

#[tokio::test]
async fn the_document_lists_the_codes_of_errors_without_closing_the_list() {
    let api = HttpApi::new(HttpApiConfig::default());
    let (_, document) = send(&api, "GET", "/api/openapi.json").await;
    let described = &document["components"]["schemas"]["ErrorDetail"]["properties"]["code"];
    let examples = described["examples"].as_array().unwrap_or_else(|| panic!("{described}"));
    let description = described["description"].as_str().unwrap();
    assert!(described.get("enum").is_none(), "{described}");
    let unknown = ["GET /api/v1/nothing", "PROPFIND /api/v1/runs"];
    for route in ROUTES.iter().chain(&unknown) {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path.replace("{approval}", "1").replace(['{', '}'], "");
        let (_, answer) = send(&api, method, &path).await;
        let Some(code) = answer["error"]["code"].as_str() else { continue };
        assert!(examples.iter().any(|example| example == code), "{route}: {answer}");
        assert!(description.contains(&format!("`{code}`")), "{route}: {description}");
    }
    assert!(examples.contains(&Value::from("too_many_tickets")), "{described}");
}

#[tokio::test]
async fn every_operation_is_described() {
    let api = HttpApi::new(HttpApiConfig::default());
    let (_, document) = send(&api, "GET", "/api/openapi.json").await;
    assert_eq!(document["openapi"], "3.1.0");
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path}");
            assert!(operation["responses"].as_object().is_some_and(|all| !all.is_empty()), "{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let description = response["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{method} {path}: {status}");
            }
            let declared: BTreeSet<&str> = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            let in_path: BTreeSet<&str> =
                path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(declared, in_path, "{method} {path}");
        }
    }
    for path in ["/api/v1/runs", "/v1/chat/completions", "/v1/responses"] {
        let parameters = document["paths"][path]["post"]["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key"), "{path}");
        for status in ["409", "422"] {
            let description = document["paths"][path]["post"]["responses"][status]["description"].as_str();
            assert!(description.unwrap().contains("`Idempotency-Key`"), "{path}: {status}");
        }
    }
    let events = &document["paths"]["/api/v1/runs/{run}/events"]["get"]["responses"]["200"];
    let schema = &events["content"]["text/event-stream"]["schema"];
    assert!(schema["description"].as_str().unwrap().contains(EVENT_SCHEMA_PATH), "{schema}");
    let message = &document["components"]["schemas"]["ChatMessage"];
    assert_eq!(message["required"][0], "role", "{message}");
    assert_eq!(message["additionalProperties"], false, "{message}");
    let text = document.to_string();
    let references = text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap());
    for name in references {
        assert!(document["components"]["schemas"][name].is_object(), "schema {name} is missing");
    }
}
