//! Repairs of plans and the notes about them.

use serde_json::json;

use super::*;
use crate::planning::{
    PlannerDecision, normalize::normalize, plan_check::tests::TestCatalog, reply::plan_json::parse_decision,
};

#[test]
fn a_repeated_call_is_removed() {
    let step = |id: &str, at: &str, needs: &[&str]| json!({"id": id, "tool": "anything", "arguments": {"at": at}, "dependencies": needs});
    let plan = json!({"steps": [
        step("write", "A1", &["read"]), step("again", "A1", &["write"]), step("next", "A2", &["again"]), step("last", "$next.x", &[]),
        step("same", "A1", &[]), step("user", "$same.x", &[]),
    ]});
    let Some(PlannerDecision::Plan(plan)) = parse_decision(&plan) else { panic!("no plan") };
    let mut notes = RepairNotes::new();
    let plan = {
        let plan = normalize(plan, &TestCatalog, &["read"], &mut notes);
        remove_repeated_calls(plan, &["read"], &mut notes)
    };
    assert_eq!(notes["write"], ["dropped `again`: repeats this call"]);
    let shown: Vec<_> = plan.steps.iter().map(|step| json!([step.id, step.dependencies])).collect();
    assert_eq!(
        Value::Array(shown),
        json!([["write", ["read"]], ["next", []], ["last", []], ["same", []], ["user", []]]),
        "referenced steps stay"
    );
}

#[test]
fn reasoning_that_no_call_needs_is_left_to_the_answer() {
    let plan = json!({"steps": [
        {"id": "read", "tool": "anything", "arguments": {"at": "A1"}},
        {"id": "german", "tool": "none", "description": "Translate it", "dependencies": ["read"]},
        {"id": "write", "tool": "anything", "arguments": {"at": "$german"}, "dependencies": ["german"]},
        {"id": "check", "tool": "none", "description": "Check it", "dependencies": ["write"]},
        {"id": "say", "tool": "none", "description": "Say it", "dependencies": ["check"]},
    ]});
    let Some(PlannerDecision::Plan(plan)) = parse_decision(&plan) else { panic!("no plan") };
    let mut notes = RepairNotes::new();
    let plan = remove_final_reasoning(plan, &mut notes);
    assert_eq!(
        plan.steps.iter().map(|step| step.id.as_str()).collect::<Vec<_>>(),
        ["read", "german", "write"]
    );
    let only = Plan { steps: plan.steps.into_iter().filter(|step| step.id == "german").collect() };
    assert_eq!(remove_final_reasoning(only.clone(), &mut notes), only, "a plan keeps at least one step");
}

#[test]
fn a_call_with_its_own_result_is_a_repetition() {
    let write = |id: &str, at: &str, data: Value| json!({"id": id, "tool": "anything", "arguments": {"at": at, "data": data}});
    let remaining_steps = |second: Value| {
        let plan = json!({"steps": [write("write", "A1", json!([["x"]])), second]});
        let Some(PlannerDecision::Plan(plan)) = parse_decision(&plan) else { panic!("no plan") };
        let mut notes = RepairNotes::new();
        let plan = normalize(plan, &TestCatalog, &[], &mut notes);
        remove_repeated_calls(plan, &[], &mut notes).steps.len()
    };
    assert_eq!(remaining_steps(write("save", "A1", json!([["$write.result"]]))), 1);
    assert_eq!(remaining_steps(write("save", "A2", json!([["$write.result"]]))), 2, "into another cell");
    assert_eq!(
        remaining_steps(write("save", "A1", json!([["$write.result", 1]]))),
        2,
        "with additional data"
    );
    assert_eq!(
        remaining_steps(json!({"id": "b", "tool": "other", "arguments": {"at": "A1", "data": "$write"}})),
        2
    );
}
