//! Finds out how a model calls tools best: natively, as JSON constrained by a schema, or in its text.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolyard_core::{RawJson, escape_unsafe};

use crate::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelMessage, ModelReply, ModelRequest, ModelTool,
    ResponseSchema, ToolCalling, Usage, collect_reply,
    tool_call_parser::{parse_arguments, parse_tool_calls},
};

const MAX_EXCERPT_CHARS: usize = 120;

/// Limits of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Limits the time for one question.
    pub timeout: Duration,
    /// Limits the length of one reply.
    pub max_tokens: u32,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(120), max_tokens: 256 }
    }
}

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The model's name.
    pub model: String,
    /// The result of each mode, in order of preference.
    pub outcomes: Vec<ProbeOutcome>,
    /// The mode with the most correct calls, the first among equals; `None` if there were none.
    pub recommended: Option<ToolCalling>,
}

/// The result of one mode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeOutcome {
    /// The mode.
    pub calling: ToolCalling,
    /// Questions answered with the right call.
    pub correct: u32,
    /// Questions asked.
    pub attempted: u32,
    /// The average time until the first token, in milliseconds.
    pub first_token_ms: Option<u64>,
    /// The average time of a reply, in milliseconds.
    pub reply_ms: u64,
    /// Tokens and cost of all replies.
    pub usage: Usage,
    /// What was wrong with the last incorrect reply.
    pub problem: Option<String>,
}

struct ProbeTask {
    question: &'static str,
    tool: &'static str,
    has_expected_arguments: fn(&Map<String, Value>) -> bool,
}

const TASKS: [ProbeTask; 2] = [
    ProbeTask {
        question: "What time is it in Tokyo right now?",
        tool: "get_time",
        has_expected_arguments: |arguments| {
            arguments.get("timezone").and_then(Value::as_str) == Some("Asia/Tokyo")
        },
    },
    ProbeTask {
        question: "用工具计算 17 加 25。",
        tool: "add",
        has_expected_arguments: |arguments| {
            let read_number = |name: &str| {
                let value = arguments.get(name)?;
                value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
            };
            let mut addends = [read_number("a"), read_number("b")];
            addends.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            addends == [Some(17.0), Some(25.0)]
        },
    },
];

/// Asks a model the same questions in each mode of calling tools. Fails only if the model is unreachable or rejects the
/// API key.
pub async fn probe(model: &dyn Model, options: ProbeOptions) -> Result<ProbeReport, ModelError> {
    let mut outcomes = Vec::new();
    for calling in [ToolCalling::Native, ToolCalling::Schema, ToolCalling::Text] {
        outcomes.push(probe_mode(model, calling, options).await?);
    }
    // Reversed, because `max_by_key` returns the last of several maxima.
    let best = outcomes.iter().rev().max_by_key(|outcome| outcome.correct).filter(|best| best.correct > 0);
    let recommended = best.map(|best| best.calling);
    Ok(ProbeReport { model: model.name().to_owned(), outcomes, recommended })
}

async fn probe_mode(
    model: &dyn Model,
    calling: ToolCalling,
    options: ProbeOptions,
) -> Result<ProbeOutcome, ModelError> {
    let mut outcome = ProbeOutcome { calling, ..ProbeOutcome::default() };
    let (mut first_token_time, mut started_replies, mut total_time) = (Duration::ZERO, 0_u32, Duration::ZERO);
    for task in &TASKS {
        let request = build_request(calling, task, options);
        let started = Instant::now();
        let mut first_token = None;
        let on_event = |event: &ModelEvent| {
            let is_token = !matches!(event, ModelEvent::Usage(_) | ModelEvent::Finished(_));
            if is_token && first_token.is_none() {
                first_token = Some(started.elapsed());
            }
        };
        let reply = tokio::time::timeout(options.timeout, collect_reply(model, &request, on_event)).await;
        outcome.attempted += 1;
        total_time += started.elapsed();
        if let Some(time) = first_token {
            first_token_time += time;
            started_replies += 1;
        }
        match reply {
            Err(_) => outcome.problem = Some(format!("no reply within {} s", options.timeout.as_secs())),
            Ok(Err(error)) if is_unavailable(&error) => return Err(error),
            Ok(Err(error)) => outcome.problem = Some(error.to_string()),
            Ok(Ok(reply)) => {
                outcome.usage = outcome.usage.saturating_add(reply.usage);
                match find_problem(calling, task, &reply) {
                    None => outcome.correct += 1,
                    problem => outcome.problem = problem,
                }
            }
        }
    }
    outcome.first_token_ms = first_token_time.checked_div(started_replies).map(to_millis);
    outcome.reply_ms = total_time.checked_div(outcome.attempted).map_or(0, to_millis);
    Ok(outcome)
}

