//! That a recording says the same again, and no secrets.

use serde_json::json;

use super::*;
use crate::{FinishReason, ModelMessage, ModelReply, NativeCall, ScriptedModel, Usage, reply};

fn asking(text: &str) -> ModelRequest {
    ModelRequest { messages: vec![ModelMessage::user(text)], ..ModelRequest::default() }
}

fn scripted() -> ScriptedModel {
    let mut asked = 0;
    ScriptedModel::new(ToolCalling::Native, move |request| {
        asked += 1;
        let question = request.messages.last().map(|message| message.text.clone()).unwrap_or_default();
        if question == "fail" {
            return Err(ModelError::new("scripted", ModelErrorKind::Busy, "is busy").with_hint("wait"));
        }
        Ok(ModelReply {
            text: format!("answer {asked} to {question}"),
            reasoning: "hm".into(),
            calls: vec![NativeCall {
                id: "a".into(),
                name: "f".into(),
                arguments: json!({"x": asked}).to_string(),
            }],
            usage: Usage { input: 3, output: 2, ..Usage::default() },
            finish: FinishReason::Stop,
        })
    })
}

#[tokio::test]
async fn a_recording_says_what_the_model_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let recorder = Recorder::new(scripted(), &path).unwrap();
    let mut heard = Vec::new();
    for question in ["one", "two", "one", "fail"] {
        heard.push(reply(&recorder, &asking(question), |_| {}).await);
    }
    let cassette = Cassette::open(&path).unwrap();
    assert_eq!((cassette.name(), cassette.tool_calling()), ("scripted", ToolCalling::Native));
    for (question, heard) in ["one", "two", "one", "fail"].into_iter().zip(heard) {
        let again = reply(&cassette, &asking(question), |_| {}).await;
        assert_eq!(again, heard, "{question}");
    }
    // The last answer for ever, and none to what was never asked.
    let again = reply(&cassette, &asking("one"), |_| {}).await.unwrap();
    assert_eq!(again.text, "answer 3 to one");
    let error = reply(&cassette, &asking("three"), |_| {}).await.unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("record the cassette again"));
}

#[tokio::test]
async fn what_was_not_heard_to_its_end_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let recorder = Recorder::new(scripted(), &path).unwrap();
    let request = asking("one");
    let mut events = recorder.generate(&request);
    events.next().await;
    drop(events);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn secrets_are_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
    // Word by word, so that `password =` and what follows come in pieces.
    let words = format!("the token is {secret} and password = hunter2 of course");
    let model = ScriptedModel::saying(ToolCalling::Text, [words]);
    let recorder = Recorder::new(model, &path).unwrap();
    reply(&recorder, &asking(&format!("use {secret}, password=hunter2")), |_| {}).await.unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(!written.contains(secret) && !written.contains("hunter2"), "{written}");
    // It is found all the same.
    let cassette = Cassette::open(&path).unwrap();
    let again = reply(&cassette, &asking(&format!("use {secret}, password=hunter2")), |_| {}).await.unwrap();
    assert!(again.text.starts_with("the token is"), "{}", again.text);
}

#[test]
fn what_is_no_cassette_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
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
