//! Whether a plan can be carried out: everything that is wrong with it, in words that its author understands.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};
use toolyard_core::{Param, ParamType, RawJson, ToolKind, extract_capabilities, params};

use crate::{Caps, NO_TOOL, Plan, PlanProblem, Reference, Step, references};

/// More problems than this help nobody.
const MAX_PROBLEMS: usize = 12;
/// Longer names of steps are not names.
const MAX_ID: usize = 64;

/// The tools that a plan may use.
pub trait KnownTools {
    /// The JSON Schema of a tool's arguments; none where there is no such tool.
    fn input_schema(&self, tool: &str) -> Option<RawJson>;

    /// The tool that was probably meant by a name that no tool has.
    fn nearest(&self, tool: &str) -> Option<String>;
}

/// What a tool takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Takes {
    pub(crate) params: Vec<Param>,
    /// Whether it takes others too.
    pub(crate) open: bool,
}

impl Takes {
    pub(crate) fn of(schema: &RawJson) -> Self {
        let schema = schema.to_value();
        let params = params(&schema);
        let says = |word: &str| schema.get(word).is_some_and(|said| *said != Value::Bool(false));
        let open = params.is_empty() || says("additionalProperties") || says("patternProperties");
        Self { params, open }
    }

    pub(crate) fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }
}

/// Everything that is wrong with a plan. `done` are steps of earlier plans, whose values can be referred to.
pub fn check_plan(plan: &Plan, tools: &dyn KnownTools, caps: &Caps, done: &[&str]) -> Vec<PlanProblem> {
    if plan.steps.is_empty() {
        return vec![PlanProblem::Unreadable { reason: "it has no steps".to_owned() }];
    }
    if plan.steps.len() > caps.steps {
        return vec![PlanProblem::TooLong { steps: plan.steps.len(), limit: caps.steps }];
    }
    let mut problems = bad_ids(plan, done);
    let known: HashSet<&str> =
        plan.steps.iter().map(|step| step.id.as_str()).chain(done.iter().copied()).collect();
    let mut takes: HashMap<&str, Option<Takes>> = HashMap::new();
    for step in &plan.steps {
        problems.extend(missing_steps(step, &known));
        if step.tool_type == NO_TOOL {
            continue;
        }
        let tool = takes
            .entry(&step.tool_type)
            .or_insert_with(|| tools.input_schema(&step.tool_type).map(|schema| Takes::of(&schema)));
        match tool {
            None => problems.push(PlanProblem::UnknownTool {
                step: step.id.clone(),
                tool: step.tool_type.clone(),
                nearest: tools.nearest(&step.tool_type),
            }),
            Some(takes) => problems.extend(bad_arguments(step, takes, &known)),
        }
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
    }
    problems.extend(cycle(plan).map(|steps| PlanProblem::Cycle { steps }));
    problems
}

/// Whether a step can be referred to by this name.
pub(crate) fn is_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= MAX_ID
        && id.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

fn bad_ids(plan: &Plan, done: &[&str]) -> Vec<PlanProblem> {
    let mut seen: HashSet<&str> = done.iter().copied().collect();
    let bad = plan.steps.iter().filter(|step| !seen.insert(&step.id) || !is_id(&step.id));
    bad.map(|step| PlanProblem::BadId { step: step.id.clone() }).collect()
}

fn missing_steps(step: &Step, known: &HashSet<&str>) -> Vec<PlanProblem> {
    let missing = |reference: String| PlanProblem::MissingStep { step: step.id.clone(), reference };
    let named = step.dependencies.iter().filter(|id| !known.contains(id.as_str())).cloned();
    let used = references(&step.arguments);
    // In a calculation a word behind a dollar is never a price.
    let calculates = ToolKind::of(&extract_capabilities(&step.tool_type, "")) == ToolKind::Calculate;
    let is_word = |found: &Reference| found.step.starts_with(|first: char| !first.is_ascii_digit());
    let is_meant = |found: &Reference| !found.may_be_text() || (calculates && is_word(found));
    let used = used.into_iter().filter(|found| !known.contains(found.step.as_str()) && is_meant(found));
    let mut said = BTreeSet::new();
    named.chain(used.map(|found| found.written)).filter(|one| said.insert(one.clone())).map(missing).collect()
}

