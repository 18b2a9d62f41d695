//! Event streams of the Messages API.

use serde_json::json;

use super::*;
use crate::{ModelReply, ModelToolCall};

fn reply_with(mut parser: ResponseParser, data: &[Value]) -> Result<ModelReply, ServerError> {
    let mut events = Vec::new();
    for value in data {
        parser.parse(&value.to_string(), &mut events)?;
    }
    assert!(parser.is_finished() && parser.is_done());
    let prices = Prices { input: 1_000_000, cached: Some(0), output: 2_000_000 };
    events.extend(parser.finish(TokenEstimate::of("four letters each"), &prices));
    let mut reply = ModelReply::default();
    events.into_iter().for_each(|event| reply.apply(event));
    Ok(reply)
}

fn start_call(index: u64, id: &str, name: &str) -> Value {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn input(index: u64, piece: &str) -> Value {
    delta(index, &json!({"type": "input_json_delta", "partial_json": piece}))
}

fn stop_block(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    let usage = json!({"output_tokens": 12});
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn text_reasoning_calls_and_usage_are_collected() {
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 1});
    let mut data = vec![
        json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "ping"}),
        delta(0, &json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, &json!({"type": "signature_delta", "signature": "Eq"})),
        stop_block(0),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        delta(1, &json!({"type": "text_delta", "text": "I look."})),
        stop_block(1),
        json!({"type": "an_event_of_a_later_version", "index": "x"}),
        start_call(2, "toolu_1", "get_time"),
        start_call(3, "toolu_2", "now"),
        input(2, ""),
        input(3, ""),
        input(2, "{\"zone\": \"Asia"),
        input(2, "/Tokyo\"}"),
        stop_block(2),
        stop_block(3),
    ];
    data.extend(end("tool_use"));
    let reply = reply_with(ResponseParser::default(), &data).unwrap();
    assert_eq!((reply.text.as_str(), reply.reasoning.as_str()), ("I look.", "Hm."));
    let call = |id: &str, name: &str, arguments: &str| ModelToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    assert_eq!(
        reply.calls,
        [call("toolu_1", "get_time", "{\"zone\": \"Asia/Tokyo\"}"), call("toolu_2", "now", "")]
    );
    assert_eq!(reply.finish_reason, FinishReason::ToolCalls);
    assert_eq!(reply.usage, Usage { input: 105, cached: 90, output: 12, cost_micros: 15 + 24 });
}

#[test]
fn the_input_of_the_forced_call_is_the_text_of_the_reply() {
    for (pieces, text) in [
        (vec!["{\"reply\": {\"answer\": \"4\"}}"], "{\"answer\": \"4\"}"),
        (vec!["", "{\"re", "ply\"", ":{\"a\":", "{\"b\": 1}", "}", " }"], "{\"a\":{\"b\": 1}}"),
        (vec!["{\"reply\":\"a}b\"", "}"], "a}b"),
        (vec!["{\"reply\":[1]\n}\n"], "[1]"),
        (vec!["{\"reply\": \"{\\\"a\\\": 1}\"}"], "{\"a\": 1}"),
        (vec!["{\"answer\": \"4\"}"], "{\"answer\": \"4\"}"),
        (vec!["{\"note\": 1, \"reply\": 2}"], "{\"note\": 1, \"reply\": 2}"),
        (vec!["{\"reply\": {\"answer\": \"4"], "{\"reply\": {\"answer\": \"4"),
    ] {
        let mut data = vec![start_call(0, "toolu_1", "reply")];
        data.extend(pieces.iter().map(|piece| input(0, piece)));
        data.push(stop_block(0));
        data.extend(end("tool_use"));
        let reply = reply_with(ResponseParser::new(true), &data).unwrap();
        assert_eq!((reply.text.as_str(), reply.finish_reason), (text, FinishReason::Stop), "{pieces:?}");
        assert_eq!(reply.calls, []);
    }
}

#[test]
fn input_at_the_start_of_a_call_counts() {
    let block =
        json!({"type": "tool_use", "id": "toolu_1", "name": "get_time", "input": {"reply": {"zone": 1}}});
    let mut data =
        vec![json!({"type": "content_block_start", "index": 0, "content_block": block}), stop_block(0)];
    data.extend(end("tool_use"));
    let reply = reply_with(ResponseParser::default(), &data).unwrap();
    assert_eq!(reply.calls[0].arguments, r#"{"reply":{"zone":1}}"#);
    assert_eq!(reply_with(ResponseParser::new(true), &data).unwrap().text, r#"{"zone":1}"#);
}

#[test]
fn reasons_are_translated() {
    for (word, reason) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::Refused),
        ("pause_turn", FinishReason::Other("pause_turn".into())),
    ] {
        assert_eq!(reply_with(ResponseParser::default(), &end(word)).unwrap().finish_reason, reason);
    }
}

#[test]
fn input_without_its_call_is_an_error() {
    let text_block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text"}});
    for data in [
        vec![input(0, "{}")],
        vec![start_call(0, "a", "b"), input(1, "{}")],
        vec![start_call(0, "a", "b"), stop_block(0), input(0, "{}")],
        vec![start_call(0, "a", "b"), start_call(0, "c", "d")],
        vec![text_block, input(0, "{}")],
        vec![json!({"type": "content_block_start", "content_block": {"type": "tool_use"}})],
        vec![json!({"type": "content_block_stop", "index": -1})],
        (0..300).map(|index| start_call(index, "a", "b")).collect(),
    ] {
        let error = reply_with(ResponseParser::default(), &data).unwrap_err();
        assert!(error.is_malformed, "{error:?}");
    }
}

#[test]
fn usage_is_estimated_if_the_server_does_not_count() {
    let data = [
        delta(0, &json!({"type": "text_delta", "text": "two words"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    let usage = reply_with(ResponseParser::default(), &data).unwrap().usage;
    assert_eq!((usage.input, usage.output), (5, 3));
}
