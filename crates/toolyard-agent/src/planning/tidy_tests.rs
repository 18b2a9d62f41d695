//! Plans before and after they are put in order.

use serde_json::json;

use super::*;
use crate::{
    check_plan,
    plan_check::tests::Tools,
    planning::read::{Said, said},
};

fn tidy(plan: &Value) -> Value {
    let Some(Said::Plan(plan)) = said(plan) else { panic!("no plan") };
    let plan = tidied(plan, &Tools, &["read"]);
    let shown = |step: &Step| json!([step.id, step.tool_type, step.arguments, step.dependencies]);
    Value::Array(plan.steps.iter().map(shown).collect())
}

#[test]
fn names_become_plain_and_are_used_everywhere() {
    let plan = json!({"steps": [
        {"id": "读取", "tool": "anything", "arguments": {"a": 1}},
        {"id": "step-2", "tool": "anything", "arguments": {"a": "$读取.x", "b": ["共$读取.n行", "$$读取"]}, "dependencies": "读取"},
        {"id": "read", "tool": "anything", "arguments": {"a": "{{step-2.y}} and $steps.read.z"}, "dependencies": ["step-2"]},
        {"id": 4, "tool": "anything", "arguments": {"a": "$read", "b": "${step-2}", "c": "{{unknown}}"}, "dependencies": [1]},
        {"id": "last", "tool": "anything", "arguments": {"a": "$step_4.x"}, "dependencies": [9]},
    ]});
    assert_eq!(
        tidy(&plan),
        json!([
            ["s1", "anything", {"a": 1}, []],
            ["step_2", "anything", {"a": "$s1.x", "b": ["共$s1.n行", "$$读取"]}, ["s1"]],
            ["read_2", "anything", {"a": "${step_2.y} and $read_2.z"}, ["step_2"]],
            ["4", "anything", {"a": "$read_2", "b": "${step_2}", "c": "{{unknown}}"}, ["s1"]],
            ["last", "anything", {"a": "$4.x"}, ["9"]],
        ])
    );
}

#[test]
fn tools_and_arguments_take_their_form() {
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
        tidy(&plan),
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
fn two_of_one_name_stay_for_the_check() {
    let Some(Said::Plan(plan)) =
        said(&json!([{"id": "a", "tool": "get_time"}, {"id": "a", "tool": "get_time"}]))
    else {
        panic!("no plan")
    };
    let problems = check_plan(&tidied(plan, &Tools, &[]), &Tools, &crate::Caps::default(), &[]);
    assert_eq!(problems, [crate::PlanProblem::BadId { step: "a".to_owned() }]);
}
