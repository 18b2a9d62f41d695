//! All pages with hostile data: nothing runs, nothing is too long, forms lead on, and Chinese pages are Chinese.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::fixture::{ATTACK, Fixture, MAX_PAGE_BYTES, Page, assert_harmless, hostile_api};
use crate::security_headers::CONTENT_SECURITY_POLICY;

const NOT_FOUND_PATHS: [&str; 2] = ["/console/runs/missing", "/console/%3Cscript%3Ealert(1)%3C/script%3E"];
const PATHS: [&str; 20] = [
    "/",
    "/console/tools",
    "/console/tools?query=%3Cscript%3Ealert(1)%3C/script%3E&source=%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
    "/console/tools/x?source=%22%3E%3Cscript%3Ealert(1)",
    "/console/servers",
    "/console/servers/x",
    "/console/cluster",
    "/console/runs",
    "/console/runs/missing",
    "/console/approvals",
    "/console/agents?saved=%3Cscript%3Ealert(1)%3C/script%3E",
    "/console/agents/clerk",
    "/console/agents/fixed",
    "/console/add-agent",
    "/console/audit?verify=1",
    "/console/settings?all=1",
    "/console/settings",
    "/console/servers?import=1",
    "/console/chat",
    "/console/%3Cscript%3Ealert(1)%3C/script%3E",
];

fn assert_headers(page: &Page, path: &str) {
    let header = |name: &str| page.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default();
    assert_eq!(header("content-security-policy"), CONTENT_SECURITY_POLICY, "{path}");
    assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
    assert_eq!(header("x-frame-options"), "DENY", "{path}");
    assert_eq!(header("referrer-policy"), "same-origin", "{path}");
    assert_eq!(header("cross-origin-opener-policy"), "same-origin", "{path}");
    if !path.starts_with("/console/assets/") {
        assert_eq!(header("cache-control"), "no-store", "{path}");
    }
}

#[tokio::test]
async fn no_text_of_others_runs_on_any_page() {
    let fixture = Fixture::new(false, hostile_api);
    for session in [fixture.operator().await, fixture.caller().await] {
        for path in PATHS {
            for language in ["en", "zh"] {
                let separator = if path.contains('?') { '&' } else { '?' };
                let page = fixture.get(&format!("{path}{separator}lang={language}"), &session).await;
                let is_missing = NOT_FOUND_PATHS.contains(&path);
                let expected = if is_missing { StatusCode::NOT_FOUND } else { StatusCode::OK };
                assert_eq!(page.status, expected, "{path}");
                assert_harmless(&page.body, path);
                assert_headers(&page, path);
                let tag = if language == "zh" { "<html lang=\"zh-CN\"" } else { "<html lang=\"en\"" };
                assert!(page.body.contains(tag), "{path}");
                assert!(!page.body.contains("hunter2"), "{path} shows a secret");
            }
        }
    }
}

#[tokio::test]
async fn hidden_characters_are_made_visible() {
    let fixture = Fixture::new(false, hostile_api);
    let page = fixture.get("/console/approvals", &fixture.operator().await).await;
    assert!(page.body.contains("\\u{202e}"), "whoever approves sees that there is something hidden");
}

/// An API with an approval that is too long to be read.
fn long_approval_api(method: &Method, path: &str) -> (StatusCode, Value) {
    match path {
        "/api/v1/approvals" => (
            StatusCode::OK,
            json!({"approvals": [{"approval": 1, "text": "a".repeat(30_000)}, {"approval": 2, "text": "b"}]}),
        ),
        path => hostile_api(method, path),
    }
}

#[tokio::test]
async fn what_cannot_be_read_whole_cannot_be_allowed() {
    let fixture = Fixture::new(false, long_approval_api);
    let page = fixture.get("/console/approvals", &fixture.operator().await).await.body;
    assert_eq!(page.matches("value=\"deny\"").count(), 2);
    assert_eq!(page.matches("value=\"allow\"").count(), 1);
    assert!(page.contains("can only be denied"));
}