fn is_unavailable(error: &ModelError) -> bool {
    matches!(error.kind, ModelErrorKind::Unreachable | ModelErrorKind::Unauthorized)
}

fn to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Describes a reply that is not the expected call.
fn find_problem(calling: ToolCalling, task: &ProbeTask, reply: &ModelReply) -> Option<String> {
    let is_tool = |name: &str| matches!(name, "get_time" | "add");
    let calls: Vec<(String, Map<String, Value>)> = match calling {
        ToolCalling::Native => reply
            .calls
            .iter()
            .filter_map(|call| Some((call.name.clone(), parse_arguments(&call.arguments)?)))
            .collect(),
        ToolCalling::Schema => parse_schema_call(&reply.text).into_iter().collect(),
        ToolCalling::Text => {
            let parsed = parse_tool_calls(&reply.text, &is_tool);
            parsed.calls.into_iter().map(|call| (call.name, call.arguments)).collect()
        }
    };
    match calls.as_slice() {
        [(name, arguments)] if name == task.tool && (task.has_expected_arguments)(arguments) => None,
        [(name, arguments), ..] => {
            Some(format!("called {}", excerpt(&format!("{name} with {}", Value::Object(arguments.clone())))))
        }
        [] if reply.text.trim().is_empty() => Some("replied without text or tool call".to_owned()),
        [] => Some(format!("made no tool call: {}", excerpt(&reply.text))),
    }
}

fn parse_schema_call(text: &str) -> Option<(String, Map<String, Value>)> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let call = value.get("call")?;
    let name = call.get("tool_name")?.as_str()?.to_owned();
    Some((name, call.get("arguments")?.as_object()?.clone()))
}

/// The beginning of a text as one line without unsafe characters.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let safe = escape_unsafe(&line);
    if safe.chars().count() <= MAX_EXCERPT_CHARS {
        return safe.into_owned();
    }
    safe.chars().take(MAX_EXCERPT_CHARS).chain(['…']).collect()
}

fn build_request(calling: ToolCalling, task: &ProbeTask, options: ProbeOptions) -> ModelRequest {
    let tools = [
        ("get_time", "Tell the current time in a time zone", time_schema()),
        ("add", "Add two numbers", add_schema()),
    ];
    let list = tools
        .iter()
        .map(|(name, description, schema)| format!("- {name}: {description}. Parameters: {schema}"));
    let list = list.collect::<Vec<_>>().join("\n");
    let system = match calling {
        ToolCalling::Native => "Answer by calling the right tool.".to_owned(),
        ToolCalling::Schema => {
            format!(
                "Choose the tool that answers the question, with its arguments, as JSON.\n\nTools:\n{list}"
            )
        }
        ToolCalling::Text => format!(
            "Answer by calling the right tool, with a block of this form and nothing else:\n\n<tool_call>\n\
             {{\"tool_name\": \"NAME\", \"arguments\": {{\"PARAMETER\": \"VALUE\"}}}}\n</tool_call>\n\nTools:\n{list}"
        ),
    };
    let mut request = ModelRequest {
        messages: vec![ModelMessage::system(system), ModelMessage::user(task.question)],
        max_tokens: Some(options.max_tokens),
        temperature: Some(0.0),
        ..ModelRequest::default()
    };
    match calling {
        ToolCalling::Native => {
            let to_definition = |(name, description, schema): &(&str, &str, Value)| ModelTool {
                name: (*name).to_owned(),
                description: (*description).to_owned(),
                parameters: RawJson::from_value(schema),
            };
            request.tools = tools.iter().map(to_definition).collect();
        }
        ToolCalling::Schema => {
            let call_schema = |(name, _, schema): &(&str, &str, Value)| {
                object_schema(&json!({"tool_name": {"type": "string", "enum": [name]}, "arguments": schema}))
            };
            let calls: Vec<Value> = tools.iter().map(call_schema).collect();
            let schema = object_schema(&json!({"call": {"anyOf": calls}}));
            request.schema =
                Some(ResponseSchema { name: "tool_call".to_owned(), schema: RawJson::from_value(&schema) });
        }
        ToolCalling::Text => {}
    }
    request
}

fn time_schema() -> Value {
    object_schema(&json!({"timezone": {"type": "string", "description": "IANA name, such as Europe/Berlin"}}))
}

fn add_schema() -> Value {
    object_schema(&json!({"a": {"type": "number"}, "b": {"type": "number"}}))
}

/// The schema of an object with exactly these properties.
fn object_schema(properties: &Value) -> Value {
    let required: Vec<&String> = properties.as_object().map(|map| map.keys().collect()).unwrap_or_default();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
