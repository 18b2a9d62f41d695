//! Responses in the dialects of many servers.

use serde_json::json;

use super::*;
use crate::{ModelReply, ModelToolCall};

/// The reply to these stream events.
fn reply(data: &[Value]) -> ModelReply {
    let texts: Vec<String> = data.iter().map(Value::to_string).collect();
    reply_of(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap()
}

fn reply_of(data: &[&str]) -> Result<ModelReply, ServerError> {
    let (mut parser, mut events) = (ResponseParser::default(), Vec::new());
    for data in data {
        parser.parse(data, &mut events)?;
    }
    let prices = Prices { output: 2_000_000, ..Prices::default() };
    events.extend(parser.finish(TokenEstimate::of("four letters each"), &prices));
    let mut reply = ModelReply::default();
    events.into_iter().for_each(|event| reply.apply(event));
    Ok(reply)
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": reason}]})
}

fn call(id: &str, name: &str, arguments: &str) -> ModelToolCall {
    ModelToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

#[test]
fn text_reasoning_usage_and_finish_reason_are_collected() {
    let reply = reply(&[
        delta(&json!({"role": "assistant", "content": null})),
        delta(&json!({"reasoning_content": "hm"})),
        delta(&json!({"content": "Sev"})),
        delta(&json!({"content": "en."})),
        finish("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 16}}}),
    ]);
    assert_eq!((reply.text.as_str(), reply.reasoning.as_str()), ("Seven.", "hm"));
    assert_eq!(reply.usage, Usage { input: 20, cached: 16, output: 3, cost_micros: 6 });
    assert_eq!(reply.finish_reason, FinishReason::Stop);
}

#[test]
fn tool_calls_are_assembled_from_incomplete_pieces() {
    // OpenAI and vLLM.
    let usual = reply(&[
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_time", "arguments": ""}}]}),
        ),
        delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"x\""}}]})),
        delta(&json!({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "calculate"}}]})),
        delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]})),
        delta(&json!({"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]})),
        finish("tool_calls"),
    ]);
    assert_eq!(usual.calls, [call("a", "get_time", "{\"x\":1}"), call("b", "calculate", "{}")]);
    assert_eq!(usual.finish_reason, FinishReason::ToolCalls);
    // Without index, id or finish reason; arguments as an object.
    let bare = reply(&[
        delta(&json!({"tool_calls": [{"function": {"name": "get_time", "arguments": {"x": 1}}}]})),
        delta(&json!({"tool_calls": [{"function": {"name": "calculate", "arguments": "{\"y\""}}]})),
        delta(&json!({"tool_calls": [{"function": {"arguments": ":2}"}}]})),
        finish("stop"),
    ]);
    assert_eq!(
        bare.calls,
        [call("call_1", "get_time", "{\"x\":1}"), call("call_2", "calculate", "{\"y\":2}")]
    );
    assert_eq!(bare.finish_reason, FinishReason::ToolCalls);
    // All calls with index 0.
    for second in [json!("b"), Value::Null] {
        let zero = reply(&[
            delta(
                &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_time", "arguments": "{\"x\":1}"}}]}),
            ),
            delta(
                &json!({"tool_calls": [{"index": 0, "id": second, "function": {"name": "get_time", "arguments": "{\"x\":2}"}}]}),
            ),
        ]);
        assert_eq!(zero.calls.len(), 2, "{second}");
    }
    // Everything repeated in every piece.
    let again = reply(&[
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_time", "arguments": "{\"x\""}}]}),
        ),
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_time", "arguments": ":1}"}}]}),
        ),
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_time", "arguments": "{\"x\":1}"}}]}),
        ),
    ]);
    assert_eq!(again.calls, [call("a", "get_time", "{\"x\":1}")]);
    let legacy = reply(&[
        delta(&json!({"function_call": {"name": "get_time"}})),
        delta(&json!({"function_call": {"arguments": "{}"}})),
        finish("function_call"),
    ]);
    assert_eq!(legacy.calls, [call("call_1", "get_time", "{}")]);
}

#[test]
fn the_number_of_tool_calls_is_limited() {
    let events: Vec<Value> = (0..2_000_u64)
        .map(|number| {
            delta(&json!({"tool_calls": [{"index": number * 1_000_000, "function": {"name": "f", "arguments": "{}"}}]}))
        })
        .collect();
    assert_eq!(reply(&events).calls.len(), 256);
}

