//! Turns the events of the Messages API into ours.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};

use super::REPLY_TOOL;
use crate::{
    FinishReason, ModelEvent, Prices, ToolCallDelta, Usage,
    openai::{count, parse_finish_reason},
    provider::{ReplyParser, ServerError, TokenEstimate},
    reply::MAX_TOOL_CALLS,
};

#[derive(Debug, Default)]
pub(crate) struct ResponseParser {
    /// Whether the input of a call has the text of the reply.
    has_schema: bool,
    /// The content blocks that have started and not ended, by their index.
    open_blocks: BTreeMap<u64, Block>,
    tool_calls: usize,
    finish_reason: Option<FinishReason>,
    is_done: bool,
    tokens: TokenCounts,
    /// The estimated length of the reply, for servers that do not count tokens.
    output: TokenEstimate,
}

#[derive(Debug)]
enum Block {
    /// Text, reasoning, or a block of an unknown type.
    Other,
    /// The call at this position in the reply.
    Call(usize),
    /// The call whose input, which this is so far, has the text of the reply.
    Reply(String),
}

impl ResponseParser {
    pub(super) fn new(has_schema: bool) -> Self {
        Self { has_schema, ..Self::default() }
    }

    fn start_block(&mut self, value: &Value) -> Result<Option<ModelEvent>, ServerError> {
        let index = block_index(value)?;
        let block = value.get("content_block").unwrap_or(&Value::Null);
        let is_call = text_field(block, "type") == "tool_use";
        // Usually empty: the input follows in pieces.
        let input =
            block.get("input").filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
        let input = input.map(Value::to_string).unwrap_or_default();
        let mut event = None;
        let block = if !is_call {
            Block::Other
        } else if self.has_schema {
            Block::Reply(input)
        } else {
            let position = self.tool_calls;
            if position >= MAX_TOOL_CALLS {
                return Err(ServerError::malformed("too many tool calls"));
            }
            self.tool_calls += 1;
            let (id, name) = (text_field(block, "id").to_owned(), text_field(block, "name").to_owned());
            let delta = ToolCallDelta { index: position, id: Some(id), name: Some(name), arguments: input };
            event = Some(ModelEvent::ToolCall(delta));
            Block::Call(position)
        };
        match self.open_blocks.insert(index, block) {
            Some(_) => Err(ServerError::malformed(&value.to_string())),
            None => Ok(event),
        }
    }

    fn read_delta(&mut self, value: &Value) -> Result<Option<ModelEvent>, ServerError> {
        let delta = value.get("delta").unwrap_or(&Value::Null);
        let event = match text_field(delta, "type") {
            "text_delta" => ModelEvent::Text(text_field(delta, "text").to_owned()),
            "thinking_delta" => ModelEvent::Reasoning(text_field(delta, "thinking").to_owned()),
            "input_json_delta" => {
                let arguments = text_field(delta, "partial_json").to_owned();
                match self.open_blocks.get_mut(&block_index(value)?) {
                    Some(Block::Call(index)) => ModelEvent::ToolCall(ToolCallDelta {
                        index: *index,
                        arguments,
                        ..ToolCallDelta::default()
                    }),
                    Some(Block::Reply(input)) => {
                        input.push_str(&arguments);
                        // It shows that the reply continues.
                        let event = (!arguments.is_empty()).then(|| ModelEvent::Text(String::new()));
                        self.output.add(&ModelEvent::Text(arguments));
                        return Ok(event);
                    }
                    // Input that belongs to no call could be missing in another one.
                    Some(Block::Other) | None => return Err(ServerError::malformed(&value.to_string())),
                }
            }
            _ => return Ok(None),
        };
        let is_empty = match &event {
            ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.is_empty(),
            ModelEvent::ToolCall(delta) => delta.arguments.is_empty(),
            ModelEvent::Usage(_) | ModelEvent::Finished(_) => false,
        };
        Ok(Some(event).filter(|_| !is_empty))
    }

    /// The server's count, or else an estimate.
    fn usage(&self, input: TokenEstimate, prices: &Prices) -> Usage {
        let usage = Usage {
            input: self.tokens.input().unwrap_or(input.tokens()),
            cached: self.tokens.cache_read.unwrap_or(0),
            output: self.tokens.output.unwrap_or(self.output.tokens()),
            cost_micros: 0,
        };
        Usage { cost_micros: prices.cost(&usage), ..usage }
    }
}