#[tokio::test]
async fn results_of_calls_are_shown_as_text() {
    let fixture = Fixture::new(false, hostile_api);
    let session = fixture.operator().await;
    let csrf = fixture.get("/", &session).await.csrf();
    let mut form = form_urlencoded::Serializer::new(String::new());
    let shown = toolyard_core::escape_unsafe(ATTACK);
    form.append_pair("csrf", &csrf)
        .append_pair(&format!("arg:{shown}"), "hello")
        .append_pair("arg:flag", "true");
    form.append_pair("arg:json", "[1, 2]").append_pair("arg:content", "a\r\nb");
    let page = fixture.post("/console/tools/x?source=y", &session, &form.finish()).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.body);
    assert_harmless(&page.body, "result");
    let (_, _, _, body) = fixture.changes().pop().unwrap();
    assert_eq!(body["arguments"], json!({ATTACK: "hello", "json": [1, 2], "content": "a\nb", "flag": true}));
    let csrf = format!("csrf={csrf}&arg:json=%5B1");
    let page = fixture.post("/console/tools/x", &session, &csrf).await;
    assert_eq!((page.status, fixture.changes().len()), (StatusCode::BAD_REQUEST, 1), "nothing was called");
    assert!(page.body.contains("This is not valid JSON."));
    assert_harmless(&page.body, "wrong value");
}

#[tokio::test]
async fn responses_to_everything_have_the_headers() {
    let fixture = Fixture::new(false, hostile_api);
    let style = fixture.send(Method::GET, "/console/sign-in", &[], "").await.body;
    let style = style
        .split("href=\"")
        .find(|part| part.contains(".css"))
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    for (method, path) in [
        (Method::GET, "/"),
        (Method::GET, "/console/sign-in"),
        (Method::GET, "/console/sign-in?code=x"),
        (Method::POST, "/console/sign-in"),
        (Method::POST, "/console/sign-in-codes"),
        (Method::DELETE, "/console/tools"),
        (Method::GET, "/console/assets/missing"),
        (Method::GET, style.as_str()),
    ] {
        assert_headers(&fixture.send(method, path, &[], "").await, path);
    }
    let asset = fixture.send(Method::GET, &style, &[], "").await;
    assert_eq!(asset.status, StatusCode::OK);
    assert!(asset.headers["cache-control"].to_str().unwrap().contains("immutable"));
}

/// An API with long lists and long texts.
fn large_api(method: &Method, path: &str) -> (StatusCode, Value) {
    let long = "A description that says what the tool does, at some length. ".repeat(40);
    let path = path.split('?').next().unwrap().strip_prefix("/api/v1").unwrap();
    let names = || 0..500;
    let body = match path {
        // As many as the API returns for the limit that the page asks for.
        "/tools" => {
            json!({"tools": names().take(50).map(|n| json!({"name": format!("tool_{n}"), "source": "server", "description": long})).collect::<Vec<_>>(), "next": "tool_050@server"})
        }
        "/servers" => {
            json!({"servers": names().map(|n| json!({"name": format!("server_{n}"), "state": "down", "problem": long})).collect::<Vec<_>>()})
        }
        "/statistics" => {
            json!({"statistics": names().map(|n| json!({"tool": format!("tool_{n}"), "source": "server", "weighted_calls": n, "success_rate": 1.0})).collect::<Vec<_>>()})
        }
        "/cluster" => {
            let processes: Vec<_> = names()
                .map(|n| json!({"process": format!("{n:016x}"), "name": long, "state": "seen", "last_seen_at": 1}))
                .collect();
            let held = [(); 5].map(|()| json!({"tool": long}));
            json!({"gateways": processes, "sessions": names().map(|n| json!({"server": format!("server_{n}"), "gateway": long})).collect::<Vec<_>>(),
                "workers": names().map(|n| json!({"name": format!("group_{n}"), "problem": long, "awaiting_approval": held,
                    "processes": processes.iter().take(2).collect::<Vec<_>>()})).collect::<Vec<_>>()})
        }
        "/approvals" => {
            json!({"approvals": names().map(|n| json!({"approval": n, "text": long})).collect::<Vec<_>>()})
        }
        "/settings" => {
            json!({"files": [], "values": names().map(|n| json!({"key": format!("key.{n}"), "value": long, "origin": "default"})).collect::<Vec<_>>()})
        }
        "/import" => {
            json!({"servers": names().map(|n| json!({"name": format!("server_{n}"), "endpoint": long, "state": "new"})).collect::<Vec<_>>()})
        }
        _ => return hostile_api(method, &format!("/api/v1{path}")),
    };
    (StatusCode::OK, body)
}

#[tokio::test]
async fn pages_stay_small() {
    let fixture = Fixture::new(false, large_api);
    let session = fixture.operator().await;
    for path in [
        "/",
        "/console/tools",
        "/console/servers",
        "/console/cluster",
        "/console/approvals",
        "/console/settings",
        "/console/servers?import=1",
    ] {
        let page = fixture.get(path, &session).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.body.len() <= MAX_PAGE_BYTES, "{path} has {} bytes", page.body.len());
    }
}

