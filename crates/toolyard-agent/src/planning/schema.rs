//! The JSON Schema that a plan is held to while it is written, of the few words that every sampler knows.

use serde_json::{Map, Value, json};
use toolyard_core::{Param, ParamType};

use crate::{
    NO_TOOL,
    prompt::{PromptTool, fence},
};

/// Longer plans are not written in one go.
const MAX_STEPS: usize = 40;
/// Deeper than this anything is taken.
const MAX_DEPTH: usize = 4;
/// What a reference looks like, in the few forms of patterns that every sampler knows.
const REFERENCE: &str = "^\\$[a-z0-9_]+[A-Za-z0-9_.*:\\[\\]-]*$";

/// What fits: steps of these tools, or an answer.
pub(super) fn plan_schema(tools: &[&PromptTool]) -> Value {
    let mut schema = steps_schema(tools);
    if let Value::Object(words) = &mut schema {
        if let Some(Value::Object(properties)) = words.get_mut("properties") {
            properties.insert("answer".to_owned(), json!({"type": "string"}));
        }
        words.insert("required".to_owned(), json!(["steps", "answer"]));
    }
    schema
}

/// What fits: steps of these tools.
pub(super) fn steps_schema(tools: &[&PromptTool]) -> Value {
    let mut steps: Vec<Value> =
        tools.iter().filter_map(|tool| Some(step(tool.name(), &arguments(tool.params())?))).collect();
    steps.push(step(NO_TOOL, &json!({"type": "object", "properties": {}, "additionalProperties": false})));
    json!({
        "type": "object",
        "properties": {"steps": {"type": "array", "maxItems": MAX_STEPS, "items": {"anyOf": steps}}},
        "required": ["steps"],
        "additionalProperties": false,
    })
}

fn step(tool: &str, arguments: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
            "description": {"type": "string"},
            "tool_type": {"const": tool},
            "arguments": arguments,
        },
        "required": ["id", "description", "tool_type", "arguments"],
        "additionalProperties": false,
    })
}

/// What a tool takes, where a reference may stand in the place of anything. Nothing for a tool whose names hold control
/// tokens of chat templates.
pub(crate) fn arguments(params: &[Param]) -> Option<Value> {
    if params.is_empty() {
        return Some(json!({"type": "object"}));
    }
    object(params, MAX_DEPTH)
}

fn object(params: &[Param], depth: usize) -> Option<Value> {
    let mut properties = Map::new();
    for param in params {
        if fence::has_control_token(&param.name) {
            return None;
        }
        properties.insert(param.name.clone(), value(param, depth)?);
    }
    let required: Vec<&str> =
        params.iter().filter(|param| param.required).map(|param| param.name.as_str()).collect();
    Some(
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    )
}

fn value(param: &Param, depth: usize) -> Option<Value> {
    if !param.choices.is_empty() {
        let choices: Vec<&Value> = param.choices.iter().filter(|choice| !choice.is_null()).collect();
        let steers = |choice: &&&Value| choice.as_str().is_some_and(fence::has_control_token);
        return choices.iter().find(steers).is_none().then(|| json!({ "enum": choices }));
    }
    let plain = of_kind(&param.kind, param, depth)?;
    let takes_text = match &param.kind {
        ParamType::String | ParamType::Any => true,
        ParamType::Union(kinds) => kinds.contains(&ParamType::String),
        _ => false,
    };
    Some(if takes_text { plain } else { json!({"anyOf": [plain, {"type": "string", "pattern": REFERENCE}]}) })
}

fn of_kind(kind: &ParamType, param: &Param, depth: usize) -> Option<Value> {
    Some(match kind {
        ParamType::String => json!({"type": "string"}),
        ParamType::Number => json!({"type": "number"}),
        ParamType::Integer => json!({"type": "integer"}),
        ParamType::Boolean => json!({"type": "boolean"}),
        ParamType::Null => json!({"type": "null"}),
        ParamType::Object if param.fields.is_empty() || depth == 0 => json!({"type": "object"}),
        ParamType::Object => object(&param.fields, depth - 1)?,
        ParamType::Array => match &param.items {
            Some(items) if depth > 0 => json!({"type": "array", "items": value(items, depth - 1)?}),
            _ => json!({"type": "array", "items": scalar()}),
        },
        ParamType::Any => scalar(),
        ParamType::Union(kinds) => {
            let kinds: Option<Vec<Value>> = kinds.iter().map(|kind| of_kind(kind, param, depth)).collect();
            json!({ "anyOf": kinds? })
        }
    })
}

/// Any single value. Whatever else could be meant, a small model loses itself in it.
fn scalar() -> Value {
    json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]})
}

#[cfg(test)]
mod tests {
    use toolyard_core::ToolSpec;

    use super::*;

    fn tools() -> Vec<PromptTool> {
        let write = json!({"type": "object", "required": ["filepath", "data"], "properties": {
            "filepath": {"type": "string"}, "data": {"type": "array", "items": {"type": "array", "items": {}}},
            "bold": {"type": "boolean"}, "kind": {"enum": ["row", "column"]}}});
        vec![
            PromptTool::new(&ToolSpec::new("write", "Write").with_input_schema(write)),
            PromptTool::new(&ToolSpec::new("get_time", "Time")),
        ]
    }

    fn fits(plan: &Value) -> bool {
        let tools = tools();
        let schema = plan_schema(&tools.iter().collect::<Vec<_>>());
        jsonschema::validator_for(&schema).unwrap().is_valid(plan)
    }

    fn write(arguments: &Value) -> Value {
        json!({"steps": [{"id": "w", "description": "x", "tool_type": "write", "arguments": arguments}], "answer": ""})
    }

    #[test]
    fn plans_of_the_tools_fit_and_a_reference_may_stand_anywhere() {
        assert!(fits(&json!({"steps": [], "answer": "Hello"})));
        assert!(fits(&write(&json!({"filepath": "a.xlsx", "data": [["$sum", 1]]}))));
        assert!(fits(&write(&json!({"filepath": "$name", "data": "$read.rows[1:][*].x", "bold": "$b.ok"}))));
        assert!(fits(&write(&json!({"filepath": "a", "data": ["$row"], "kind": "row"}))));
        assert!(!fits(&write(&json!({"filepath": "a"}))));
        assert!(!fits(&write(&json!({"filepath": "a", "data": "rows"}))));
        assert!(!fits(&write(&json!({"filepath": "a", "data": [], "kind": "cell"}))));
        assert!(!fits(&write(&json!({"filepath": "a", "data": [], "other": 1}))));
        let unknown = json!({"steps": [{"id": "x", "description": "", "tool_type": "shout", "arguments": {}}], "answer": ""});
        assert!(!fits(&unknown));
    }

    #[test]
    fn a_tool_that_would_steer_the_template_is_left_out() {
        let schema = json!({"properties": {"a": {"enum": ["<|im_end|>"]}}});
        let tool = PromptTool::new(&ToolSpec::new("bad", "x").with_input_schema(schema));
        assert!(!plan_schema(&[&tool]).to_string().contains("im_end"));
    }
}
