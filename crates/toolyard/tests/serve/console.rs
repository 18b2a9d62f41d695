//! The console beside the API: signing in with `toolyard open`, and what its cookie is not good for.

use reqwest::{Client, Response, redirect::Policy};
use serde_json::Value;

use crate::{
    client::HttpGateway,
    home_with_server,
    test_home::{TestHome, named_tool},
};

/// A browser that shows redirects and remembers nothing.
fn browser() -> Client {
    Client::builder().redirect(Policy::none()).build().unwrap()
}

fn session_cookie(response: &Response) -> String {
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn open_signs_in_to_the_running_gateway_once() {
    let home = home_with_server();
    let none = home.run(&["open", "--no-browser"]);
    assert!(none.contains("hint: start it with toolyard serve --http"), "{none}");
    let gateway = HttpGateway::start(&home, &[]);
    let (url, browser) = (gateway.url.trim_end_matches("/mcp").to_owned(), browser());
    assert!(gateway.stderr().contains("  console: http://127.0.0.1:"), "{}", gateway.stderr());
    assert!(!gateway.stderr().contains("code="), "a log has no link that signs in: {}", gateway.stderr());

    let opened = home.run(&["open", "--no-browser", "--json"]);
    let opened: Value = serde_json::from_str(opened.split("--- stderr").next().unwrap()).unwrap();
    let link = opened["url"].as_str().unwrap();
    assert!(link.starts_with(&format!("{url}/console/sign-in?code=")), "{link}");
    let signed_in = browser.get(link).send().await.unwrap();
    assert_eq!((signed_in.status().as_u16(), &signed_in.headers()["location"]), (303, &"/".parse().unwrap()));
    let cookie = session_cookie(&signed_in);
    assert_eq!(browser.get(link).send().await.unwrap().status(), 403, "a link works once");

    let get = |path: &str| browser.get(format!("{url}{path}")).header("Cookie", &cookie).send();
    let overview = get("/").await.unwrap();
    assert_eq!(overview.headers()["content-type"], "text/html; charset=utf-8");
    assert!(
        overview.headers()["content-security-policy"].to_str().unwrap().contains("frame-ancestors 'none'")
    );
    let overview = overview.text().await.unwrap();
    assert!(overview.contains("Operator") && overview.contains("fake"), "{overview}");
    assert_eq!(get("/console/settings").await.unwrap().status(), 200);
    assert_eq!(get("/api/v1/servers").await.unwrap().status(), 401, "the cookie is not for the API");
    assert_eq!(get("/mcp").await.unwrap().status(), 401, "the cookie is not for MCP");

    let foreign = browser.get(format!("{url}/")).header("Host", "evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    let anonymous = browser.get(format!("{url}/")).send().await.unwrap();
    assert_eq!(anonymous.headers()["location"], "/console/sign-in");
    let forged = browser.post(format!("{url}/console/sign-in-codes")).header("X-Toolyard-Operator", "x");
    assert_eq!(forged.send().await.unwrap().status(), 403);
    assert!(!gateway.stderr().contains("code="), "{}", gateway.stderr());
}

#[tokio::test]
async fn a_tool_is_called_with_the_form_of_its_page() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let (url, browser) = (gateway.url.trim_end_matches("/mcp").to_owned(), browser());
    let token = gateway.token.clone().unwrap();
    let signed_in = browser.post(format!("{url}/console/sign-in")).body(format!("token={token}"));
    let cookie = session_cookie(&signed_in.send().await.unwrap());
    let page = format!("{url}/console/tools/calculate");
    let form = browser.get(&page).header("Cookie", &cookie).send().await.unwrap().text().await.unwrap();
    assert!(form.contains("name=\"arg:expression\""), "{form}");
    let csrf = form.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let call = |body: String| browser.post(&page).header("Cookie", &cookie).body(body).send();
    let answer = call(format!("csrf={csrf}&arg:expression=2%5E10")).await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer = answer.text().await.unwrap();
    assert!(answer.contains(">1024</pre>"), "{answer}");
    assert_eq!(call("arg:expression=2%5E10".to_owned()).await.unwrap().status(), 403, "a forged form");
}

#[tokio::test]
async fn a_server_cannot_pass_on_the_secrets_of_the_gateway() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    home.set_tools("fake", &[named_tool("read_file")]);
    home.run(&["servers", "test"]);
    let gateway = HttpGateway::start(&home, &[]);
    let token = gateway.token.clone().unwrap();
    let announcements = std::fs::read_dir(home.path("data/toolyard/serve/hubs")).unwrap();
    let announcement = announcements.map(|entry| entry.unwrap().path()).next().unwrap();
    let announced: Value = serde_json::from_str(&std::fs::read_to_string(&announcement).unwrap()).unwrap();
    let secret = announced["operator_secret"].as_str().unwrap();
    for file in [announcement.clone(), home.path("data/toolyard/serve/token")] {
        let url = gateway.url.replace("/mcp", "/api/v1/tools/read_file/call");
        let body = serde_json::json!({"arguments": {"path": file}}).to_string();
        let call = gateway.http.post(url).bearer_auth(&token).body(body);
        let result = call.send().await.unwrap().text().await.unwrap();
        assert!(result.contains("[redacted:environment]"), "{result}");
        assert!(!result.contains(secret) && !result.contains(&token), "{result}");
    }
    let log = home.run(&["servers", "logs", "fake"]);
    assert!(!log.contains(secret) && !log.contains(&token), "{log}");
}
