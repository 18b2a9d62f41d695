//! [`ExecutionAgent`]: what a step is called with when nobody said it, what it is good for, and the two questions to a
//! model that steps give rise to: to think something through, and to give better arguments.

mod prepare;

use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolyard_core::{Capability, RawJson, extract_capabilities};
use toolyard_model::{FinishReason, ModelMessage, ModelReply, ModelRequest, ToolCalling, WantedSchema};

pub use self::prepare::prepare_tool_input;
use crate::{
    Language, Step,
    planning::{
        lenient,
        read::{self, Said},
        schema,
        words::{Words, filled},
    },
    prompt::{PromptTool, fence, format_tool_details},
    shape::preview,
};

/// What all values together may take that a model thinks about, in characters.
const MAX_VALUES: usize = 12_000;
/// What each of them gets at least.
const MIN_VALUE: usize = 200;
/// A thought that is longer is cut off.
const MAX_TOKENS: u32 = 2_048;
/// What is shown of arguments and problems.
const MAX_SHOWN: usize = 1_200;

/// Carries out steps, as far as that is a matter of words.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExecutionAgent {
    language: Language,
}

impl ExecutionAgent {
    /// One that speaks this language.
    pub fn new(language: Language) -> Self {
        Self { language }
    }

    /// The seeds' `_prepare_tool_input`: arguments from a step's description, where the model gave none.
    pub fn prepare_tool_input(self, step: &Step, input_schema: &RawJson) -> Option<Map<String, Value>> {
        prepare_tool_input(step, input_schema)
    }

    /// The seeds' `_infer_capability_from_step`: what a tool must be good for to stand in for the one that is named.
    pub fn infer_capability(self, step: &Step) -> Option<Capability> {
        extract_capabilities(&step.tool_type, &step.description).into_iter().next()
    }

    /// The seeds' `_direct_reasoning`: asks a model to carry out a step without a tool. Large values are shown as their
    /// beginning and their shape.
    pub fn reason_request(self, step: &Step, question: &str, values: &[(&str, &Value)]) -> ModelRequest {
        let words = Words::of(self.language);
        let mut text = filled(words.task, &[("question", question)]);
        let description = if step.description.is_empty() { question } else { &step.description };
        text.push('\n');
        text.push_str(&filled(words.reason_step, &[("description", description)]));
        if !values.is_empty() {
            text.push_str("\n\n");
            text.push_str(words.known_values);
            let each = (MAX_VALUES / values.len()).max(MIN_VALUE);
            for (id, value) in values {
                // Writing to a string cannot fail.
                let _ = write!(text, "\n`${id}`:\n");
                text.push_str(&quoted(&preview(value, each)));
            }
        }
        ModelRequest {
            messages: vec![ModelMessage::system(words.reason), ModelMessage::user(text)],
            max_tokens: Some(MAX_TOKENS),
            temperature: Some(0.0),
            ..ModelRequest::default()
        }
    }

    /// Asks a model for better arguments of a call that failed. `shapes` says what the values of other steps look like.
    pub fn repair_request(
        self,
        step: &Step,
        problem: &str,
        shapes: &[(&str, &str)],
        tool: &PromptTool,
        mode: ToolCalling,
    ) -> ModelRequest {
        let words = Words::of(self.language);
        let mut system = words.repair.to_owned();
        system.push_str("\n\n");
        system.push_str(format_tool_details(tool, self.language).trim_end());
        let arguments: String =
            fence::json(&Value::Object(step.arguments.clone())).chars().take(MAX_SHOWN).collect();
        let problem: String = fence::escaped(&fence::one_line(problem)).chars().take(MAX_SHOWN).collect();
        let name = fence::name(tool.name());
        let places = [("tool", &*name), ("arguments", &arguments), ("problem", &problem)];
        let mut text = filled(words.repair_arguments, &places);
        if !step.description.is_empty() {
            text = format!("{}\n{text}", filled(words.reason_step, &[("description", &step.description)]));
        }
        if !shapes.is_empty() {
            text.push_str("\n\n");
            text.push_str(words.known_values);
            for (id, shape) in shapes {
                let _ = write!(text, "\n`${id}`: {}", fence::escaped(&fence::one_line(shape)));
            }
        }
        let schema = schema::arguments(tool.params()).filter(|_| mode == ToolCalling::Schema);
        ModelRequest {
            messages: vec![ModelMessage::system(system), ModelMessage::user(text)],
            schema: schema.map(|schema| WantedSchema {
                name: "arguments".to_owned(),
                schema: RawJson::from_value(&schema),
            }),
            max_tokens: Some(MAX_TOKENS),
            temperature: Some(0.0),
            ..ModelRequest::default()
        }
    }

    /// The arguments that a model gave when it was asked for better ones.
    pub fn read_repair(self, reply: &ModelReply) -> Option<Map<String, Value>> {
        if matches!(reply.finish, FinishReason::Length | FinishReason::Refused) {
            return None;
        }
        if let [call] = reply.calls.as_slice() {
            let read = lenient::read(&call.arguments).filter(|read| !read.cut_off)?;
            return read.value.as_object().cloned();
        }
        let text = reply.text.trim();
        let begin = text.find("```").filter(|_| !text.starts_with('{')).or_else(|| text.find('{'))?;
        let read = lenient::read(text.get(begin..)?).filter(|read| !read.cut_off)?;
        // A model may repeat the whole call.
        match (read::said(&read.value), read.value) {
            (Some(Said::Plan(plan)), _) if plan.steps.len() == 1 => {
                plan.steps.into_iter().next().map(|step| step.arguments)
            }
            (_, Value::Object(mut entries)) => match (entries.len(), entries.remove("arguments")) {
                (1, Some(Value::Object(inner))) => Some(inner),
                (_, Some(inner)) => {
                    entries.insert("arguments".to_owned(), inner);
                    Some(entries)
                }
                (_, None) => Some(entries),
            },
            _ => None,
        }
    }
}

/// Foreign text behind a mark on every line, in which nothing begins that a model could take for words of ours.
pub(crate) fn quoted(text: &str) -> String {
    let lines: Vec<String> =
        fence::lines(text).iter().map(|line| format!("> {}", fence::escaped(line))).collect();
    lines.join("\n")
}

#[cfg(test)]
#[path = "execution_tests.rs"]
mod tests;
