//! A real, small model through the OpenAI-compatible client.
//!
//! `TOOLYARD_LOCAL_MODEL` is the line that `scripts/local-model` prints: an address, and the model's name. In CI it must be
//! set; elsewhere these tests say that they did not run.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests, which say it when they were not run")]

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use toolyard_core::RawJson;
use toolyard_model::{
    FinishReason, Model as _, ModelErrorKind, ModelEvent, ModelMessage, ModelRequest, OpenAiConfig,
    OpenAiModel, ProbeOptions, WantedSchema, probe, reply, tool_call_tag::CallSplitter,
};

/// The model, if there is one.
fn model() -> Option<OpenAiModel> {
    let Ok(line) = std::env::var("TOOLYARD_LOCAL_MODEL") else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "there is no real model: set TOOLYARD_LOCAL_MODEL to what scripts/local-model prints"
        );
        eprintln!("NOT RUN with a real model: TOOLYARD_LOCAL_MODEL is not set");
        return None;
    };
    let (address, name) = line.split_once(' ').unwrap_or((line.as_str(), "local"));
    let mut config = OpenAiConfig::new("local", address, name.trim());
    // Machines that build at the same time are slow.
    config.first_token_timeout = Duration::from_secs(600);
    config.between_tokens_timeout = Duration::from_secs(300);
    Some(OpenAiModel::new(config).unwrap())
}

fn asking(text: &str, max_tokens: u32) -> ModelRequest {
    ModelRequest {
        messages: vec![ModelMessage::user(text)],
        max_tokens: Some(max_tokens),
        temperature: Some(0.0),
        ..ModelRequest::default()
    }
}

#[tokio::test]
async fn it_streams_counts_and_says_why_it_stopped() {
    let Some(model) = model() else { return };
    let request = asking("Count from one to ten in words.", 24);
    let mut pieces = 0;
    let said = reply(&model, &request, |event| pieces += usize::from(matches!(event, ModelEvent::Text(_))))
        .await
        .unwrap();
    assert!(pieces > 3 && !said.text.is_empty(), "{pieces} pieces: {said:?}");
    assert!(said.usage.input > 5 && (1..=24).contains(&said.usage.output), "{:?}", said.usage);
    assert!(matches!(said.finish, FinishReason::Stop | FinishReason::Length), "{:?}", said.finish);
    let cut = reply(&model, &asking("Write a long story.", 3), |_| {}).await.unwrap();
    assert_eq!((cut.finish, cut.usage.output), (FinishReason::Length, 3));
}

#[tokio::test]
async fn it_is_held_to_a_schema() {
    let Some(model) = model() else { return };
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Tokyo", "Paris"]}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": false,
    });
    let mut request = asking("The weather in Paris for three days, please. Answer in JSON.", 64);
    request.schema = Some(WantedSchema { name: "weather".into(), schema: RawJson::from_value(&schema) });
    let said = reply(&model, &request, |_| {}).await.unwrap();
    let value: Value = serde_json::from_str(&said.text).unwrap();
    assert!(
        value["days"].is_i64() && ["Tokyo", "Paris"].contains(&value["city"].as_str().unwrap()),
        "{value}"
    );
}

#[tokio::test]
async fn its_server_lists_it() {
    let Some(model) = model() else { return };
    let names = model.models().await.unwrap();
    assert!(!names.is_empty(), "{names:?}");
}

#[tokio::test]
async fn whoever_stops_listening_frees_it_for_the_next() {
    let Some(model) = model() else { return };
    let request = asking("Write a very long story about a ship.", 2_000);
    let mut events = model.generate(&request);
    while let Some(event) = events.next().await {
        if matches!(event.unwrap(), ModelEvent::Text(_)) {
            break;
        }
    }
    drop(events);
    // A server for one conversation at a time answers this only because the other one is over.
    let said = reply(&model, &asking("Say yes.", 4), |_| {}).await.unwrap();
    assert!(said.usage.output <= 4);
}

#[tokio::test]
async fn what_it_cannot_read_is_refused_with_a_hint() {
    let Some(model) = model() else { return };
    let error = reply(&model, &asking(&"word ".repeat(40_000), 4), |_| {}).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unsupported, "{error:?}");
    assert!(
        error.hint.as_deref().unwrap_or_default().contains("longer than the model can read"),
        "{error:?}"
    );
}

#[tokio::test]
async fn its_text_goes_through_the_splitter_as_it_comes() {
    let Some(model) = model() else { return };
    let mut request = asking("What time is it in Tokyo?", 96);
    let form = "Call a tool with: <tool_call>{\"tool_name\": \"get_time\", \"arguments\": {\"timezone\": \"…\"}}</tool_call>";
    request.messages.insert(0, ModelMessage::system(form));
    let mut splitter = CallSplitter::new(|name| name == "get_time");
    let mut shown = String::new();
    let said = reply(&model, &request, |event| {
        if let ModelEvent::Text(text) = event {
            shown.push_str(&splitter.push(text));
        }
    })
    .await
    .unwrap();
    let (last, found) = splitter.finish();
    assert_eq!(shown + &last, found.rest);
    println!("said {:?}\nfound {found:?}", said.text);
}

#[tokio::test]
async fn it_can_be_probed() {
    let Some(model) = model() else { return };
    let options = ProbeOptions { limit: Duration::from_secs(600), max_tokens: 96 };
    let report = probe(&model, options).await.unwrap();
    for outcome in &report.outcomes {
        println!(
            "{:?}: {} of {}, first word after {:?} ms, {} ms; {:?}",
            outcome.calling,
            outcome.right,
            outcome.asked,
            outcome.first_token_ms,
            outcome.answer_ms,
            outcome.problem
        );
    }
    println!("recommended: {:?}", report.recommended);
    assert_eq!(report.outcomes.len(), 3);
}
