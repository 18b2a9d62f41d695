//! Checks whether a plan can be executed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};
use toolyard_core::{Param, ParamType, RawJson, ToolKind, extract_capabilities};

use super::{
    paths::ToolPlaces,
    plan::{NO_TOOL, Plan, PlanProblem, Step},
    tool_params::ToolParams,
};
use crate::{
    RunLimits,
    reference::{Reference, references, references_in},
};

/// Problems after which the check stops.
const MAX_PROBLEMS: usize = 12;
const MAX_ID_BYTES: usize = 64;
/// Allowed values that a problem lists.
const MAX_LISTED_CHOICES: usize = 12;

/// The tools that a plan may use.
pub trait ToolCatalog {
    /// The JSON Schema of a tool's arguments; none if there is no such tool.
    fn input_schema(&self, tool: &str) -> Option<RawJson>;

    /// The tool that these arguments select, if several tools have this name.
    fn name_for_arguments(&self, _tool: &str, _arguments: &Map<String, Value>) -> Option<String> {
        None
    }

    /// The places that the settings of the tool's source name.
    fn places(&self, _tool: &str) -> ToolPlaces {
        ToolPlaces::default()
    }

    /// The existing tool whose name is most similar to an unknown one.
    fn nearest(&self, tool: &str) -> Option<String>;
}

/// Returns the problems of a plan; an empty list means that it can be executed. `finished` are steps of earlier plans, whose
/// values can be referenced.
pub fn check_plan(
    plan: &Plan,
    tools: &dyn ToolCatalog,
    limits: &RunLimits,
    finished: &[&str],
) -> Vec<PlanProblem> {
    if plan.steps.is_empty() {
        return vec![PlanProblem::unreadable("it has no steps")];
    }
    if plan.steps.len() > limits.steps {
        return vec![PlanProblem::TooLong { steps: plan.steps.len(), limit: limits.steps }];
    }
    let mut problems = bad_ids(plan, finished);
    let known_steps: HashSet<&str> =
        plan.steps.iter().map(|step| step.id.as_str()).chain(finished.iter().copied()).collect();
    let mut params: HashMap<&str, Option<ToolParams>> = HashMap::new();
    for step in &plan.steps {
        problems.extend(missing_steps(step, &known_steps));
        if step.tool_type == NO_TOOL {
            continue;
        }
        let tool = params.entry(&step.tool_type).or_insert_with(|| {
            tools.input_schema(&step.tool_type).map(|schema| ToolParams::from_schema(&schema))
        });
        match tool {
            None => problems.push(PlanProblem::UnknownTool {
                step: step.id.clone(),
                tool: step.tool_type.clone(),
                nearest: tools.nearest(&step.tool_type),
            }),
            Some(params) => problems.extend(bad_arguments(step, params, &known_steps)),
        }
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
    }
    problems.extend(find_cycle(plan).map(|steps| PlanProblem::Cycle { steps }));
    problems
}

/// Whether a step can be referenced by this id.
pub(super) fn is_valid_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= MAX_ID_BYTES
        && id.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

fn bad_ids(plan: &Plan, finished: &[&str]) -> Vec<PlanProblem> {
    let mut seen: HashSet<&str> = finished.iter().copied().collect();
    let bad = plan.steps.iter().filter(|step| !seen.insert(&step.id) || !is_valid_id(&step.id));
    bad.map(|step| PlanProblem::BadId { step: step.id.clone() }).collect()
}

fn missing_steps(step: &Step, known_steps: &HashSet<&str>) -> Vec<PlanProblem> {
    let missing_step = |reference: String| PlanProblem::MissingStep { step: step.id.clone(), reference };
    let dependencies = step.dependencies.iter().filter(|id| !known_steps.contains(id.as_str())).cloned();
    let found = references(&step.arguments);
    // In a calculation, a word after a dollar sign is never a price.
    let is_calculation = ToolKind::of(&extract_capabilities(&step.tool_type, "")) == ToolKind::Calculate;
    let is_word = |reference: &Reference| reference.step.starts_with(|first: char| !first.is_ascii_digit());
    let is_reference =
        |reference: &Reference| !reference.may_be_text() || (is_calculation && is_word(reference));
    let unknown = found
        .into_iter()
        .filter(|reference| !known_steps.contains(reference.step.as_str()) && is_reference(reference));
    let all = dependencies.chain(unknown.map(|reference| reference.written));
    let mut reported = BTreeSet::new();
    all.filter(|reference| reported.insert(reference.clone())).map(missing_step).collect()
}

