//! The JSON Schema of a planner's reply for constrained decoding, limited to keywords that every sampler supports.

use serde_json::{Map, Value, json};
use toolyard_core::{Param, ParamType};

use super::{
    plan::NO_TOOL,
    signature::{OrderedParams, order_params, prompt_type},
};
use crate::{agent::SEARCH_TOOLS, escape, prompt::PromptTool};

/// Steps that a small model can plan at once.
const MAX_STEPS: usize = 8;
/// Nested deeper, objects are unrestricted and arrays contain only scalars.
const MAX_DEPTH: usize = 4;
const ID_PATTERN: &str = "^[a-z][a-z0-9_]{0,19}$";
const REFERENCE_PATTERN: &str = "^\\$[a-z][a-z0-9_]{0,19}[a-zA-Z0-9_.*:\\[\\]-]{0,60}$";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum References {
    Allowed,
    Forbidden,
}

/// Matches an answer, one call, or at least two steps, with these tools.
pub(super) fn plan_schema(tools: &[&PromptTool]) -> Value {
    let answer = closed_object(&json!({"answer": {"type": "string"}}));
    let calls: Vec<Value> = tools.iter().filter_map(|tool| call_schema(tool)).collect();
    // A search for other tools is a reply of its own.
    let step_tools = tools.iter().filter(|tool| tool.name() != SEARCH_TOOLS);
    let steps: Vec<Value> =
        step_tools.filter_map(|tool| step_schema(tool)).chain([reasoning_schema()]).collect();
    if calls.is_empty() {
        return answer;
    }
    let steps = json!({"type": "array", "items": {"anyOf": steps}, "minItems": 2, "maxItems": MAX_STEPS});
    json!({"anyOf": [answer, closed_object(&json!({"call": {"anyOf": calls}})), closed_object(&json!({ "steps": steps }))]})
}

