//! Parses a plan or an answer from JSON as models write it: other field names, numbers as ids, JSON inside strings.

use serde_json::{Map, Value};
use toolyard_core::SourceId;
use toolyard_model::json_text::{parse_document, without_fence};

use super::super::{
    context::PlannerDecision,
    plan::{NO_TOOL, Plan, Step},
};

const STEP_LIST_KEYS: [&str; 9] =
    ["steps", "plan", "tasks", "calls", "tool_calls", "actions", "步骤", "计划", "任务"];
const WRAPPER_KEYS: [&str; 7] = ["call", "plan", "result", "output", "response", "make_plan", "计划"];
const ID_KEYS: [&str; 5] = ["id", "step_id", "step", "step_number", "编号"];
const TOOL_KEYS: [&str; 8] =
    ["tool_type", "tool_name", "tool", "function", "action", "name", "tool_id", "工具"];
const ARGUMENT_KEYS: [&str; 9] =
    ["arguments", "args", "parameters", "params", "input", "tool_input", "inputs", "tool_args", "参数"];
const DEPENDENCY_KEYS: [&str; 7] =
    ["dependencies", "depends_on", "dependsOn", "deps", "dependency", "after", "依赖"];
const DESCRIPTION_KEYS: [&str; 7] = ["description", "desc", "task", "purpose", "title", "step", "描述"];
const ANSWER_KEYS: [&str; 5] = ["answer", "final_answer", "reply", "message", "回答"];
/// The name of an argument without one; a tool without such a parameter is reported as a problem of the plan.
const UNNAMED_ARGUMENT: &str = "input";
/// Nested wrapper objects that are searched for a plan.
const MAX_WRAPPER_DEPTH: usize = 4;

/// A step or its arguments are text that is meant as JSON, but has a mistake.
#[derive(Debug)]
pub(super) struct BrokenText;

pub(crate) fn parse_decision(value: &Value) -> Option<PlannerDecision> {
    let plan = parse_plan(value, MAX_WRAPPER_DEPTH).ok()?;
    if let Some(plan) = plan.filter(|plan| !plan.steps.is_empty()) {
        return Some(PlannerDecision::Plan(plan));
    }
    let answer = first_of(value.as_object()?, &ANSWER_KEYS)?.as_str()?.trim();
    (!answer.is_empty()).then(|| PlannerDecision::Answer(answer.to_owned()))
}

/// Whether a plan cannot be read because of text in it.
pub(crate) fn has_broken_text(value: &Value) -> bool {
    parse_plan(value, MAX_WRAPPER_DEPTH).is_err()
}

fn parse_plan(value: &Value, depth: usize) -> Result<Option<Plan>, BrokenText> {
    match value {
        Value::Array(items) => Ok(Some(Plan { steps: parse_steps(items)? })),
        Value::String(text) => match (parse_document(text), depth.checked_sub(1)) {
            (Ok(inner), Some(depth)) => parse_plan(&inner, depth),
            _ => Ok(None),
        },
        Value::Object(entries) => plan_in_object(entries, depth),
        _ => Ok(None),
    }
}

fn plan_in_object(entries: &Map<String, Value>, depth: usize) -> Result<Option<Plan>, BrokenText> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
    for name in STEP_LIST_KEYS {
        match entries.get(name) {
            Some(Value::Array(items)) => return Ok(Some(Plan { steps: parse_steps(items)? })),
            Some(Value::Object(named)) if !is_wrapper(named) => {
                return Ok(Some(Plan { steps: named_steps(named)? }));
            }
            _ => {}
        }
    }
    if is_step(entries) {
        return Ok(Some(Plan { steps: parse_steps(&[Value::Object(entries.clone())])? }));
    }
    for inner in WRAPPER_KEYS.iter().filter_map(|name| entries.get(*name)) {
        if let Some(plan) = parse_plan(inner, depth)? {
            return Ok(Some(plan));
        }
    }
    Ok(None)
}

/// Whether an object is a plan or one step, rather than a map of steps by id.
fn is_wrapper(entries: &Map<String, Value>) -> bool {
    is_step(entries) || STEP_LIST_KEYS.iter().any(|name| entries.contains_key(*name))
}

fn is_step(entries: &Map<String, Value>) -> bool {
    first_of(entries, &TOOL_KEYS).is_some()
        && (first_of(entries, &ARGUMENT_KEYS).is_some() || entries.contains_key("tool_type"))
}

/// The first of these fields that exists and is not null.
fn first_of<'a>(entries: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| entries.get(*name).filter(|value| !value.is_null()))
}

fn parse_steps(items: &[Value]) -> Result<Vec<Step>, BrokenText> {
    items.iter().enumerate().filter_map(|(at, item)| parse_step(item, at + 1).transpose()).collect()
}

