//! What is made of the dialects of servers.

use serde_json::json;

use super::*;
use crate::{ModelReply, NativeCall};

/// The reply that these events of a stream make.
fn reply(data: &[Value]) -> ModelReply {
    let texts: Vec<String> = data.iter().map(Value::to_string).collect();
    reply_of(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap()
}

fn reply_of(data: &[&str]) -> Result<ModelReply, Complaint> {
    let (mut reader, mut events) = (AnswerReader::default(), Vec::new());
    for data in data {
        reader.take(data, &mut events)?;
    }
    events.extend(reader.finish(Estimate::of("four letters each"), |usage| usage.output * 2));
    let mut reply = ModelReply::default();
    events.into_iter().for_each(|event| reply.take(event));
    Ok(reply)
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": reason}]})
}

fn call(id: &str, name: &str, arguments: &str) -> NativeCall {
    NativeCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

#[test]
fn text_thoughts_usage_and_reason_come_together() {
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
    assert_eq!(reply.finish, FinishReason::Stop);
}

#[test]
fn calls_are_put_together_whatever_their_pieces_leave_out() {
    // As OpenAI and vLLM do it.
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
    assert_eq!(usual.finish, FinishReason::ToolCalls);
    // Without numbers, ids or even a reason; arguments as an object.
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
    assert_eq!(bare.finish, FinishReason::ToolCalls);
    // All calls numbered 0.
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
    // Everything again in every piece.
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
fn a_model_that_numbers_its_calls_to_the_millions_makes_few() {
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
    assert_eq!((without_choices.text.as_str(), without_choices.finish), ("bare", FinishReason::Length));
    let other_choices = json!({"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]});
    assert_eq!(reply(&[other_choices]).text, "yes");
    let refused = reply(&[delta(&json!({"refusal": "I will not."})), finish("stop")]);
    assert_eq!((refused.text.as_str(), refused.finish), ("I will not.", FinishReason::Refused));
    let thinking = reply(&[delta(&json!({"content": "<think>a</th"})), delta(&json!({"content": "ink>b"}))]);
    assert_eq!((thinking.reasoning.as_str(), thinking.text.as_str()), ("a", "b"));
}

#[test]
fn usage_is_found_wherever_it_is_and_estimated_where_it_is_not() {
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
    assert_eq!(reply(&[lying]).usage.cached, 9, "no more can be cached than was read");
    let silent = reply(&[delta(&json!({"content": "abcdefgh你好"}))]).usage;
    assert_eq!((silent.input, silent.output), (5, 4));
}

#[test]
fn every_dialect_says_why_it_stopped() {
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
        assert_eq!(finish_reason(word), reason);
    }
    // No reason in every event is no reason.
    let (mut reader, mut events) = (AnswerReader::default(), Vec::new());
    for reason in ["", "null"] {
        let event = json!({"choices": [{"delta": {"content": "a"}, "finish_reason": reason}]});
        reader.take(&event.to_string(), &mut events).unwrap();
        assert!(!reader.is_finished());
    }
    // It says that it calls, and does not.
    assert_eq!(reply(&[finish("tool_calls")]).finish, FinishReason::Stop);
}

#[test]
fn complaints_are_found_and_garbage_is_named() {
    let complaint = |text: &str| reply_of(&[text]).unwrap_err();
    let found = complaint(r#"{"error": {"message": "slow down", "code": 429}}"#);
    assert_eq!((found.status, found.message.as_str(), found.is_passing()), (Some(429), "slow down", true));
    assert_eq!(complaint(r#"{"error": "out of memory"}"#).message, "out of memory");
    assert_eq!(complaint(r#"{"object": "error", "message": "bad", "code": 400}"#).status, Some(400));
    assert!(complaint("{\"choices\": [{\"delta\"").is_garbled);
    assert!(complaint("hello").is_garbled);
    // No complaints at all.
    assert!(
        reply_of(&[r#"{"error": null, "choices": []}"#, "", "{}", "[DONE]", "not read any more"]).is_ok()
    );
    // Two events without a line between them.
    let two =
        "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n{\"choices\":[{\"delta\":{\"content\":\"b\"}}]}";
    assert_eq!(reply_of(&[two]).unwrap().text, "ab");
}
