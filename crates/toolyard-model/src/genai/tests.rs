//! The conversions in both directions, and requests to a server that speaks Anthropic's protocol.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use toolyard_core::RawJson;

use super::*;
use crate::{
    FinishReason, ModelMessage, ModelReply, ModelTool, ModelToolCall, Prices, ResponseSchema, Role, Usage,
    collect_reply,
};

/// Answers each connection with the next response, and returns the requests.
async fn server(responses: Vec<String>) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        for response in responses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            loop {
                stream.read_buf(&mut bytes).await.unwrap();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.to_ascii_lowercase();
                let length =
                    length.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                if body.len() >= length.unwrap_or(0) {
                    send.send(text).unwrap();
                    break;
                }
            }
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    (address, receive)
}

fn events(events: &[Value]) -> String {
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let body: String = events.iter().map(line).collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
}

fn request() -> ModelRequest {
    let mut calling_message = ModelMessage::assistant("One moment.");
    calling_message.calls = vec![ModelToolCall {
        id: "t1".into(),
        name: "get_time".into(),
        arguments: "{\"zone\": \"x\"}".into(),
    }];
    let mut result = ModelMessage::new(Role::Tool, "noon");
    result.call_id = Some("t1".into());
    ModelRequest {
        messages: vec![
            ModelMessage::system("Be brief."),
            ModelMessage::user("Time?"),
            calling_message,
            result,
        ],
        tools: vec![ModelTool {
            name: "get_time".into(),
            description: "Tell the time".into(),
            parameters: RawJson::parse("{\"type\":\"object\",\"properties\":{}}".into()).unwrap(),
        }],
        temperature: Some(0.2),
        max_tokens: Some(64),
        ..ModelRequest::default()
    }
}

fn model(address: &str) -> GenAiModel {
    let mut config = GenAiConfig::new("claude", "anthropic", "claude-x");
    config.base_url = Some(address.to_owned());
    config.api_key = Some(SecretString::new("odd-key-1234"));
    config.api_key_source = Some("ANTHROPIC_API_KEY".into());
    config.prices = Some(Prices { input: 1_000_000, cached: None, output: 2_000_000 });
    GenAiModel::new(config).unwrap()
}

fn reply_events() -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "claude-x", "usage": {"input_tokens": 12, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me "}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t2", "name": "get_time", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"zone\":"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "\"Asia/Tokyo\"}"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

#[tokio::test]
async fn a_reply_of_anthropic_is_converted() {
    let (address, mut requests) = server(vec![events(&reply_events())]).await;
    let reply = collect_reply(&model(&address), &request(), |_| {}).await.unwrap();
    let expected = ModelReply {
        text: "Let me look.".into(),
        calls: vec![ModelToolCall {
            id: "t2".into(),
            name: "get_time".into(),
            arguments: "{\"zone\":\"Asia/Tokyo\"}".into(),
        }],
        usage: Usage { input: 12, cached: 0, output: 9, cost_micros: 30 },
        finish_reason: FinishReason::ToolCalls,
        ..ModelReply::default()
    };
    assert_eq!(reply, expected);
    let sent = requests.recv().await.unwrap();
    assert!(sent.starts_with("POST /v1/messages "), "{sent}");
    assert!(sent.contains("x-api-key: odd-key-1234"), "{sent}");
    let body: Value = serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(64), &json!(0.2)));
    let messages = body["messages"].to_string();
    assert!(
        messages.contains("\"tool_use_id\":\"t1\"") && messages.contains("\"input\":{\"zone\":\"x\"}"),
        "{messages}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_retried_and_a_rejection_is_not() {
    let busy =
        "HTTP/1.1 529 Overloaded\r\nretry-after: 3\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
            .to_owned();
    let (address, _requests) = server(vec![busy, events(&reply_events())]).await;
    let started = Instant::now();
    assert_eq!(collect_reply(&model(&address), &request(), |_| {}).await.unwrap().text, "Let me look.");
    assert!(started.elapsed() >= Duration::from_secs(3), "{:?}", started.elapsed());

    let body = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key odd-key-1234"}}"#;
    let refusal =
        format!("HTTP/1.1 401 No\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    let (address, _requests) = server(vec![refusal]).await;
    let error = collect_reply(&model(&address), &request(), |_| {}).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unauthorized, "{error:?}");
    assert_eq!(error.hint.as_deref(), Some("anthropic rejected the key in ANTHROPIC_API_KEY"));
    assert!(!format!("{error:?}").contains("odd-key-1234"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_reported() {
    let error = collect_reply(&model("http://127.0.0.1:9"), &request(), |_| {}).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable, "{error:?}");
}

#[tokio::test]
async fn a_truncated_response_is_an_error_with_usage() {
    let half = reply_events().into_iter().take(4).collect::<Vec<_>>();
    let (address, _requests) = server(vec![events(&half)]).await;
    let error = collect_reply(&model(&address), &request(), |_| {}).await.unwrap_err();
    assert!(matches!(error.kind, ModelErrorKind::InvalidResponse | ModelErrorKind::Unreachable), "{error:?}");
    let usage = error.usage();
    assert_eq!(usage.output, 3, "{usage:?}");
    assert!(usage.input > 0 && usage.cost_micros == usage.input + 2 * usage.output, "{usage:?}");
}

#[test]
fn providers_are_found_by_name_and_secrets_are_not_shown() {
    for provider in ["anthropic", "openai_resp", "gemini", "deepseek", "Anthropic"] {
        let mut config = GenAiConfig::new("m", provider, "x");
        config.api_key = Some(SecretString::new("odd-key-1234"));
        let model = GenAiModel::new(config).unwrap();
        assert!(!format!("{model:?}").contains("odd-key"), "{model:?}");
    }
    let error = GenAiModel::new(GenAiConfig::new("m", "nobody", "x")).unwrap_err();
    assert!(error.hint.unwrap().contains("anthropic"));
}

#[test]
fn schema_and_stop_sequences_are_sent() {
    let schema = ResponseSchema { name: "plan".into(), schema: RawJson::empty_object() };
    let request = ModelRequest { schema: Some(schema), stop: vec!["END".into()], ..ModelRequest::default() };
    let options = mapping::chat_options(&GenAiConfig::new("m", "openai_resp", "x"), &request);
    assert!(options.response_format.is_some());
    assert_eq!(options.stop_sequences, ["END"]);
}
