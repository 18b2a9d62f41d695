//! Servers that fail, temporarily or permanently.

use std::time::Duration;

use tokio::time::Instant;
use toolyard_core::SecretText;
use toolyard_model::ModelErrorKind;

use super::{
    config, send, send_with,
    server::{DONE, Server, Step, response, stream, text_event},
};

fn busy(headers: &str) -> Vec<Step> {
    response("429 Too Many Requests", "application/json", headers, r#"{"error":{"message":"slow down"}}"#)
}

fn hello() -> Vec<Step> {
    stream(&(text_event("Hello.") + DONE))
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_retried_after_the_requested_delay() {
    let server = Server::start([
        busy("Retry-After: 7\r\n"),
        response("503 Busy", "text/plain", "", "loading"),
        response("500 Oh", "text/html", "", "<html>"),
        hello(),
    ])
    .await;
    let started = Instant::now();
    assert_eq!(send(&server).await.unwrap().text, "Hello.");
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_secs(7) && elapsed < Duration::from_secs(12), "{elapsed:?}");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_number_and_delay_of_attempts_is_limited() {
    let server = Server::start([busy("")]).await;
    let error = send(&server).await.unwrap_err();
    assert_eq!((error.kind, server.requests().len()), (ModelErrorKind::Busy, 4));
    assert_eq!(error.usage, None, "no reply has no usage");
    // A longer delay than allowed: no further attempt.
    let server = Server::start([busy("Retry-After: 3600\r\n")]).await;
    let error = send(&server).await.unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("rate limit reached; retry in 3600 s"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_retried() {
    for (status, body, kind) in [
        ("401 Unauthorized", r#"{"error":{"message":"bad key"}}"#, ModelErrorKind::Unauthorized),
        ("400 Bad Request", r#"{"error":{"message":"no such field"}}"#, ModelErrorKind::Unsupported),
        (
            "429 Slow",
            r#"{"error":{"code":"insufficient_quota","message":"pay first"}}"#,
            ModelErrorKind::Rejected,
        ),
        ("307 Moved", "", ModelErrorKind::Rejected),
    ] {
        let server =
            Server::start([response(status, "application/json", "Location: http://127.0.0.1:1/\r\n", body)])
                .await;
        let error = send(&server).await.unwrap_err();
        assert_eq!((error.kind, server.requests().len()), (kind, 1), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_has_started_is_not_retried() {
    let half = vec![
        super::server::head("200 OK", "text/event-stream", ""),
        super::server::write(text_event("Hel")),
        Step::Wait(Duration::from_millis(10)),
        Step::Reset,
    ];
    let server = Server::start([half, hello()]).await;
    let error = send(&server).await.unwrap_err();
    assert_eq!((error.kind, server.requests().len()), (ModelErrorKind::Unreachable, 1), "{error}");
    let usage = error.usage();
    assert!(usage.input > 0 && usage.output == 1, "{usage:?}");
    let server_error =
        text_event("Hel") + "data: {\"error\":{\"code\":500,\"message\":\"out of memory\"}}\n\n";
    let server = Server::start([stream(&server_error), hello()]).await;
    let error = send(&server).await.unwrap_err();
    assert!(error.to_string().contains("out of memory"), "{error}");
    assert_eq!(server.requests().len(), 1);
    // The same error before the first token is retried.
    let server_error = "data: {\"error\":{\"code\":500,\"message\":\"out of memory\"}}\n\n";
    let server = Server::start([stream(server_error), vec![Step::Reset], hello()]).await;
    assert_eq!(send(&server).await.unwrap().text, "Hello.");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_named_without_secrets() {
    let server = Server::start([Vec::new()]).await;
    let mut config = config(&server);
    // A port without a listener.
    config.base_url = "http://user:hunter2pass@127.0.0.1:9/v1?key=abcdef".into();
    config.api_key = Some(SecretText::new("my-odd-key"));
    let error = send_with(config).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    let text = format!("{error:?}");
    assert!(text.contains("http://127.0.0.1:9/v1"), "{text}");
    for secret in ["hunter2pass", "abcdef", "my-odd-key"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_model_has_a_hint_with_the_available_ones() {
    let missing = response(
        "404 Not Found",
        "application/json",
        "",
        r#"{"error":{"message":"model \"qwen\" not found"}}"#,
    );
    let list = response("200 OK", "application/json", "", r#"{"data":[{"id":"llama3"},{"id":"phi4"}]}"#);
    let server = Server::start([missing, list]).await;
    let error = send(&server).await.unwrap_err();
    let hint = error.hint.unwrap();
    assert!(hint.ends_with("has no model `qwen`; available: llama3, phi4"), "{hint}");
}
