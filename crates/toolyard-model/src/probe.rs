//! Tries out how a model calls tools: natively, as JSON that is held to a schema, and in its text.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolyard_core::RawJson;

use crate::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelMessage, ModelReply, ModelRequest, ToolCalling,
    ToolDefinition, Usage, WantedSchema, reply,
    tool_call_tag::{read_arguments, read_calls},
};

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeOptions {
    /// A question that takes longer counts as not answered.
    pub limit: Duration,
    /// It ends after so many tokens.
    pub max_tokens: u32,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self { limit: Duration::from_secs(120), max_tokens: 256 }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Which model.
    pub model: String,
    /// Every way, in the order of preference.
    pub outcomes: Vec<ProbeOutcome>,
    /// The way that worked best; among equals the first. None if none worked.
    pub recommended: Option<ToolCalling>,
}

/// What came of one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeOutcome {
    /// Which way.
    pub calling: ToolCalling,
    /// Questions that led to the right call with the right arguments.
    pub right: u32,
    /// Questions that were asked.
    pub asked: u32,
    /// How long its first words took on average, in milliseconds, where there were any.
    pub first_token_ms: Option<u64>,
    /// How long an answer took on average, in milliseconds.
    pub answer_ms: u64,
    /// What all of it cost.
    pub usage: Usage,
    /// What was wrong with the last answer that was.
    pub problem: Option<String>,
}

impl ProbeOutcome {
    /// Whether every question led to the right call.
    pub fn works(&self) -> bool {
        self.right == self.asked && self.asked > 0
    }
}

/// A question and the call it must lead to.
struct Task {
    question: &'static str,
    tool: &'static str,
    is_right: fn(&Map<String, Value>) -> bool,
}

const TASKS: [Task; 2] = [
    Task {
        question: "What time is it in Tokyo right now?",
        tool: "get_time",
        is_right: |arguments| arguments.get("timezone").and_then(Value::as_str) == Some("Asia/Tokyo"),
    },
    Task {
        question: "用工具计算 17 加 25。",
        tool: "add",
        is_right: |arguments| {
            let number = |name: &str| {
                let value = arguments.get(name)?;
                value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
            };
            let mut both = [number("a"), number("b")];
            both.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            both == [Some(17.0), Some(25.0)]
        },
    },
];

/// Asks a model the same questions in every way of calling tools. An error means that it cannot be asked at all.
pub async fn probe(model: &dyn Model, options: ProbeOptions) -> Result<ProbeReport, ModelError> {
    let mut outcomes = Vec::new();
    for calling in [ToolCalling::Native, ToolCalling::Schema, ToolCalling::Text] {
        outcomes.push(probe_one(model, calling, options).await?);
    }
    // The first of the best: `max_by_key` gives the last, and so they are gone through backwards.
    let best = outcomes.iter().rev().max_by_key(|outcome| outcome.right).filter(|best| best.right > 0);
    let recommended = best.map(|best| best.calling);
    Ok(ProbeReport { model: model.name().to_owned(), outcomes, recommended })
}

/// Asks in one way only.
async fn probe_one(
    model: &dyn Model,
    calling: ToolCalling,
    options: ProbeOptions,
) -> Result<ProbeOutcome, ModelError> {
    let mut outcome = ProbeOutcome {
        calling,
        right: 0,
        asked: 0,
        first_token_ms: None,
        answer_ms: 0,
        usage: Usage::default(),
        problem: None,
    };
    let (mut first, mut spoke, mut whole) = (Duration::ZERO, 0_u32, Duration::ZERO);
    for task in &TASKS {
        let request = request(calling, task, options);
        let began = Instant::now();
        let mut first_word = None;
        let see = |event: &ModelEvent| {
            let is_word = !matches!(event, ModelEvent::Usage(_) | ModelEvent::Finished(_));
            if is_word && first_word.is_none() {
                first_word = Some(began.elapsed());
            }
        };
        let said = tokio::time::timeout(options.limit, reply(model, &request, see)).await;
        outcome.asked += 1;
        whole += began.elapsed();
        if let Some(after) = first_word {
            first += after;
            spoke += 1;
        }
        match said {
            Err(_) => outcome.problem = Some(format!("no answer within {} s", options.limit.as_secs())),
            Ok(Err(error)) if is_out_of_reach(&error) => return Err(error),
            Ok(Err(error)) => outcome.problem = Some(error.to_string()),
            Ok(Ok(said)) => {
                outcome.usage = outcome.usage.plus(said.usage);
                match judge(calling, task, &said) {
                    Ok(()) => outcome.right += 1,
                    Err(problem) => outcome.problem = Some(problem),
                }
            }
        }
    }
    outcome.first_token_ms = first.checked_div(spoke).map(milliseconds);
    outcome.answer_ms = whole.checked_div(outcome.asked).map_or(0, milliseconds);
    Ok(outcome)
}

