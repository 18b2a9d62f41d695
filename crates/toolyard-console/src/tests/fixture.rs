//! A console in front of a fake API whose every text is an attack.

use std::sync::Arc;

use axum::{Router, body::Body, response::IntoResponse as _};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{Console, ConsoleAccess, ConsoleConfig, Role};

/// Breaks out of attributes, elements, URLs and the reading order wherever it is not escaped.
pub(super) const ATTACK: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)><a href=\"javascript:alert(1)\">\u{202e}\u{200b}\u{1b}[31m";
pub(super) const TOKEN: &str = "the-access-token";
pub(super) const SECRET: &str = "the-operator-secret";

#[derive(Debug)]
struct TestAccess {
    is_open: bool,
}

impl ConsoleAccess for TestAccess {
    fn is_open(&self) -> bool {
        self.is_open
    }
    fn accepts_token(&self, presented: &str) -> bool {
        presented == TOKEN
    }
    fn credential_hash(&self) -> [u8; 32] {
        [3; 32]
    }
}

/// A request that reached the API: role, method, path with query, and body.
pub(super) type ApiRequest = (Role, Method, String, Value);

pub(super) struct Fixture {
    pub(super) console: Console,
    router: Router,
    received: Arc<Mutex<Vec<ApiRequest>>>,
}

