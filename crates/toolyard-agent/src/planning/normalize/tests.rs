//! Plans before and after normalization.

use serde_json::json;

use super::*;
use crate::{
    check_plan,
    planning::{PlannerDecision, plan_check::tests::TestCatalog, reply::plan_json::parse_decision},
};

fn normalized(plan: &Value) -> Value {
    let Some(PlannerDecision::Plan(plan)) = parse_decision(plan) else { panic!("no plan") };
    let plan = normalize(plan, &TestCatalog, &["read"], "Write 42 and $7", &mut RepairNotes::new());
    let shown = |step: &Step| json!([step.id, step.tool_type, step.arguments, step.dependencies]);
    Value::Array(plan.steps.iter().map(shown).collect())
}

#[test]
fn ids_become_valid_and_references_follow() {
    let plan = json!({"steps": [
        {"id": "读取", "tool": "anything", "arguments": {"a": 1}},
        {"id": "step-2", "tool": "anything", "arguments": {"a": "$读取.x", "b": ["共$读取.n行", "$$读取"]}, "dependencies": "读取"},
        {"id": "read", "tool": "anything", "arguments": {"a": "{{step-2.y}} and $steps.read.z"}, "dependencies": ["step-2"]},
        {"id": 4, "tool": "anything", "arguments": {"a": "$read", "b": "${step-2}", "c": "{{unknown}}"}, "dependencies": [1]},
        {"id": "last", "tool": "anything", "arguments": {"a": "$step_4.x"}, "dependencies": [9]},
    ]});
    assert_eq!(
        normalized(&plan),
        json!([
            ["s1", "anything", {"a": 1}, []],
            ["step_2", "anything", {"a": "$s1.x", "b": ["共$s1.n行", "$$读取"]}, ["s1"]],
            ["read_2", "anything", {"a": "${step_2.y} and $read_2.z"}, ["step_2"]],
            ["4", "anything", {"a": "$read_2", "b": "${step_2}", "c": "{{unknown}}"}, ["s1"]],
            ["last", "anything", {"a": "$4.x"}, []],
        ])
    );
}

#[test]
fn tool_names_and_arguments_are_normalized() {
    let plan = json!({"steps": [
        {"id": "a", "tool": "functions.calculate", "arguments": "1 + 1"},
        {"id": "m", "tool": "calculate", "arguments": {"expression": "$1234 * $5.50 + $a"}},
        {"id": "b", "tool": "Calculate", "arguments": {"expression": 5, "values": "[1, 2]"}},
        {"id": "c", "tool": "write_data_to_excel", "arguments": {"filepath": "x", "sheet_name": "s", "data": 7, "start_cell": null}},
        {"id": "d", "tool": "write_data_to_excel", "arguments": {"filepath": "x", "sheet_name": "s", "data": "$a"}},
        {"id": "e", "tool": "final_answer", "description": "tell"},
        {"id": "f", "tool": "frobnicate"},
    ]});
    assert_eq!(
        normalized(&plan),
        json!([
            ["a", "calculate", {"expression": "1 + 1"}, []],
            ["m", "calculate", {"expression": "1234 * 5.50 + $a"}, []],
            ["b", "calculate", {"expression": "5", "values": [1, 2]}, []],
            ["c", "write_data_to_excel", {"filepath": "x", "sheet_name": "s", "data": [[7]]}, []],
            ["d", "write_data_to_excel", {"filepath": "x", "sheet_name": "s", "data": "$a"}, []],
            ["e", "none", {}, []],
            ["f", "frobnicate", {}, []],
        ])
    );
}

#[test]
fn a_duplicate_id_is_renamed() {
    let plan = json!([
        {"id": "read", "tool": "anything", "arguments": {"a": 1}},
        {"id": "x", "tool": "anything", "arguments": {"a": 2}},
        {"id": "x", "tool": "anything", "arguments": {"a": 3}},
        {"id": "y", "tool": "anything", "arguments": {"a": "$x", "b": "$x_2", "c": "$x2.z"}},
    ]);
    let found = normalized(&plan);
    assert_eq!(found[2][0], "x_2");
    assert_eq!(found[3][2], json!({"a": "$x", "b": "$x_2", "c": "$x_2.z"}));
}

#[test]
fn numbers_written_like_references_become_numbers() {
    let plan = json!([{"id": "w", "tool": "anything", "arguments": {"a": [["$42", "$7", "$5,000", "$w"]]}}]);
    assert_eq!(
        normalized(&plan)[0][2],
        json!({"a": [[42, "$7", "$5,000", "$w"]]}),
        "amounts in the request stay"
    );
}

#[test]
fn missing_description_and_complexity_are_filled_in() {
    let Some(PlannerDecision::Plan(plan)) =
        parse_decision(&json!({"call": {"tool_type": "calculate", "arguments": {"expression": "1+1"}}}))
    else {
        panic!("no plan")
    };
    let plan = normalize(plan, &TestCatalog, &[], "", &mut RepairNotes::new());
    assert_eq!(plan.steps[0].description, "calculate: 1+1");
    assert_eq!(plan.steps[0].complexity, Complexity::Low);
    assert_eq!(check_plan(&plan, &TestCatalog, &crate::RunLimits::default(), &[]), []);
}

#[test]
fn values_that_an_expression_does_not_use_are_removed() {
    let keeps_values = |expression: &str, values: Value| {
        let plan = json!([{"id": "a", "tool": "calculate", "arguments": {"expression": expression, "values": values}}]);
        normalized(&plan)[0][2].get("values").is_some()
    };
    assert!(!keeps_values("15%*2480", json!([2480])));
    assert!(keeps_values("sum(values)", json!([1, 2])) && keeps_values("1+1", json!("$read.rows")));
}
