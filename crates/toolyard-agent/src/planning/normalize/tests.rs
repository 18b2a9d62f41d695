//! Plans before and after normalization.

use proptest::prelude::*;
use serde_json::json;
use toolyard_model::{ModelReply, ToolCalling};

use super::*;
use crate::{
    PlanningAgent, PlanningContext, check_plan,
    planning::{PlannerDecision, plan_check::tests::TestCatalog, reply::plan_json::parse_decision},
    reference::resolve_references,
};

fn normalized(plan: &Value) -> Value {
    let Some(PlannerDecision::Plan(plan)) = parse_decision(plan) else { panic!("no plan") };
    let plan = normalize(plan, &TestCatalog, &["read"], &mut RepairNotes::new());
    let shown = |step: &Step| json!([step.id, step.tool_type, step.arguments, step.dependencies]);
    Value::Array(plan.steps.iter().map(shown).collect())
}

#[test]
fn ids_become_valid_and_references_follow() {
    let plan = json!({"steps": [
        {"id": "读取", "tool": "anything", "arguments": {"a": 1}},
        {"id": "step-2", "tool": "anything", "arguments": {"a": "$读取.x", "b": ["共$读取.n行", "$$读取"]}, "dependencies": "读取"},
        {"id": "read", "tool": "anything", "arguments": {"a": "$step-2.y and $read_1"}, "dependencies": ["step-2"]},
        {"id": 4, "tool": "anything", "arguments": {"a": "$read", "b": "${step-2}", "c": "{{unknown}}"}, "dependencies": ["读取"]},
        {"id": "last", "tool": "anything", "arguments": {"a": "$4.x"}, "dependencies": [9]},
    ]});
    assert_eq!(
        normalized(&plan),
        json!([
            ["s1", "anything", {"a": 1}, []],
            ["s2", "anything", {"a": "$s1.x", "b": ["共$s1.n行", "$$读取"]}, ["s1"]],
            ["read_2", "anything", {"a": "$s2.y and $read_1"}, ["s2"]],
            ["4", "anything", {"a": "$read_2", "b": "${s2}", "c": "{{unknown}}"}, ["s1"]],
            ["last", "anything", {"a": "$4.x"}, ["9"]],
        ])
    );
}

#[test]
fn tool_names_and_arguments_are_normalized() {
    let plan = json!({"steps": [
        {"id": "a", "tool": "functions.calculate", "arguments": {"expression": "1 + 1"}},
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
            ["m", "calculate", {"expression": "$1234 * $5.50 + $a"}, []],
            ["b", "calculate", {"expression": "5", "values": [1, 2]}, []],
            ["c", "write_data_to_excel", {"filepath": "x", "sheet_name": "s", "data": [[7]]}, []],
            ["d", "write_data_to_excel", {"filepath": "x", "sheet_name": "s", "data": "$a"}, []],
            ["e", "none", {}, []],
            ["f", "frobnicate", {}, []],
        ])
    );
}

#[test]
fn of_two_ids_the_longer_one_is_meant() {
    let plan = json!([
        {"id": "读取", "tool": "anything", "arguments": {"a": 1}},
        {"id": "读取文件", "tool": "anything", "arguments": {"a": 2}},
        {"id": "last", "tool": "anything", "arguments": {"a": "$读取文件.x", "b": "$读取.x"}},
    ]);
    assert_eq!(normalized(&plan)[2][2], json!({"a": "$s2.x", "b": "$s1.x"}));
}

#[test]
fn a_duplicate_id_is_renamed() {
    let plan = json!([
        {"id": "read", "tool": "anything", "arguments": {"a": 1}},
        {"id": "x", "tool": "anything", "arguments": {"a": 2}},
        {"id": "x", "tool": "anything", "arguments": {"a": 3}},
        {"id": "y", "tool": "anything", "arguments": {"a": "$x", "b": "$x_2"}},
    ]);
    let found = normalized(&plan);
    assert_eq!(found[2][0], "x_2");
    assert_eq!(found[3][2], json!({"a": "$x", "b": "$x_2"}));
}

