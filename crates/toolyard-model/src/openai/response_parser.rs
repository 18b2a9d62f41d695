//! Turns responses of OpenAI-compatible servers into events. Every field is optional, and most have several names.

use serde_json::{Map, Value};
use toolyard_core::escape_unsafe;

use super::{reasoning_tags::ReasoningTagFilter, tool_call_assembler::ToolCallAssembler};
use crate::{
    FinishReason, ModelEvent, Prices, Usage,
    provider::{ReplyParser, ServerError, TokenEstimate},
};

const MAX_FINISH_REASON_CHARS: usize = 60;

#[derive(Debug, Default)]
pub(crate) struct ResponseParser {
    text_filter: ReasoningTagFilter,
    tool_calls: ToolCallAssembler,
    finish_reason: Option<FinishReason>,
    usage: Option<Usage>,
    is_refused: bool,
    is_done: bool,
    /// The estimated length of the reply, for servers that do not count tokens.
    output: TokenEstimate,
}

impl ResponseParser {
    fn parse_value(&mut self, value: &Value, events: &mut Vec<ModelEvent>) -> Result<(), ServerError> {
        if let Some(error) = ServerError::find_in(value) {
            return Err(error);
        }
        let earlier_events = events.len();
        let choice = first_choice(value);
        let usages = [value.get("usage"), choice.get("usage"), value.pointer("/x_groq/usage")];
        let usage = usages.into_iter().flatten().find_map(parse_usage);
        self.usage = usage.or_else(|| value.get("timings").and_then(parse_timings)).or(self.usage);
        for field in ["delta", "message"] {
            if let Some(Value::Object(message)) = choice.get(field) {
                self.parse_message(message, events);
            }
        }
        if let Some(text) = choice.get("text").and_then(Value::as_str) {
            self.text_filter.push(text, events);
        }
        let reasons = ["finish_reason", "stop_reason", "done_reason"];
        // Some servers send an empty reason or the string `null` with every event.
        let is_reason = |word: &&str| !word.is_empty() && *word != "null";
        if let Some(reason) = reasons.iter().find_map(|field| choice.get(*field)?.as_str().filter(is_reason))
        {
            self.finish_reason = Some(parse_finish_reason(reason));
        }
        for event in events.get(earlier_events..).unwrap_or_default() {
            self.output.add(event);
        }
        Ok(())
    }

    fn parse_message(&mut self, message: &Map<String, Value>, events: &mut Vec<ModelEvent>) {
        let text_field =
            |field: &str| message.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(reasoning) =
            ["reasoning_content", "reasoning", "thinking"].into_iter().find_map(text_field)
        {
            events.push(ModelEvent::Reasoning(reasoning.to_owned()));
        }
        match message.get("content") {
            Some(Value::String(text)) => self.text_filter.push(text, events),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.parse_content_part(part, events)),
            _ => {}
        }
        if let Some(refusal) = text_field("refusal") {
            self.is_refused = true;
            events.push(ModelEvent::Text(refusal.to_owned()));
        }
        match message.get("tool_calls") {
            Some(Value::Array(calls)) => calls.iter().for_each(|call| self.tool_calls.push(call, events)),
            Some(call @ Value::Object(_)) => self.tool_calls.push(call, events),
            _ => {}
        }
        if let Some(call @ Value::Object(_)) = message.get("function_call") {
            self.tool_calls.push_legacy(call, events);
        }
    }

    fn parse_content_part(&mut self, part: &Value, events: &mut Vec<ModelEvent>) {
        if let Some(text) = part.as_str().or_else(|| part.get("text").and_then(Value::as_str)) {
            self.text_filter.push(text, events);
        }
        let mut push_reasoning = |text: &str| events.push(ModelEvent::Reasoning(text.to_owned()));
        match part.get("thinking") {
            Some(Value::String(text)) => push_reasoning(text),
            Some(Value::Array(parts)) => {
                parts
                    .iter()
                    .filter_map(|part| part.get("text").and_then(Value::as_str))
                    .for_each(push_reasoning);
            }
            _ => {}
        }
    }

    /// The server's count, or else an estimate.
    fn usage(&self, input: TokenEstimate, prices: &Prices) -> Usage {
        let estimate = Usage { input: input.tokens(), output: self.output.tokens(), ..Usage::default() };
        let usage = self.usage.unwrap_or(estimate);
        Usage { cost_micros: prices.cost(&usage), ..usage }
    }
}

