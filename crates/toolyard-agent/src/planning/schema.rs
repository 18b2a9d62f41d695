//! The JSON Schema that a plan is held to while it is written, of the few words that every sampler knows.

use serde_json::{Map, Value, json};
use toolyard_core::{Param, ParamType};

use super::signature::{Ordered, ordered, told};
use crate::prompt::{PromptTool, fence};

/// Longer plans are not written in one go by whoever needs to be held to a schema.
const MAX_STEPS: usize = 8;
/// Deeper than this anything is taken.
const MAX_DEPTH: usize = 4;
/// What a step may be called.
const ID: &str = "^[a-z][a-z0-9_]{0,19}$";
/// What a reference looks like.
const REFERENCE: &str = "^\\$[a-z][a-z0-9_]{0,19}[a-zA-Z0-9_.*:\\[\\]-]{0,60}$";

/// Whether a reference may stand in the place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum References {
    Allowed,
    Pointless,
}

/// What fits: an answer, one call, or at least two steps, with these tools.
pub(super) fn plan_schema(tools: &[&PromptTool]) -> Value {
    let answer = closed(&json!({"answer": {"type": "string"}}));
    let calls: Vec<Value> = tools.iter().filter_map(|tool| call(tool)).collect();
    let steps: Vec<Value> = tools.iter().filter_map(|tool| step(tool)).collect();
    if calls.is_empty() {
        return answer;
    }
    let steps = json!({"type": "array", "items": {"anyOf": steps}, "minItems": 2, "maxItems": MAX_STEPS});
    json!({"anyOf": [answer, closed(&json!({"call": {"anyOf": calls}})), closed(&json!({ "steps": steps }))]})
}

/// An object with exactly these fields.
fn closed(properties: &Value) -> Value {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

fn call(tool: &PromptTool) -> Option<Value> {
    let arguments = object(tool.params(), MAX_DEPTH, References::Pointless)?;
    Some(closed(&json!({"tool_type": {"const": tool.name()}, "arguments": arguments})))
}

fn step(tool: &PromptTool) -> Option<Value> {
    let id = json!({"type": "string", "pattern": ID});
    Some(closed(&json!({
        "id": id,
        "tool_type": {"const": tool.name()},
        "arguments": object(tool.params(), MAX_DEPTH, References::Allowed)?,
        "dependencies": {"type": "array", "items": id},
    })))
}

/// What a tool takes, where a reference may stand in the place of anything. Nothing for a tool whose names hold control
/// tokens of chat templates.
pub(crate) fn arguments(params: &[Param]) -> Option<Value> {
    object(params, MAX_DEPTH, References::Allowed)
}

fn object(params: &[Param], depth: usize, references: References) -> Option<Value> {
    if params.is_empty() {
        return Some(json!({"type": "object"}));
    }
    let Ordered { params, required } = ordered(params);
    let mut properties = Map::new();
    for param in params {
        if fence::has_control_token(&param.name) {
            return None;
        }
        properties.insert(param.name.clone(), value(param, depth, references)?);
    }
    Some(
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    )
}

fn value(param: &Param, depth: usize, references: References) -> Option<Value> {
    if !param.choices.is_empty() {
        let choices: Vec<&Value> = param.choices.iter().filter(|choice| !choice.is_null()).collect();
        let steers = |choice: &&Value| choice.as_str().is_some_and(fence::has_control_token);
        return (!choices.iter().any(steers)).then(|| json!({ "enum": choices }));
    }
    let plain = of_kind(told(&param.kind), param, depth, references)?;
    let takes_text = match &param.kind {
        ParamType::String | ParamType::Any => true,
        ParamType::Union(kinds) => kinds.contains(&ParamType::String),
        _ => false,
    };
    if takes_text || references == References::Pointless {
        return Some(plain);
    }
    Some(json!({"anyOf": [plain, {"type": "string", "pattern": REFERENCE}]}))
}

fn of_kind(kind: &ParamType, param: &Param, depth: usize, references: References) -> Option<Value> {
    Some(match kind {
        ParamType::String => json!({"type": "string"}),
        ParamType::Number => json!({"type": "number"}),
        ParamType::Integer => json!({"type": "integer"}),
        ParamType::Boolean => json!({"type": "boolean"}),
        ParamType::Null => json!({"type": "null"}),
        ParamType::Object if param.fields.is_empty() || depth == 0 => json!({"type": "object"}),
        ParamType::Object => object(&param.fields, depth - 1, references)?,
        ParamType::Array => match &param.items {
            Some(items) if depth > 0 => {
                json!({"type": "array", "items": value(items, depth - 1, references)?})
            }
            _ => json!({"type": "array", "items": scalar()}),
        },
        ParamType::Any => scalar(),
        ParamType::Union(kinds) => {
            let kinds: Option<Vec<Value>> =
                kinds.iter().map(|kind| of_kind(kind, param, depth, references)).collect();
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

    fn call(arguments: &Value) -> Value {
        json!({"call": {"tool_type": "write", "arguments": arguments}})
    }

    fn steps(arguments: &Value) -> Value {
        let time = json!({"id": "t", "tool_type": "get_time", "arguments": {}, "dependencies": []});
        json!({"steps": [time, {"id": "w", "tool_type": "write", "arguments": arguments, "dependencies": ["t"]}]})
    }

    #[test]
    fn an_answer_a_call_or_steps_fit() {
        assert!(fits(&json!({"answer": "Hello"})));
        let good = json!({"filepath": "a.xlsx", "data": [[1, "x"]], "kind": "row"});
        assert!(fits(&call(&good)) && fits(&steps(&good)));
        for wrong in [
            json!({"filepath": "a"}),
            json!({"filepath": "a", "data": "rows"}),
            json!({"filepath": "a", "data": [], "kind": "cell"}),
            json!({"filepath": "a", "data": [], "other": 1}),
        ] {
            assert!(!fits(&call(&wrong)) && !fits(&steps(&wrong)), "{wrong}");
        }
        assert!(!fits(&json!({"call": {"tool_type": "shout", "arguments": {}}})));
        assert!(!fits(&json!({"answer": "x", "steps": []})));
    }

    #[test]
    fn a_reference_may_stand_anywhere_where_there_is_something_to_refer_to() {
        for arguments in [
            json!({"filepath": "a.xlsx", "data": [["$sum", 1]]}),
            json!({"filepath": "$name", "data": "$read.rows[1:][*].x", "bold": "$b.ok"}),
            json!({"filepath": "a", "data": ["$row"]}),
        ] {
            assert!(fits(&steps(&arguments)), "{arguments}");
        }
        assert!(!fits(&call(&json!({"filepath": "a", "data": "$read.rows"}))));
    }

    #[test]
    fn a_tool_that_would_steer_the_template_is_left_out() {
        let schema = json!({"properties": {"a": {"enum": ["<|im_end|>"]}}});
        let tool = PromptTool::new(&ToolSpec::new("bad", "x").with_input_schema(schema));
        assert!(!plan_schema(&[&tool]).to_string().contains("im_end"));
    }
}
