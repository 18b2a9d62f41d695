//! Signing in and out, sessions, forged forms and roles.

use http::{Method, StatusCode};

use super::fixture::{Fixture, SECRET, TOKEN, hostile_api};
use crate::Role;

fn fixture() -> Fixture {
    Fixture::new(false, hostile_api)
}

#[tokio::test]
async fn visitors_without_a_session_are_sent_to_the_sign_in_page() {
    let fixture = fixture();
    for (path, target) in [
        ("/", "/console/sign-in"),
        ("/console/tools", "/console/sign-in?next=%2Fconsole%2Ftools"),
        ("/console/nothing", "/console/sign-in?next=%2Fconsole%2Fnothing"),
        (
            "/console/chat?conversation=a%26b",
            "/console/sign-in?next=%2Fconsole%2Fchat%3Fconversation%3Da%2526b",
        ),
    ] {
        let page = fixture.send(Method::GET, path, &[("cookie", "toolyard_console=AAAA")], "").await;
        assert_eq!((page.status, page.location()), (StatusCode::SEE_OTHER, target), "{path}");
    }
    let page = fixture.send(Method::POST, "/console/runs/01RUN/approve", &[], "decision=allow").await;
    assert_eq!((page.status, page.location()), (StatusCode::SEE_OTHER, "/console/sign-in"));
    assert!(fixture.changes().is_empty());
}

#[tokio::test]
async fn the_access_token_signs_in_as_caller() {
    let fixture = fixture();
    for wrong in ["", "token=", "token=wrong", &format!("token={TOKEN}x")] {
        let page = fixture.send(Method::POST, "/console/sign-in", &[], wrong).await;
        assert_eq!((page.status, page.session()), (StatusCode::FORBIDDEN, None), "{wrong}");
    }
    let body = format!("token={TOKEN}&next=/console/tools");
    let foreign = [("origin", "http://evil.example")];
    let page = fixture.send(Method::POST, "/console/sign-in", &foreign, &body).await;
    assert_eq!((page.status, page.session()), (StatusCode::FORBIDDEN, None));
    let page = fixture.send(Method::POST, "/console/sign-in", &[], &body).await;
    assert_eq!((page.status, page.location()), (StatusCode::SEE_OTHER, "/console/tools"));
    let cookie = page.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax"), "{cookie}");
    assert!(!cookie.contains(TOKEN));
    assert!(fixture.get("/", &page.session().unwrap()).await.body.contains("Caller"));
    let page = fixture.send(Method::POST, "/console/sign-in", &[("x-forwarded-proto", "https")], &body).await;
    assert!(page.headers["set-cookie"].to_str().unwrap().ends_with("; Secure"));
}

#[tokio::test]
async fn signing_in_continues_with_pages_of_the_console_only() {
    let fixture = fixture();
    for next in [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/console/\r\nx",
        "/console/\\x",
    ] {
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", TOKEN)
            .append_pair("next", next)
            .finish();
        let page = fixture.send(Method::POST, "/console/sign-in", &[], &body).await;
        assert_eq!(page.location(), "/", "{next}");
    }
}

#[tokio::test]
async fn a_one_time_link_signs_in_one_operator() {
    let fixture = fixture();
    let link = fixture.console.sign_in_path().unwrap();
    let preview = fixture.send(Method::HEAD, &link, &[], "").await;
    assert_eq!(preview.session(), None, "a preview of the link does not use it");
    let page = fixture.send(Method::GET, &link, &[], "").await;
    assert_eq!((page.status, page.location()), (StatusCode::SEE_OTHER, "/"));
    assert!(fixture.get("/", &page.session().unwrap()).await.body.contains("Operator"));
    let again = fixture.send(Method::GET, &link, &[], "").await;
    assert_eq!((again.status, again.session()), (StatusCode::FORBIDDEN, None));
    let code = link.split_once('=').unwrap().1;
    assert!(!again.body.contains(code), "the code is in no link of the page");
}