#[test]
fn content_comes_in_several_forms() {
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "A"}, "B"]);
    let reply_to_parts = reply(&[delta(&json!({"content": parts}))]);
    assert_eq!((reply_to_parts.reasoning.as_str(), reply_to_parts.text.as_str()), ("hm", "AB"));
    let legacy = reply(&[json!({"choices": [{"text": "old"}]})]);
    assert_eq!(legacy.text, "old");
    let without_choices =
        reply(&[json!({"message": {"content": "bare"}, "done": true, "done_reason": "length"})]);
    assert_eq!(
        (without_choices.text.as_str(), without_choices.finish_reason),
        ("bare", FinishReason::Length)
    );
    let other_choices = json!({"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]});
    assert_eq!(reply(&[other_choices]).text, "yes");
    let refused = reply(&[delta(&json!({"refusal": "I will not."})), finish("stop")]);
    assert_eq!((refused.text.as_str(), refused.finish_reason), ("I will not.", FinishReason::Refused));
    let thinking = reply(&[delta(&json!({"content": "<think>a</th"})), delta(&json!({"content": "ink>b"}))]);
    assert_eq!((thinking.reasoning.as_str(), thinking.text.as_str()), ("a", "b"));
}

#[test]
fn usage_is_found_under_many_names_or_estimated() {
    let timings =
        reply(&[json!({"choices": [], "timings": {"prompt_n": 5, "cache_n": 7, "predicted_n": 3}})]).usage;
    assert_eq!((timings.input, timings.cached, timings.output), (12, 7, 3));
    let groq =
        reply(&[json!({"choices": [], "x_groq": {"usage": {"prompt_tokens": 4, "completion_tokens": "2"}}})])
            .usage;
    assert_eq!((groq.input, groq.output), (4, 2));
    let deepseek =
        json!({"usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}});
    assert_eq!(reply(&[deepseek]).usage.cached, 8);
    let lying = json!({"usage": {"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 800}});
    assert_eq!(reply(&[lying]).usage.cached, 9, "cached tokens are part of the input");
    let silent = reply(&[delta(&json!({"content": "abcdefgh你好"}))]).usage;
    assert_eq!((silent.input, silent.output), (5, 4));
}

#[test]
fn finish_reasons_of_all_dialects_are_known() {
    for (word, reason) in [
        ("stop", FinishReason::Stop),
        ("eos", FinishReason::Stop),
        ("end_turn", FinishReason::Stop),
        ("COMPLETE", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("MAX_TOKENS", FinishReason::Length),
        ("content_filter", FinishReason::Refused),
        ("SAFETY", FinishReason::Refused),
        ("tool_use", FinishReason::ToolCalls),
        ("bored", FinishReason::Other("bored".into())),
    ] {
        assert_eq!(parse_finish_reason(word), reason);
    }
    // Empty reasons are ignored.
    let (mut parser, mut events) = (ResponseParser::default(), Vec::new());
    for reason in ["", "null"] {
        let event = json!({"choices": [{"delta": {"content": "a"}, "finish_reason": reason}]});
        parser.parse(&event.to_string(), &mut events).unwrap();
        assert!(!parser.is_finished());
    }
    // A reason of tool calls without tool calls.
    assert_eq!(reply(&[finish("tool_calls")]).finish_reason, FinishReason::Stop);
}

#[test]
fn errors_and_malformed_data_are_found() {
    let error_of = |text: &str| reply_of(&[text]).unwrap_err();
    let found = error_of(r#"{"error": {"message": "slow down", "code": 429}}"#);
    assert_eq!((found.status, found.message.as_str(), found.is_transient()), (Some(429), "slow down", true));
    assert_eq!(error_of(r#"{"error": "out of memory"}"#).message, "out of memory");
    assert_eq!(error_of(r#"{"object": "error", "message": "bad", "code": 400}"#).status, Some(400));
    assert!(error_of("{\"choices\": [{\"delta\"").is_malformed);
    assert!(error_of("hello").is_malformed);
    // Not errors.
    assert!(
        reply_of(&[r#"{"error": null, "choices": []}"#, "", "{}", "[DONE]", "not read any more"]).is_ok()
    );
    // Two events without a blank line between them.
    let two =
        "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n{\"choices\":[{\"delta\":{\"content\":\"b\"}}]}";
    assert_eq!(reply_of(&[two]).unwrap().text, "ab");
}