#[test]
fn a_missing_description_is_filled_in() {
    let Some(PlannerDecision::Plan(plan)) =
        parse_decision(&json!({"call": {"tool_type": "calculate", "arguments": {"expression": "1+1"}}}))
    else {
        panic!("no plan")
    };
    let plan = normalize(plan, &TestCatalog, &[], &mut RepairNotes::new());
    assert_eq!(plan.steps[0].description, "calculate: 1+1");
    assert_eq!(check_plan(&plan, &TestCatalog, &crate::RunLimits::default(), &[]), []);
}

/// A tool with parameters of several types.
struct TypedCatalog;

impl ToolCatalog for TypedCatalog {
    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
            "path": {"type": "string"}, "start_cell": {"type": "string"}, "end_cell": {"type": ["string", "null"]},
            "limit": {"type": "integer"}, "ratio": {"type": "number"}, "force": {"type": "boolean"},
            "rows": {"type": "array", "items": {"type": "array", "items": {}}}, "options": {"type": "object"}}});
        (tool == "read_table").then(|| RawJson::from_value(&schema))
    }

    fn places(&self, _tool: &str) -> ToolPlaces {
        let folders = vec!["/data".to_owned()];
        let scope = toolyard_core::SourceScope { folders, ..toolyard_core::SourceScope::default() };
        ToolPlaces { scope, working_folder: Some("/data".to_owned()) }
    }

    fn nearest(&self, _tool: &str) -> Option<String> {
        None
    }
}

fn repaired(arguments: &Value) -> (Value, Vec<String>) {
    let plan = json!([{"id": "a", "tool": "read_table", "arguments": arguments}]);
    let Some(PlannerDecision::Plan(plan)) = parse_decision(&plan) else { panic!("no plan") };
    let mut notes = RepairNotes::new();
    let plan = normalize(plan, &TypedCatalog, &[], &mut notes);
    (Value::Object(plan.steps[0].arguments.clone()), notes.into_values().flatten().collect())
}

