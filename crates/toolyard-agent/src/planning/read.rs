//! A plan as models write it, read with patience: other names for fields, numbers for names, JSON within texts.

use serde_json::{Map, Value};

use super::lenient;
use crate::{Complexity, NO_TOOL, Plan, Step};

const LISTS: [&str; 9] = ["steps", "plan", "tasks", "calls", "tool_calls", "actions", "步骤", "计划", "任务"];
const WRAPPERS: [&str; 7] = ["call", "plan", "result", "output", "response", "make_plan", "计划"];
const IDS: [&str; 5] = ["id", "step_id", "step", "step_number", "编号"];
const TOOLS: [&str; 8] = ["tool_type", "tool_name", "tool", "function", "action", "name", "tool_id", "工具"];
const ARGUMENTS: [&str; 9] =
    ["arguments", "args", "parameters", "params", "input", "tool_input", "inputs", "tool_args", "参数"];
const DEPENDENCIES: [&str; 7] =
    ["dependencies", "depends_on", "dependsOn", "deps", "dependency", "after", "依赖"];
const DESCRIPTIONS: [&str; 7] = ["description", "desc", "task", "purpose", "title", "step", "描述"];
const COMPLEXITIES: [&str; 3] = ["complexity", "difficulty", "复杂度"];
const ANSWERS: [&str; 5] = ["answer", "final_answer", "reply", "message", "回答"];
/// The argument under which a bare value is kept until it is known what the tool takes.
pub(crate) const BARE: &str = "input";
/// Deeper wrappings are nobody's.
const MAX_WRAPPINGS: usize = 4;

/// What a value says: steps, or an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Plan(Plan),
    Answer(String),
}

/// Reads a value that may be a plan or an answer.
pub(crate) fn said(value: &Value) -> Option<Said> {
    if let Some(plan) = plan(value, MAX_WRAPPINGS).filter(|plan| !plan.steps.is_empty()) {
        return Some(Said::Plan(plan));
    }
    let answer = first(value.as_object()?, &ANSWERS)?.as_str()?.trim();
    (!answer.is_empty()).then(|| Said::Answer(answer.to_owned()))
}

fn plan(value: &Value, depth: usize) -> Option<Plan> {
    match value {
        Value::Array(items) => Some(Plan { steps: steps(items) }),
        Value::String(text) => plan(&lenient::read(text)?.value, depth.checked_sub(1)?),
        Value::Object(entries) => in_object(entries, depth),
        _ => None,
    }
}

fn in_object(entries: &Map<String, Value>, depth: usize) -> Option<Plan> {
    let depth = depth.checked_sub(1)?;
    for name in LISTS {
        match entries.get(name) {
            Some(Value::Array(items)) => return Some(Plan { steps: steps(items) }),
            Some(Value::Object(named)) if !is_wrapped(named) => {
                return Some(Plan { steps: named_steps(named) });
            }
            _ => {}
        }
    }
    if is_step(entries) {
        return Some(Plan { steps: steps(&[Value::Object(entries.clone())]) });
    }
    WRAPPERS.iter().find_map(|name| plan(entries.get(*name)?, depth))
}

/// Whether an object is a plan, or one step, and not steps by their names.
fn is_wrapped(entries: &Map<String, Value>) -> bool {
    is_step(entries) || LISTS.iter().any(|name| entries.contains_key(*name))
}

fn is_step(entries: &Map<String, Value>) -> bool {
    first(entries, &TOOLS).is_some()
        && (first(entries, &ARGUMENTS).is_some() || entries.contains_key("tool_type"))
}

fn first<'a>(entries: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| entries.get(*name).filter(|value| !value.is_null()))
}

fn steps(items: &[Value]) -> Vec<Step> {
    items.iter().enumerate().filter_map(|(at, item)| step(item, at + 1)).collect()
}

