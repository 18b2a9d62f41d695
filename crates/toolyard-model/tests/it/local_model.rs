//! The OpenAI-compatible client with a small real model.
//!
//! `TOOLYARD_LOCAL_MODEL` is the line that `scripts/local-model` prints: the server's address and the model's name;
//! `scripts/tests` sets it. Without it, these tests are skipped with a message, and fail if `CI` is `true`.

#![expect(clippy::print_stderr, reason = "they print when they are skipped")]

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use toolyard_core::RawJson;
use toolyard_model::{
    FinishReason, Model as _, ModelErrorKind, ModelEvent, ModelMessage, ModelRequest, ModelServerConfig,
    OpenAiModel, ProbeOptions, ResponseSchema, collect_reply, probe, tool_call_parser::StreamingParser,
};

/// The model, if one is configured.
fn model() -> Option<OpenAiModel> {
    let Ok(line) = std::env::var("TOOLYARD_LOCAL_MODEL") else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "set TOOLYARD_LOCAL_MODEL to the output of scripts/local-model"
        );
        eprintln!("SKIPPED: TOOLYARD_LOCAL_MODEL is not set");
        return None;
    };
    let (address, name) = line.split_once(' ').unwrap_or((line.as_str(), "local"));
    let mut config = ModelServerConfig::new("local", address, name.trim());
    // The machine may be busy with builds.
    config.first_token_timeout = Duration::from_secs(600);
    config.idle_timeout = Duration::from_secs(300);
    Some(OpenAiModel::new(config).unwrap())
}

fn user_request(text: &str, max_tokens: u32) -> ModelRequest {
    ModelRequest {
        messages: vec![ModelMessage::user(text)],
        max_tokens: Some(max_tokens),
        temperature: Some(0.0),
        ..ModelRequest::default()
    }
}

#[tokio::test]
async fn replies_are_streamed_with_usage_and_finish_reason() {
    let Some(model) = model() else { return };
    let request = user_request("Count from one to ten in words.", 24);
    let mut pieces = 0;
    let reply =
        collect_reply(&model, &request, |event| pieces += usize::from(matches!(event, ModelEvent::Text(_))))
            .await
            .unwrap();
    assert!(pieces > 3 && !reply.text.is_empty(), "{pieces} pieces: {reply:?}");
    assert!(reply.usage.input > 5 && (1..=24).contains(&reply.usage.output), "{:?}", reply.usage);
    assert!(
        matches!(reply.finish_reason, FinishReason::Stop | FinishReason::Length),
        "{:?}",
        reply.finish_reason
    );
    let truncated = collect_reply(&model, &user_request("Write a long story.", 3), |_| {}).await.unwrap();
    assert_eq!((truncated.finish_reason, truncated.usage.output), (FinishReason::Length, 3));
}

#[tokio::test]
async fn replies_are_constrained_by_a_schema() {
    let Some(model) = model() else { return };
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Tokyo", "Paris"]}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": false,
    });
    let mut request = user_request("The weather in Paris for three days, please. Answer in JSON.", 64);
    request.schema = Some(ResponseSchema { name: "weather".into(), schema: RawJson::from_value(&schema) });
    let reply = collect_reply(&model, &request, |_| {}).await.unwrap();
    let value: Value = serde_json::from_str(&reply.text).unwrap();
    assert!(
        value["days"].is_i64() && ["Tokyo", "Paris"].contains(&value["city"].as_str().unwrap()),
        "{value}"
    );
}

#[tokio::test]
async fn the_server_lists_its_models() {
    let Some(model) = model() else { return };
    let names = model.models().await.unwrap();
    assert!(!names.is_empty(), "{names:?}");
}

#[tokio::test]
async fn dropping_a_stream_frees_the_server() {
    let Some(model) = model() else { return };
    let request = user_request("Write a very long story about a ship.", 2_000);
    let mut events = model.generate(&request);
    while let Some(event) = events.next().await {
        if matches!(event.unwrap(), ModelEvent::Text(_)) {
            break;
        }
    }
    drop(events);
    // A server with a single slot answers this only if the first request was cancelled.
    let reply = collect_reply(&model, &user_request("Say yes.", 4), |_| {}).await.unwrap();
    assert!(reply.usage.output <= 4);
}

#[tokio::test]
async fn a_prompt_beyond_the_context_window_has_a_hint() {
    let Some(model) = model() else { return };
    let error = collect_reply(&model, &user_request(&"word ".repeat(40_000), 4), |_| {}).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ContextOverflow, "{error:?}");
    assert!(error.hint.as_deref().unwrap_or_default().contains("context window"), "{error:?}");
}

#[tokio::test]
async fn the_text_of_a_reply_is_parsed_while_it_streams() {
    let Some(model) = model() else { return };
    let mut request = user_request("What time is it in Tokyo?", 96);
    let prompt = "Call a tool with: <tool_call>{\"tool_name\": \"get_time\", \"arguments\": {\"timezone\": \"…\"}}</tool_call>";
    request.messages.insert(0, ModelMessage::system(prompt));
    let mut parser = StreamingParser::new(|name| name == "get_time");
    let mut shown = String::new();
    let reply = collect_reply(&model, &request, |event| {
        if let ModelEvent::Text(text) = event {
            shown.push_str(&parser.push(text));
        }
    })
    .await
    .unwrap();
    let (last, parsed) = parser.finish();
    assert_eq!(shown + &last, parsed.text);
    println!("replied {:?}\nparsed {parsed:?}", reply.text);
}

#[tokio::test]
async fn a_real_model_can_be_probed() {
    let Some(model) = model() else { return };
    let options = ProbeOptions { timeout: Duration::from_secs(600), max_tokens: 96 };
    let report = probe(&model, options).await.unwrap();
    for outcome in &report.outcomes {
        println!(
            "{:?}: {} of {}, first token after {:?} ms, {} ms; {:?}",
            outcome.calling,
            outcome.correct,
            outcome.attempted,
            outcome.first_token_ms,
            outcome.reply_ms,
            outcome.problem
        );
    }
    println!("recommended: {:?}", report.recommended);
    assert_eq!(report.outcomes.len(), 3);
}