fn bad_arguments(step: &Step, takes: &Takes, known: &HashSet<&str>) -> Vec<PlanProblem> {
    let problem = |reason: String| PlanProblem::BadArguments { step: step.id.clone(), reason };
    let mut reasons = Vec::new();
    let missing =
        takes.params.iter().filter(|param| param.required && !step.arguments.contains_key(&param.name));
    let missing: Vec<String> = missing.map(|param| format!("`{}`", param.name)).collect();
    // A step without any arguments may be given some from its description.
    if !missing.is_empty() {
        reasons.push(format!("`{}` needs {}", step.tool_type, missing.join(", ")));
    }
    for found in references(&step.arguments) {
        if known.contains(found.step.as_str()) && found.unread {
            reasons.push(format!(
                "`{}` is followed by something that is no path: only .key, [0], [*] and [1:5] are",
                found.written
            ));
        }
    }
    for (name, value) in &step.arguments {
        match takes.param(name) {
            None if takes.open => {}
            None => {
                let names: Vec<&str> = takes.params.iter().map(|param| param.name.as_str()).collect();
                reasons.push(format!(
                    "`{}` has no parameter `{name}`; it takes {}",
                    step.tool_type,
                    names.join(", ")
                ));
            }
            Some(param) => reasons.extend(misfit(param, value, known)),
        }
    }
    reasons.into_iter().map(problem).collect()
}

/// Why a value that is written out does not fit; nothing is said about places where a reference stands.
fn misfit(param: &Param, value: &Value, known: &HashSet<&str>) -> Option<String> {
    if uses_a_step(value, known) {
        return None;
    }
    if !fits_kind(&param.kind, value) && (param.required || !value.is_null()) {
        return Some(format!("`{}` must be {}, not {}", param.name, param.kind, kind_of(value)));
    }
    if !param.choices.is_empty() && !param.choices.contains(value) && !value.is_null() {
        let choices: Vec<String> = param.choices.iter().take(12).map(ToString::to_string).collect();
        return Some(format!("`{}` must be one of {}", param.name, choices.join(", ")));
    }
    match (value, param.items.as_deref()) {
        (Value::Array(items), Some(inner)) => items.iter().find_map(|item| {
            let named = Param { name: format!("{}[]", param.name), ..shallow(inner) };
            misfit(&named, item, known)
        }),
        _ => None,
    }
}

/// The kind of a parameter without what is inside.
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

/// Whether a reference to a known step stands anywhere in a value.
pub(crate) fn uses_a_step(value: &Value, known: &HashSet<&str>) -> bool {
    let mut holder = Map::new();
    holder.insert(String::new(), value.clone());
    references(&holder).iter().any(|found: &Reference| known.contains(found.step.as_str()))
}

fn fits_kind(kind: &ParamType, value: &Value) -> bool {
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
        ParamType::Union(kinds) => kinds.iter().any(|kind| fits_kind(kind, value)),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Steps that wait for each other, in the order in which they do; the first such circle.
pub fn cycle(plan: &Plan) -> Option<Vec<String>> {
    let needs: BTreeMap<&str, BTreeSet<String>> =
        plan.steps.iter().map(|step| (step.id.as_str(), plan.needs(step))).collect();
    // What remains after everything that can be done is done waits for itself.
    let mut left: BTreeSet<&str> = needs.keys().copied().collect();
    loop {
        let ready =
            |id: &&str| needs.get(id).is_none_or(|all| !all.iter().any(|need| left.contains(need.as_str())));
        let done: Vec<&str> = left.iter().copied().filter(ready).collect();
        if done.is_empty() {
            break;
        }
        for id in done {
            left.remove(id);
        }
    }
    let mut path: Vec<&str> = Vec::new();
    let mut at = *left.first()?;
    while !path.contains(&at) {
        path.push(at);
        // Everything that is left waits for something that is left.
        at = needs.get(at)?.iter().find_map(|need| left.get(need.as_str()))?;
    }
    let start = path.iter().position(|id| *id == at)?;
    Some(path.into_iter().skip(start).map(str::to_owned).collect())
}

#[cfg(test)]
#[path = "plan_check_tests.rs"]
pub(crate) mod tests;
