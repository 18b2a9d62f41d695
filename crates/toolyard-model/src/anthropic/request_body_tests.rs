//! Request bodies of the Messages API.

use toolyard_core::RawJson;

use super::*;
use crate::{ModelToolCall, ResponseSchema};

fn config() -> ModelServerConfig {
    ModelServerConfig::new("claude", "http://x", "claude-x")
}

fn tool_result(id: &str, text: &str) -> ModelMessage {
    ModelMessage { call_id: Some(id.into()), ..ModelMessage::new(Role::Tool, text) }
}

#[test]
fn a_conversation_with_calls_becomes_turns_of_blocks() {
    let call = |id: &str, arguments: &str| ModelToolCall {
        id: id.into(),
        name: "get_time".into(),
        arguments: arguments.into(),
    };
    let mut calling_message = ModelMessage::assistant("");
    calling_message.calls = vec![call("c1", "{\"zone\":1}"), call("c2", "nonsense"), call("c3", "")];
    let request = ModelRequest {
        messages: vec![
            ModelMessage::system("Be brief."),
            ModelMessage::user("时间?"),
            calling_message,
            tool_result("c1", "noon"),
            tool_result("c2", ""),
            ModelMessage::user("And now?"),
            ModelMessage::assistant(" "),
        ],
        tools: vec![ModelTool {
            name: "get_time".into(),
            description: "Tell the time".into(),
            parameters: RawJson::parse(r#"{"type":"object"}"#.into()).unwrap(),
        }],
        stop: vec!["END".into()],
        temperature: Some(0.2),
        ..ModelRequest::default()
    };
    let call =
        |id: &str, input: &Value| json!({"type": "tool_use", "id": id, "name": "get_time", "input": input});
    let result = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    assert_eq!(
        request_body(&config(), &request, Dialect::default()),
        json!({
            "model": "claude-x",
            "max_tokens": 8192,
            "stream": true,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "时间?"}]},
                {"role": "assistant", "content": [call("c1", &json!({"zone": 1})), call("c2", &json!({})), call("c3", &json!({}))]},
                {"role": "user", "content": [result("c1", "noon"), result("c2", ""), {"type": "text", "text": "And now?"}]},
            ],
            "temperature": 0.2,
            "stop_sequences": ["END"],
            "tools": [{"name": "get_time", "description": "Tell the time", "input_schema": {"type": "object"}}],
        })
    );
}

#[test]
fn a_schema_becomes_a_tool_that_must_be_called() {
    let schema = RawJson::parse(r#"{"anyOf":[{"type":"string"},{"type":"object"}]}"#.into()).unwrap();
    let request = ModelRequest {
        schema: Some(ResponseSchema { name: "plan".into(), schema }),
        max_tokens: Some(7),
        ..ModelRequest::default()
    };
    let body = request_body(&config(), &request, Dialect::default());
    assert_eq!(body["max_tokens"], 2_048, "room for reasoning");
    assert_eq!(
        body["tool_choice"],
        json!({"type": "tool", "name": "reply", "disable_parallel_tool_use": true})
    );
    let input = &body["tools"][0]["input_schema"];
    assert_eq!((&input["type"], &input["required"]), (&json!("object"), &json!(["reply"])));
    assert_eq!(input["properties"]["reply"], json!({"anyOf": [{"type": "string"}, {"type": "object"}]}));
}

#[test]
fn additional_fields_override_ours() {
    let mut config = config();
    config.max_tokens = Some(100);
    config.extra_body = Map::from_iter([
        ("temperature".to_owned(), json!(0.5)),
        ("stream".to_owned(), Value::Null),
        ("thinking".to_owned(), json!({"type": "disabled"})),
    ]);
    let request = ModelRequest { temperature: Some(0.0), ..ModelRequest::default() };
    let body = request_body(&config, &request, Dialect::default());
    assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(100), &json!(0.5)));
    assert_eq!((body.get("stream"), &body["thinking"]["type"]), (None, &json!("disabled")));
}

#[test]
fn a_temperature_is_at_most_one_and_left_out_where_it_was_rejected() {
    let request = ModelRequest { temperature: Some(1.5), ..ModelRequest::default() };
    let body = request_body(&config(), &request, Dialect::default());
    assert_eq!(body["temperature"], 1.0);
    let message = "`Temperature` is deprecated for this model.";
    let adapted = Dialect::default().adapt(message, &body).unwrap();
    let shorter = request_body(&config(), &request, adapted);
    assert_eq!(shorter.get("temperature"), None);
    assert_eq!((adapted.adapt(message, &body), Dialect::default().adapt("max_tokens", &body)), (None, None));
    assert_eq!(Dialect::default().adapt(message, &shorter), None, "none was sent");
}