/// An API with two tools of one name.
fn shared_name_api(method: &Method, path: &str) -> (StatusCode, Value) {
    if !path.starts_with("/api/v1/tools?") {
        return hostile_api(method, path);
    }
    let tool = |source: &str, call_as: &str| json!({"name": "read", "source": source, "call_as": call_as});
    (StatusCode::OK, json!({"tools": [tool("files", "read"), tool("notes", "notes.read")]}))
}

#[tokio::test]
async fn tools_with_a_shared_name_show_how_they_are_called() {
    let fixture = Fixture::new(false, shared_name_api);
    let page = fixture.get("/console/tools", &fixture.operator().await).await.body;
    assert!(page.contains("Called as <span class=\"mono\">notes.read</span>"), "{page}");
    assert_eq!(page.matches("Called as").count(), 1, "only where it differs from the name");
}

/// An API that offers nothing.
fn empty_api(_: &Method, _: &str) -> (StatusCode, Value) {
    (StatusCode::NOT_FOUND, json!({"error": {"message": "unknown path", "code": "route_not_found"}}))
}

#[tokio::test]
async fn what_is_not_offered_is_said() {
    let fixture = Fixture::new(false, empty_api);
    let session = fixture.operator().await;
    for (path, text) in [
        ("/console/approvals", "This gateway offers no agents."),
        ("/console/agents", "This gateway does not offer this."),
        ("/console/audit", "This gateway keeps no audit log."),
        ("/console/settings", "This gateway does not show its settings."),
        ("/console/runs", "This gateway has no agents."),
        ("/console/chat", "This gateway has no agents."),
        ("/console/cluster", "This gateway is in no cluster."),
    ] {
        let page = fixture.get(path, &session).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.body.contains(text), "{path}");
    }
    for path in ["/console/runs", "/console/chat"] {
        for language in ["en", "zh"] {
            let page = fixture.get(&format!("{path}?lang={language}"), &session).await;
            assert!(page.body.contains("toolyard models add NAME --url URL --model ID"), "{}", page.body);
        }
    }
    let to_chat = "<a class=\"button primary\" href=\"/console/chat\">";
    assert!(!fixture.get("/console/runs", &session).await.body.contains(to_chat), "a dead end");
    let offering = Fixture::new(false, hostile_api);
    let runs = offering.get("/console/runs", &offering.operator().await).await;
    assert!(runs.body.contains(to_chat), "{}", runs.body);
    let chat = fixture.get("/console/chat", &session).await;
    assert!(!chat.body.contains("name=\"question\""), "no question can be asked");
}

#[tokio::test]
async fn a_gateway_without_servers_begins_with_the_first_steps() {
    let api: fn(&Method, &str) -> (StatusCode, Value) = |method, path| match path {
        "/api/v1/servers" => (StatusCode::OK, json!({"servers": []})),
        "/api/v1/import" => hostile_api(method, path),
        _ => empty_api(method, path),
    };
    let fixture = Fixture::new(false, api);
    let session = fixture.operator().await;
    let page = fixture.get("/", &session).await.body;
    for step in [
        "\"/console/servers\"",
        "toolyard connect claude",
        "\"/console/tools/calculate\"",
        "toolyard models add",
    ] {
        assert!(page.contains(step), "{step} is missing in {page}");
    }
    assert!(
        fixture.get("/console/servers", &session).await.body.contains("action=\"/console/import-servers\"")
    );
    let page = fixture.get("/console/servers", &fixture.caller().await).await.body;
    assert!(page.contains("toolyard import") && !page.contains("/console/import-servers"), "{page}");
}

#[tokio::test]
async fn agents_are_added_changed_and_removed() {
    let fixture = Fixture::new(false, hostile_api);
    let session = fixture.operator().await;
    let csrf = fixture.get("/console/agents/clerk", &session).await.csrf();
    let page = fixture
        .post(
            "/console/add-agent",
            &session,
            &format!("csrf={csrf}&name=helper&tools=a%0D%0Ab&tool_calling=on"),
        )
        .await;
    assert_eq!(page.location(), "/console/agents?saved=helper");
    let page = fixture
        .post("/console/agents/clerk", &session, &format!("csrf={csrf}&description=new&limit-steps=4"))
        .await;
    assert_eq!(page.location(), "/console/agents?saved=clerk");
    let page = fixture.post("/console/agents/clerk/remove", &session, &format!("csrf={csrf}")).await;
    assert_eq!(page.location(), "/console/agents?removed=clerk");
    let changes = fixture.changes();
    let sent: Vec<_> = changes.iter().map(|(_, method, path, _)| (method.as_str(), path.as_str())).collect();
    assert_eq!(
        sent,
        [("POST", "/api/v1/agents"), ("PUT", "/api/v1/agents/clerk"), ("DELETE", "/api/v1/agents/clerk")]
    );
    assert_eq!(changes[0].3["config"]["tools"], json!(["a", "b"]));
    assert_eq!(changes[1].3["config"]["limits"]["steps"], json!(4));
    let page =
        fixture.post("/console/add-agent", &session, &format!("csrf={csrf}&name=x&limit-steps=many")).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.body.contains("Steps must be a number."));
}