/// An object with exactly these fields.
fn closed_object(properties: &Value) -> Value {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

fn call_schema(tool: &PromptTool) -> Option<Value> {
    let arguments = params_schema(tool.params(), MAX_DEPTH, References::Forbidden)?;
    Some(closed_object(&json!({"tool_type": {"const": tool.name()}, "arguments": arguments})))
}

fn step_schema(tool: &PromptTool) -> Option<Value> {
    let id = json!({"type": "string", "pattern": ID_PATTERN});
    Some(closed_object(&json!({
        "id": id,
        "tool_type": {"const": tool.name()},
        "arguments": params_schema(tool.params(), MAX_DEPTH, References::Allowed)?,
        "dependencies": {"type": "array", "items": id},
    })))
}

/// A step that the model does itself once it has the results of others.
fn reasoning_schema() -> Value {
    let id = json!({"type": "string", "pattern": ID_PATTERN});
    closed_object(&json!({
        "id": id,
        "tool_type": {"const": NO_TOOL},
        "description": {"type": "string"},
        "dependencies": {"type": "array", "items": id, "minItems": 1},
    }))
}

/// The schema of a tool's arguments, in which any value but one with fixed choices may be a reference. None if a parameter
/// contains a control token of a chat template.
pub(crate) fn arguments_schema(params: &[Param]) -> Option<Value> {
    params_schema(params, MAX_DEPTH, References::Allowed)
}

fn params_schema(params: &[Param], depth: usize, references: References) -> Option<Value> {
    if params.is_empty() {
        return Some(json!({"type": "object"}));
    }
    let OrderedParams { params, required } = order_params(params);
    let mut properties = Map::new();
    for param in params {
        if escape::has_control_token(&param.name) {
            return None;
        }
        properties.insert(param.name.clone(), value_schema(param, depth, references)?);
    }
    Some(
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    )
}

fn value_schema(param: &Param, depth: usize, references: References) -> Option<Value> {
    if !param.choices.is_empty() {
        let choices: Vec<&Value> = param.choices.iter().filter(|choice| !choice.is_null()).collect();
        let is_unsafe = |choice: &&Value| choice.as_str().is_some_and(escape::has_control_token);
        return (!choices.iter().any(is_unsafe)).then(|| json!({ "enum": choices }));
    }
    let literal = kind_schema(prompt_type(&param.kind), param, depth, references)?;
    let accepts_string = match &param.kind {
        ParamType::String | ParamType::Any => true,
        ParamType::Union(kinds) => kinds.contains(&ParamType::String),
        _ => false,
    };
    if accepts_string || references == References::Forbidden {
        return Some(literal);
    }
    Some(json!({"anyOf": [literal, {"type": "string", "pattern": REFERENCE_PATTERN}]}))
}

fn kind_schema(kind: &ParamType, param: &Param, depth: usize, references: References) -> Option<Value> {
    Some(match kind {
        ParamType::String => json!({"type": "string"}),
        ParamType::Number => json!({"type": "number"}),
        ParamType::Integer => json!({"type": "integer"}),
        ParamType::Boolean => json!({"type": "boolean"}),
        ParamType::Null => json!({"type": "null"}),
        ParamType::Object if param.fields.is_empty() || depth == 0 => json!({"type": "object"}),
        ParamType::Object => params_schema(&param.fields, depth - 1, references)?,
        ParamType::Array => match &param.items {
            Some(items) if depth > 0 => {
                json!({"type": "array", "items": value_schema(items, depth - 1, references)?})
            }
            _ => json!({"type": "array", "items": scalar_schema()}),
        },
        ParamType::Any => scalar_schema(),
        ParamType::Union(kinds) => {
            let kinds: Option<Vec<Value>> =
                kinds.iter().map(|kind| kind_schema(kind, param, depth, references)).collect();
            json!({ "anyOf": kinds? })
        }
    })
}

/// Any scalar. Small models do not terminate when lists and objects are allowed here.
fn scalar_schema() -> Value {
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

    fn is_valid_reply(plan: &Value) -> bool {
        let tools = tools();
        let schema = plan_schema(&tools.iter().collect::<Vec<_>>());
        jsonschema::validator_for(&schema).unwrap().is_valid(plan)
    }

    fn call(arguments: &Value) -> Value {
        json!({"call": {"tool_type": "write", "arguments": arguments}})
    }

    fn steps(arguments: &Value) -> Value {
        let time = json!({"id": "t", "tool_type": "get_time", "arguments": {}, "dependencies": []});
        json!({"steps": [time, {"id": "w", "tool_type": "write", "arguments": arguments, "dependencies": ["t"]}]})
    }

    #[test]
    fn an_answer_a_call_or_steps_match() {
        assert!(is_valid_reply(&json!({"answer": "Hello"})));
        let good = json!({"filepath": "a.xlsx", "data": [[1, "x"]], "kind": "row"});
        assert!(is_valid_reply(&call(&good)) && is_valid_reply(&steps(&good)));
        for wrong in [
            json!({"filepath": "a"}),
            json!({"filepath": "a", "data": "rows"}),
            json!({"filepath": "a", "data": [], "kind": "cell"}),
            json!({"filepath": "a", "data": [], "other": 1}),
        ] {
            assert!(!is_valid_reply(&call(&wrong)) && !is_valid_reply(&steps(&wrong)), "{wrong}");
        }
        assert!(!is_valid_reply(&json!({"call": {"tool_type": "shout", "arguments": {}}})));
        assert!(!is_valid_reply(&json!({"answer": "x", "steps": []})));
    }

    #[test]
    fn a_step_without_a_tool_needs_another_step() {
        let think = |dependencies: Value| {
            let time = json!({"id": "t", "tool_type": "get_time", "arguments": {}, "dependencies": []});
            let think = json!({"id": "say", "tool_type": "none", "description": "Say it", "dependencies": dependencies});
            json!({ "steps": [time, think] })
        };
        assert!(is_valid_reply(&think(json!(["t"]))));
        assert!(!is_valid_reply(&think(json!([]))));
        assert!(!is_valid_reply(&json!({"call": {"tool_type": "none", "arguments": {}}})));
    }

    #[test]
    fn references_are_allowed_in_steps_but_not_in_a_single_call() {
        for arguments in [
            json!({"filepath": "a.xlsx", "data": [["$sum", 1]]}),
            json!({"filepath": "$name", "data": "$read.rows[1:][*].x", "bold": "$b.ok"}),
            json!({"filepath": "a", "data": ["$row"]}),
        ] {
            assert!(is_valid_reply(&steps(&arguments)), "{arguments}");
        }
        assert!(!is_valid_reply(&call(&json!({"filepath": "a", "data": "$read.rows"}))));
    }

    #[test]
    fn a_tool_with_control_tokens_is_omitted() {
        let schema = json!({"properties": {"a": {"enum": ["<|im_end|>"]}}});
        let tool = PromptTool::new(&ToolSpec::new("bad", "x").with_input_schema(schema));
        assert!(!plan_schema(&[&tool]).to_string().contains("im_end"));
    }
}
