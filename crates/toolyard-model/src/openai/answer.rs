//! Makes events of what OpenAI-compatible servers send. Every field is optional, and most have several names.

use serde_json::{Map, Value};

use super::{call_slots::CallSlots, failure::Complaint, think::ThinkSplitter};
use crate::{FinishReason, ModelEvent, Usage};

/// What was read of an answer so far.
#[derive(Debug, Default)]
pub(super) struct AnswerReader {
    thoughts: ThinkSplitter,
    calls: CallSlots,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    is_refused: bool,
    is_done: bool,
    /// Of everything it said, for servers that do not count.
    estimate: Estimate,
}

impl AnswerReader {
    /// Takes the data of one event. An error is what the server complains about.
    pub(super) fn take(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), Complaint> {
        let data = data.trim();
        if self.is_done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        if let Ok(value) = serde_json::from_str::<Value>(data) {
            return self.take_value(&value, events);
        }
        // Some servers leave out the blank line between events.
        if data.contains('\n') {
            return data.lines().try_for_each(|line| self.take(line, events));
        }
        Err(Complaint::garbled(data))
    }

    /// Takes an event, or a whole answer in place of a stream.
    pub(super) fn take_value(
        &mut self,
        value: &Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Complaint> {
        if let Some(complaint) = Complaint::in_answer(value) {
            return Err(complaint);
        }
        let before = events.len();
        let choice = first_choice(value);
        let usages = [value.get("usage"), choice.get("usage"), value.pointer("/x_groq/usage")];
        let counted = usages.into_iter().flatten().find_map(usage_of);
        self.usage = counted.or_else(|| value.get("timings").and_then(usage_of_timings)).or(self.usage);
        for field in ["delta", "message"] {
            if let Some(Value::Object(piece)) = choice.get(field) {
                self.take_piece(piece, events);
            }
        }
        if let Some(text) = choice.get("text").and_then(Value::as_str) {
            self.thoughts.push(text, events);
        }
        let reasons = ["finish_reason", "stop_reason", "done_reason"];
        // Some say nothing in every event, in so many words.
        let said = |word: &&str| !word.is_empty() && *word != "null";
        if let Some(reason) = reasons.iter().find_map(|field| choice.get(*field)?.as_str().filter(said)) {
            self.finish = Some(finish_reason(reason));
        }
        for event in events.get(before..).unwrap_or_default() {
            self.estimate.add(event);
        }
        Ok(())
    }

    /// Takes an answer that came whole. It is complete even where it does not say so.
    pub(super) fn take_whole(
        &mut self,
        value: &Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Complaint> {
        // Some wrap even their complaints into a list.
        let value = value.get(0).unwrap_or(value);
        self.take_value(value, events)?;
        if first_choice(value).is_null() {
            return Err(Complaint::garbled(&value.to_string()));
        }
        self.is_done = true;
        Ok(())
    }

    fn take_piece(&mut self, piece: &Map<String, Value>, events: &mut Vec<ModelEvent>) {
        let thought = ["reasoning_content", "reasoning", "thinking"]
            .iter()
            .find_map(|field| piece.get(*field).and_then(Value::as_str).filter(|text| !text.is_empty()));
        if let Some(thought) = thought {
            events.push(ModelEvent::Reasoning(thought.to_owned()));
        }
        match piece.get("content") {
            Some(Value::String(text)) => self.thoughts.push(text, events),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.take_part(part, events)),
            _ => {}
        }
        if let Some(refusal) = piece.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            self.is_refused = true;
            events.push(ModelEvent::Text(refusal.to_owned()));
        }
        match piece.get("tool_calls") {
            Some(Value::Array(calls)) => calls.iter().for_each(|call| self.calls.take(call, events)),
            Some(call @ Value::Object(_)) => self.calls.take(call, events),
            _ => {}
        }
        if let Some(call @ Value::Object(_)) = piece.get("function_call") {
            self.calls.take_legacy(call, events);
        }
    }