#[tokio::test]
async fn codes_need_the_secret_of_the_operator() {
    let fixture = fixture();
    for wrong in [None, Some(""), Some("wrong"), Some(TOKEN)] {
        let headers: Vec<_> = wrong.map(|wrong| ("x-toolyard-operator", wrong)).into_iter().collect();
        let page = fixture.send(Method::POST, "/console/sign-in-codes", &headers, "").await;
        assert_eq!((page.status, page.body.as_str()), (StatusCode::FORBIDDEN, ""));
    }
    let page =
        fixture.send(Method::POST, "/console/sign-in-codes", &[("x-toolyard-operator", SECRET)], "").await;
    let answer: serde_json::Value = serde_json::from_str(&page.body).unwrap();
    let link = format!("/console/sign-in?code={}", answer["code"].as_str().unwrap());
    assert!(fixture.send(Method::GET, &link, &[], "").await.session().is_some());
}

#[tokio::test]
async fn signing_out_ends_the_session() {
    let fixture = fixture();
    let session = fixture.caller().await;
    let csrf = fixture.get("/", &session).await.csrf();
    let page = fixture.post("/console/sign-out", &session, &format!("csrf={csrf}")).await;
    assert_eq!(page.session().as_deref(), Some("toolyard_console="));
    assert_eq!(
        fixture.get("/", &session).await.status,
        StatusCode::SEE_OTHER,
        "the cookie is worth nothing anymore"
    );
}

#[tokio::test]
async fn forged_forms_change_nothing() {
    let fixture = fixture();
    let session = fixture.operator().await;
    let csrf = fixture.get("/", &session).await.csrf();
    let other = fixture.get("/", &fixture.operator().await).await.csrf();
    let paths = [
        "/console/sign-out",
        "/console/runs/01RUN/approve",
        "/console/runs/01RUN/resolve",
        "/console/runs/01RUN/cancel",
        "/console/runs/01RUN/resume",
        "/console/chat",
        "/console/add-agent",
        "/console/agents/clerk",
        "/console/agents/clerk/remove",
        "/console/tools/x",
        "/console/servers/x",
        "/console/import-servers",
    ];
    for path in paths {
        for token in ["", "x", &other] {
            let body =
                format!("csrf={token}&decision=allow&approval=7&outcome=done&question=x&server=x&name=x");
            assert_eq!(fixture.post(path, &session, &body).await.status, StatusCode::FORBIDDEN, "{path}");
        }
        for header in [
            ("origin", "http://localhost:3000"),
            ("origin", "null"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "cross-site"),
        ] {
            let headers = [("cookie", session.as_str()), header];
            let page = fixture.send(Method::POST, path, &headers, &format!("csrf={csrf}")).await;
            assert_eq!(page.status, StatusCode::FORBIDDEN, "{path} {header:?}");
        }
    }
    assert!(fixture.changes().is_empty());
    assert_eq!(fixture.get("/", &session).await.status, StatusCode::OK, "still signed in");
}

#[tokio::test]
async fn requests_to_the_api_have_the_role_of_the_session() {
    let fixture = fixture();
    for (session, role) in
        [(fixture.operator().await, Role::Operator), (fixture.caller().await, Role::Caller)]
    {
        let csrf = fixture.get("/", &session).await.csrf();
        let body = format!("csrf={csrf}&approval=7&decision=allow-run&return_to=approvals");
        let page = fixture.post("/console/runs/01RUN/approve", &session, &body).await;
        assert_eq!(page.location(), "/console/approvals?decided=allow-run");
        let (sent, _, path, body) = fixture.changes().pop().unwrap();
        assert_eq!((sent, path.as_str()), (role, "/api/v1/approvals/7"));
        assert_eq!(body, serde_json::json!({"allow": true, "scope": "run"}));
    }
}

#[tokio::test]
async fn without_authentication_everybody_is_a_caller_with_a_session() {
    let fixture = Fixture::new(true, hostile_api);
    let page = fixture.send(Method::GET, "/?lang=zh", &[], "").await;
    let session = page.session().unwrap();
    assert_eq!(page.headers.get_all("set-cookie").iter().count(), 2, "session and language");
    assert!(page.body.contains("普通访问"));
    let forged = fixture.post("/console/runs/01RUN/approve", &session, "approval=7&decision=deny").await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    let asset =
        page.body.split("href=\"").find(|part| part.contains(".css")).unwrap().split('"').next().unwrap();
    let asset = fixture.send(Method::GET, asset, &[], "").await;
    assert_eq!((asset.status, asset.session()), (StatusCode::OK, None), "caches keep no session");
    let operator = fixture.operator().await;
    assert!(fixture.get("/", &operator).await.body.contains("Operator"), "a link still signs in as operator");
}
