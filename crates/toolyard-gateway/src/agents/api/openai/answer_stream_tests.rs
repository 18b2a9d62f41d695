//! Streamed answers, as chat completions.

use serde_json::json;
use toolyard_core::RunId;

use super::{
    super::completion::{CompletionFormat, parse_completion},
    *,
};

fn chunks(include_usage: bool) -> AnswerStream<CompletionFormat> {
    let options = json!({"include_usage": include_usage});
    let body = json!({"messages": [{"role": "user", "content": "x"}], "stream_options": options});
    let (_, format) = parse_completion(&body.to_string()).unwrap();
    let run =
        AnsweringRun { run: RunId::from("01J"), agent: "assistant".to_owned(), created: 1, max_tokens: None };
    AnswerStream::new(run, format)
}

/// What a client reads: all content together, and the other chunks.
fn read(chunks: &mut AnswerStream<CompletionFormat>) -> (String, Vec<String>) {
    let (mut text, mut others) = (String::new(), Vec::new());
    for event in chunks.ready.drain(..) {
        let line = String::from_utf8(event.to_vec()).unwrap();
        let data = line.strip_prefix("data: ").unwrap().trim_end();
        let value: Value = serde_json::from_str(data).unwrap_or(Value::Null);
        match value.pointer("/choices/0/delta/content").and_then(Value::as_str) {
            Some(content) => text.push_str(content),
            None => others.push(data.to_owned()),
        }
    }
    (text, others)
}

fn delta(text: &str) -> RunUpdate {
    RunUpdate::AnswerDelta { text: text.to_owned(), tentative: false }
}

fn tentative(text: &str) -> RunUpdate {
    RunUpdate::AnswerDelta { text: text.to_owned(), tentative: true }
}

fn answered(answer: &str) -> Result<RunEnd, AgentError> {
    Ok(RunEnd::Answered { answer: answer.to_owned(), sources: Vec::new(), truncated: false })
}

#[test]
fn a_streamed_answer_is_sent_once() {
    let mut chunks = chunks(true);
    ["It ", "is ", "4."].iter().for_each(|text| chunks.push_update(&delta(text)));
    chunks.finish(answered("It is 4."));
    let (text, others) = read(&mut chunks);
    assert_eq!(text, "It is 4.");
    assert!(others[0].contains(r#""finish_reason":"stop""#), "{others:?}");
    assert!(others[1].contains(r#""choices":[]"#) && others[1].contains("total_tokens"), "{others:?}");
    assert_eq!(others[2], "[DONE]");
}

#[test]
fn text_before_tool_calls_is_reasoning_and_not_content() {
    let mut chunks = chunks(false);
    chunks.push_update(&tentative("Let me look."));
    chunks.push_update(&RunUpdate::AnswerDiscarded);
    chunks.push_update(&delta("It is 4."));
    chunks.finish(answered("It is 4."));
    let (text, others) = read(&mut chunks);
    assert_eq!(text, "It is 4.");
    assert!(others[0].contains(r#""reasoning_content":"Let me look.""#), "{others:?}");
}

#[test]
fn a_long_answer_is_streamed_although_tool_calls_might_follow() {
    let mut chunks = chunks(false);
    let pieces = vec!["Once upon a time. "; 40];
    pieces.iter().for_each(|piece| chunks.push_update(&tentative(piece)));
    assert!(chunks.ready.len() > 20, "most of it is there before the end");
    chunks.finish(answered(pieces.concat().trim_end()));
    assert_eq!(read(&mut chunks).0.trim_end(), pieces.concat().trim_end());
}

#[test]
fn text_without_tool_calls_is_content() {
    let mut chunks = chunks(false);
    ["It ", "is 4."].iter().for_each(|text| chunks.push_update(&tentative(text)));
    chunks.push_update(&delta("\n\n[cut off]"));
    chunks.finish(answered("It is 4.\n\n[cut off]"));
    assert_eq!(read(&mut chunks).0, "It is 4.\n\n[cut off]");
}

#[test]
fn what_was_not_streamed_is_sent_at_the_end() {
    for (streamed, answer, read_text) in
        [("", "whole", "whole"), ("It is", "It is 4.", "It is 4."), ("Hm", "It is 4.", "Hm\n\nIt is 4.")]
    {
        let mut chunks = chunks(false);
        chunks.push_update(&delta(streamed));
        chunks.finish(answered(answer));
        assert_eq!(read(&mut chunks).0, read_text);
    }
}

#[test]
fn a_discarded_answer_is_separated_from_the_next_one() {
    let mut chunks = chunks(false);
    [delta("Half an answe"), RunUpdate::AnswerDiscarded, delta("It is 4.")]
        .iter()
        .for_each(|update| chunks.push_update(update));
    chunks.finish(answered("It is 4."));
    assert_eq!(read(&mut chunks).0, "Half an answe\n\nIt is 4.");
}

#[test]
fn a_truncated_answer_has_the_finish_reason_length() {
    let mut chunks = chunks(false);
    chunks.finish(Ok(RunEnd::Answered { answer: "It".to_owned(), sources: Vec::new(), truncated: true }));
    let (_, others) = read(&mut chunks);
    assert!(others[0].contains(r#""finish_reason":"length""#), "{others:?}");
}

#[test]
fn a_failed_run_sends_an_error_and_ends_the_stream() {
    let mut chunks = chunks(false);
    chunks.finish(Ok(RunEnd::Failed { message: "nothing worked".to_owned(), hint: None, model_error: None }));
    let (_, others) = read(&mut chunks);
    assert!(others[0].contains(r#"{"error":{"message":"nothing worked (run 01J)""#), "{others:?}");
    assert_eq!(others[1], "[DONE]");
}

#[test]
fn a_streamed_answer_has_no_hidden_text() {
    let mut chunks = chunks(false);
    chunks.push_update(&RunUpdate::ReasoningDelta { text: "think\u{e0041}\u{1b}[2J".to_owned() });
    let pieces = ["It is\u{202e} ", "👩", "\u{200d}💻\u{e0041}", "."];
    pieces.iter().for_each(|text| chunks.push_update(&delta(text)));
    chunks.finish(answered(&pieces.concat()));
    let (text, others) = read(&mut chunks);
    assert_eq!(text, "It is 👩\u{200d}💻.");
    assert!(others[0].contains(r#""reasoning_content":"think[2J""#), "{others:?}");
}
