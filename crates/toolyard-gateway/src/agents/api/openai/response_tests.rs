//! Requests of OpenAI's Responses API, and the responses that clients expect.

use futures_util::{StreamExt as _, stream::BoxStream};
use toolyard_agent::RunEnd;
use toolyard_model::{ModelMessage, Role};

use super::{super::answer_stream::finished_events, *};
use crate::agents::api::runs::state::RunTally;

fn run(max_tokens: Option<usize>) -> AnsweringRun {
    AnsweringRun { run: "01J".into(), agent: "assistant".to_owned(), created: 7, max_tokens }
}

fn answered(answer: &str) -> RunEnd {
    RunEnd::Answered { answer: answer.to_owned(), sources: Vec::new(), truncated: false }
}

fn refused(body: &Value) -> ApiError {
    parse_response_request(&body.to_string()).unwrap_err()
}

#[test]
fn an_input_is_a_text_or_a_list_of_messages() {
    let (request, _) = parse_response_request(r#"{"model": "clerk", "input": "What is 2^10?"}"#).unwrap();
    assert_eq!((request.agent.as_str(), request.question.as_str()), ("clerk", "What is 2^10?"));
    assert!(request.history.is_empty() && !request.stream);
    let body = json!({
        "model": "clerk", "stream": true, "instructions": "Be brief.", "conversation": {"id": "taxes"}, "max_output_tokens": 9,
        "temperature": 0.2,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi.", "annotations": []}]},
            {"type": "function_call_output", "call_id": "1", "output": "42"},
            {"role": "user", "content": "What is 2^10?"},
        ],
    });
    let (request, _) = parse_response_request(&body.to_string()).unwrap();
    let history = [
        ModelMessage::new(Role::User, "(For this conversation: Be brief.)"),
        ModelMessage::new(Role::User, "Hello"),
        ModelMessage::new(Role::Assistant, "Hi."),
    ];
    assert_eq!(
        (request.question.as_str(), request.history.as_slice()),
        ("What is 2^10?", history.as_slice())
    );
    assert_eq!((request.conversation.as_deref(), request.max_tokens), (Some("taxes"), Some(9)));
    assert!(request.stream && request.temperature_hundredths == Some(20));
}

#[test]
fn invalid_inputs_are_rejected_with_a_reason() {
    for (input, message) in [
        (json!(null), "`input` is missing"),
        (json!(7), "must be a string or a list"),
        (json!([]), "`input` is empty"),
        (json!(" "), "the last message is empty"),
        (json!([{"role": "assistant", "content": "x"}]), "must have the role `user`"),
        (json!([{"role": "user", "content": [{"type": "input_image"}]}]), "not `input_image`"),
        (json!([{"type": "item_reference", "id": "x"}]), "not `item_reference`"),
    ] {
        let error = refused(&json!({"input": input}));
        assert!(error.message.contains(message) && error.param.as_deref() == Some("input"), "{error:?}");
    }
    assert_eq!(refused(&json!({"instructions": "x", "input": []})).param.as_deref(), Some("input"));
    let long = "x".repeat(MAX_METADATA_VALUE_CHARS + 1);
    assert_eq!(refused(&json!({"input": "x", "metadata": {"a": long}})).param.as_deref(), Some("metadata"));
}

#[test]
fn a_response_has_the_form_of_openai_responses() {
    let body = json!({"input": "x", "metadata": {"a": "b"}, "instructions": "Be brief."});
    let (_, format) = parse_response_request(&body.to_string()).unwrap();
    let tally =
        RunTally { usage: Usage { input: 10, cached: 4, output: 3, cost_micros: 0 }, ..RunTally::default() };
    let answer = run(None).finish(answered("It is 4."), &tally).unwrap();
    let response = format.whole(&run(None), &answer);
    let output = json!([{
        "id": "msg_01J", "type": "message", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": "It is 4.", "annotations": [], "logprobs": []}],
    }]);
    assert_eq!(response["output"], output);
    let shown = json!([response["id"], response["status"], response["metadata"], response["instructions"]]);
    assert_eq!(shown, json!(["resp_01J", "completed", {"a": "b"}, "Be brief."]));
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 13,
    });
    assert_eq!(response["usage"], usage);
    assert_eq!(
        response["toolyard"],
        json!({"run": "01J", "awaits_approval": false, "partial": false, "effects": []})
    );
}

#[test]
fn a_response_beyond_its_limit_is_incomplete() {
    let run = run(Some(2));
    let answer = run.finish(answered("one two three four"), &RunTally::default()).unwrap();
    let response = ResponseFormat::default().whole(&run, &answer);
    assert_eq!(response["status"], "incomplete");
    assert_eq!(response["incomplete_details"], json!({"reason": "max_output_tokens"}));
    assert_eq!(response["output"][0]["content"][0]["text"], "one two");
}

async fn events_of(stream: BoxStream<'static, Bytes>) -> Vec<Value> {
    let text = String::from_utf8(stream.collect::<Vec<_>>().await.concat()).unwrap();
    let events: Vec<Value> = text
        .split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(data["type"], name);
            data
        })
        .collect();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], json!(number), "{event}");
    }
    events
}

#[tokio::test]
async fn a_streamed_response_has_the_official_sequence_of_events() {
    let format = ResponseFormat::default();
    let end = answered("It is\u{202e} 4.");
    let events = events_of(Box::pin(finished_events(run(None), format, RunTally::default(), end))).await;
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(types, expected);
    let last = &events.last().unwrap()["response"];
    assert_eq!(last["output"][0]["content"][0]["text"], "It is 4.", "no hidden text");
    assert_eq!((&events[5]["text"], &last["status"]), (&json!("It is 4."), &json!("completed")));
}

#[tokio::test]
async fn a_failed_run_ends_a_streamed_response() {
    let (format, end) = (ResponseFormat::default(), RunEnd::Cancelled);
    let events = events_of(Box::pin(finished_events(run(None), format, RunTally::default(), end))).await;
    let last = events.last().unwrap();
    assert_eq!(
        (last["type"].as_str(), last["response"]["error"]["code"].as_str()),
        (Some("response.failed"), Some("run_cancelled"))
    );
    assert_eq!(last["response"]["status"], "failed");
}