    /// A part of content that comes in parts.
    fn take_part(&mut self, part: &Value, events: &mut Vec<ModelEvent>) {
        if let Some(text) = part.as_str().or_else(|| part.get("text").and_then(Value::as_str)) {
            self.thoughts.push(text, events);
        }
        let thoughts = match part.get("thinking") {
            Some(Value::String(text)) => vec![text.as_str()],
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
            }
            _ => Vec::new(),
        };
        events.extend(thoughts.into_iter().map(|text| ModelEvent::Reasoning(text.to_owned())));
    }

    /// Whether nothing more is going to come.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether it said why it stopped; only figures may follow.
    pub(super) fn is_finished(&self) -> bool {
        self.is_done || self.finish.is_some()
    }

    /// What an answer cost that goes no further; nothing if nothing was said.
    pub(super) fn used(&self, read: Estimate, price: impl Fn(&Usage) -> u64) -> Usage {
        let nothing = self.usage.is_none() && self.estimate.tokens() == 0;
        if nothing { Usage::default() } else { self.usage(read, price) }
    }

    /// What the server counted, or else an estimate.
    fn usage(&self, read: Estimate, price: impl Fn(&Usage) -> u64) -> Usage {
        let estimated = Usage { input: read.tokens(), output: self.estimate.tokens(), ..Usage::default() };
        let usage = self.usage.unwrap_or(estimated);
        Usage { cost_micros: price(&usage), ..usage }
    }

    /// The last events. `read` is how long the request was, for servers that do not count.
    pub(super) fn finish(&mut self, read: Estimate, price: impl Fn(&Usage) -> u64) -> Vec<ModelEvent> {
        let mut events = Vec::new();
        self.thoughts.finish(&mut events);
        for event in &events {
            self.estimate.add(event);
        }
        events.push(ModelEvent::Usage(self.usage(read, price)));
        let reason = match self.finish.take().unwrap_or_default() {
            _ if self.is_refused => FinishReason::Refused,
            // Servers disagree on whether a call is an end of its own kind.
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            FinishReason::ToolCalls if self.calls.is_empty() => FinishReason::Stop,
            reason => reason,
        };
        events.push(ModelEvent::Finished(reason));
        events
    }
}

/// A rough count of tokens: four ASCII characters are one, and so is every other character.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Estimate {
    ascii: u64,
    other: u64,
}

impl Estimate {
    pub(crate) fn of(text: &str) -> Self {
        let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
        Self { ascii, other: (text.chars().count() as u64).saturating_sub(ascii) }
    }

    pub(crate) fn add(&mut self, event: &ModelEvent) {
        let text = match event {
            ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.as_str(),
            ModelEvent::ToolCall(delta) => delta.arguments.as_str(),
            ModelEvent::Usage(_) | ModelEvent::Finished(_) => "",
        };
        let more = Self::of(text);
        self.ascii += more.ascii;
        self.other += more.other;
    }

    pub(crate) fn tokens(self) -> u64 {
        self.ascii.div_ceil(4) + self.other
    }
}

/// The choice that counts: we ask for one only. Servers that answer without choices put its fields outside.
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

/// Why it stopped, in the words of all dialects.
pub(super) fn finish_reason(word: &str) -> FinishReason {
    match word.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete" | "completed" | "end" => {
            FinishReason::Stop
        }
        "tool_calls" | "tool_call" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" | "limit" => FinishReason::Length,
        "content_filter" | "safety" | "refusal" | "recitation" | "prohibited_content" | "blocklist"
        | "sensitive" | "spii" => FinishReason::Refused,
        _ => FinishReason::Other(toolyard_core::shown(word).chars().take(60).collect()),
    }
}

/// The counts of a server, whatever it calls them; none if it counts nothing.
fn usage_of(value: &Value) -> Option<Usage> {
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

/// The counts of llama.cpp, which are there even where usage was not asked for.
fn usage_of_timings(timings: &Value) -> Option<Usage> {
    let cached = count(timings, &["cache_n"]).unwrap_or(0);
    let input = count(timings, &["prompt_n"])?.saturating_add(cached);
    Some(Usage { input, cached, output: count(timings, &["predicted_n"]).unwrap_or(0), cost_micros: 0 })
}

fn count(value: &Value, fields: &[&str]) -> Option<u64> {
    fields.iter().find_map(|field| {
        let value = value.get(*field)?;
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
    })
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
