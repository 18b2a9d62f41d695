//! Servers that say no, for a while or for good.

use std::time::Duration;

use tokio::time::Instant;
use toolyard_model::{ApiKey, ModelErrorKind};

use crate::{
    ask, ask_with, config,
    server::{DONE, Server, Step, answer, said, stream},
};

fn busy(more: &str) -> Vec<Step> {
    answer("429 Too Many Requests", "application/json", more, r#"{"error":{"message":"slow down"}}"#)
}

fn hello() -> Vec<Step> {
    stream(&(said("Hello.") + DONE))
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_when_it_says() {
    let server = Server::start([
        busy("Retry-After: 7\r\n"),
        answer("503 Busy", "text/plain", "", "loading"),
        answer("500 Oh", "text/html", "", "<html>"),
        hello(),
    ])
    .await;
    let began = Instant::now();
    assert_eq!(ask(&server).await.unwrap().text, "Hello.");
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(7) && took < Duration::from_secs(12), "{took:?}");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_for_ever() {
    let server = Server::start([busy("")]).await;
    let error = ask(&server).await.unwrap_err();
    assert_eq!((error.kind, server.requests().len()), (ModelErrorKind::Busy, 4));
    assert_eq!(error.usage, None, "whoever says nothing costs nothing");
    // More patience than there is: given up at once.
    let server = Server::start([busy("Retry-After: 3600\r\n")]).await;
    let error = ask(&server).await.unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("it takes no more requests now; try again in 3600 s"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_is_not_asked_again() {
    for (status, body, kind) in [
        ("401 Unauthorized", r#"{"error":{"message":"bad key"}}"#, ModelErrorKind::Unauthorized),
        ("400 Bad Request", r#"{"error":{"message":"no such field"}}"#, ModelErrorKind::Unsupported),
        (
            "429 Slow",
            r#"{"error":{"code":"insufficient_quota","message":"pay first"}}"#,
            ModelErrorKind::Refused,
        ),
        ("307 Moved", "", ModelErrorKind::Refused),
    ] {
        let server =
            Server::start([answer(status, "application/json", "Location: http://127.0.0.1:1/\r\n", body)])
                .await;
        let error = ask(&server).await.unwrap_err();
        assert_eq!((error.kind, server.requests().len()), (kind, 1), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn once_it_spoke_it_is_not_asked_again() {
    let half = vec![
        crate::server::head("200 OK", "text/event-stream", ""),
        crate::server::write(said("Hel")),
        Step::Wait(Duration::from_millis(10)),
        Step::Reset,
    ];
    let server = Server::start([half, hello()]).await;
    let error = ask(&server).await.unwrap_err();
    assert_eq!((error.kind, server.requests().len()), (ModelErrorKind::Unreachable, 1), "{error}");
    let used = error.used();
    assert!(used.input > 0 && used.output == 1, "what was heard is paid for: {used:?}");
    let complaint = said("Hel") + "data: {\"error\":{\"code\":500,\"message\":\"out of memory\"}}\n\n";
    let server = Server::start([stream(&complaint), hello()]).await;
    let error = ask(&server).await.unwrap_err();
    assert!(error.to_string().contains("out of memory"), "{error}");
    assert_eq!(server.requests().len(), 1);
    // The same before its first word is asked again.
    let complaint = "data: {\"error\":{\"code\":500,\"message\":\"out of memory\"}}\n\n";
    let server = Server::start([stream(complaint), vec![Step::Reset], hello()]).await;
    assert_eq!(ask(&server).await.unwrap().text, "Hello.");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_named_without_its_secrets() {
    let server = Server::start([Vec::new()]).await;
    let mut config = config(&server);
    // A port that nobody listens at.
    config.base_url = "http://user:hunter2pass@127.0.0.1:9/v1?key=abcdef".into();
    config.key = Some(ApiKey::new("my-odd-key"));
    let error = ask_with(config).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    let told = format!("{error:?}");
    assert!(told.contains("http://127.0.0.1:9/v1"), "{told}");
    for secret in ["hunter2pass", "abcdef", "my-odd-key"] {
        assert!(!told.contains(secret), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_not_there_leads_to_those_that_are() {
    let missing = answer(
        "404 Not Found",
        "application/json",
        "",
        r#"{"error":{"message":"model \"qwen\" not found"}}"#,
    );
    let list = answer("200 OK", "application/json", "", r#"{"data":[{"id":"llama3"},{"id":"phi4"}]}"#);
    let server = Server::start([missing, list]).await;
    let error = ask(&server).await.unwrap_err();
    let hint = error.hint.unwrap();
    assert!(hint.ends_with("has no qwen; it has llama3, phi4"), "{hint}");
}
