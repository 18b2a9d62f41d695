//! A plan in a line: steps that can go on together, then those that wait for them.

use std::collections::BTreeMap;

use serde_json::Value;
use toolyard_agent::{Plan, Step};

/// More steps are counted, not named.
const NAMED: usize = 8;

/// The plan in a line: `read → sum → write`.
pub(crate) fn stages(plan: &Plan) -> String {
    let levels = levels(plan);
    if plan.steps.len() > NAMED {
        return format!("{} steps in {} stages", plan.steps.len(), levels.len());
    }
    levels.iter().map(|ids| ids.join(", ")).collect::<Vec<_>>().join(" → ")
}

/// Names of steps by how many others must be over before.
fn levels(plan: &Plan) -> Vec<Vec<&str>> {
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    // A plan was checked, so that each round settles at least one step; one that was not ends all the same.
    for _ in 0..plan.steps.len() {
        for step in &plan.steps {
            let before = plan.steps.iter().filter(|other| other.id != step.id && needs(step, &other.id));
            let depths_before: Option<Vec<usize>> =
                before.map(|other| depths.get(&*other.id).copied()).collect();
            if let Some(before) = depths_before {
                depths.insert(&step.id, before.into_iter().max().map_or(0, |depth| depth + 1));
            }
        }
    }
    let mut levels: Vec<Vec<&str>> = Vec::new();
    for step in &plan.steps {
        let depth = depths.get(&*step.id).copied().unwrap_or(0);
        if levels.len() <= depth {
            levels.resize_with(depth + 1, Vec::new);
        }
        if let Some(level) = levels.get_mut(depth) {
            level.push(&step.id);
        }
    }
    levels.retain(|level| !level.is_empty());
    levels
}

fn needs(step: &Step, id: &str) -> bool {
    step.dependencies.iter().any(|needed| needed == id)
        || step.arguments.values().any(|value| refers(value, id))
}

/// Whether a value refers to a step, near enough for a picture.
fn refers(value: &Value, id: &str) -> bool {
    match value {
        Value::String(text) => text.split('$').skip(1).any(|rest| {
            let end =
                rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
            rest.get(..end) == Some(id)
        }),
        Value::Array(values) => values.iter().any(|value| refers(value, id)),
        Value::Object(values) => values.values().any(|value| refers(value, id)),
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
    fn what_goes_on_together_stands_together() {
        let plan = plan(&json!([
            {"id": "read", "tool_type": "read"},
            {"id": "rate", "tool_type": "fetch"},
            {"id": "sum", "tool_type": "calculate", "arguments": {"expression": "$read.total * $rate"}},
            {"id": "write", "tool_type": "write", "arguments": {"rows": [["$sum"]]}, "dependencies": ["rate"]},
        ]));
        assert_eq!(stages(&plan), "read, rate → sum → write");
    }

    #[test]
    fn steps_that_wait_for_each_other_are_still_shown() {
        let plan = plan(&json!([
            {"id": "a", "tool_type": "t", "dependencies": ["b"]},
            {"id": "b", "tool_type": "t", "dependencies": ["a"]},
        ]));
        assert_eq!(stages(&plan), "a, b");
    }

    #[test]
    fn long_plans_are_counted() {
        let steps: Vec<Value> = (0..20)
            .map(|n| json!({"id": format!("s{n}"), "tool_type": "t", "arguments": {"x": format!("$s{}", n / 2)}}))
            .collect();
        assert_eq!(stages(&plan(&json!(steps))), "20 steps in 6 stages");
    }
}
