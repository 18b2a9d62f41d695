//! All pages with hostile data: nothing runs, nothing is too long, both languages are complete.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::fixture::{ATTACK, Fixture, Page, hostile_api};
use crate::security_headers::CONTENT_SECURITY_POLICY;

const MAX_PAGE_BYTES: usize = 100_000;
const PATHS: [&str; 19] = [
    "/",
    "/console/tools",
    "/console/tools?query=%3Cscript%3Ealert(1)%3C/script%3E&source=%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
    "/console/tools/x?source=%22%3E%3Cscript%3Ealert(1)",
    "/console/servers",
    "/console/servers/x",
    "/console/runs",
    "/console/runs/missing",
    "/console/approvals",
    "/console/agents?saved=%3Cscript%3Ealert(1)%3C/script%3E",
    "/console/agents/clerk",
    "/console/agents/fixed",
    "/console/add-agent",
    "/console/audit?verify=1",
    "/console/settings?changed=1",
    "/console/settings",
    "/console/welcome",
    "/console/chat",
    "/console/%3Cscript%3Ealert(1)%3C/script%3E",
];

/// Nothing in a page is code that the console did not write.
fn assert_harmless(page: &Page, path: &str) {
    let body = &page.body;
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
                assert!(
                    page.status == StatusCode::OK || page.status == StatusCode::NOT_FOUND,
                    "{path}: {}",
                    page.status
                );
                assert_harmless(&page, path);
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
    assert_harmless(&page, "result");
    let (_, _, _, body) = fixture.changes().pop().unwrap();
    assert_eq!(
        body["arguments"],
        json!({shown.as_ref(): "hello", "json": [1, 2], "content": "a\nb", "flag": true})
    );
    let csrf = format!("csrf={csrf}&arg:json=%5B1");
    let page = fixture.post("/console/tools/x", &session, &csrf).await;
    assert_eq!((page.status, fixture.changes().len()), (StatusCode::BAD_REQUEST, 1), "nothing was called");
    assert!(page.body.contains("This is not valid JSON."));
    assert_harmless(&page, "wrong value");
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
            json!({"statistics": names().map(|n| json!({"tool": format!("tool_{n}"), "source": "server", "calls": n, "success_rate": 1.0})).collect::<Vec<_>>()})
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
        "/console/approvals",
        "/console/settings",
        "/console/welcome",
    ] {
        let page = fixture.get(path, &session).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.body.len() <= MAX_PAGE_BYTES, "{path} has {} bytes", page.body.len());
    }
}

/// An API that offers nothing.
fn empty_api(_: &Method, _: &str) -> (StatusCode, Value) {
    (StatusCode::NOT_FOUND, json!({"error": {"message": "unknown path", "code": "route_not_found"}}))
}

#[tokio::test]
async fn what_is_not_offered_is_said() {
    let fixture = Fixture::new(false, empty_api);
    let session = fixture.operator().await;
    for path in
        ["/console/approvals", "/console/agents", "/console/audit", "/console/settings", "/console/runs"]
    {
        let page = fixture.get(path, &session).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.body.contains("class=\"card empty\""), "{path}");
    }
    let page = fixture.get("/console/welcome", &session).await;
    assert!(page.body.contains("toolyard import") && page.body.contains("toolyard models add"));
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
