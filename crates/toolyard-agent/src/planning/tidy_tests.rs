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
    let plan = tidied(plan, &Tools, &["read"], "Write 42 and $7");
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
            ["last", "anything", {"a": "$4.x"}, []],
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
fn of_two_with_one_name_the_later_one_gets_another() {
    let plan = json!([
        {"id": "read", "tool": "anything", "arguments": {"a": 1}},
        {"id": "x", "tool": "anything", "arguments": {"a": 2}},
        {"id": "x", "tool": "anything", "arguments": {"a": 3}},
        {"id": "y", "tool": "anything", "arguments": {"a": "$x", "b": "$x_2", "c": "$x2.z"}},
    ]);
    let found = tidy(&plan);
    assert_eq!(found[2][0], "x_2");
    assert_eq!(found[3][2], json!({"a": "$x", "b": "$x_2", "c": "$x_2.z"}));
}

#[test]
fn numbers_that_look_like_references_are_numbers() {
    let plan = json!([{"id": "w", "tool": "anything", "arguments": {"a": [["$42", "$7", "$5,000", "$w"]]}}]);
    assert_eq!(
        tidy(&plan)[0][2],
        json!({"a": [[42, "$7", "$5,000", "$w"]]}),
        "money that was asked for stays"
    );
}

#[test]
fn what_was_not_asked_of_the_model_is_filled_in() {
    let Some(Said::Plan(plan)) =
        said(&json!({"call": {"tool_type": "calculate", "arguments": {"expression": "1+1"}}}))
    else {
        panic!("no plan")
    };
    let plan = tidied(plan, &Tools, &[], "");
    assert_eq!(plan.steps[0].description, "calculate: 1+1");
    assert_eq!(plan.steps[0].complexity, Complexity::Low);
    assert_eq!(check_plan(&plan, &Tools, &crate::Caps::default(), &[]), []);
}

#[test]
fn a_call_that_is_only_repeated_is_made_once() {
    let step = |id: &str, at: &str, needs: &[&str]| json!({"id": id, "tool": "anything", "arguments": {"at": at}, "dependencies": needs});
    let plan = json!({"steps": [
        step("write", "A1", &["read"]), step("again", "A1", &["write"]), step("next", "A2", &["again"]), step("last", "$next.x", &[]),
        step("same", "A1", &[]), step("user", "$same.x", &[]),
    ]});
    let Some(Said::Plan(plan)) = said(&plan) else { panic!("no plan") };
    let plan = without_repeats(tidied(plan, &Tools, &["read"], ""), &["read"]);
    let shown: Vec<_> = plan.steps.iter().map(|step| json!([step.id, step.dependencies])).collect();
    assert_eq!(
        Value::Array(shown),
        json!([["write", ["read"]], ["next", []], ["last", []], ["same", []], ["user", []]]),
        "what somebody refers to stays"
    );
}

#[test]
fn a_formula_keeps_its_sign() {
    let with_sign = |text: &str, question: &str| {
        let mut value = json!([[text]]);
        with_equals_sign(&mut value, question);
        value[0][0].as_str().unwrap() == format!("={text}")
    };
    for question in ["在 A1 写入公式 =C2*D2", "Put =C2*D2 into A1", "put \"=C2*D2\".", "公式=C2*D2。"]
    {
        assert!(with_sign("C2*D2", question), "{question}");
    }
    for question in ["x=C2*D2", "Put C2*D2 and =C2*D2 into A1 and B1", "=C2*D21", "==C2*D2", "C2*D2", ""] {
        assert!(!with_sign("C2*D2", question), "{question}");
    }
    assert!(with_sign("SUM(B1:B10)", "=SUM(B1:B10)") && with_sign("$C$2-1.5", "set =$C$2-1.5"));
    for (text, question) in [
        ("完成", "状态=完成"),
        ("100", "amount>=100"),
        ("done", "status!=done"),
        ("foo-bar", "(name)=foo-bar"),
    ] {
        assert!(!with_sign(text, question), "{question}");
    }
    assert!(!with_sign("A1+1", "where x <=A1+1"));
    assert!(!with_sign("=C2*D2", "Put =C2*D2 into A1"));
    assert!(!with_sign("", "Put = into A1"));
}

/// A tool that finds the end of what it reads.
struct Reader;

impl KnownTools for Reader {
    fn input_schema(&self, _tool: &str) -> Option<RawJson> {
        Some(RawJson::from_value(&json!({"type": "object", "required": ["file"], "properties": {
            "file": {"type": "string"}, "start": {"type": "string", "default": "A1"},
            "end": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}}})))
    }

    fn nearest(&self, _tool: &str) -> Option<String> {
        None
    }
}

fn cells_of(tool: &str, end: &str, words: &str) -> Map<String, Value> {
    let arguments = json!({"file": "B7", "start": "A2", "end": end, "encoding": "UTF8"});
    let call = json!({"call": {"tool_type": tool, "arguments": arguments}});
    let Some(Said::Plan(plan)) = said(&call) else { panic!("no plan") };
    without_made_up_cells(plan, &Reader, words).steps.remove(0).arguments
}

#[test]
fn cells_that_nobody_spoke_of_are_made_up() {
    let left = |end: &str, words: &str| {
        let left = cells_of("read_sheet", end, words);
        assert!(left.contains_key("file") && left.contains_key("start"), "needed, or another cell instead");
        left.contains_key("end")
    };
    assert!(!left("A100", "Read the sales column"));
    assert!(!left("A10", "Read A1 to A100") && !left("A1", "XA1"), "another cell");
    assert!(left("A100", "读取A1到a100的数据") && left("A100", "A1:A100"));
    assert!(cells_of("read_sheet", "A100", "").contains_key("encoding"), "no place");
    assert!(
        cells_of("clear_sheet", "B10", "Clear rows 2 to 10 of B").contains_key("end"),
        "it changes something"
    );
    assert!(left("today", "Read it") && left("2026-11-16", "tomorrow"), "only cells are never thought up");
}

#[test]
fn a_call_with_what_it_said_itself_is_the_same_call() {
    let write = |id: &str, at: &str, data: Value| json!({"id": id, "tool": "anything", "arguments": {"at": at, "data": data}});
    let kept = |second: Value| {
        let plan = json!({"steps": [write("write", "A1", json!([["x"]])), second]});
        let Some(Said::Plan(plan)) = said(&plan) else { panic!("no plan") };
        without_repeats(tidied(plan, &Tools, &[], ""), &[]).steps.len()
    };
    assert_eq!(kept(write("save", "A1", json!([["$write.result"]]))), 1);
    assert_eq!(kept(write("save", "A2", json!([["$write.result"]]))), 2, "elsewhere");
    assert_eq!(kept(write("save", "A1", json!([["$write.result", 1]]))), 2, "something else with it");
    assert_eq!(kept(json!({"id": "b", "tool": "other", "arguments": {"at": "A1", "data": "$write"}})), 2);
}

#[test]
fn values_that_an_expression_does_not_speak_of_are_left_out() {
    let left = |expression: &str, values: Value| {
        let plan = json!([{"id": "a", "tool": "calculate", "arguments": {"expression": expression, "values": values}}]);
        tidy(&plan)[0][2].get("values").is_some()
    };
    assert!(!left("15%*2480", json!([2480])));
    assert!(left("sum(values)", json!([1, 2])) && left("1+1", json!("$read.rows")));
}
