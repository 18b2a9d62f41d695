//! Requests as OpenAI clients send them, and the responses they expect.

use toolyard_agent::RunEnd;
use toolyard_model::Role;

use super::*;
use crate::agents::{api::runs::state::RunTally, run_text::suspended_notice};

fn error_message(body: &Value) -> String {
    parse_completion(&body.to_string()).unwrap_err().message
}

#[test]
fn the_last_message_is_the_question_and_the_others_are_history() {
    let body = json!({
        "model": "clerk", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.2, "tools": [],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there"}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]},
            {"role": "tool", "content": "42", "tool_call_id": "1"},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "What is 2^10?"},
        ],
    });
    let (request, format) = parse_completion(&body.to_string()).unwrap();
    assert_eq!((request.agent.as_str(), request.question.as_str()), ("clerk", "What is 2^10?"));
    assert!(request.stream && format.include_usage);
    let history: Vec<(Role, &str)> =
        request.history.iter().map(|message| (message.role, message.text.as_str())).collect();
    assert_eq!(
        history,
        [
            (Role::User, "(For this conversation: Be brief.)"),
            (Role::User, "Hello\nthere"),
            (Role::Assistant, "Hi.")
        ]
    );
}

#[test]
fn invalid_requests_are_rejected_with_a_reason() {
    assert!(parse_completion("{").unwrap_err().message.starts_with("invalid body: "));
    assert_eq!(error_message(&json!({"model": "a"})), "`messages` is empty");
    let user = |content: Value| json!({"model": "a", "messages": [{"role": "user", "content": content}]});
    assert_eq!(error_message(&user(json!(" "))), "the last message is empty");
    assert!(error_message(&user(json!([{"type": "image_url"}]))).contains("not `image_url`"));
    assert!(error_message(&user(json!(7))).contains("a string or a list of parts"));
    let last = json!({"messages": [{"role": "assistant", "content": "x"}]});
    assert!(error_message(&last).contains("must have the role `user`"));
    let two = json!({"n": 2, "messages": [{"role": "user", "content": "x"}]});
    assert_eq!(parse_completion(&two.to_string()).unwrap_err().param.as_deref(), Some("n"));
}

#[test]
fn errors_have_the_form_of_openai_errors() {
    let value = ApiError::invalid_param("messages", "`messages` is empty").to_json();
    assert_eq!(
        value,
        json!({"error": {"message": "`messages` is empty", "type": "invalid_request_error", "param": "messages", "code": "invalid_request"}})
    );
}

fn answering_run() -> AnsweringRun {
    AnsweringRun { run: "01J".into(), agent: "assistant".to_owned(), created: 0, max_tokens: None }
}

fn completion(end: RunEnd) -> Value {
    let run = answering_run();
    let answer = run.finish(end, &RunTally::default()).unwrap();
    CompletionFormat::default().whole(&run, &answer)
}

#[test]
fn a_suspended_run_is_a_complete_completion() {
    let waiting_for = vec!["step write".to_owned()];
    let notice = suspended_notice(&"01J".into(), &waiting_for);
    let choice = completion(RunEnd::Suspended { waiting_for })["choices"][0].clone();
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!(notice), &json!("stop")));
}

#[test]
fn a_partial_run_is_marked_in_its_completion() {
    let completion = completion(RunEnd::Partial {
        answer: "Not everything was done:".to_owned(),
        sources: Vec::new(),
        unfinished_steps: vec!["write".to_owned()],
    });
    assert_eq!(completion["toolyard"]["partial"], true);
    assert_eq!(completion["choices"][0]["message"]["content"], "Not everything was done:");
}
