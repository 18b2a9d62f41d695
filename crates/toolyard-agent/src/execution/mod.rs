//! [`ExecutionAgent`]: the model requests of a step: direct reasoning without a tool, and repair of a failed call.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use toolyard_core::{Capability, RawJson};
use toolyard_hub::ToolHub;
use toolyard_model::{
    FinishReason, ModelMessage, ModelReply, ModelRequest, ResponseSchema, ToolCalling,
    json_text::parse_document,
};

use crate::{
    Language, PlannerDecision, Step, escape,
    planning::{
        plan_schema::arguments_schema,
        reply::plan_json::{has_broken_text, parse_decision},
    },
    prompt::{
        PromptTool, format_tool_details,
        templates::{RunTemplates, fill},
    },
    values::{compact_table, preview},
};

/// Characters of all values in a reasoning request.
const MAX_VALUES_CHARS: usize = 12_000;
/// Characters that each value gets at least.
const MIN_VALUE_CHARS: usize = 200;
const MAX_REPLY_TOKENS: u32 = 2_048;
/// Characters of the arguments and of the problem in a repair request.
const MAX_REPAIR_CHARS: usize = 1_200;

/// Builds the model requests of steps and reads the replies.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExecutionAgent {
    language: Language,
}

impl ExecutionAgent {
    /// An agent whose prompts are in this language.
    pub fn new(language: Language) -> Self {
        Self { language }
    }

    /// The capability that a substitute for a missing tool must have (`_infer_capability_from_step` of the specification).
    /// The capabilities are those that the hub knows, with the rows that the operator added.
    pub fn infer_capability(self, step: &Step, hub: &ToolHub) -> Option<Capability> {
        hub.mentioned_capabilities(&step.tool_type, &step.description).into_iter().next()
    }

    /// The model request that executes a step without a tool (`_direct_reasoning` of the specification). Large values are
    /// shown as outline and beginning.
    pub fn reason_request(
        self,
        step: &Step,
        question: &str,
        values: &[(&str, &Value)],
        mode: ToolCalling,
    ) -> ModelRequest {
        let templates = RunTemplates::of(self.language);
        let mut text = fill(templates.task, &[("question", question)]);
        let description = if step.description.is_empty() { question } else { &step.description };
        text.push('\n');
        text.push_str(&fill(templates.reason_step, &[("description", description)]));
        if !values.is_empty() {
            text.push_str("\n\n");
            text.push_str(templates.values_heading);
            let chars_per_value = (MAX_VALUES_CHARS / values.len()).max(MIN_VALUE_CHARS);
            for (id, value) in values {
                // Writing to a string cannot fail.
                let _ = write!(text, "\n`${id}`:\n");
                let shown = compact_table(value).filter(|table| table.chars().count() <= chars_per_value);
                text.push_str(&escape::quote(&shown.unwrap_or_else(|| preview(value, chars_per_value))));
            }
        }
        // Constrained to a result, small models do not talk about it.
        let schema = (mode == ToolCalling::Schema).then(|| ResponseSchema {
            name: "result".to_owned(),
            schema: RawJson::from_value(&reasoning_schema()),
        });
        ModelRequest {
            messages: vec![ModelMessage::system(templates.reason_prompt), ModelMessage::user(text)],
            schema,
            max_tokens: Some(MAX_REPLY_TOKENS),
            temperature: Some(0.0),
            ..ModelRequest::default()
        }
    }

    /// The model request for better arguments of a failed call. `outlines` are ids and value outlines of the steps that it
    /// depends on.
    pub fn repair_request(
        self,
        step: &Step,
        problem: &str,
        outlines: &[(&str, &str)],
        tool: &PromptTool,
        mode: ToolCalling,
    ) -> ModelRequest {
        let templates = RunTemplates::of(self.language);
        let mut system = templates.repair_prompt.to_owned();
        system.push_str("\n\n");
        system.push_str(format_tool_details(tool, self.language).trim_end());
        let arguments: String =
            escape::json(&Value::Object(step.arguments.clone())).chars().take(MAX_REPAIR_CHARS).collect();
        let problem: String =
            escape::markup(&escape::sanitized_line(problem)).chars().take(MAX_REPAIR_CHARS).collect();
        let name = escape::name(tool.name());
        let values = [("tool", &*name), ("arguments", &arguments), ("problem", &problem)];
        let mut text = fill(templates.repair_arguments, &values);
        if !step.description.is_empty() {
            text = format!("{}\n{text}", fill(templates.reason_step, &[("description", &step.description)]));
        }
        if !outlines.is_empty() {
            text.push_str("\n\n");
            text.push_str(templates.values_heading);
            for (id, outline) in outlines {
                let _ = write!(text, "\n`${id}`: {}", escape::markup(&escape::sanitized_line(outline)));
            }
        }
        let schema = arguments_schema(tool.params()).filter(|_| mode == ToolCalling::Schema);
        ModelRequest {
            messages: vec![ModelMessage::system(system), ModelMessage::user(text)],
            schema: schema.map(|schema| ResponseSchema {
                name: "arguments".to_owned(),
                schema: RawJson::from_value(&schema),
            }),
            max_tokens: Some(MAX_REPLY_TOKENS),
            temperature: Some(0.0),
            ..ModelRequest::default()
        }
    }

    /// Parses the arguments of a reply to a repair request.
    pub fn parse_repair(self, reply: &ModelReply) -> Option<Map<String, Value>> {
        if matches!(reply.finish_reason, FinishReason::Length | FinishReason::Refused) {
            return None;
        }
        if let [call] = reply.calls.as_slice() {
            return parse_document(&call.arguments).ok()?.as_object().cloned();
        }
        let text = reply.text.trim();
        let start = text.find("```").filter(|_| !text.starts_with('{')).or_else(|| text.find('{'))?;
        let parsed = parse_document(text.get(start..)?).ok().filter(|parsed| !has_broken_text(parsed))?;
        // The model may repeat the whole call.
        match (parse_decision(&parsed), parsed) {
            (Some(PlannerDecision::Plan(plan)), _) if plan.steps.len() == 1 => {
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

/// `{"result": …}` with a text or a list of texts.
fn reasoning_schema() -> Value {
    let text = json!({"type": "string"});
    let result = json!({"anyOf": [text, {"type": "array", "items": text}]});
    json!({"type": "object", "properties": {"result": result}, "required": ["result"], "additionalProperties": false})
}

#[cfg(test)]
mod tests;