/// Steps given as a map by id: `{"read": {"tool": …}, …}`.
fn named_steps(named: &Map<String, Value>) -> Result<Vec<Step>, BrokenText> {
    let parse = |(at, (name, value)): (usize, (&String, &Value))| {
        let step = parse_step(value, at + 1).transpose()?;
        Some(step.map(|step| Step { id: name.clone(), ..step }))
    };
    named.iter().enumerate().filter_map(parse).collect()
}

fn parse_step(value: &Value, number: usize) -> Result<Option<Step>, BrokenText> {
    let entries = match value {
        Value::Object(entries) => entries,
        Value::String(text) => match parse_document(text) {
            Ok(inner @ Value::Object(_)) => return parse_step(&inner, number),
            Err(_) if is_meant_as_object(text) => return Err(BrokenText),
            _ => return Ok(Some(reasoning_step(text, number))),
        },
        _ => return Ok(None),
    };
    let tool = first_of(entries, &TOOL_KEYS);
    // A call in a provider's format: {"function": {"name": …, "arguments": …}}.
    if let Some(Value::Object(inner)) = tool {
        let Some(mut step) = parse_step(&Value::Object(inner.clone()), number)? else { return Ok(None) };
        if let Some(id) = first_of(entries, &ID_KEYS).and_then(name_text) {
            step.id = id;
        }
        return Ok(Some(step));
    }
    let tool_type = tool.and_then(name_text).unwrap_or_else(|| NO_TOOL.to_owned());
    let tool_type = name_at_source(tool_type.trim(), entries.get("source").and_then(Value::as_str));
    let description = first_of(entries, &DESCRIPTION_KEYS).and_then(Value::as_str).unwrap_or_default();
    // `name` is the step's id if another field names the tool.
    let name_field = entries
        .get("name")
        .filter(|_| TOOL_KEYS.iter().any(|name| *name != "name" && entries.contains_key(*name)));
    let id = first_of(entries, &ID_KEYS).or(name_field).and_then(name_text).unwrap_or_default();
    let arguments = first_of(entries, &ARGUMENT_KEYS).map(parse_arguments).transpose()?;
    Ok(Some(Step {
        id: if id.trim().is_empty() { format!("s{number}") } else { id.trim().to_owned() },
        description: description.trim().to_owned(),
        tool_type,
        arguments: arguments.unwrap_or_default(),
        dependencies: first_of(entries, &DEPENDENCY_KEYS).map(parse_names).unwrap_or_default(),
    }))
}

/// The name of a tool at the server that the model named, so that no other server is called. `native` and its aliases, with which
/// models fill in the field, name none.
pub(super) fn name_at_source(tool: &str, source: Option<&str>) -> String {
    let server =
        source.map(str::trim).filter(|source| !source.is_empty() && !SourceId::is_native_hint(source));
    match server {
        Some(server) if tool != NO_TOOL && !tool.starts_with(&format!("{server}.")) => {
            format!("{server}.{tool}")
        }
        _ => tool.to_owned(),
    }
}

fn reasoning_step(text: &str, number: usize) -> Step {
    let description = text.trim().to_owned();
    Step { id: format!("s{number}"), description, tool_type: NO_TOOL.to_owned(), ..Step::default() }
}

fn name_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Arguments given as an object, as JSON text, or as one unnamed value.
pub(super) fn parse_arguments(value: &Value) -> Result<Map<String, Value>, BrokenText> {
    Ok(match value {
        Value::Object(entries) => entries.clone(),
        Value::Null => Map::new(),
        Value::String(text) if text.trim().is_empty() => Map::new(),
        Value::String(text) => match parse_document(text) {
            Ok(Value::Object(entries)) => entries,
            Err(_) if is_meant_as_object(text) => return Err(BrokenText),
            _ => Map::from_iter([(UNNAMED_ARGUMENT.to_owned(), value.clone())]),
        },
        other => Map::from_iter([(UNNAMED_ARGUMENT.to_owned(), other.clone())]),
    })
}

fn is_meant_as_object(text: &str) -> bool {
    without_fence(text).starts_with('{')
}

/// Names given as a list, as comma-separated text, or as one name.
fn parse_names(value: &Value) -> Vec<String> {
    let all: Vec<String> = match value {
        Value::Array(items) => items.iter().filter_map(name_text).collect(),
        Value::String(text) => text.split([',', '，', '、', ';']).map(str::to_owned).collect(),
        other => name_text(other).into_iter().collect(),
    };
    let plain = |name: &String| name.trim().trim_start_matches('$').to_owned();
    let is_none = |name: &str| name.is_empty() || ["none", "null", "[]", "无"].contains(&name);
    all.iter().map(plain).filter(|name| !is_none(name)).collect()
}

#[cfg(test)]
#[path = "plan_json_tests.rs"]
mod tests;
