//! The client of Anthropic's Messages API with servers that reply, fail or misbehave.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tokio::time::Instant;
use toolyard_core::SecretText;
use toolyard_model::{
    AnthropicModel, FinishReason, ModelError, ModelErrorKind, ModelMessage, ModelReply, ModelRequest,
    ModelServerConfig, ResponseLimits, collect_reply,
};

use crate::openai::server::{Server, Step, head, response, stream, write};

fn config(server: &Server) -> ModelServerConfig {
    ModelServerConfig::new("claude", format!("http://{}", server.address), "claude-x")
}

async fn send_with(config: ModelServerConfig) -> Result<ModelReply, ModelError> {
    let request = ModelRequest { messages: vec![ModelMessage::user("hello")], ..ModelRequest::default() };
    collect_reply(&AnthropicModel::new(config).unwrap(), &request, |_| {}).await
}

async fn send(server: &Server) -> Result<ModelReply, ModelError> {
    send_with(config(server)).await
}

fn event(value: &serde_json::Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
}

/// The beginning of a reply up to this text.
fn start(text: &str) -> String {
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    [
        json!({"type": "message_start", "message": {"usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
    ]
    .iter()
    .map(event)
    .collect()
}

fn end() -> String {
    [
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(event)
    .collect()
}

fn hello() -> Vec<Step> {
    stream(&(start("Hello.") + &end()))
}

fn error_body(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

#[tokio::test]
async fn a_reply_is_streamed() {
    let server = Server::start([hello()]).await;
    let mut config = config(&server);
    config.api_key = Some(SecretText::new("secret-key"));
    let reply = send_with(config).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish_reason), ("Hello.", FinishReason::Stop));
    assert_eq!((reply.usage.input, reply.usage.output), (9, 2));
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(head.starts_with("post /v1/messages "), "{head}");
    assert!(
        head.contains("x-api-key: secret-key") && head.contains("anthropic-version: 2023-06-01"),
        "{head}"
    );
    assert!(!head.contains("authorization"), "{head}");
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_retried_after_the_requested_delay() {
    let overloaded = error_body("overloaded_error", "Overloaded");
    let server = Server::start([
        response(
            "429 Too Many Requests",
            "application/json",
            "Retry-After: 7\r\n",
            &error_body("rate_limit_error", "slow"),
        ),
        response("529 Overloaded", "application/json", "", &overloaded),
        // The same within a stream, before the first token.
        stream(&format!("event: error\ndata: {overloaded}\n\n")),
        hello(),
    ])
    .await;
    let started = Instant::now();
    assert_eq!(send(&server).await.unwrap().text, "Hello.");
    assert!(started.elapsed() >= Duration::from_secs(7));
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn errors_have_their_kind() {
    for (status, kind, message, expected) in [
        ("401 Unauthorized", "authentication_error", "invalid key", ModelErrorKind::Unauthorized),
        (
            "400 Bad Request",
            "invalid_request_error",
            "prompt is too long: 2 > 1",
            ModelErrorKind::ContextOverflow,
        ),
        ("400 Bad Request", "invalid_request_error", "max_tokens: too large", ModelErrorKind::Unsupported),
        ("403 Forbidden", "permission_error", "no", ModelErrorKind::Unauthorized),
    ] {
        let server =
            Server::start([response(status, "application/json", "", &error_body(kind, message))]).await;
        let error = send(&server).await.unwrap_err();
        assert_eq!((error.kind, server.requests().len()), (expected, 1), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[tokio::test]
async fn a_rejected_temperature_is_left_out_from_then_on() {
    let message = "`temperature` is deprecated for this model.";
    let rejected =
        response("400 Bad Request", "application/json", "", &error_body("invalid_request_error", message));
    let server = Server::start([rejected, hello()]).await;
    let model = AnthropicModel::new(config(&server)).unwrap();
    let request = ModelRequest {
        messages: vec![ModelMessage::user("hello")],
        temperature: Some(0.0),
        ..ModelRequest::default()
    };
    for _ in 0..2 {
        assert_eq!(collect_reply(&model, &request, |_| {}).await.unwrap().text, "Hello.");
    }
    let sent: Vec<bool> = server.requests().iter().map(|body| body.get("temperature").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_model_has_a_hint_with_the_available_ones() {
    let missing =
        response("404 Not Found", "application/json", "", &error_body("not_found_error", "model: claude-x"));
    let list = response("200 OK", "application/json", "", r#"{"data":[{"type":"model","id":"claude-y"}]}"#);
    let error = send(&Server::start([missing, list]).await).await.unwrap_err();
    assert!(error.hint.as_deref().unwrap_or_default().ends_with("available: claude-y"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_cut_is_no_reply() {
    let overloaded = format!("event: error\ndata: {}\n\n", error_body("overloaded_error", "Overloaded"));
    let stop_without_reason = event(&json!({"type": "message_stop"}));
    let wrong_index = json!({"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta", "partial_json": "{}"}});
    for (rest, kind) in [
        (String::new(), ModelErrorKind::InvalidResponse),
        (stop_without_reason, ModelErrorKind::InvalidResponse),
        (overloaded, ModelErrorKind::Busy),
        (event(&wrong_index), ModelErrorKind::InvalidResponse),
        ("data: {\"type\"\n\n".to_owned(), ModelErrorKind::InvalidResponse),
    ] {
        let server = Server::start([stream(&(start("Hel") + &rest)), hello()]).await;
        let error = send(&server).await.unwrap_err();
        assert_eq!((error.kind, server.requests().len()), (kind, 1), "{rest}: {error}");
        assert_eq!(error.usage().input, 9, "{rest}");
    }
    let cut = vec![
        head("200 OK", "text/event-stream", ""),
        write(start("Hel")),
        Step::Wait(Duration::from_millis(10)),
        Step::Reset,
    ];
    let error = send(&Server::start([cut]).await).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable, "{error}");
    // A response that is no stream.
    let whole = response("200 OK", "application/json", "", r#"{"type":"message","content":[]}"#);
    let error = send(&Server::start([whole]).await).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidResponse, "{error}");
}

#[tokio::test(start_paused = true)]
async fn unknown_events_and_pings_are_ignored() {
    let unknown = event(&json!({"type": "content_block_review", "index": {"a": []}}));
    let body = unknown.clone() + &start("Hello.") + &unknown + &end();
    assert_eq!(send(&Server::start([stream(&body)]).await).await.unwrap().text, "Hello.");
}

#[tokio::test(start_paused = true)]
async fn pings_do_not_keep_a_reply_alive() {
    let ping = Step::Repeat(event(&json!({"type": "ping"})).into_bytes(), Duration::from_secs(1));
    let server =
        Server::start([vec![head("200 OK", "text/event-stream", ""), write(start("Hel")), ping]]).await;
    let mut config = config(&server);
    config.idle_timeout = Duration::from_secs(5);
    assert_eq!(send_with(config).await.unwrap_err().kind, ModelErrorKind::Timeout);
}

#[tokio::test]
async fn endless_responses_end_at_the_limits() {
    let text = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word ".repeat(1_000)}});
    for flood in [event(&text), event(&json!({"type": "ping"})).repeat(1_000), "data: x".repeat(1_000)] {
        let steps =
            vec![head("200 OK", "text/event-stream", ""), Step::Repeat(flood.into_bytes(), Duration::ZERO)];
        let server = Server::start([steps]).await;
        let mut config = config(&server);
        config.response_limits = ResponseLimits { max_event_bytes: 64 << 10, max_total_bytes: 1 << 20 };
        config.max_attempts = 1;
        let reply = tokio::time::timeout(Duration::from_secs(20), send_with(config));
        let error = reply.await.expect("the request ends").unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::InvalidResponse, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_stream_ends_in_a_reply_or_an_error(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = (start("Hello.") + &end()).into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start([vec![head("200 OK", "text/event-stream", ""), Step::Write(bytes)]]).await;
            let mut config = config(&server);
            config.max_attempts = 1;
            let reply = tokio::time::timeout(Duration::from_secs(10), send_with(config)).await;
            prop_assert!(reply.is_ok(), "the request ends");
            Ok(())
        })?;
    }
}
