//! What only the operator may do: no token and no header is enough.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use http::{Method, Request};
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolyard_core::{BoxFuture, CallerIdentity, ContentHash};
use tower::ServiceExt as _;

use crate::{
    AdminError, AuthenticatedCaller, HttpApi, HttpApiConfig, ImportReport, NewServer, OperatorAccess,
    ServerChange, SettingsProvider, SettingsReport,
};

#[derive(Debug, Default)]
struct FakeSettings(Mutex<Vec<String>>);

impl SettingsProvider for FakeSettings {
    fn settings(&self) -> Result<SettingsReport, AdminError> {
        let hint = Some("correct the file".to_owned());
        Err(AdminError::Unreadable { message: "toolyard.toml: line 1".to_owned(), hint })
    }

    fn importable_servers(&self) -> BoxFuture<'_, Result<ImportReport, AdminError>> {
        Box::pin(async { Ok(ImportReport::default()) })
    }

    fn import_servers<'a>(
        &'a self,
        names: &'a [String],
        by: &'a str,
    ) -> BoxFuture<'a, Result<ImportReport, AdminError>> {
        let imported = names.iter().map(|name| format!("{name} by {by}"));
        self.0.lock().extend(imported);
        Box::pin(async { Ok(ImportReport { written: true, ..ImportReport::default() }) })
    }

    fn add_server<'a>(&'a self, server: &'a NewServer, by: &'a str) -> BoxFuture<'a, Result<(), AdminError>> {
        self.note(format!("{} added by {by}", server.name))
    }

    fn change_server<'a>(
        &'a self,
        name: &'a str,
        change: ServerChange,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), AdminError>> {
        self.note(format!("{name} changed by {by}: {change:?}"))
    }

    fn record_approval<'a>(
        &'a self,
        tool: &'a str,
        _: ContentHash,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), AdminError>> {
        self.note(format!("{tool} approved by {by}"))
    }
}

impl FakeSettings {
    fn note(&self, text: String) -> BoxFuture<'static, Result<(), AdminError>> {
        self.0.lock().push(text);
        Box::pin(async { Ok(()) })
    }
}

async fn send(api: &HttpApi, method: Method, path: &str, body: Value, is_operator: bool) -> (u16, Value) {
    let mut request = Request::new(Body::from(body.to_string()));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    // What a client could try.
    request.headers_mut().insert("x-toolyard-operator", "true".parse().unwrap());
    request.headers_mut().insert("authorization", "Bearer operator".parse().unwrap());
    request.extensions_mut().insert(AuthenticatedCaller(Arc::new(CallerIdentity::local_token([7; 32]))));
    if is_operator {
        request.extensions_mut().insert(OperatorAccess);
    }
    let response = api.router().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test]
async fn only_the_operator_signs_in_to_shared_servers() {
    let api = HttpApi::new(HttpApiConfig::default());
    let path = "/api/v1/servers/notes/sign-in";
    let (status, refused) = send(&api, Method::POST, path, json!({}), false).await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("operator_only")), "{refused}");
    let (status, unknown) = send(&api, Method::POST, path, json!({}), true).await;
    assert_eq!((status, &unknown["error"]["code"]), (404, &json!("server_not_found")), "{unknown}");
}

#[tokio::test]
async fn only_the_operator_imports_servers() {
    let settings = Arc::new(FakeSettings::default());
    let api = HttpApi::new(HttpApiConfig {
        settings: Some(Arc::clone(&settings) as _),
        ..HttpApiConfig::default()
    });
    let import = json!({"servers": ["files"]});
    for (method, body) in [(Method::GET, json!(null)), (Method::POST, import.clone())] {
        let (status, error) = send(&api, method, "/api/v1/import", body, false).await;
        assert_eq!((status, error["error"]["code"].as_str()), (403, Some("operator_only")), "{error}");
    }
    assert!(settings.0.lock().is_empty());
    assert_eq!(send(&api, Method::GET, "/api/v1/import", json!(null), true).await.0, 200);
    let (status, report) = send(&api, Method::POST, "/api/v1/import", import, true).await;
    assert_eq!((status, &report["written"]), (200, &json!(true)), "{report}");
    assert_eq!(*settings.0.lock(), ["files by operator"]);
    let empty = send(&api, Method::POST, "/api/v1/import", json!({"servers": []}), true).await;
    assert_eq!(empty.0, 400);
    let many = send(&api, Method::POST, "/api/v1/import", json!({"servers": vec!["x"; 501]}), true).await;
    assert_eq!(many.0, 400);
}