impl ReplyParser for ResponseParser {
    fn parse(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ServerError> {
        let data = data.trim();
        if self.is_done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        if let Ok(value) = serde_json::from_str::<Value>(data) {
            return self.parse_value(&value, events);
        }
        // Some servers omit the blank line between events.
        if data.contains('\n') {
            return data.lines().try_for_each(|line| self.parse(line, events));
        }
        Err(ServerError::malformed(data))
    }

    /// The response is complete even without a finish reason.
    fn parse_complete(&mut self, value: &Value, events: &mut Vec<ModelEvent>) -> Result<(), ServerError> {
        // Some servers return errors as a list of one.
        let value = value.get(0).unwrap_or(value);
        self.parse_value(value, events)?;
        if first_choice(value).is_null() {
            return Err(ServerError::malformed(&value.to_string()));
        }
        self.is_done = true;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_finished(&self) -> bool {
        self.is_done || self.finish_reason.is_some()
    }

    fn partial_usage(&self, input: TokenEstimate, prices: &Prices) -> Usage {
        let is_empty = self.usage.is_none() && self.output.tokens() == 0;
        if is_empty { Usage::default() } else { self.usage(input, prices) }
    }

    fn finish(&mut self, input: TokenEstimate, prices: &Prices) -> Vec<ModelEvent> {
        let mut events = Vec::new();
        self.text_filter.finish(&mut events);
        for event in &events {
            self.output.add(event);
        }
        events.push(ModelEvent::Usage(self.usage(input, prices)));
        let reason = match self.finish_reason.take().unwrap_or_default() {
            _ if self.is_refused => FinishReason::Refused,
            // Servers disagree on whether tool calls have a reason of their own.
            FinishReason::Stop if !self.tool_calls.is_empty() => FinishReason::ToolCalls,
            FinishReason::ToolCalls if self.tool_calls.is_empty() => FinishReason::Stop,
            reason => reason,
        };
        events.push(ModelEvent::Finished(reason));
        events
    }
}

/// The choice with index 0; requests ask for one choice only. Some servers put its fields at the top level.
fn first_choice(value: &Value) -> &Value {
    let nested = value.get("choices").or_else(|| value.pointer("/output/choices"));
    match nested {
        Some(Value::Array(choices)) => choices
            .iter()
            .find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
            .unwrap_or(&Value::Null),
        _ if value.get("message").is_some_and(Value::is_object) => value,
        _ => &Value::Null,
    }
}

pub(crate) fn parse_finish_reason(word: &str) -> FinishReason {
    match word.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete" | "completed" | "end" => {
            FinishReason::Stop
        }
        "tool_calls" | "tool_call" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_length"
        | "limit"
        | "model_context_window_exceeded" => FinishReason::Length,
        "content_filter" | "safety" | "refusal" | "recitation" | "prohibited_content" | "blocklist"
        | "sensitive" | "spii" => FinishReason::Refused,
        _ => FinishReason::Other(escape_unsafe(word).chars().take(MAX_FINISH_REASON_CHARS).collect()),
    }
}

/// The token counts of a server under any of their names.
fn parse_usage(value: &Value) -> Option<Usage> {
    let input = count(value, &["prompt_tokens", "input_tokens", "prompt_eval_count"]);
    let output = count(value, &["completion_tokens", "output_tokens", "eval_count"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let cached = ["prompt_tokens_details", "input_tokens_details"]
        .iter()
        .find_map(|details| count(value.get(*details)?, &["cached_tokens"]))
        .or_else(|| count(value, &["cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"]));
    let input = input.unwrap_or(0);
    Some(Usage { input, cached: cached.unwrap_or(0).min(input), output: output.unwrap_or(0), cost_micros: 0 })
}

/// The counts that llama.cpp sends even without `stream_options.include_usage`.
fn parse_timings(timings: &Value) -> Option<Usage> {
    let cached = count(timings, &["cache_n"]).unwrap_or(0);
    let input = count(timings, &["prompt_n"])?.saturating_add(cached);
    Some(Usage { input, cached, output: count(timings, &["predicted_n"]).unwrap_or(0), cost_micros: 0 })
}

pub(crate) fn count(value: &Value, fields: &[&str]) -> Option<u64> {
    fields.iter().find_map(|field| {
        let value = value.get(*field)?;
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
    })
}

#[cfg(test)]
#[path = "response_parser_tests.rs"]
mod tests;