/// An API with 40 runs of 40 conversations.
fn many_runs_api(method: &Method, path: &str) -> (StatusCode, Value) {
    let run = |number: usize| json!({"run": format!("R{number}"), "state": "answered", "question": format!("Question {number}?"), "conversation": format!("c{number}"), "created_at": 1});
    match path {
        "/api/v1/runs?limit=40" => (StatusCode::OK, json!({"runs": (0..40).map(run).collect::<Vec<_>>()})),
        "/api/v1/runs?conversation=c3&limit=20" => (StatusCode::OK, json!({"runs": [run(3)]})),
        "/api/v1/runs/R3" => (
            StatusCode::OK,
            json!({"run": "R3", "state": "answered", "question": "Question 3?", "answer": "42"}),
        ),
        "/api/v1/runs?conversation=lost&limit=20" => (StatusCode::OK, json!({"runs": [run(9)]})),
        path => hostile_api(method, path),
    }
}

#[tokio::test]
async fn the_chat_reads_the_runs_of_its_conversation_only() {
    let fixture = Fixture::new(false, many_runs_api);
    let session = fixture.operator().await;
    let page = fixture.get("/console/chat?conversation=c3", &session).await.body;
    assert!(page.contains("42") && page.contains("Question 19?") && !page.contains("Question 20?"));
    let expected = ["/overview", "/runs?limit=40", "/agents", "/runs?conversation=c3&limit=20", "/runs/R3"];
    assert_eq!(fixture.reads(), expected.map(|path| format!("/api/v1{path}")));
    let fragment = fixture.get("/console/chat/fragment?conversation=c3", &session).await;
    assert!(fragment.body.contains("42") && !fragment.body.contains("Question 19?"));
    assert_eq!(fixture.reads().len(), expected.len() + 2, "the fragment reads the conversation only");
    let lost = fixture.get("/console/chat?conversation=lost", &session).await;
    assert_eq!(lost.status, StatusCode::NOT_FOUND, "a run that cannot be read is no empty conversation");
}

/// The targets of all links of a page.
fn links(page: &Page) -> Vec<String> {
    let links = page.body.split("<a ").skip(1).filter_map(|part| part.split("href=\"").nth(1));
    links.map(|link| link.split('"').next().unwrap().replace("&#38;", "&")).collect()
}

