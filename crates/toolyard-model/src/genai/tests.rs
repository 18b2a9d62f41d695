//! The mapping both ways, and whole answers of a server that speaks as Anthropic's does.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use toolyard_core::RawJson;

use super::*;
use crate::{
    FinishReason, ModelMessage, ModelReply, NativeCall, Role, ToolDefinition, Usage, WantedSchema, reply,
};

/// Answers each connection with the next of these, and gives the requests.
async fn server(answers: Vec<String>) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        for answer in answers {
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
            stream.write_all(answer.as_bytes()).await.unwrap();
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
    let mut asked = ModelMessage::assistant("One moment.");
    asked.calls =
        vec![NativeCall { id: "t1".into(), name: "get_time".into(), arguments: "{\"zone\": \"x\"}".into() }];
    let mut answered = ModelMessage::new(Role::Tool, "noon");
    answered.call_id = Some("t1".into());
    ModelRequest {
        messages: vec![ModelMessage::system("Be brief."), ModelMessage::user("Time?"), asked, answered],
        tools: vec![ToolDefinition {
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
    config.key = Some(ApiKey::new("odd-key-1234"));
    config.key_source = Some("ANTHROPIC_API_KEY".into());
    config.prices = Prices { input: 1_000_000, cached: None, output: 2_000_000 };
    GenAiModel::new(config).unwrap()
}

fn spoken() -> Vec<Value> {
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
async fn an_answer_of_another_maker_becomes_ours() {
    let (address, mut requests) = server(vec![events(&spoken())]).await;
    let said = reply(&model(&address), &request(), |_| {}).await.unwrap();
    let expected = ModelReply {
        text: "Let me look.".into(),
        calls: vec![NativeCall {
            id: "t2".into(),
            name: "get_time".into(),
            arguments: "{\"zone\":\"Asia/Tokyo\"}".into(),
        }],
        usage: Usage { input: 12, cached: 0, output: 9, cost_micros: 30 },
        finish: FinishReason::ToolCalls,
        ..ModelReply::default()
    };
    assert_eq!(said, expected);
    let sent = requests.recv().await.unwrap();
    assert!(sent.starts_with("POST /v1/messages "), "{sent}");
    assert!(sent.contains("x-api-key: odd-key-1234"), "{sent}");
    let body: Value = serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(64), &json!(0.2)));
    let told = body["messages"].to_string();
    assert!(told.contains("\"tool_use_id\":\"t1\"") && told.contains("\"input\":{\"zone\":\"x\"}"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_busy_is_asked_again_and_whoever_refuses_is_not() {
    let busy =
        "HTTP/1.1 529 Overloaded\r\nretry-after: 3\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
            .to_owned();
    let (address, _requests) = server(vec![busy, events(&spoken())]).await;
    let began = Instant::now();
    assert_eq!(reply(&model(&address), &request(), |_| {}).await.unwrap().text, "Let me look.");
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());

    let body = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key odd-key-1234"}}"#;
    let refusal =
        format!("HTTP/1.1 401 No\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    let (address, _requests) = server(vec![refusal]).await;
    let error = reply(&model(&address), &request(), |_| {}).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unauthorized, "{error:?}");
    assert_eq!(error.hint.as_deref(), Some("the key in ANTHROPIC_API_KEY is not accepted at anthropic"));
    assert!(!format!("{error:?}").contains("odd-key-1234"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_maker_who_is_not_there_is_said_not_to_be() {
    let error = reply(&model("http://127.0.0.1:9"), &request(), |_| {}).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable, "{error:?}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error() {
    let half = spoken().into_iter().take(4).collect::<Vec<_>>();
    let (address, _requests) = server(vec![events(&half)]).await;
    let error = reply(&model(&address), &request(), |_| {}).await.unwrap_err();
    assert!(matches!(error.kind, ModelErrorKind::Garbled | ModelErrorKind::Unreachable), "{error:?}");
    let used = error.used();
    assert_eq!(used.output, 3, "what was heard is paid for: {used:?}");
    assert!(used.input > 0 && used.cost_micros == used.input + 2 * used.output, "{used:?}");
}

#[test]
fn providers_are_known_by_name_and_secrets_are_not_shown() {
    for provider in ["anthropic", "openai_resp", "gemini", "deepseek", "Anthropic"] {
        let mut config = GenAiConfig::new("m", provider, "x");
        config.key = Some(ApiKey::new("odd-key-1234"));
        let model = GenAiModel::new(config).unwrap();
        assert!(!format!("{model:?}").contains("odd-key"), "{model:?}");
    }
    let error = GenAiModel::new(GenAiConfig::new("m", "nobody", "x")).unwrap_err();
    assert!(error.hint.unwrap().contains("anthropic"));
}

#[test]
fn a_schema_is_asked_for() {
    let wanted = WantedSchema { name: "plan".into(), schema: RawJson::empty_object() };
    let asked = ModelRequest { schema: Some(wanted), stop: vec!["END".into()], ..ModelRequest::default() };
    let options = mapping::options(&GenAiConfig::new("m", "openai_resp", "x"), &asked);
    assert!(options.response_format.is_some());
    assert_eq!(options.stop_sequences, ["END"]);
}
