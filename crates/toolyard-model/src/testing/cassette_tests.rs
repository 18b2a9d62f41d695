//! Recording, replaying and redaction.

use serde_json::json;

use super::*;
use crate::{FinishReason, ModelMessage, ModelReply, ModelToolCall, ScriptedModel, Usage, collect_reply};

fn request(text: &str) -> ModelRequest {
    ModelRequest { messages: vec![ModelMessage::user(text)], ..ModelRequest::default() }
}

fn scripted() -> ScriptedModel {
    let mut count = 0;
    ScriptedModel::new(ToolCalling::Native, move |request| {
        count += 1;
        let question = request.messages.last().map(|message| message.text.clone()).unwrap_or_default();
        if question == "fail" {
            return Err(ModelError::new("scripted", ModelErrorKind::Busy, "is busy").with_hint("wait"));
        }
        Ok(ModelReply {
            text: format!("answer {count} to {question}"),
            reasoning: "hm".into(),
            calls: vec![ModelToolCall {
                id: "a".into(),
                name: "f".into(),
                arguments: json!({"x": count}).to_string(),
            }],
            usage: Usage { input: 3, output: 2, ..Usage::default() },
            finish_reason: FinishReason::Stop,
        })
    })
}

#[tokio::test]
async fn a_cassette_replays_the_models_replies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let recorder = CassetteRecorder::new(scripted(), &path).unwrap();
    let mut recorded = Vec::new();
    for question in ["one", "two", "one", "fail"] {
        recorded.push(collect_reply(&recorder, &request(question), |_| {}).await);
    }
    let cassette = Cassette::open(&path).unwrap();
    assert_eq!((cassette.name(), cassette.tool_calling()), ("scripted", ToolCalling::Native));
    for (question, recorded) in ["one", "two", "one", "fail"].into_iter().zip(recorded) {
        let again = collect_reply(&cassette, &request(question), |_| {}).await;
        assert_eq!(again, recorded, "{question}");
    }
    // The last reply is repeated, and an unknown request has none.
    let again = collect_reply(&cassette, &request("one"), |_| {}).await.unwrap();
    assert_eq!(again.text, "answer 3 to one");
    let error = collect_reply(&cassette, &request("three"), |_| {}).await.unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("record the cassette again"));
}

#[tokio::test]
async fn an_incomplete_stream_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let recorder = CassetteRecorder::new(scripted(), &path).unwrap();
    let request = request("one");
    let mut events = recorder.generate(&request);
    events.next().await;
    drop(events);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn secrets_are_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
    // The scripted model streams word by word, so `password =` and its value are separate pieces.
    let words = format!("the token is {secret} and password = hunter2 of course");
    let model = ScriptedModel::with_replies(ToolCalling::Text, [words]);
    let recorder = CassetteRecorder::new(model, &path).unwrap();
    collect_reply(&recorder, &request(&format!("use {secret}, password=hunter2")), |_| {}).await.unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(!written.contains(secret) && !written.contains("hunter2"), "{written}");
    // The original request is found nevertheless.
    let cassette = Cassette::open(&path).unwrap();
    let again =
        collect_reply(&cassette, &request(&format!("use {secret}, password=hunter2")), |_| {}).await.unwrap();
    assert!(again.text.starts_with("the token is"), "{}", again.text);
}

#[test]
fn files_that_are_no_cassettes_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    assert!(matches!(Cassette::open(&path), Err(CassetteError::Io { .. })));
    for text in [
        "",
        "hello",
        "{\"cassette\":9,\"model\":\"m\",\"tool_calling\":\"text\"}\n",
        "{\"cassette\":1,\"model\":\"m\",\"tool_calling\":\"text\"}\n{\n",
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Cassette::open(&path).unwrap_err();
        assert!(error.to_string().ends_with("record it again"), "{error}");
    }
}
