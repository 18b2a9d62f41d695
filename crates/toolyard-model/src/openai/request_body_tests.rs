//! Request bodies and dialects.

use toolyard_core::RawJson;

use super::*;
use crate::{ModelTool, ModelToolCall, ResponseSchema};

fn request() -> ModelRequest {
    let call = |arguments: &str| ModelToolCall {
        id: "c1".into(),
        name: "get_time".into(),
        arguments: arguments.into(),
    };
    let mut calling_message = ModelMessage::assistant("");
    // Invalid arguments are replaced by an empty object.
    calling_message.calls = vec![call("{\"zone\": 1}"), call("{'zone': 1,}"), call("nonsense"), call("")];
    let mut result = ModelMessage::new(Role::Tool, "noon");
    result.call_id = Some("c1".into());
    ModelRequest {
        messages: vec![
            ModelMessage::system("Be brief."),
            ModelMessage::user("时间?"),
            calling_message,
            result,
        ],
        tools: vec![ModelTool {
            name: "get_time".into(),
            description: "Tell the time".into(),
            parameters: RawJson::parse(r#"{"type":"object","required":[],"properties":{}}"#.into()).unwrap(),
        }],
        schema: Some(ResponseSchema { name: "a plan!".into(), schema: RawJson::empty_object() }),
        max_tokens: Some(7),
        temperature: Some(0.0),
        stop: vec!["END".into()],
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one long value")]
fn the_default_dialect_sends_all_fields() {
    let body =
        request_body(&ModelServerConfig::new("local", "http://x", "qwen"), &request(), Dialect::default());
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap(), @r#"
    {
      "model": "qwen",
      "messages": [
        {
          "role": "system",
          "content": "Be brief."
        },
        {
          "role": "user",
          "content": "时间?"
        },
        {
          "role": "assistant",
          "content": "",
          "tool_calls": [
            {
              "id": "c1",
              "type": "function",
              "function": {
                "name": "get_time",
                "arguments": "{\"zone\": 1}"
              }
            },
            {
              "id": "c1",
              "type": "function",
              "function": {
                "name": "get_time",
                "arguments": "{}"
              }
            },
            {
              "id": "c1",
              "type": "function",
              "function": {
                "name": "get_time",
                "arguments": "{}"
              }
            },
            {
              "id": "c1",
              "type": "function",
              "function": {
                "name": "get_time",
                "arguments": "{}"
              }
            }
          ]
        },
        {
          "role": "tool",
          "content": "noon",
          "tool_call_id": "c1"
        }
      ],
      "stream": true,
      "stream_options": {
        "include_usage": true
      },
      "max_tokens": 7,
      "temperature": 0.0,
      "stop": [
        "END"
      ],
      "tools": [
        {
          "type": "function",
          "function": {
            "name": "get_time",
            "description": "Tell the time",
            "parameters": {
              "type": "object",
              "required": [],
              "properties": {}
            }
          }
        }
      ],
      "response_format": {
        "type": "json_schema",
        "json_schema": {
          "name": "a_plan_",
          "schema": {},
          "strict": true
        }
      }
    }
    "#);
}

#[test]
fn extra_fields_override_ours_and_null_removes_them() {
    let mut config = ModelServerConfig::new("local", "http://x", "qwen");
    config.extra_body =
        serde_json::from_str(r#"{"stream_options": null, "temperature": 0.5, "seed": 7}"#).unwrap();
    config.max_tokens = Some(99);
    let warm = ModelRequest { temperature: Some(0.2), ..request() };
    assert_eq!(
        request_body(&ModelServerConfig::new("a", "b", "c"), &warm, Dialect::default())["temperature"],
        json!(0.2)
    );
    let body = request_body(&config, &ModelRequest { max_tokens: None, ..request() }, Dialect::default());
    assert!(body.get("stream_options").is_none());
    assert_eq!(
        (&body["temperature"], &body["seed"], &body["max_tokens"]),
        (&json!(0.5), &json!(7), &json!(99))
    );
}

#[test]
fn only_rejected_fields_are_omitted() {
    let config = ModelServerConfig::new("local", "http://x", "qwen");
    let mut dialect = Dialect::default();
    for (message, field) in [
        ("Unrecognized request argument supplied: stream_options", "/stream_options"),
        (
            "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "/max_tokens",
        ),
        ("Unsupported value: 'temperature' does not support 0", "/temperature"),
    ] {
        let sent = request_body(&config, &request(), dialect);
        assert!(sent.pointer(field).is_some(), "{field}");
        dialect = dialect.adapt(message, &sent).unwrap();
        assert!(request_body(&config, &request(), dialect).pointer(field).is_none(), "{field}");
    }
    let sent = request_body(&config, &request(), dialect);
    assert_eq!(sent["max_completion_tokens"], 7);
    dialect = dialect.adapt("Invalid schema for response_format: 'additionalProperties'", &sent).unwrap();
    let sent = request_body(&config, &request(), dialect);
    assert_eq!(sent.pointer("/response_format/json_schema/strict"), Some(&json!(false)));
    // Each adaptation happens once, so that retries end.
    for message in ["stream_options", "max_completion_tokens", "temperature", "strict", "something else"] {
        assert_eq!(dialect.adapt(message, &sent), None, "{message}");
    }
}