#[tokio::test]
async fn pages_after_a_form_have_no_dead_links() {
    let fixture = Fixture::new(false, hostile_api);
    let session = fixture.operator().await;
    let csrf = fixture.get("/", &session).await.csrf();
    for (path, fields) in [
        ("/console/runs/01RUN/approve", "approval=7&decision=allow&return_to=approvals"),
        ("/console/runs/missing/approve", "approval=9&decision=deny"),
        ("/console/runs/missing/cancel", ""),
        ("/console/runs/01RUN/resolve", "step=x"),
        ("/console/servers", "name=x"),
        ("/console/servers/x", "action=connect"),
        ("/console/servers/x", ""),
        ("/console/servers/x/approve", "tool=c0ffee%20x"),
        ("/console/servers/x/sign-in", ""),
        ("/console/import-servers", "server=x"),
        ("/console/import-servers", ""),
        ("/console/chat", "question="),
    ] {
        let mut page = fixture.post(path, &session, &format!("csrf={csrf}&{fields}")).await;
        if page.status == StatusCode::SEE_OTHER {
            page = fixture.get(page.location(), &session).await;
            assert_eq!(page.status, StatusCode::OK, "{path}");
        }
        for link in links(&page).iter().filter(|link| link.contains("lang=") || link.contains("theme=")) {
            let target = fixture.get(link, &session).await;
            let is_found = target.status == StatusCode::OK || target.status == StatusCode::SEE_OTHER;
            assert!(is_found, "{path} links to {link}: {}", target.status);
        }
    }
    assert_eq!(fixture.get("/console/sign-out?lang=zh", &session).await.location(), "/");
    assert_eq!(
        fixture.get("/console/agents/clerk/remove", &session).await.location(),
        "/console/agents/clerk"
    );
    assert_eq!(fixture.get("/console", &session).await.location(), "/");
    let page = fixture.post("/console/runs", &session, "").await;
    assert_eq!(page.status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(page.body.contains("does not accept such a request"));
}

#[tokio::test]
async fn changes_of_servers_and_an_import_say_what_was_done() {
    let fixture = Fixture::new(false, hostile_api);
    let session = fixture.operator().await;
    let csrf = fixture.get("/", &session).await.csrf();
    let post = async |path: &str, fields: &str, said: &str| {
        let page = fixture.post(path, &session, &format!("csrf={csrf}&{fields}")).await;
        assert!(fixture.get(page.location(), &session).await.body.contains(said), "{}", page.location());
    };
    post("/console/servers/x", "action=connect", "The server is connected").await;
    post("/console/servers/x", "action=stop", "The server is stopped in this gateway.").await;
    post("/console/servers/x", "action=disable", "The gateway applies them within seconds.").await;
    post("/console/servers/x", "action=trust", "The gateway applies them within seconds.").await;
    post("/console/servers/x/approve", "tool=c0ffee+read&tool=beef+write", "The definitions are approved")
        .await;
    let added = "name=files&command=npx&args=-y%0D%0Afiles&url=";
    post("/console/servers", added, "The gateway applies them within seconds.").await;
    let page =
        fixture.post("/console/import-servers", &session, &format!("csrf={csrf}&server=a&server=b")).await;
    assert_eq!(page.location(), "/console/servers?imported=a%2C%20b");
    assert!(fixture.get(page.location(), &session).await.body.contains("Imported servers: a, b"));
    let sent = fixture.changes();
    let sent: Vec<_> = sent
        .iter()
        .map(|(_, method, path, body)| (method.as_str(), path.trim_start_matches("/api/v1"), body))
        .collect();
    let definitions =
        json!({"tools": [{"name": "read", "definition": "c0ffee"}, {"name": "write", "definition": "beef"}]});
    let expected = [
        ("POST", "/servers/x/connect", &json!({})),
        ("POST", "/servers/x/stop", &json!({})),
        ("PATCH", "/servers/x", &json!({"enabled": false})),
        ("PATCH", "/servers/x", &json!({"trusted": true})),
        ("POST", "/servers/x/approve", &definitions),
        (
            "POST",
            "/servers",
            &json!({"name": "files", "command": "npx", "args": ["-y", "files"], "url": null}),
        ),
        ("POST", "/import", &json!({"servers": ["a", "b"]})),
    ];
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn callers_see_no_server_controls() {
    let fixture = Fixture::new(false, hostile_api);
    let session = fixture.caller().await;
    let page = fixture.get("/console/servers/x", &session).await.body;
    assert!(!page.contains("name=\"action\"") && !page.contains("/approve\""), "{page}");
    assert!(!fixture.get("/console/servers", &session).await.body.contains("Add a server"));
    assert!(!fixture.reads().iter().any(|path| path.ends_with("/details")));
}

#[tokio::test]
async fn the_operator_signs_in_to_a_server() {
    let fixture = Fixture::new(false, hostile_api);
    let session = fixture.operator().await;
    let page = fixture.get("/console/servers/x", &session).await;
    assert!(page.body.contains("/sign-in\"") && page.body.contains("requires a sign-in"), "{}", page.body);
    let csrf = page.csrf();
    let refused = fixture.post("/console/servers/x/sign-in", &session, "csrf=forged").await;
    assert!(!refused.body.contains("t1cket"));
    let page = fixture.post("/console/servers/x/sign-in", &session, &format!("csrf={csrf}")).await;
    assert!(page.body.contains("href=\"https://tools.example/sign-in/t1cket\""), "{}", page.body);
    let page = fixture.post("/console/servers/hostile/sign-in", &session, &format!("csrf={csrf}")).await;
    assert!(!page.body.contains("href=\"javascript:"), "{}", page.body);
    let sent: Vec<String> = fixture.changes().into_iter().map(|(_, _, path, _)| path).collect();
    assert_eq!(sent, ["/api/v1/servers/x/sign-in", "/api/v1/servers/hostile/sign-in"]);
}

/// An API whose store does not answer.
fn failing_api(method: &Method, path: &str) -> (StatusCode, Value) {
    let failing = ["/statistics", "/overview", "/runs?", "/servers/x/", "/import"];
    if failing.iter().any(|part| path.contains(part)) {
        let error = json!({"error": {"message": "the store is away", "code": "store_unavailable"}});
        return (StatusCode::SERVICE_UNAVAILABLE, error);
    }
    hostile_api(method, path)
}

#[tokio::test]
async fn parts_that_cannot_be_read_are_no_empty_parts() {
    let fixture = Fixture::new(false, failing_api);
    let session = fixture.operator().await;
    for path in ["/", "/console/tools", "/console/servers/x", "/console/servers?import=1"] {
        let page = fixture.get(path, &session).await.body;
        assert!(
            page.contains("Some data could not be read.") && page.contains("the store is away"),
            "{path}"
        );
        let separator = if path.contains('?') { '&' } else { '?' };
        let page = fixture.get(&format!("{path}{separator}lang=zh"), &session).await.body;
        assert!(page.contains("部分数据无法读取。") && page.contains("存储没有响应。"), "{path}");
    }
    let csrf = fixture.get("/console/agents", &session).await.csrf();
    let page = fixture.post("/console/servers/x", &session, &format!("csrf={csrf}&action=connect")).await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE, "a failed start is no success");
    assert!(page.body.contains("the store is away"));
}

#[tokio::test]
async fn waiting_approvals_are_counted_in_the_navigation() {
    let fixture = Fixture::new(false, hostile_api);
    let session = fixture.operator().await;
    for path in ["/", "/console/tools", "/console/approvals/badge"] {
        let page = fixture.get(path, &session).await.body;
        assert!(
            page.contains("<span class=\"badge\">3<span class=\"visually-hidden\"> waiting for approval"),
            "{path}"
        );
    }
    let overviews = fixture.reads().into_iter().filter(|path| path.ends_with("/overview")).count();
    assert_eq!(overviews, 3, "each page reads the number once");
    let fixture = Fixture::new(false, empty_api);
    let session = fixture.operator().await;
    assert!(!fixture.get("/console/tools", &session).await.body.contains("class=\"badge\""));
}

#[tokio::test]
async fn the_overview_can_be_refreshed_in_place() {
    let fixture = Fixture::new(false, hostile_api);
    let session = fixture.operator().await;
    let page = fixture.get("/", &session).await.body;
    assert!(page.contains("data-refresh=\"/console/overview/fragment\""));
    let fragment = fixture.get("/console/overview/fragment", &session).await;
    assert_harmless(&fragment.body, "fragment");
    assert!(!fragment.body.contains("<html") && page.contains(fragment.body.trim()), "the same markup");
    assert!(fragment.body.contains("1770 calls in the last hour"), "the line has its number");
}

/// An API with 12 servers that are down, and 20 healthy ones.
fn many_servers_api(method: &Method, path: &str) -> (StatusCode, Value) {
    if path != "/api/v1/servers" {
        return hostile_api(method, path);
    }
    let server = |name: String, state: &str| json!({"name": name, "state": state});
    let down = (0..12).map(|number| server(format!("broken-{number}-"), "down"));
    let healthy = (0..20).map(|number| server(format!("fine-{number}-"), "stopped"));
    (StatusCode::OK, json!({"servers": healthy.chain(down).collect::<Vec<_>>()}))
}

#[tokio::test]
async fn the_overview_lists_all_servers_with_problems_and_few_others() {
    let fixture = Fixture::new(false, many_servers_api);
    let session = fixture.operator().await;
    let page = fixture.get("/console/overview/fragment", &session).await.body;
    let count = |name: &str| page.matches(&format!(">{name}-")).count();
    assert_eq!((count("broken"), count("fine")), (12, 8));
    assert!(page.contains("and 12 more without problems"), "{page}");
    let page = fixture.get("/console/overview/fragment?lang=zh", &session).await.body;
    assert!(page.contains("另有 12 个没有问题"), "{page}");
}

fn held_tools_api(method: &Method, path: &str) -> (StatusCode, Value) {
    if path == "/api/v1/servers/one/details" {
        let tool = |reason: &str| json!({"name": "read", "reason": reason, "whole": {"name": "read"}});
        let held = [tool("new since the first approval"), tool("looks like `get` under a new name")];
        return (StatusCode::OK, json!({"awaiting_approval": held}));
    }
    if path != "/api/v1/servers" {
        return hostile_api(method, path);
    }
    let held = json!({"name": "one", "state": "degraded", "problem": "4 tools await approval", "awaiting_approval": 4});
    let down = json!({"name": "two", "state": "down", "problem": "the server exited"});
    (StatusCode::OK, json!({"servers": [held, down]}))
}

#[tokio::test]
async fn tools_that_await_approval_are_counted_in_the_language_of_the_visitor() {
    let fixture = Fixture::new(false, held_tools_api);
    let session = fixture.operator().await;
    let page = fixture.get("/console/overview/fragment?lang=zh", &session).await.body;
    assert!(page.contains("等待批准的工具：4") && !page.contains("await approval"), "{page}");
    assert!(page.contains("lang=\"en\">the server exited"), "{page}");
    let page = fixture.get("/console/servers/one?lang=zh", &session).await.body;
    assert!(page.contains("\"muted\">新的定义 · <span lang=\"en\">looks like"), "{page}");
}

#[tokio::test]
async fn pagers_keep_the_filter() {
    let fixture = Fixture::new(false, large_api);
    let session = fixture.operator().await;
    let page = fixture.get("/console/tools?source=x&after=y", &session).await;
    let links = links(&page);
    assert!(links.contains(&"/console/tools?source=x".to_owned()), "{links:?}");
    assert!(links.contains(&"/console/tools?source=x&after=tool_050%40server".to_owned()), "{links:?}");
    let page = fixture.get("/console/settings?all=1&from=150", &session).await;
    assert!(self::links(&page).contains(&"/console/settings?all=1&from=300".to_owned()));
}

/// An API with an agent whose texts have hidden characters.
fn hidden_text_api(method: &Method, path: &str) -> (StatusCode, Value) {
    let config = json!({"description": "a\u{200b}b", "instructions": "Be\u{200b} brief.", "tools": ["read\u{200b}_*"], "note": "\u{200b}"});
    match (method, path) {
        (&Method::GET, "/api/v1/agents/clerk") => {
            (StatusCode::OK, json!({"name": "clerk", "origin": "store", "config": config}))
        }
        _ => hostile_api(method, path),
    }
}

#[tokio::test]
async fn saving_an_agent_keeps_texts_that_were_not_touched() {
    let fixture = Fixture::new(false, hidden_text_api);
    let session = fixture.operator().await;
    let page = fixture.get("/console/agents/clerk", &session).await;
    assert!(page.body.contains("Be\\u{200b} brief."), "the form shows hidden characters");
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("csrf", &page.csrf())
        .append_pair("description", "new")
        .append_pair("tool_calling", "on");
    form.append_pair("instructions", "Be\\u{200b} brief.").append_pair("tools", "read\\u{200b}_*\r\nwrite_*");
    fixture.post("/console/agents/clerk", &session, &form.finish()).await;
    let (_, _, _, body) = fixture.changes().pop().unwrap();
    let config = &body["config"];
    assert_eq!(config["description"], "new");
    assert_eq!(config["instructions"], "Be\u{200b} brief.");
    assert_eq!(config["tools"], json!(["read\u{200b}_*", "write_*"]));
    assert_eq!(config["note"], "\u{200b}", "fields without an input are kept");
}

#[tokio::test]
async fn failures_are_translated() {
    let fixture = Fixture::new(false, hostile_api);
    let page = fixture.get("/console/runs/missing?lang=zh", &fixture.operator().await).await;
    assert!(page.body.contains("该运行不存在。"), "{}", page.body);
    assert!(
        page.body.contains("<p class=\"hint\" lang=\"en\">"),
        "the message of the API is marked as English"
    );
}

/// An API with an approval of a current gateway, which has its parts.
fn parts_api(method: &Method, path: &str) -> (StatusCode, Value) {
    match path {
        "/api/v1/approvals" => (
            StatusCode::OK,
            json!({"approvals": [
                {"approval": 1, "run": "R", "tool": "send_mail", "source": "mail", "text": "may `send_mail` of mail be called?", "effects": "destructive, open world", "arguments": {"to": "all"}, "notes": ["the name was repaired"]},
                {"approval": 2, "run": "R", "text": "short", "arguments": {}, "notes": ["n".repeat(30_000)]},
            ]}),
        ),
        path => hostile_api(method, path),
    }
}

#[tokio::test]
async fn approvals_show_their_parts_in_the_language_of_the_page() {
    let fixture = Fixture::new(false, parts_api);
    let page = fixture.get("/console/approvals?lang=zh", &fixture.operator().await).await.body;
    for expected in [
        "可能破坏数据 · 会访问外部系统",
        "  &#34;to&#34;: &#34;all&#34;",
        "<p class=\"small\" lang=\"en\">the name was repaired</p>",
    ] {
        assert!(page.contains(expected), "{expected} is missing in {page}");
    }
    assert!(!page.contains("may `send_mail`"), "the sentence of the API is not shown beside its parts");
    assert_eq!(page.matches("value=\"allow\"").count(), 1, "long notes cannot be approved either");
}

/// An API whose texts are Chinese, so that every English word on a Chinese page is one of the console.
fn chinese_api(method: &Method, path: &str) -> (StatusCode, Value) {
    fn translate(value: &mut Value) {
        match value {
            Value::String(text) if text.contains(ATTACK) => "文本".clone_into(text),
            Value::Array(values) => values.iter_mut().for_each(translate),
            Value::Object(fields) => {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(key, value)| (if key == ATTACK { "属性".to_owned() } else { key }, value))
                    .collect();
                fields.values_mut().for_each(translate);
            }
            _ => {}
        }
    }
    let (status, mut body) = hostile_api(method, path);
    translate(&mut body);
    (status, body)
}