#[tokio::test]
async fn only_the_operator_manages_servers() {
    let settings = Arc::new(FakeSettings::default());
    let api = HttpApi::new(HttpApiConfig {
        settings: Some(Arc::clone(&settings) as _),
        ..HttpApiConfig::default()
    });
    let added = json!({"name": "files", "command": "npx", "args": ["files"]});
    let approved = json!({"tools": [{"name": "read", "definition": "00"}]});
    let requests = [
        (Method::POST, "", added.clone(), 204),
        (Method::PATCH, "/notes", json!({"enabled": false}), 404),
        (Method::GET, "/notes/details", json!(null), 404),
        (Method::POST, "/notes/connect", json!({}), 404),
        (Method::POST, "/notes/stop", json!({}), 404),
        (Method::POST, "/notes/approve", approved, 404),
    ];
    for (method, path, body, _) in &requests {
        let path = format!("/api/v1/servers{path}");
        let (status, error) = send(&api, method.clone(), &path, body.clone(), false).await;
        assert_eq!(
            (status, error["error"]["code"].as_str()),
            (403, Some("operator_only")),
            "{path}: {error}"
        );
    }
    assert!(settings.0.lock().is_empty());
    for (method, path, body, expected) in requests {
        let path = format!("/api/v1/servers{path}");
        assert_eq!(send(&api, method, &path, body, true).await.0, expected, "{path}");
    }
    assert_eq!(*settings.0.lock(), ["files added by operator"]);
}

#[tokio::test]
async fn settings_that_cannot_be_read_are_an_error_with_a_hint() {
    let settings = Arc::new(FakeSettings::default());
    let api = HttpApi::new(HttpApiConfig { settings: Some(settings), ..HttpApiConfig::default() });
    let (status, error) = send(&api, Method::GET, "/api/v1/settings", json!(null), true).await;
    assert_eq!((status, error["error"]["code"].as_str()), (422, Some("settings_unreadable")), "{error}");
    assert_eq!(error["error"]["hint"], "correct the file");
}

#[tokio::test]
async fn a_request_of_the_mcp_server_is_never_the_operators() {
    use toolyard_mcp_server::{HttpRoutes as _, RouteRequest};
    let settings = Arc::new(FakeSettings::default());
    let api = HttpApi::new(HttpApiConfig { settings: Some(settings), ..HttpApiConfig::default() });
    let request = RouteRequest {
        method: Method::GET,
        path: "/api/v1/import".to_owned(),
        query: String::new(),
        headers: http::HeaderMap::new(),
        identity: Arc::default(),
        body: String::new(),
    };
    assert_eq!(api.handle(request).await.status, 403);
}

#[tokio::test]
async fn the_operator_may_change_agents_that_clients_may_not() {
    let api = HttpApi::new(HttpApiConfig { admin: Some(Arc::new(FakeAdmin)), ..HttpApiConfig::default() });
    let agent = json!({"name": "clerk"});
    let (status, error) = send(&api, Method::POST, "/api/v1/agents", agent.clone(), false).await;
    assert_eq!((status, error["error"]["code"].as_str()), (403, Some("change_not_permitted")), "{error}");
    let (status, error) = send(&api, Method::POST, "/api/v1/agents", agent, true).await;
    assert_eq!((status, error["error"]["code"].as_str()), (409, Some("agent_exists")), "{error}");
}

#[tokio::test]
async fn lists_without_pages_have_a_cursor_that_is_null() {
    let api = HttpApi::new(HttpApiConfig { admin: Some(Arc::new(FakeAdmin)), ..HttpApiConfig::default() });
    for list in ["agents", "servers", "statistics"] {
        let (status, body) = send(&api, Method::GET, &format!("/api/v1/{list}"), json!(null), true).await;
        assert_eq!((status, body), (200, json!({list: [], "next": null})));
    }
}

/// Has every agent already.
#[derive(Debug)]
struct FakeAdmin;

impl crate::AdminProvider for FakeAdmin {
    fn statistics(&self) -> Vec<crate::CallStatistics> {
        Vec::new()
    }

    fn audit(
        &self,
        _: crate::AuditSelection,
    ) -> BoxFuture<'_, Result<Vec<crate::AuditLogRecord>, AdminError>> {
        Box::pin(async { Err(AdminError::NoStore) })
    }

    fn verify_audit(&self) -> BoxFuture<'_, Result<crate::AuditLogVerification, AdminError>> {
        Box::pin(async { Err(AdminError::NoStore) })
    }

    fn agents(&self) -> BoxFuture<'_, Result<Vec<crate::AgentDefinition>, AdminError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn add_agent<'a>(
        &'a self,
        name: &'a str,
        _: Value,
        _: &'a str,
    ) -> BoxFuture<'a, Result<crate::AgentDefinition, AdminError>> {
        Box::pin(async { Err(AdminError::AgentExists(name.to_owned())) })
    }

    fn replace_agent<'a>(
        &'a self,
        name: &'a str,
        _: Value,
        _: &'a str,
    ) -> BoxFuture<'a, Result<crate::AgentDefinition, AdminError>> {
        Box::pin(async { Err(AdminError::UnknownAgent(name.to_owned())) })
    }

    fn remove_agent<'a>(&'a self, name: &'a str, _: &'a str) -> BoxFuture<'a, Result<(), AdminError>> {
        Box::pin(async { Err(AdminError::UnknownAgent(name.to_owned())) })
    }
}