#[test]
fn what_does_not_fit_is_repaired_and_every_repair_is_noted() {
    let written = json!({"Path": "a.xlsx", "limit": "42", "force": "true", "rows": 7, "start_cell": null,
        "end_cell": null, "ratio": "", "options": "{\"a\": 1}"});
    let (arguments, notes) = repaired(&written);
    assert_eq!(
        arguments,
        json!({"path": "a.xlsx", "limit": 42, "force": true, "rows": [[7]], "end_cell": null, "options": {"a": 1}})
    );
    let expected = [
        "`Path`: left out `\"a.xlsx\"`",
        "`start_cell`: left out `null`",
        "`ratio`: left out `\"\"`",
        "`path`: added `\"a.xlsx\"`",
        "`limit`: `\"42\"` became `42`",
        "`force`: `\"true\"` became `true`",
        "`rows`: `7` became `[[7]]`",
        "`options`: `\"{\\\"a\\\": 1}\"` became `{\"a\":1}`",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn what_could_mean_two_things_is_left_to_the_model() {
    let written = json!({"path": "a", "Start-Cell": "A1", "start cell": "B1", "limit": "five"});
    assert_eq!(repaired(&written), (written, Vec::new()));
}

#[test]
fn a_calculation_without_an_expression_is_left_to_the_model() {
    for arguments in [json!({}), json!({"expression": ""}), json!({"expression": null, "values": null})] {
        let plan =
            json!([{"id": "a", "tool": "calculate", "arguments": arguments, "description": "the total"}]);
        assert_eq!(normalized(&plan), json!([["a", "none", {}, []]]), "{arguments}");
    }
    let inferred = json!([{"id": "a", "tool": "calculate", "description": "Calculate 80+70"}]);
    assert_eq!(normalized(&inferred), json!([["a", "calculate", {"expression": "80+70"}, []]]));
}

/// A tool that is named like a calculation and needs no argument.
struct StatsCatalog;

impl ToolCatalog for StatsCatalog {
    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        let schema = json!({"type": "object", "properties": {"column": {"type": "string"}}});
        (tool == "compute_stats").then(|| RawJson::from_value(&schema))
    }

    fn nearest(&self, _tool: &str) -> Option<String> {
        None
    }
}

#[test]
fn a_calculation_that_requires_no_argument_is_called() {
    for arguments in [json!({}), json!({"column": ""})] {
        let plan = json!([{"id": "a", "tool": "compute_stats", "arguments": arguments}]);
        let Some(PlannerDecision::Plan(plan)) = parse_decision(&plan) else { panic!("no plan") };
        let mut notes = RepairNotes::new();
        let plan = normalize(plan, &StatsCatalog, &[], &mut notes);
        assert_eq!(plan.steps[0].tool_type, "compute_stats", "{arguments}");
        assert_eq!(Value::Object(plan.steps[0].arguments.clone()), arguments);
        assert!(notes.is_empty(), "{notes:?}");
    }
}

/// Arguments that fit, among them many that look like mistakes.
fn fitting_arguments() -> impl Strategy<Value = Value> {
    let text = || {
        let odd = vec![
            "A1:D1",
            "C11",
            "/path/to/report.xlsx",
            "Sales of sales.xlsx",
            ".",
            "",
            "SUM(B1:B10)",
            "$42",
            "US$5",
            "null",
        ];
        prop_oneof![prop::sample::select(odd).prop_map(str::to_owned), "\\PC{0,12}"]
            .prop_filter("a reference", |text| {
                !text.contains('$') || ["$42", "US$5"].contains(&text.as_str())
            })
    };
    let cell =
        prop_oneof![text().prop_map(Value::from), any::<i64>().prop_map(Value::from), Just(Value::Null)];
    let rows = prop::collection::vec(prop::collection::vec(cell, 0..3), 0..3);
    let optional = |strategy: BoxedStrategy<Value>| prop::option::of(strategy);
    let fields = (
        text(),
        optional(text().prop_map(Value::from).boxed()),
        optional(prop_oneof![text().prop_map(Value::from), Just(Value::Null)].boxed()),
        optional(any::<i64>().prop_map(Value::from).boxed()),
        optional(any::<i16>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)).boxed()),
        optional(any::<bool>().prop_map(Value::from).boxed()),
        optional(rows.prop_map(|rows| json!(rows)).boxed()),
        any::<bool>(),
    );
    fields.prop_map(|(path, start, end, limit, ratio, force, rows, is_reversed)| {
        let optional = [
            ("start_cell", start),
            ("end_cell", end),
            ("limit", limit),
            ("ratio", ratio),
            ("force", force),
            ("rows", rows),
        ];
        let mut arguments = vec![("path".to_owned(), Value::from(path))];
        arguments.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        if is_reversed {
            arguments.reverse();
        }
        Value::Object(arguments.into_iter().collect())
    })
}

proptest! {
    #[test]
    fn arguments_that_fit_arrive_byte_for_byte(arguments in fitting_arguments(), mode in 0..2_usize) {
        let plan = json!({"steps": [{"id": "a", "tool_type": "read_table", "arguments": arguments}]});
        let mode = [ToolCalling::Schema, ToolCalling::Text][mode];
        let context = PlanningContext { question: "Read it".to_owned(), mode, ..PlanningContext::default() };
        let reply = ModelReply { text: plan.to_string(), ..ModelReply::default() };
        let agent = PlanningAgent::new(crate::AgentConfig::new("a"), std::sync::Arc::new(crate::O200k));
        let (decision, notes) = agent.parse_reply(&context, &reply, &TypedCatalog).unwrap();
        let PlannerDecision::Plan(plan) = decision else { panic!("no plan") };
        prop_assert!(notes.is_empty(), "{:?}", notes);
        let schema = TypedCatalog.input_schema("read_table").unwrap().to_value();
        let resolved = resolve_references(&plan.steps[0].arguments, &toolyard_core::params(&schema), &|_| None).unwrap();
        prop_assert_eq!(resolved.arguments.get(), arguments.to_string());
    }
}