/// `{"read": {"tool": …}, …}`.
fn named_steps(named: &Map<String, Value>) -> Vec<Step> {
    let one = |(at, (name, value)): (usize, (&String, &Value))| {
        let mut step = step(value, at + 1)?;
        step.id.clone_from(name);
        Some(step)
    };
    named.iter().enumerate().filter_map(one).collect()
}

fn step(value: &Value, number: usize) -> Option<Step> {
    let entries = match value {
        Value::Object(entries) => entries,
        Value::String(text) => match lenient::read(text) {
            Some(lenient::Read { value: inner @ Value::Object(_), cut_off: false }) => {
                return step(&inner, number);
            }
            _ => return Some(reasoning(text, number)),
        },
        _ => return None,
    };
    let tool = first(entries, &TOOLS);
    // A call in the form of a provider: {"function": {"name": …, "arguments": …}}.
    if let Some(Value::Object(inner)) = tool {
        let mut step = step(&Value::Object(inner.clone()), number)?;
        if let Some(id) = first(entries, &IDS).and_then(word) {
            step.id = id;
        }
        return Some(step);
    }
    let tool_type = tool.and_then(word).unwrap_or_else(|| NO_TOOL.to_owned());
    let description = first(entries, &DESCRIPTIONS).and_then(Value::as_str).unwrap_or_default();
    // `name` may be the step's, where the tool has a field of its own.
    let named = entries
        .get("name")
        .filter(|_| TOOLS.iter().any(|name| *name != "name" && entries.contains_key(*name)));
    let id = first(entries, &IDS).or(named).and_then(word).unwrap_or_default();
    Some(Step {
        id: if id.trim().is_empty() { format!("s{number}") } else { id.trim().to_owned() },
        description: description.trim().to_owned(),
        tool_type: tool_type.trim().to_owned(),
        arguments: first(entries, &ARGUMENTS).map(arguments).unwrap_or_default(),
        dependencies: first(entries, &DEPENDENCIES).map(names).unwrap_or_default(),
        complexity: first(entries, &COMPLEXITIES).map(complexity).unwrap_or_default(),
    })
}

fn reasoning(text: &str, number: usize) -> Step {
    Step {
        id: format!("s{number}"),
        description: text.trim().to_owned(),
        tool_type: NO_TOOL.to_owned(),
        arguments: Map::new(),
        dependencies: Vec::new(),
        complexity: Complexity::default(),
    }
}

/// A name: a text, or a number.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Arguments as an object, as JSON text, or as one bare value.
pub(crate) fn arguments(value: &Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries.clone(),
        Value::Null => Map::new(),
        Value::String(text) if text.trim().is_empty() => Map::new(),
        Value::String(text) => match lenient::read(text) {
            Some(lenient::Read { value: Value::Object(entries), cut_off: false }) => entries,
            _ => Map::from_iter([(BARE.to_owned(), value.clone())]),
        },
        other => Map::from_iter([(BARE.to_owned(), other.clone())]),
    }
}

/// Names in a list, in a text with commas, or one.
fn names(value: &Value) -> Vec<String> {
    let all: Vec<String> = match value {
        Value::Array(items) => items.iter().filter_map(word).collect(),
        Value::String(text) => text.split([',', '，', '、', ';']).map(str::to_owned).collect(),
        other => word(other).into_iter().collect(),
    };
    let plain = |name: &String| name.trim().trim_start_matches('$').to_owned();
    let is_none = |name: &str| name.is_empty() || ["none", "null", "[]", "无"].contains(&name);
    all.iter().map(plain).filter(|name| !is_none(name)).collect()
}

fn complexity(value: &Value) -> Complexity {
    let word = word(value).unwrap_or_default().to_lowercase();
    match word.as_str() {
        "low" | "simple" | "easy" | "1" | "低" | "简单" => Complexity::Low,
        "high" | "hard" | "complex" | "3" | "高" | "复杂" => Complexity::High,
        _ => Complexity::Medium,
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