/// The text of a page without elements that are not for translation: code, and those marked as English.
fn visible_text(html: &str) -> String {
    let mut text = String::new();
    let mut skipped: Vec<&str> = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, after) = part.split_once('>').unwrap_or((part, ""));
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        if let Some(&open) = skipped.last() {
            if tag.starts_with('/') && name == open {
                skipped.pop();
            } else if name == open && !tag.ends_with('/') {
                skipped.push(name);
            }
        } else if ["code", "pre", "script", "title"].contains(&name) && !tag.starts_with('/')
            || tag.contains("lang=\"en\"")
        {
            skipped.push(name);
        }
        if skipped.is_empty() {
            text.push(' ');
            text.push_str(after);
        }
    }
    text
}

/// Names, units and commands are the same in both languages.
const WORDS_OF_BOTH_LANGUAGES: &str = "Toolyard MCP NATS JSON Token UTC API OpenAI ASCII ms s min clerk fixed toolyard open servers add \
    approve runs models native choice json content flag true false serve token settings read_ excel m \
    calculate doctor x VS Code Claude Cursor Codex Gemini toml HTTP secrets secret set env TOKEN NAME \
    PROGRAM connect claude desktop cursor vscode codex gemini undo quot lt gt amp";

#[tokio::test]
async fn chinese_pages_have_no_english_text() {
    let fixture = Fixture::new(false, chinese_api);
    let known: Vec<&str> = WORDS_OF_BOTH_LANGUAGES.split(' ').collect();
    for session in [fixture.operator().await, fixture.caller().await] {
        for path in PATHS.iter().filter(|path| !path.contains("script") && !path.contains("%22")) {
            let separator = if path.contains('?') { '&' } else { '?' };
            let page = fixture.get(&format!("{path}{separator}lang=zh"), &session).await;
            let text = visible_text(&page.body);
            let words = text.split(|letter: char| !(letter.is_ascii_alphabetic() || letter == '_'));
            let words = words.filter(|word| word.contains(|letter: char| letter.is_ascii_alphabetic()));
            let unknown: Vec<&str> = words.filter(|word| !known.contains(word)).collect();
            assert!(unknown.is_empty(), "{path} has {unknown:?}");
        }
    }
}

#[tokio::test]
async fn language_and_theme_are_remembered() {
    let fixture = Fixture::new(false, hostile_api);
    let session = fixture.operator().await;
    let headers = [("cookie", session.as_str()), ("accept-language", "zh-CN")];
    assert!(fixture.send(Method::GET, "/", &headers, "").await.body.contains("lang=\"zh-CN\""));
    let page = fixture.get("/?theme=dark&lang=en", &session).await;
    let cookies: Vec<&str> =
        page.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
    assert!(
        cookies[0].starts_with("toolyard_lang=en; Path=/;")
            && cookies[1].starts_with("toolyard_theme=dark; Path=/;"),
        "{cookies:?}"
    );
    let cookie = format!("{session}; toolyard_theme=dark; toolyard_lang=zh");
    let page = fixture.get("/", &cookie).await;
    assert!(page.body.contains("data-theme=\"dark\"") && page.body.contains("lang=\"zh-CN\""));
    let page = fixture.get("/?theme=%22%3E&lang=xx", &session).await;
    assert!(page.body.contains("data-theme=\"system\""), "unknown choices are ignored");
}