impl ReplyParser for ResponseParser {
    fn parse(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ServerError> {
        let Ok(value) = serde_json::from_str::<Value>(data) else { return Err(ServerError::malformed(data)) };
        let event = match text_field(&value, "type") {
            "message_start" => {
                self.tokens.update(value.pointer("/message/usage"));
                None
            }
            "content_block_start" => self.start_block(&value)?,
            "content_block_delta" => self.read_delta(&value)?,
            "content_block_stop" => {
                let block = self.open_blocks.remove(&block_index(&value)?);
                // Its length is counted already.
                events.extend(block.and_then(reply_event));
                None
            }
            "message_delta" => {
                self.tokens.update(value.get("usage"));
                let reason = value.pointer("/delta/stop_reason").and_then(Value::as_str);
                self.finish_reason = reason.map(parse_finish_reason).or(self.finish_reason.take());
                None
            }
            "message_stop" => {
                self.is_done = true;
                None
            }
            // `ping`, and events of later versions.
            _ => match ServerError::find_in(&value) {
                Some(error) => return Err(error),
                None => None,
            },
        };
        if let Some(event) = event {
            self.output.add(&event);
            events.push(event);
        }
        Ok(())
    }

    fn parse_complete(&mut self, value: &Value, _events: &mut Vec<ModelEvent>) -> Result<(), ServerError> {
        // Requests ask for a stream.
        Err(ServerError::find_in(value).unwrap_or_else(|| ServerError::malformed(&value.to_string())))
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_finished(&self) -> bool {
        // Without a reason, the reply may be half of one.
        self.finish_reason.is_some()
    }

    fn partial_usage(&self, input: TokenEstimate, prices: &Prices) -> Usage {
        let is_empty = self.tokens.input().is_none() && self.output.tokens() == 0;
        if is_empty {
            return Usage::default();
        }
        // The count at the start does not include what followed.
        let usage = self.usage(input, prices);
        let usage = Usage { output: usage.output.max(self.output.tokens()), ..usage };
        Usage { cost_micros: prices.cost(&usage), ..usage }
    }

    fn finish(&mut self, input: TokenEstimate, prices: &Prices) -> Vec<ModelEvent> {
        let reason = match self.finish_reason.take().unwrap_or_default() {
            // The call that gives the reply is no call of the reply.
            FinishReason::ToolCalls if self.tool_calls == 0 => FinishReason::Stop,
            reason => reason,
        };
        let open_blocks = std::mem::take(&mut self.open_blocks).into_values();
        let mut events: Vec<ModelEvent> = open_blocks.filter_map(reply_event).collect();
        events.extend([ModelEvent::Usage(self.usage(input, prices)), ModelEvent::Finished(reason)]);
        events
    }
}

/// The text of the reply, if the block that ended has it.
fn reply_event(block: Block) -> Option<ModelEvent> {
    match block {
        Block::Reply(input) => Some(ModelEvent::Text(reply_text(&input))).filter(|_| !input.is_empty()),
        Block::Other | Block::Call(_) => None,
    }
}

/// The value in the input `{"reply": …}`, or an input of another form as it is: models leave out the field, and replies are
/// cut.
fn reply_text(input: &str) -> String {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(input).unwrap_or_default();
    let value = fields.get(REPLY_TOOL).filter(|_| fields.len() == 1).map_or(input, |value| value.get());
    serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned())
}

#[derive(Debug, Default)]
struct TokenCounts {
    uncached: Option<u64>,
    cache_read: Option<u64>,
    cache_written: Option<u64>,
    output: Option<u64>,
}

impl TokenCounts {
    /// Takes the counts of a later event, which are totals.
    fn update(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        self.uncached = count(usage, &["input_tokens"]).or(self.uncached);
        self.cache_read = count(usage, &["cache_read_input_tokens"]).or(self.cache_read);
        self.cache_written = count(usage, &["cache_creation_input_tokens"]).or(self.cache_written);
        self.output = count(usage, &["output_tokens"]).or(self.output);
    }

    /// All input tokens: the server counts cached ones apart.
    fn input(&self) -> Option<u64> {
        let cached = self.cache_read.unwrap_or(0).saturating_add(self.cache_written.unwrap_or(0));
        Some(self.uncached?.saturating_add(cached))
    }
}

fn block_index(value: &Value) -> Result<u64, ServerError> {
    let index = value.get("index").and_then(Value::as_u64);
    index.ok_or_else(|| ServerError::malformed(&value.to_string()))
}

fn text_field<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
#[path = "response_parser_tests.rs"]
mod tests;
