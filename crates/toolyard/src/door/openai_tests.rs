//! Requests as clients of OpenAI's send them.

use super::*;

fn refused(body: &Value) -> String {
    Completion::read(&body.to_string()).unwrap_err().message
}

#[test]
fn the_last_message_is_the_question_and_the_rest_is_history() {
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
    let completion = Completion::read(&body.to_string()).unwrap();
    assert_eq!((completion.agent.as_str(), completion.question.as_str()), ("clerk", "What is 2^10?"));
    assert!(completion.stream && completion.include_usage);
    let history: Vec<(Role, &str)> =
        completion.history.iter().map(|message| (message.role, message.text.as_str())).collect();
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
fn what_makes_no_sense_is_said() {
    assert!(Completion::read("{").unwrap_err().message.contains("cannot be understood"));
    assert_eq!(refused(&json!({"model": "a"})), "nothing is asked");
    let user = |content: Value| json!({"model": "a", "messages": [{"role": "user", "content": content}]});
    assert_eq!(refused(&user(json!(" "))), "the last message is empty");
    assert!(refused(&user(json!([{"type": "image_url"}]))).contains("no `image_url`"));
    assert!(refused(&user(json!(7))).contains("text or a list of parts"));
    let last = json!({"messages": [{"role": "assistant", "content": "x"}]});
    assert!(refused(&last).contains("must be the user's"));
    let two = json!({"n": 2, "messages": [{"role": "user", "content": "x"}]});
    assert_eq!(Completion::read(&two.to_string()).unwrap_err().param.as_deref(), Some("n"));
}

#[test]
fn errors_have_the_form_that_clients_know() {
    let value = Refused::bad("messages", "nothing is asked").value();
    assert_eq!(
        value,
        json!({"error": {"message": "nothing is asked", "type": "invalid_request_error", "param": "messages", "code": null}})
    );
}

#[test]
fn a_run_that_waits_says_so_and_not_how_to_allow_it() {
    let end = RunEnd::Suspended { waiting: vec!["step write".to_owned()] };
    let (text, reason) = finished(&"01J".into(), &end).unwrap();
    assert!(text.contains("waits for a person") && text.contains("01J") && reason == "stop", "{text}");
    // A model may read this.
    for recipe in ["approve", "POST", "/runs", "toolyard", "--yes"] {
        assert!(!text.contains(recipe), "{text}");
    }
    assert_eq!(run_waited_for(&text), Some("01J".into()));
    assert_eq!(run_waited_for(&format!("Said before.\n\n{text}\n")), Some("01J".into()));
    for other in
        ["An answer (run 01J).", "This waits for a person: well", "This waits for a person: (run ../x).", ""]
    {
        assert_eq!(run_waited_for(other), None, "{other}");
    }
}