fn is_out_of_reach(error: &ModelError) -> bool {
    matches!(error.kind, ModelErrorKind::Unreachable | ModelErrorKind::Unauthorized)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether the answer is the call it should be; otherwise what it is.
fn judge(calling: ToolCalling, task: &Task, said: &ModelReply) -> Result<(), String> {
    let is_tool = |name: &str| matches!(name, "get_time" | "add");
    let calls: Vec<(String, Map<String, Value>)> = match calling {
        ToolCalling::Native => said
            .calls
            .iter()
            .filter_map(|call| Some((call.name.clone(), read_arguments(&call.arguments)?)))
            .collect(),
        ToolCalling::Schema => schema_call(&said.text).into_iter().collect(),
        ToolCalling::Text => {
            let found = read_calls(&said.text, &is_tool);
            found.calls.into_iter().map(|call| (call.name, call.arguments)).collect()
        }
    };
    match calls.as_slice() {
        [(name, arguments)] if name == task.tool && (task.is_right)(arguments) => Ok(()),
        [(name, arguments), ..] => {
            Err(format!("called {}", short(&format!("{name} with {}", Value::Object(arguments.clone())))))
        }
        [] if said.text.trim().is_empty() => Err("said nothing and called nothing".to_owned()),
        [] => Err(format!("called nothing and said: {}", short(said.text.trim()))),
    }
}

fn schema_call(text: &str) -> Option<(String, Map<String, Value>)> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let call = value.get("call")?;
    let name = call.get("tool_name")?.as_str()?.to_owned();
    Some((name, call.get("arguments")?.as_object()?.clone()))
}

/// The beginning of a text, fit to be shown.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let safe = toolyard_core::shown(&line).into_owned();
    if safe.chars().count() <= 120 { safe } else { safe.chars().take(120).chain(['…']).collect() }
}

fn request(calling: ToolCalling, task: &Task, options: ProbeOptions) -> ModelRequest {
    let tools = [
        ("get_time", "Tell the current time in a time zone", time_schema()),
        ("add", "Add two numbers", add_schema()),
    ];
    let list = tools.iter().map(|(name, what, schema)| format!("- {name}: {what}. Parameters: {schema}"));
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
            let definition = |(name, what, schema): &(&str, &str, Value)| ToolDefinition {
                name: (*name).to_owned(),
                description: (*what).to_owned(),
                parameters: RawJson::from_value(schema),
            };
            request.tools = tools.iter().map(definition).collect();
        }
        ToolCalling::Schema => {
            let one = |(name, _, schema): &(&str, &str, Value)| {
                object(&json!({"tool_name": {"type": "string", "enum": [name]}, "arguments": schema}))
            };
            let any: Vec<Value> = tools.iter().map(one).collect();
            let schema = object(&json!({"call": {"anyOf": any}}));
            request.schema =
                Some(WantedSchema { name: "tool_call".to_owned(), schema: RawJson::from_value(&schema) });
        }
        ToolCalling::Text => {}
    }
    request
}

fn time_schema() -> Value {
    object(&json!({"timezone": {"type": "string", "description": "IANA name, such as Europe/Berlin"}}))
}

fn add_schema() -> Value {
    object(&json!({"a": {"type": "number"}, "b": {"type": "number"}}))
}

/// An object that has all of these, and nothing else.
fn object(properties: &Value) -> Value {
    let required: Vec<&String> = properties.as_object().map(|map| map.keys().collect()).unwrap_or_default();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
