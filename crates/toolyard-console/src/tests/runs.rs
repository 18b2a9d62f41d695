//! Pages about runs and the chat, with a fake API.

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    body::Body,
    extract::Path,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::fixture::{ATTACK, assert_harmless, complete};
use crate::{Console, ConsoleConfig, OpenAccess};

/// Marks a response of the API that must not be buffered.
#[derive(Debug, Clone)]
struct StreamMark;

/// The console in front of an API with one run, and the bodies that the API received.
struct Fixture {
    console: Router,
    received: Arc<Mutex<Vec<(String, Value)>>>,
    cookie: String,
}

impl Fixture {
    async fn new(run: Value) -> Self {
        let received: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let recorder = |path: &'static str, answer: Value| {
            let received = Arc::clone(&received);
            post(move |Json(body): Json<Value>| async move {
                received.lock().push((path.to_owned(), body));
                (StatusCode::ACCEPTED, Json(answer))
            })
        };
        let listed = json!({"runs": [{"run": run["run"], "state": run["state"], "agent": run["agent"], "conversation": run["conversation"], "question": run["question"], "created_at": 5, "pending_approvals": 2}], "next": "cursor"});
        let log = json!({"events": [{"type": "planned", "number": 1, "steps": [{"id": "a"}]}, {"type": ATTACK, "step": ATTACK, "number": 2, "message": ATTACK, "duration_ms": 1500}]});
        let events = |Path(run): Path<String>, headers: http::HeaderMap, uri: http::Uri| async move {
            let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).unwrap_or("none");
            let body = format!(
                "id: 3\nevent: step_started\ndata: {{\"run\":\"{run}\",\"last\":\"{last}\",\"query\":\"{}\"}}\n\n",
                uri.query().unwrap_or_default()
            );
            let headers =
                [("content-type", "text/event-stream"), ("cache-control", "no-store, no-transform")];
            ([("x-accel-buffering", "no")], headers, Extension(StreamMark), body)
        };
        let agents = json!({"agents": [{"name": "assistant"}, {"name": ATTACK, "description": ATTACK}]});
        let agents = complete("/api/v1/agents", agents);
        let resolved = json!({"resumed": true});
        let api = Router::new()
            .route("/api/v1/agents", get(move || async { Json(agents) }))
            .route(
                "/api/v1/runs",
                get(move || async { Json(listed) })
                    .merge(recorder("runs", json!({"run": "01NEW", "state": "running"}))),
            )
            .route("/api/v1/runs/{run}", get(move |Path(id): Path<String>| async move { found(&id, run) }))
            .route("/api/v1/runs/{run}/log", get(move || async { Json(log) }))
            .route("/api/v1/runs/{run}/events", get(events))
            .route("/api/v1/runs/{run}/cancel", recorder("cancel", resolved.clone()))
            .route("/api/v1/runs/{run}/resume", recorder("resume", resolved.clone()))
            .route("/api/v1/unknown-steps", recorder("unknown-steps", resolved.clone()))
            .route("/api/v1/approvals/7", recorder("approval 7", resolved.clone()))
            .route("/api/v1/approvals/8", recorder("approval 8", resolved));
        let console = Console::new(ConsoleConfig::new(api, Arc::new(OpenAccess), [3; 32])).router();
        let first = console
            .clone()
            .oneshot(Request::get("/console/runs").body(Body::empty()).unwrap())
            .await
            .unwrap();
        let cookie =
            first.headers()[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        Self { console, received, cookie }
    }

    async fn send(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> (StatusCode, http::HeaderMap, String) {
        let request = request.header(header::COOKIE, &self.cookie).body(Body::from(body)).unwrap();
        let response = self.console.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn page(&self, path: &str) -> String {
        let (status, _, text) = self.send(Request::get(path), String::new()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        text
    }

    /// Submits a form with the CSRF token of a page; returns where it leads.
    async fn submit(&self, path: &str, fields: &str) -> String {
        let (status, headers, text) = self.submit_form(path, fields).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
        headers[header::LOCATION].to_str().unwrap().to_owned()
    }

    /// Submits a form; returns its status.
    async fn submit_any(&self, path: &str, fields: &str) -> StatusCode {
        self.submit_form(path, fields).await.0
    }

    async fn submit_form(&self, path: &str, fields: &str) -> (StatusCode, http::HeaderMap, String) {
        let page = self.page("/console/chat").await;
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(request, format!("csrf={csrf}&{fields}")).await
    }
}

fn found(id: &str, run: Value) -> Response {
    if run["run"] == id {
        Json(run).into_response()
    } else {
        let error =
            json!({"error": {"message": format!("no run has the id `{id}`"), "code": "run_not_found"}});
        (StatusCode::NOT_FOUND, Json(error)).into_response()
    }
}

fn run_with(steps: &Value) -> Value {
    json!({"run": "01RUN", "state": "suspended", "agent": "analyst", "question": "How many?", "conversation": "talk", "created_at": 1_000,
        "answer": null, "sources": ["count (native)"], "plan": null, "steps": steps, "pending_approvals": [], "unknown_steps": [], "usage": {}, "last_event": 1})
}

#[tokio::test]
async fn a_run_shows_its_plan_steps_approvals_and_actions() {
    let mut run = run_with(&json!([
        {"id": "read", "tool": "read_file", "source": "files", "description": "Reads it", "depends_on": [], "state": "done", "started_at": 1_000, "duration_ms": 120,
            "arguments": {"path": "a"}, "output": "42 lines", "verification": {"verified": true, "confidence": 0.9, "issues": ["short"]}, "notes": ["path was repaired"],
            "attempts": [{"started_at": 1_000, "duration_ms": 20, "arguments": {}, "error": "busy"}, {"started_at": 1_050, "duration_ms": 70, "arguments": {}}]},
        {"id": "send", "tool": "send_mail", "description": "Sends it", "depends_on": ["read"], "state": "needs_approval", "attempts": []},
    ]));
    run["pending_approvals"] = json!([{"approval": 7, "run": "01RUN", "step": "send", "tool": "send_mail", "source": "mail", "text": "may `send_mail` be called? {\"to\":\"all\"}", "requested_at": 1_200}]);
    run["unknown_steps"] =
        json!([{"step": "pay", "tool": "pay", "arguments": {"amount": 3}, "started_at": 5}]);
    let fixture = Fixture::new(run).await;
    let page = fixture.page("/console/runs/01RUN").await;
    for expected in [
        r##"href="#step-send" data-step="send" data-state="needs_approval""##,
        r#"<details id="step-read""#,
        "&#34;path&#34;: &#34;a&#34;",
        "42 lines",
        "busy",
        "path was repaired",
        "Verified · confidence 90 %",
        "may `send_mail` be called? {&#34;to&#34;:&#34;all&#34;}",
        "Allow for this run",
        "&#34;amount&#34;: 3",
        r#"action="/console/runs/01RUN/cancel""#,
    ] {
        assert!(page.contains(expected), "{expected} is missing in {page}");
    }
    assert!(!page.contains("/resume\""), "the run waits for a decision");
    assert!(!page.contains("http-equiv=\"refresh\""), "an approval that is being read stays in place");
    assert!(page.contains("data-after=\"1\"") && page.contains("<span class=\"muted\">2</span>"), "{page}");
    let fragment = fixture.page("/console/runs/01RUN/fragment").await;
    assert!(fragment.trim_start().starts_with("<div") && fragment.contains("data-step=\"send\""));
    assert!(fixture.page("/console/runs/01RUN?view=timeline").await.contains("tl-retried"));
    assert!(fixture.page("/console/runs/01RUN?view=events").await.contains("<code>planned</code>"));
    assert!(fixture.page("/console/runs/01RUN?lang=zh").await.contains("本次运行均允许"));
}

#[tokio::test]
async fn decisions_reach_the_api_and_lead_back() {
    let mut details = run_with(&json!([]));
    details["pending_approvals"] = json!([{"approval": 7, "run": "01RUN", "text": "short"}]);
    let fixture = Fixture::new(details).await;
    let run = "/console/runs/01RUN";
    assert_eq!(fixture.submit(&format!("{run}/approve"), "approval=7&decision=allow-run").await, run);
    assert_eq!(
        fixture.submit(&format!("{run}/approve"), "approval=8&decision=deny&return_to=chat").await,
        "/console/chat?conversation=talk"
    );
    fixture.submit(&format!("{run}/resolve"), "step=pay&outcome=not_done").await;
    fixture.submit(&format!("{run}/cancel"), "").await;
    fixture.submit(&format!("{run}/resume"), "").await;
    let received = fixture.received.lock().clone();
    let expected = [
        ("approval 7", json!({"allow": true, "scope": "run"})),
        ("approval 8", json!({"allow": false})),
        ("unknown-steps", json!({"run": "01RUN", "step": "pay", "outcome": "not_done"})),
        ("cancel", json!({})),
        ("resume", json!({})),
    ];
    assert_eq!(received, expected.map(|(path, body)| (path.to_owned(), body)));
}

#[tokio::test]
async fn an_approver_sees_the_arguments_in_each_form_that_the_api_has() {
    let mut run = run_with(&json!([]));
    let approval = |number: i64, arguments: Value, text: Value| {
        json!({"approval": number, "run": "01RUN", "tool": "send_mail", "text": format!("the line of {number}"), "effects": "writes",
            "arguments": arguments, "arguments_text": text, "notes": [format!("a note on {number}")]})
    };
    run["pending_approvals"] = json!([
        approval(7, json!({"to": ["all"]}), Value::Null),
        approval(8, Value::Null, json!(r#"{"to":"al" …(9 of 11 characters omitted)… "l"}"#)),
        approval(9, Value::Null, Value::Null),
    ]);
    let page = Fixture::new(run).await.page("/console/runs/01RUN").await;
    for expected in [
        "&#34;to&#34;: [\n    &#34;all&#34;\n  ]",
        "a note on 7",
        "{&#34;to&#34;:&#34;al&#34; …(9 of 11 characters omitted)… &#34;l&#34;}",
        "a note on 8",
        "the line of 9",
    ] {
        assert!(page.contains(expected), "{expected} is missing in {page}");
    }
    assert!(!page.contains("the line of 7"), "its parts are shown");
    assert_eq!(page.matches("value=\"allow\"").count(), 3);
}

/// A run with an approval whose text nobody reads to its end, and one with a short text.
fn run_with_long_approval() -> Value {
    let mut run = run_with(&json!([]));
    run["pending_approvals"] = json!([
        {"approval": 7, "run": "01RUN", "tool": "send_mail", "text": "a".repeat(30_000)},
        {"approval": 8, "run": "01RUN", "tool": "send_mail", "text": "short"},
    ]);
    run
}

#[tokio::test]
async fn a_call_that_cannot_be_read_whole_can_only_be_denied() {
    let fixture = Fixture::new(run_with_long_approval()).await;
    for path in ["/console/runs/01RUN", "/console/chat?conversation=talk"] {
        let page = fixture.page(path).await;
        assert_eq!(page.matches("value=\"deny\"").count(), 2, "{path}");
        assert_eq!(page.matches("value=\"allow\"").count(), 1, "{path}");
        assert!(page.contains("can only be denied") && page.contains("you may deny calls"), "{path}");
    }
    let approve = "/console/runs/01RUN/approve";
    for decision in ["allow", "allow-run"] {
        let status = fixture.submit_any(approve, &format!("approval=7&decision={decision}")).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{decision}");
    }
    assert!(fixture.received.lock().is_empty(), "no decision reached the API");
    fixture.submit(approve, "approval=7&decision=deny").await;
    fixture.submit(approve, "approval=8&decision=allow").await;
    assert_eq!(fixture.received.lock().len(), 2);
}

#[tokio::test]
async fn a_call_that_the_page_of_the_run_does_not_show_cannot_be_allowed() {
    let fixture = Fixture::new(run_with(&json!([]))).await;
    for decision in ["allow", "allow-run"] {
        let fields = format!("approval=7&decision={decision}");
        let status = fixture.submit_any("/console/runs/01RUN/approve", &fields).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{decision}");
    }
    assert!(fixture.received.lock().is_empty(), "no decision reached the API");
}

#[tokio::test]
async fn incomplete_forms_change_nothing() {
    let fixture = Fixture::new(run_with(&json!([]))).await;
    for (action, fields) in [
        ("approve", "approval=7"),
        ("approve", "approval=7&decision=once"),
        ("approve", "decision=deny"),
        ("approve", "approval=seven&decision=deny"),
        ("resolve", "step=pay"),
        ("resolve", "step=pay&outcome=maybe"),
    ] {
        let status = fixture.submit_any(&format!("/console/runs/01RUN/{action}"), fields).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{action} {fields}");
    }
    assert!(fixture.received.lock().is_empty());
}

#[tokio::test]
async fn a_forged_decision_is_refused() {
    let fixture = Fixture::new(run_with(&json!([]))).await;
    for fields in ["approval=7&decision=allow", "csrf=x&approval=7&decision=allow"] {
        let (status, _, _) =
            fixture.send(Request::post("/console/runs/01RUN/approve"), fields.to_owned()).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
    }
    assert!(fixture.received.lock().is_empty());
}

#[tokio::test]
async fn a_question_starts_a_run_in_a_conversation() {
    let fixture = Fixture::new(run_with(&json!([]))).await;
    let location = fixture
        .submit("/console/chat", "question=How+many%3F&agent=analyst&plan_only=on&conversation=")
        .await;
    let conversation = location.strip_prefix("/console/chat?conversation=").unwrap();
    assert!(conversation.starts_with("console-"));
    let body =
        json!({"question": "How many?", "conversation": conversation, "agent": "analyst", "plan_only": true});
    assert_eq!(fixture.received.lock()[0], ("runs".to_owned(), body));
    let run = fixture.page("/console/runs/01RUN").await;
    assert!(run.contains("action=\"/console/runs/01RUN/resume\""), "nobody is waited for");
    let chat = fixture.page("/console/chat?conversation=talk").await;
    assert!(chat.contains("How many?") && chat.contains(r#"name="conversation" value="talk""#));
    assert!(chat.contains(r#"data-events="/console/runs/01RUN/events""#), "{chat}");
}

#[tokio::test]
async fn the_event_stream_is_passed_on_with_the_last_event_id() {
    let fixture = Fixture::new(run_with(&json!([]))).await;
    let (status, headers, body) =
        fixture.send(Request::get("/console/runs/01RUN/events?after=4"), String::new()).await;
    assert_eq!(
        (status, headers[header::CONTENT_TYPE].to_str().unwrap()),
        (StatusCode::OK, "text/event-stream")
    );
    assert!(body.contains("\"last\":\"none\",\"query\":\"after=4\""), "{body}");
    let request = Request::get("/console/runs/01RUN/events?after=4").header("last-event-id", "9");
    let (_, _, body) = fixture.send(request, String::new()).await;
    assert!(body.contains("\"last\":\"9\",\"query\":\"\""), "a reconnecting browser knows best: {body}");
}

#[tokio::test]
async fn the_event_stream_keeps_what_says_that_it_must_not_be_buffered() {
    let fixture = Fixture::new(run_with(&json!([]))).await;
    let request = Request::get("/console/runs/01RUN/events").header(header::COOKIE, &fixture.cookie);
    let response = fixture.console.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert!(response.extensions().get::<StreamMark>().is_some(), "the extension of the API is kept");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store, no-transform");
}

#[tokio::test]
async fn hostile_texts_are_harmless_on_every_page() {
    let step = json!({"id": ATTACK, "tool": ATTACK, "source": ATTACK, "description": ATTACK, "depends_on": [ATTACK, "x"], "state": ATTACK, "started_at": 1, "duration_ms": 3,
        "arguments": {ATTACK: ATTACK}, "output": {"key": ATTACK, ATTACK: 1}, "error": ATTACK, "hint": ATTACK, "notes": [ATTACK],
        "attempts": [{"started_at": 1, "error": ATTACK}, {"started_at": 2, "error": ATTACK}], "verification": {"verified": false, "confidence": 7.5, "issues": [ATTACK]}});
    let run = json!({"run": "01RUN", "state": ATTACK, "agent": ATTACK, "question": ATTACK, "conversation": ATTACK, "created_at": 1, "answer": ATTACK, "sources": [ATTACK],
        "message": ATTACK, "hint": ATTACK, "steps": [step], "usage": {}, "last_event": 0,
        "pending_approvals": [{"approval": 1, "tool": ATTACK, "source": ATTACK, "step": ATTACK, "text": ATTACK, "effects": ATTACK, "arguments": {ATTACK: [ATTACK]}, "notes": [ATTACK], "requested_at": 1}],
        "unknown_steps": [{"step": ATTACK, "tool": ATTACK, "arguments": null, "arguments_text": ATTACK, "started_at": 1}]});
    let fixture = Fixture::new(run).await;
    let chat = format!("/console/chat?conversation={}", crate::format::url_encode(ATTACK));
    let paths = [
        "/console/runs",
        "/console/runs/01RUN",
        "/console/runs/01RUN?view=timeline",
        "/console/runs/01RUN?view=events",
        "/console/runs/01RUN/fragment?step=%3Cscript%3Ealert(1)%3C/script%3E",
        "/console/runs?agent=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&state=x",
        &chat,
    ];
    for path in paths {
        assert_harmless(&fixture.page(path).await, path);
    }
    let (status, _, text) =
        fixture.send(Request::get("/console/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E"), String::new()).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_harmless(&text, "missing run");
}

#[tokio::test]
async fn the_page_of_a_plan_with_200_steps_stays_below_100_kb() {
    let steps: Vec<Value> = (0..200)
        .map(|number| json!({"id": format!("read_file_{number}"), "tool": "read_text_file", "source": "filesystem", "description": format!("读取归档目录中的第 {number} 份报告并提取其中的关键数字"), "depends_on": if number == 0 { vec![] } else { vec![format!("read_file_{}", number / 3)] },
            "state": if number < 120 { "done" } else { "waiting" }, "started_at": 1_000, "duration_ms": 1_234, "arguments": {"path": "/archive"}, "output": "x".repeat(2_000), "attempts": [{"started_at": 1_000, "duration_ms": 1_234}]}))
        .collect();
    let fixture = Fixture::new(run_with(&json!(steps))).await;
    for path in [
        "/console/runs/01RUN?lang=zh",
        "/console/runs/01RUN?from=100",
        "/console/runs/01RUN?view=timeline",
        "/console/runs/01RUN?view=events",
        "/console/chat?conversation=talk",
    ] {
        let page = fixture.page(path).await;
        assert!(page.len() <= 100_000, "{path} has {} bytes", page.len());
    }
    let mesh: Vec<Value> = (0..200_usize)
        .map(|number| {
            let (layer, column) = (number / 8, number % 8);
            let before = |column| format!("s{}_{column}", layer.wrapping_sub(1));
            json!({"id": format!("s{layer}_{column}"), "tool": "pause", "source": "pauses", "description": format!("Wait in row {layer}"), "depends_on": [before(column), before((column + 1) % 8)],
                "state": "done", "started_at": 1_000, "duration_ms": 439, "arguments": {"milliseconds": 35}, "output": "waited", "attempts": [{"started_at": 1_000, "duration_ms": 439}]})
        })
        .collect();
    let page = Fixture::new(run_with(&json!(mesh))).await.page("/console/runs/01RUN?from=190").await;
    assert!(page.len() <= 100_000, "{} bytes", page.len());
    assert!(!page.contains("are not drawn"), "all dependencies are drawn");
    assert!(page.matches("pause</text>").count() == 200, "every node names its tool");
    let page = fixture.page("/console/runs/01RUN?step=read_file_130").await;
    assert!(page.contains(r#"<details id="step-read_file_130" open"#), "a step can be opened on its page");
    assert!(page.contains(&"x".repeat(2_000)), "with its whole output");
    assert_eq!(page.matches("data-step=").count(), 200, "the graph has all steps");
}

/// Links within a page have a target, and links to another page of the list say which.
#[tokio::test]
async fn links_to_steps_lead_to_their_page() {
    let steps: Vec<Value> = (0..200)
        .map(|number| json!({"id": format!("s{number}"), "tool": "t", "depends_on": if number < 20 { vec![] } else { vec![format!("s{}", number - 20), "missing".to_owned()] },
            "state": "done", "started_at": 1_000 + number, "duration_ms": 5}))
        .collect();
    let fixture = Fixture::new(run_with(&json!(steps))).await;
    for path in [
        "/console/runs/01RUN",
        "/console/runs/01RUN?from=100",
        "/console/runs/01RUN?view=timeline&from=30",
        "/console/runs/01RUN?view=events&from=30",
        "/console/chat?conversation=talk",
    ] {
        let page = fixture.page(path).await;
        for link in page.split("href=\"#").skip(1) {
            let id = link.split('"').next().unwrap();
            assert!(page.contains(&format!("id=\"{id}\"")), "{path} links to #{id}, which it does not have");
        }
    }
    let timeline = fixture.page("/console/runs/01RUN?view=timeline&from=30").await;
    assert!(timeline.contains(r#"href="?view=timeline&#38;from=0#step-s0""#));
    assert!(timeline.contains(r#"<ol class="step-list" start="31">"#));
    assert!(timeline.contains("?view=timeline&#38;from=40#steps-title"), "the pager keeps the view");
    assert!(timeline.contains("100 further steps"), "hidden rows are mentioned");
    assert!(
        fixture
            .page("/console/chat?conversation=talk")
            .await
            .contains("/console/runs/01RUN?from=190#step-s199")
    );
}

#[tokio::test]
async fn a_query_that_cannot_be_read_is_ignored() {
    let fixture = Fixture::new(run_with(&json!([]))).await;
    for path in [
        "/console/runs/01RUN?from=x&from=3&after=y",
        "/console/runs?after=a&after=b&state=%ff",
        "/console/chat?conversation=a&conversation=b",
        "/console/runs/01RUN/fragment?from=-1",
    ] {
        fixture.page(path).await;
    }
}
