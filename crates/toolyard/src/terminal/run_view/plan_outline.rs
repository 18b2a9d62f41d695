//! A plan in one line: steps that can run together, then those that depend on them.

use std::collections::BTreeMap;

use serde_json::Value;
use toolyard_agent::{Plan, Step};

/// Of longer plans, only the numbers of steps and stages are shown.
const MAX_LISTED_STEPS: usize = 8;

/// The plan in one line: `read → sum → write`.
pub(super) fn plan_outline(plan: &Plan) -> String {
    let stages = stages(plan);
    if plan.steps.len() > MAX_LISTED_STEPS {
        return format!("{} steps in {} stages", plan.steps.len(), stages.len());
    }
    stages.iter().map(|ids| ids.join(", ")).collect::<Vec<_>>().join(" → ")
}

/// Step ids grouped by the length of their longest chain of dependencies.
fn stages(plan: &Plan) -> Vec<Vec<&str>> {
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    // Each pass settles at least one step of a valid plan; the bound ends the loop for a cyclic one.
    for _ in 0..plan.steps.len() {
        for step in &plan.steps {
            let needed = plan.steps.iter().filter(|other| other.id != step.id && depends_on(step, &other.id));
            let needed: Option<Vec<usize>> = needed.map(|other| depths.get(&*other.id).copied()).collect();
            if let Some(needed) = needed {
                depths.insert(&step.id, needed.into_iter().max().map_or(0, |depth| depth + 1));
            }
        }
    }
    let mut stages: Vec<Vec<&str>> = Vec::new();
    for step in &plan.steps {
        let depth = depths.get(&*step.id).copied().unwrap_or(0);
        if stages.len() <= depth {
            stages.resize_with(depth + 1, Vec::new);
        }
        if let Some(stage) = stages.get_mut(depth) {
            stage.push(&step.id);
        }
    }
    stages.retain(|stage| !stage.is_empty());
    stages
}

fn depends_on(step: &Step, id: &str) -> bool {
    step.dependencies.iter().any(|needed| needed == id)
        || step.arguments.values().any(|value| references(value, id))
}

/// Whether a value references a step; found by text search, which is good enough for display.
fn references(value: &Value, id: &str) -> bool {
    match value {
        Value::String(text) => text.split('$').skip(1).any(|rest| {
            let end =
                rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
            rest.get(..end) == Some(id)
        }),
        Value::Array(values) => values.iter().any(|value| references(value, id)),
        Value::Object(values) => values.values().any(|value| references(value, id)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(steps: &Value) -> Plan {
        serde_json::from_value(json!({ "steps": steps })).unwrap()
    }

    #[test]
    fn independent_steps_share_a_stage() {
        let plan = plan(&json!([
            {"id": "read", "tool_type": "read"},
            {"id": "rate", "tool_type": "fetch"},
            {"id": "sum", "tool_type": "calculate", "arguments": {"expression": "$read.total * $rate"}},
            {"id": "write", "tool_type": "write", "arguments": {"rows": [["$sum"]]}, "dependencies": ["rate"]},
        ]));
        assert_eq!(plan_outline(&plan), "read, rate → sum → write");
    }

    #[test]
    fn cyclic_steps_are_still_listed() {
        let plan = plan(&json!([
            {"id": "a", "tool_type": "t", "dependencies": ["b"]},
            {"id": "b", "tool_type": "t", "dependencies": ["a"]},
        ]));
        assert_eq!(plan_outline(&plan), "a, b");
    }

    #[test]
    fn a_long_plan_is_shown_as_its_numbers_of_steps_and_stages() {
        let steps: Vec<Value> = (0..20)
            .map(|n| json!({"id": format!("s{n}"), "tool_type": "t", "arguments": {"x": format!("$s{}", n / 2)}}))
            .collect();
        assert_eq!(plan_outline(&plan(&json!(steps))), "20 steps in 6 stages");
    }
}
