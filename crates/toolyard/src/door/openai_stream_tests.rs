//! Answers as they are streamed.

use toolyard_core::RunId;

use super::*;

fn chunks(include_usage: bool) -> Chunks {
    let run = RunId::from("01J");
    Chunks::new(Answering { run, agent: "assistant".to_owned(), created: 1 }, include_usage)
}

/// What a client reads: the contents together, and everything that ends it.
fn read(chunks: &mut Chunks) -> (String, Vec<String>) {
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

fn delta(text: &str) -> RunNews {
    RunNews::AnswerDelta { text: text.to_owned(), tentative: false }
}

fn tentative(text: &str) -> RunNews {
    RunNews::AnswerDelta { text: text.to_owned(), tentative: true }
}

fn answered(answer: &str) -> Result<RunEnd, AgentError> {
    Ok(RunEnd::Answered { answer: answer.to_owned(), sources: Vec::new(), cut_off: false })
}

#[test]
fn an_answer_that_was_streamed_is_not_said_twice() {
    let mut chunks = chunks(true);
    ["It ", "is ", "4."].iter().for_each(|text| chunks.take(&delta(text)));
    chunks.end(answered("It is 4."));
    let (text, others) = read(&mut chunks);
    assert_eq!(text, "It is 4.");
    assert!(others[0].contains(r#""finish_reason":"stop""#), "{others:?}");
    assert!(others[1].contains(r#""choices":[]"#) && others[1].contains("total_tokens"), "{others:?}");
    assert_eq!(others[2], "[DONE]");
}

#[test]
fn what_a_model_says_before_its_calls_is_no_content() {
    let mut chunks = chunks(false);
    chunks.take(&tentative("Let me look."));
    chunks.take(&RunNews::AnswerDropped);
    chunks.take(&delta("It is 4."));
    chunks.end(answered("It is 4."));
    let (text, others) = read(&mut chunks);
    assert_eq!(text, "It is 4.");
    assert!(others[0].contains(r#""reasoning_content":"Let me look.""#), "{others:?}");
}

#[test]
fn a_long_answer_streams_though_calls_might_follow() {
    let mut chunks = chunks(false);
    let pieces = vec!["Once upon a time. "; 40];
    pieces.iter().for_each(|piece| chunks.take(&tentative(piece)));
    assert!(chunks.ready.len() > 20, "most of it is there before the end");
    chunks.end(answered(pieces.concat().trim_end()));
    assert_eq!(read(&mut chunks).0.trim_end(), pieces.concat().trim_end());
}

#[test]
fn words_that_no_calls_followed_are_the_content_once() {
    let mut chunks = chunks(false);
    ["It ", "is 4."].iter().for_each(|text| chunks.take(&tentative(text)));
    chunks.take(&delta("\n\n[cut off]"));
    chunks.end(answered("It is 4.\n\n[cut off]"));
    assert_eq!(read(&mut chunks).0, "It is 4.\n\n[cut off]");
}

#[test]
fn what_was_not_streamed_is_said_at_the_end() {
    for (streamed, answer, read_text) in
        [("", "whole", "whole"), ("It is", "It is 4.", "It is 4."), ("Hm", "It is 4.", "Hm\n\nIt is 4.")]
    {
        let mut chunks = chunks(false);
        chunks.take(&delta(streamed));
        chunks.end(answered(answer));
        assert_eq!(read(&mut chunks).0, read_text);
    }
}

#[test]
fn an_answer_that_broke_off_is_told_from_the_one_after_it() {
    let mut chunks = chunks(false);
    [delta("Half an answe"), RunNews::AnswerDropped, delta("It is 4.")]
        .iter()
        .for_each(|news| chunks.take(news));
    chunks.end(answered("It is 4."));
    assert_eq!(read(&mut chunks).0, "Half an answe\n\nIt is 4.");
}

#[test]
fn an_answer_that_was_cut_off_says_so() {
    let mut chunks = chunks(false);
    chunks.end(Ok(RunEnd::Answered { answer: "It".to_owned(), sources: Vec::new(), cut_off: true }));
    let (_, others) = read(&mut chunks);
    assert!(others[0].contains(r#""finish_reason":"length""#), "{others:?}");
}

#[test]
fn a_failure_is_an_error_and_the_stream_ends() {
    let mut chunks = chunks(false);
    chunks.end(Ok(RunEnd::Failed { message: "nothing worked".to_owned(), hint: None }));
    let (_, others) = read(&mut chunks);
    assert!(others[0].contains(r#"{"error":{"message":"nothing worked (run 01J)""#), "{others:?}");
    assert_eq!(others[1], "[DONE]");
}