fn bad_arguments(step: &Step, params: &ToolParams, known_steps: &HashSet<&str>) -> Vec<PlanProblem> {
    let problem = |reason: String| PlanProblem::BadArguments { step: step.id.clone(), reason };
    let mut reasons = Vec::new();
    let missing = params.required().filter(|param| !step.arguments.contains_key(&param.name));
    let missing: Vec<String> = missing.map(|param| format!("`{}`", param.name)).collect();
    if !missing.is_empty() {
        reasons.push(format!("`{}` needs {}", step.tool_type, missing.join(", ")));
    }
    for reference in references(&step.arguments) {
        if known_steps.contains(reference.step.as_str()) && reference.has_unsupported_suffix {
            reasons.push(format!(
                "`{}` is followed by something that is no path: only .key, [0], [*] and [1:5] are",
                reference.written
            ));
        }
    }
    for (name, value) in &step.arguments {
        match params.param(name) {
            None if params.accepts_undeclared => {}
            Some(_) if value.is_null() && params.takes_null(name) => {}
            None => {
                let names: Vec<&str> = params.params.iter().map(|param| param.name.as_str()).collect();
                reasons.push(format!(
                    "`{}` has no parameter `{name}`; it takes {}",
                    step.tool_type,
                    names.join(", ")
                ));
            }
            Some(param) => reasons.extend(mismatch(param, value, known_steps)),
        }
    }
    reasons.into_iter().map(problem).collect()
}

/// Whether a literal value does not fit its parameter.
pub(super) fn is_misfit(
    params: &ToolParams,
    param: &Param,
    value: &Value,
    known_steps: &HashSet<&str>,
) -> bool {
    if value.is_null() {
        !params.takes_null(&param.name)
    } else {
        mismatch(param, value, known_steps).is_some()
    }
}

/// Why a literal value does not match a parameter; values with references are not judged.
fn mismatch(param: &Param, value: &Value, known_steps: &HashSet<&str>) -> Option<String> {
    if has_reference(value, known_steps) {
        return None;
    }
    if !matches_kind(&param.kind, value) && (param.required || !value.is_null()) {
        return Some(format!("`{}` must be {}, not {}", param.name, param.kind, type_name(value)));
    }
    if !param.choices.is_empty() && !param.choices.contains(value) && !value.is_null() {
        let choices: Vec<String> =
            param.choices.iter().take(MAX_LISTED_CHOICES).map(ToString::to_string).collect();
        return Some(format!("`{}` must be one of {}", param.name, choices.join(", ")));
    }
    match (value, param.items.as_deref()) {
        (Value::Array(items), Some(inner)) => items.iter().find_map(|item| {
            let named = Param { name: format!("{}[]", param.name), ..shallow(inner) };
            mismatch(&named, item, known_steps)
        }),
        _ => None,
    }
}

/// A parameter without its nested fields and items.
fn shallow(param: &Param) -> Param {
    Param {
        name: String::new(),
        kind: param.kind.clone(),
        description: None,
        required: true,
        default: None,
        choices: param.choices.clone(),
        fields: Vec::new(),
        items: None,
    }
}

/// Whether a value contains a reference to a known step.
pub(super) fn has_reference(value: &Value, known_steps: &HashSet<&str>) -> bool {
    references_in(value).iter().any(|reference| known_steps.contains(reference.step.as_str()))
}

fn matches_kind(kind: &ParamType, value: &Value) -> bool {
    match kind {
        ParamType::String => value.is_string(),
        ParamType::Number => value.is_number(),
        ParamType::Integer => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        ParamType::Boolean => value.is_boolean(),
        ParamType::Array => value.is_array(),
        ParamType::Object => value.is_object(),
        ParamType::Null => value.is_null(),
        ParamType::Any => true,
        ParamType::Union(kinds) => kinds.iter().any(|kind| matches_kind(kind, value)),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A dependency cycle of a plan: each step depends on the next, and the last on the first.
pub(super) fn find_cycle(plan: &Plan) -> Option<Vec<String>> {
    let dependencies: BTreeMap<&str, BTreeSet<String>> =
        plan.steps.iter().map(|step| (step.id.as_str(), plan.dependencies_of(step))).collect();
    // Remove steps that depend on no remaining step until there are none; what remains contains a cycle.
    let mut remaining: BTreeSet<&str> = dependencies.keys().copied().collect();
    loop {
        let is_ready = |id: &&str| {
            dependencies.get(id).is_none_or(|all| !all.iter().any(|other| remaining.contains(other.as_str())))
        };
        let ready: Vec<&str> = remaining.iter().copied().filter(is_ready).collect();
        if ready.is_empty() {
            break;
        }
        for id in ready {
            remaining.remove(id);
        }
    }
    let mut path: Vec<&str> = Vec::new();
    let mut current = *remaining.first()?;
    while !path.contains(&current) {
        path.push(current);
        // Every remaining step depends on another remaining step.
        current = dependencies.get(current)?.iter().find_map(|other| remaining.get(other.as_str()))?;
    }
    let start = path.iter().position(|id| *id == current)?;
    Some(path.into_iter().skip(start).map(str::to_owned).collect())
}

#[cfg(test)]
#[path = "plan_check_tests.rs"]
pub(crate) mod tests;