/// A response with its body as text.
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Page {
    pub(super) fn location(&self) -> &str {
        self.headers.get(header::LOCATION).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The session cookie as a browser sends it back.
    pub(super) fn session(&self) -> Option<String> {
        let cookies = self.headers.get_all(header::SET_COOKIE).iter();
        let cookie = cookies
            .map(|cookie| cookie.to_str().unwrap())
            .find(|cookie| cookie.starts_with("toolyard_console="))?;
        Some(cookie.split(';').next().unwrap().to_owned())
    }

    pub(super) fn csrf(&self) -> String {
        let (_, rest) = self.body.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

#[derive(Clone, Copy)]
struct MarkedRole(Role);

impl Fixture {
    pub(super) fn new(is_open: bool, answer: fn(&Method, &str) -> (StatusCode, Value)) -> Self {
        let received: Arc<Mutex<Vec<ApiRequest>>> = Arc::default();
        let recorded = Arc::clone(&received);
        let api = Router::new().fallback(move |request: Request<Body>| async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let path = parts.uri.path_and_query().unwrap().to_string();
            let MarkedRole(role) = *parts.extensions.get::<MarkedRole>().expect("every request has a role");
            let (status, json) = answer(&parts.method, &path);
            recorded.lock().push((role, parts.method, path.clone(), body));
            (status, complete(&path, json).to_string()).into_response()
        });
        let config = ConsoleConfig {
            authorize: Arc::new(|extensions, role| {
                extensions.insert(MarkedRole(role));
            }),
            operator_secret: Some(SECRET.to_owned()),
            ..ConsoleConfig::new(api, Arc::new(TestAccess { is_open }), [5; 32])
        };
        let console = Console::new(config);
        Self { router: console.router(), console, received }
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Page {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:7300");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response =
            self.router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Page { status: parts.status, headers: parts.headers, body }
    }

    pub(super) async fn get(&self, path: &str, session: &str) -> Page {
        self.send(Method::GET, path, &[("cookie", session)], "").await
    }

    pub(super) async fn post(&self, path: &str, session: &str, body: &str) -> Page {
        self.send(Method::POST, path, &[("cookie", session)], body).await
    }

    /// Signs in with a one-time link.
    pub(super) async fn operator(&self) -> String {
        let link = self.console.sign_in_path().unwrap();
        self.send(Method::GET, &link, &[], "").await.session().unwrap()
    }

    /// Signs in with the access token.
    pub(super) async fn caller(&self) -> String {
        let page = self.send(Method::POST, "/console/sign-in", &[], &format!("token={TOKEN}")).await;
        page.session().unwrap()
    }

    /// The paths that were read, in order.
    pub(super) fn reads(&self) -> Vec<String> {
        let received = self.received.lock();
        let reads = received.iter().filter(|(_, method, _, _)| method == Method::GET);
        reads.map(|(_, _, path, _)| path.clone()).collect()
    }

    /// The requests that changed something.
    pub(super) fn changes(&self) -> Vec<ApiRequest> {
        let received = self.received.lock();
        received.iter().filter(|(_, method, _, _)| method != Method::GET).cloned().collect()
    }
}

pub(super) const MAX_PAGE_BYTES: usize = 100_000;

/// Nothing in a page is code that the console did not write.
pub(super) fn assert_harmless(body: &str, path: &str) {
    for forbidden in [
        "<script>",
        "<img",
        "onerror=alert(1)>",
        "javascript:alert(1)\"",
        "\u{202e}",
        "\u{200b}",
        "\u{1b}",
        " style=",
        "<style",
    ] {
        assert!(!body.contains(forbidden), "{path} contains {forbidden:?}");
    }
    for (position, _) in body.match_indices("<script") {
        assert!(body.get(position..).unwrap().starts_with("<script src=\"/console/assets/"), "{path}");
    }
    for attribute in ["href=\"", "action=\"", "src=\""] {
        for (position, _) in body.match_indices(attribute) {
            let url = body.get(position + attribute.len()..).unwrap();
            let is_own = url.starts_with(['/', '#']) && !url.starts_with("//")
                || url.starts_with("data:image/svg+xml,");
            assert!(
                is_own || url.starts_with('?'),
                "{path} links to {}",
                url.chars().take(40).collect::<String>()
            );
        }
    }
    assert!(body.len() <= MAX_PAGE_BYTES, "{path} has {} bytes", body.len());
}

/// The answer of a fake API with the fields that it leaves out.
pub(super) fn complete(path: &str, mut answer: Value) -> Value {
    let path = path.split('?').next().unwrap().trim_start_matches("/api/v1/");
    let segments: Vec<&str> = path.split('/').collect();
    let fields = match segments[..] {
        ["tools", _] => json!({"input_schema": {}, "capabilities": []}),
        ["tools", _, "call"] => json!({"output": "", "is_error": false, "attempts": 1, "duration_ms": 1}),
        ["servers", _, "details"] => {
            json!({"endpoint": "", "awaiting_approval": [], "rejected": [], "log": []})
        }
        ["overview"] => {
            json!({"uptime_ms": 1, "calls_per_minute": [], "failures_per_minute": [], "calls_total": 0,
            "failures_total": 0, "tokens": {}, "runs": {"active": 0}, "servers": {}, "sources": [], "top_tools": []})
        }
        ["import"] => json!({"files": [], "servers": [], "settings_file": "", "written": false}),
        ["settings"] => json!({"files": [], "values": []}),
        ["cluster"] => json!({"nats_connected": true, "gateways": [], "workers": []}),
        ["audit"] => json!({"records": []}),
        [list] => json!({ list: [] }),
        _ => json!({}),
    };
    add_missing(&mut answer, &fields);
    if let [list @ ("tools" | "servers" | "agents"), _] = segments[..] {
        add_missing(&mut answer, &entry_of(list));
    }
    add_missing_to_entries(&mut answer);
    answer
}

/// The fields of an entry of a list.
fn entry_of(list: &str) -> Value {
    match list {
        // Of the gateway, and of files of other clients.
        "servers" => {
            json!({"name": "", "state": "stopped", "transport": "stdio", "trusted": false, "tools": 0, "private_instances": 0,
            "awaiting_approval": 0, "awaiting_approval_tools": [], "needs_sign_in": false, "endpoint": "", "clients": [], "notes": []})
        }
        "tools" => {
            json!({"source": "native", "kind": "native", "description": "", "effect": "writes", "read_only": false,
            "destructive": false, "idempotent": false, "denied": false})
        }
        "statistics" => {
            json!({"tool": "", "source": "", "weighted_calls": 0.0, "weighted_failures": 0.0, "success_rate": 1.0,
            "p50_ms": 0, "p95_ms": 0})
        }
        "agents" => json!({"description": "", "origin": "store", "config": {}}),
        "values" => {
            json!({"origin": "default", "value": null, "secret": false, "takes_effect_after_restart": false})
        }
        "gateways" => json!({"state": "seen", "is_this": false}),
        "workers" => {
            json!({"source": "", "state": "available", "trusted": false, "tools": 0, "awaiting_approval": [], "processes": []})
        }
        "processes" => json!({"state": "seen", "last_seen_at": 1}),
        "sessions" => json!({"sessions": 1}),
        "awaiting_approval" => json!({"name": "", "definition": "", "reason": "", "difference": []}),
        "tokens" => json!({"input": 0, "output": 0}),
        _ => json!({}),
    }
}

fn add_missing_to_entries(value: &mut Value) {
    for (name, field) in value.as_object_mut().into_iter().flatten() {
        let entry = entry_of(name);
        match field {
            Value::Array(entries) => {
                for item in entries.iter_mut().filter(|item| item.is_object()) {
                    add_missing(item, &entry);
                    add_missing_to_entries(item);
                }
            }
            Value::Object(_) if ["statistics", "tokens"].contains(&name.as_str()) => {
                add_missing(field, &entry);
            }
            _ => {}
        }
    }
}

fn add_missing(value: &mut Value, fields: &Value) {
    let Some(object) = value.as_object_mut() else { return };
    for (name, field) in fields.as_object().unwrap() {
        object.entry(name).or_insert_with(|| field.clone());
    }
}

/// An API in which every text is an attack.
pub(super) fn hostile_api(method: &Method, path: &str) -> (StatusCode, Value) {
    let path = path.split('?').next().unwrap().strip_prefix("/api/v1").unwrap();
    let tool = json!({
        "name": ATTACK, "source": ATTACK, "kind": "mcp", "title": ATTACK, "description": ATTACK, "call_as": ATTACK, "open_world": true,
        "input_schema": {"type": "object", "required": [ATTACK], "properties": {
            ATTACK: {"type": "string", "description": ATTACK, "default": ATTACK}, "choice": {"enum": [ATTACK, 1]}, "json": {"type": "array", "default": [ATTACK]},
            "content": {"type": "string", "default": format!("</textarea>{ATTACK}")}, "flag": {"type": "boolean"}}},
        "output_schema": {"title": ATTACK}, "capabilities": [ATTACK],
        "statistics": {"tool": ATTACK, "source": ATTACK, "weighted_calls": 4.0, "success_rate": 0.5, "p50_ms": 3, "last_used_at": 5}
    });
    let server = json!({"name": ATTACK, "state": ATTACK, "transport": ATTACK, "tools": 3, "revision": ATTACK, "problem": ATTACK, "awaiting_approval": 2, "needs_sign_in": true});
    let agent = json!({"name": "clerk", "description": ATTACK, "model": ATTACK, "origin": "store",
        "config": {"description": ATTACK, "instructions": format!("</textarea>{ATTACK}"), "tools": [ATTACK], "model": ATTACK, "limits": {"time": ATTACK}}});
    let series: Vec<u32> = (0..60).collect();
    let body = match (method, path) {
        (&Method::GET, "/tools") => json!({"tools": [tool], "next": ATTACK}),
        (&Method::GET, path) if path.starts_with("/tools/") => tool,
        (_, path) if path.starts_with("/tools/") => {
            json!({"output": ATTACK, "structured": {ATTACK: ATTACK}, "source": ATTACK, "attempts": 1, "duration_ms": 3, "result_id": ATTACK})
        }
        (_, "/statistics") => json!({"statistics": [tool["statistics"]]}),
        (_, "/servers") => json!({"servers": [server]}),
        (_, "/cluster") => hostile_cluster(),
        (&Method::POST, "/servers/hostile/sign-in") => json!({"url": "javascript:alert(1)"}),
        (&Method::POST, path) if path.starts_with("/servers/") && path.ends_with("/sign-in") => {
            json!({"url": "https://tools.example/sign-in/t1cket"})
        }
        (_, path) if path.ends_with("/details") && path.starts_with("/servers") => {
            let held = json!({"name": ATTACK, "definition": "c0ffee", "reason": ATTACK, "difference": [ATTACK], "whole": {ATTACK: ATTACK}});
            json!({"endpoint": ATTACK, "awaiting_approval": [held, held], "rejected": [ATTACK], "log": [ATTACK]})
        }
        (_, path) if path.starts_with("/servers/") => server,
        (_, "/overview") => {
            json!({"uptime_ms": 5, "calls_per_minute": series, "failures_per_minute": series, "p50_ms": 2.5, "p95_ms": 300, "tokens": {"input": 5}, "runs": {"active": 1, "pending_approvals": 3}})
        }
        (_, "/runs") => {
            json!({"runs": [{"run": ATTACK, "state": ATTACK, "agent": ATTACK, "question": ATTACK, "created_at": 1}], "next": ATTACK})
        }
        (_, "/approvals") => {
            json!({"approvals": [{"approval": 7, "run": ATTACK, "step": ATTACK, "tool": ATTACK, "source": ATTACK, "text": ATTACK, "requested_at": 1}]})
        }
        (&Method::GET, "/agents") => json!({"agents": [agent, {"name": ATTACK, "origin": "settings"}]}),
        (&Method::GET, "/agents/fixed") => {
            json!({"name": "fixed", "origin": "settings", "config": {ATTACK: ATTACK}})
        }
        (_, path) if path.starts_with("/agents") => agent,
        (_, "/audit") => {
            json!({"records": [{"number": 9, "recorded_at": 1, "caller": ATTACK, "call": ATTACK, "tool": ATTACK, "sources": [ATTACK],
            "arguments_hash": ATTACK, "result_hash": ATTACK, "outcome": ATTACK, "duration_ms": 4, "hash": ATTACK}], "next": ATTACK})
        }
        (_, "/audit/verify") => json!({"intact": true, "records": 9, "head": ATTACK}),
        (_, "/settings") => {
            json!({"files": [ATTACK], "values": [{"key": ATTACK, "value": ATTACK, "origin": "file", "file": ATTACK},
            {"key": "serve.token", "value": "hunter2", "origin": "file", "secret": true}]})
        }
        (_, "/import") => {
            json!({"servers": [{"name": ATTACK, "endpoint": ATTACK, "state": "new", "clients": [ATTACK], "notes": [ATTACK]}]})
        }
        (&Method::GET, "/runs/01RUN") => {
            json!({"run": "01RUN", "state": "suspended", "pending_approvals": [{"approval": 7, "run": "01RUN", "text": ATTACK}]})
        }
        (&Method::POST, "/approvals/7" | "/unknown-steps") => json!({"run": "01RUN"}),
        (&Method::POST, path) if path.starts_with("/runs/01RUN/") => json!({"run": "01RUN"}),
        _ => {
            return (
                StatusCode::NOT_FOUND,
                json!({"error": {"message": ATTACK, "code": "run_not_found", "hint": ATTACK}}),
            );
        }
    };
    (StatusCode::OK, body)
}

fn hostile_cluster() -> Value {
    let process = json!({"process": ATTACK, "name": ATTACK, "state": "lost", "last_seen_at": 5, "tools": 3, "concurrency": 4, "running_calls": 1});
    json!({"nats_connected": true, "sessions": [{"server": ATTACK, "gateway": ATTACK, "sessions": 2}],
        "gateways": [{"process": ATTACK, "name": ATTACK, "version": ATTACK, "state": "leaving", "is_this": true, "last_seen_at": 5}],
        "workers": [{"name": ATTACK, "source": ATTACK, "state": "no_process", "tools": 3, "problem": ATTACK,
            "awaiting_approval": [{"tool": ATTACK, "reason": ATTACK}], "processes": [process]}]})
}
