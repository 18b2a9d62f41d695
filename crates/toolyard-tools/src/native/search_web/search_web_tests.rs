//! Searches against a test server with valid, invalid and missing responses.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use toolyard_core::SecretText;

use super::*;

/// A server that sends the same response to every request and records the last request.
struct TestServer {
    url: String,
    last_request: Arc<Mutex<String>>,
}

async fn server(status: &str, body: impl Into<Vec<u8>>) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let last_request = Arc::new(Mutex::new(String::new()));
    let (recorded, body) = (Arc::clone(&last_request), body.into());
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0_u8; 16_384];
            let mut length = 0;
            while let Ok(read @ 1..) = stream.read(&mut request[length..]).await {
                length += read;
                let text = String::from_utf8_lossy(&request[..length]).into_owned();
                if text.starts_with("GET") && text.ends_with("\r\n\r\n") || text.ends_with('}') {
                    break;
                }
            }
            *recorded.lock() = String::from_utf8_lossy(&request[..length]).into_owned();
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&body).await;
        }
    });
    TestServer { url, last_request }
}

async fn search(settings: SearchSettings, arguments: Value) -> Result<ToolOutput, ToolError> {
    let context = CallContext::until(Instant::now() + Duration::from_secs(20));
    let tool = SearchWeb::new(settings.engine());
    tool.call(&ToolCallRequest::new("search_web", arguments), &context).await
}

async fn search_searxng(status: &str, body: impl Into<Vec<u8>>) -> Result<ToolOutput, ToolError> {
    let server = server(status, body).await;
    search(SearchSettings::Searxng { url: server.url }, json!({"query": "rust"})).await
}

fn results(count: usize) -> String {
    let hit = |index| json!({"title": format!("T{index}"), "url": format!("https://e.org/{index}"), "content": "c"});
    json!({"results": (1..=count).map(hit).collect::<Vec<_>>()}).to_string()
}

#[tokio::test]
async fn the_three_best_are_listed() {
    let output = search_searxng("200 OK", results(9)).await.unwrap();
    assert_eq!(
        output.to_text(),
        "1. T1\n   https://e.org/1\n   c\n2. T2\n   https://e.org/2\n   c\n3. T3\n   https://e.org/3\n   c"
    );
    assert_eq!(output.to_json()["results"].as_array().unwrap().len(), 3);
    assert_eq!(search_searxng("200 OK", results(0)).await.unwrap().to_text(), "nothing was found");
}

#[tokio::test]
async fn each_engine_gets_its_own_request_format() {
    let searxng = server("200 OK", results(2)).await;
    let settings = SearchSettings::Searxng { url: format!("{}/", searxng.url) };
    search(settings, json!({"query": "a&b=c #d"})).await.unwrap();
    assert!(searxng.last_request.lock().starts_with("GET /search?q=a%26b%3Dc+%23d&format=json "));

    let brave = server(
        "200 OK",
        json!({"web": {"results": [{"title": "B", "url": "https://b.org", "description": "d"}]}}).to_string(),
    )
    .await;
    let settings = SearchSettings::Brave { key: SecretText::new("sesame"), url: Some(brave.url.clone()) };
    let output = search(settings, json!({"query": "x", "limit": 500})).await.unwrap();
    assert_eq!(output.to_text(), "1. B\n   https://b.org\n   d");
    let request = brave.last_request.lock().to_lowercase();
    assert!(
        request.starts_with("get /res/v1/web/search?q=x&count=20")
            && request.contains("x-subscription-token: sesame")
    );

    let tavily = server("200 OK", results(2)).await;
    let settings = SearchSettings::Tavily { key: SecretText::new("sesame"), url: Some(tavily.url.clone()) };
    search(settings, json!({"query": "x", "limit": 0})).await.unwrap();
    let request = tavily.last_request.lock().to_lowercase();
    assert!(request.starts_with("post /search ") && request.contains("authorization: bearer sesame"));
    assert!(request.contains(r#"{"query":"x","max_results":1}"#));
}

#[tokio::test]
async fn invalid_responses_fail_and_titles_are_sanitized() {
    let invalid_bodies = [
        "",
        "not json",
        "<html><body>Sorry</body></html>",
        "[]",
        "{}",
        "null",
        r#"{"results": 7}"#,
        "{\"results\": [",
    ];
    for body in invalid_bodies {
        let error = search_searxng("200 OK", body).await.unwrap_err();
        assert!(error.message().contains("sent an invalid response"), "{body}: {error}");
    }
    let body = json!({"results": [
        {"title": "no address"}, 7, null, {"url": "javascript:alert(1)", "title": "x"}, {"url": 5},
        {"url": "https://e.org", "title": "a\u{1b}[31m\nb\u{7}", "content": ["not text"]},
        {"url": "https://f.org", "content": "x".repeat(100_000)},
    ]});
    let output = search_searxng("200 OK", body.to_string()).await.unwrap();
    assert!(
        output.to_text().starts_with("1. a b\n   https://e.org\n2. https://f.org\n   https://f.org\n   xxx")
    );
    assert!(output.to_text().len() < 1_000);
}

#[tokio::test]
async fn a_huge_response_is_not_read_completely() {
    let error = search_searxng("200 OK", vec![b' '; 5 << 20]).await.unwrap_err();
    assert!(error.message().contains("more than 2097152 bytes"), "{error}");
}

#[tokio::test]
async fn http_errors_are_marked_retryable_or_not() {
    for (status, retryable) in
        [("401 No", false), ("403 No", false), ("429 Slow", true), ("503 Down", true), ("404 No", false)]
    {
        let error = search_searxng(status, "").await.unwrap_err();
        assert_eq!((error.kind(), error.retryable()), (ErrorKind::Failed, retryable), "{status}");
        assert!(error.hint().is_some(), "{status}");
    }
    let moved = search_searxng("302 Found\r\nlocation: http://127.0.0.1:1/", "").await.unwrap_err();
    assert!(moved.message().contains("HTTP 302"));
}

#[tokio::test]
async fn an_unreachable_server_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://user:hunter2@{}", listener.local_addr().unwrap());
    drop(listener);
    let error = search(SearchSettings::Searxng { url }, json!({"query": "x"})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(!format!("{error:?}").contains("hunter2"));
    let error = search(SearchSettings::Searxng { url: "no address".into() }, json!({"query": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
}

#[tokio::test]
async fn keys_are_in_no_error_and_no_debug_form() {
    let settings =
        SearchSettings::Tavily { key: SecretText::new("sesame\n"), url: Some("http://127.0.0.1:1".into()) };
    assert!(!format!("{settings:?}").contains("sesame"));
    let error = search(settings, json!({"query": "x"})).await.unwrap_err();
    assert!(!format!("{error:?} {error}").contains("sesame"));
}

#[tokio::test]
async fn without_an_engine_the_hint_says_what_to_set() {
    let error = search(SearchSettings::None, json!({"query": "x"})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.hint().unwrap().contains("[web_search]"));
    assert!(!error.retryable());
}
