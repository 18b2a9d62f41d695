//! Repairs of plans and the notes about them.

use serde_json::{Map, json};
use toolyard_core::RawJson;

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
        let plan = normalize(plan, &TestCatalog, &["read"], "", &mut notes);
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
fn a_path_into_reasoning_is_removed() {
    let plan = json!({"steps": [
        {"id": "read", "tool": "anything", "arguments": {"at": "A1"}},
        {"id": "german", "tool": "none", "description": "Translate it", "dependencies": ["read"]},
        {"id": "write", "tool": "anything", "arguments": {"at": "$read.cells", "data": [["$german.result[0]"], "$german"]}},
    ]});
    let Some(PlannerDecision::Plan(plan)) = parse_decision(&plan) else { panic!("no plan") };
    let plan = remove_paths_into_reasoning(plan);
    let expected = json!({"at": "$read.cells", "data": [["$german"], "$german"]});
    assert_eq!(Value::Object(plan.steps[2].arguments.clone()), expected);
}

#[test]
fn a_range_is_split_into_its_cells() {
    let plan = json!({"steps": [
        {"id": "read", "tool": "read_data_from_excel", "arguments": {"filepath": "a.xlsx", "start_cell": "A1:D1"}},
        {"id": "write", "tool": "write_data_to_excel", "arguments": {"filepath": "a.xlsx", "start_cell": "A1:D1"}},
    ]});
    let Some(PlannerDecision::Plan(plan)) = parse_decision(&plan) else { panic!("no plan") };
    struct WithEnd;
    impl ToolCatalog for WithEnd {
        fn input_schema(&self, tool: &str) -> Option<RawJson> {
            let read =
                json!({"properties": {"start_cell": {"type": "string"}, "end_cell": {"type": "string"}}});
            let write = json!({"properties": {"start_cell": {"type": "string"}}});
            Some(RawJson::from_value(if tool.starts_with("read") { &read } else { &write }))
        }

        fn nearest(&self, _tool: &str) -> Option<String> {
            None
        }
    }
    let plan = split_ranges(plan, &WithEnd);
    let arguments = |at: usize| Value::Object(plan.steps[at].arguments.clone());
    assert_eq!(arguments(0), json!({"filepath": "a.xlsx", "start_cell": "A1", "end_cell": "D1"}));
    assert_eq!(arguments(1), json!({"filepath": "a.xlsx", "start_cell": "A1"}));
}

#[test]
fn a_folder_that_the_model_invented_is_removed() {
    let plan = json!({"steps": [{"id": "rename", "tool": "anything",
        "arguments": {"source": "/path/to/report.txt", "destination": "/data/final.txt"}}]});
    let Some(PlannerDecision::Plan(plan)) = parse_decision(&plan) else { panic!("no plan") };
    let mut notes = RepairNotes::new();
    let plan = remove_invented_folders(plan, "Rename report.txt to /data/final.txt", &mut notes);
    assert_eq!(
        Value::Object(plan.steps[0].arguments.clone()),
        json!({"source": "report.txt", "destination": "/data/final.txt"})
    );
    assert_eq!(notes["rename"], ["`source`: dropped what stands before the file"]);
}

#[test]
fn a_dropped_equals_sign_is_restored() {
    let is_restored = |text: &str, question: &str| {
        let mut value = json!([[text]]);
        restore_equals_sign(&mut value, question, &mut Vec::new());
        value[0][0].as_str().unwrap() == format!("={text}")
    };
    for question in ["在 A1 写入公式 =C2*D2", "Put =C2*D2 into A1", "put \"=C2*D2\".", "公式=C2*D2。"]
    {
        assert!(is_restored("C2*D2", question), "{question}");
    }
    for question in ["x=C2*D2", "Put C2*D2 and =C2*D2 into A1 and B1", "=C2*D21", "==C2*D2", "C2*D2", ""] {
        assert!(!is_restored("C2*D2", question), "{question}");
    }
    assert!(is_restored("SUM(B1:B10)", "=SUM(B1:B10)") && is_restored("$C$2-1.5", "set =$C$2-1.5"));
    for (text, question) in [
        ("完成", "状态=完成"),
        ("100", "amount>=100"),
        ("done", "status!=done"),
        ("foo-bar", "(name)=foo-bar"),
    ] {
        assert!(!is_restored(text, question), "{question}");
    }
    assert!(!is_restored("A1+1", "where x <=A1+1"));
    assert!(!is_restored("=C2*D2", "Put =C2*D2 into A1"));
    assert!(!is_restored("", "Put = into A1"));
}

/// A catalogue in which every tool has the required parameter `file` and the optional ones `start` and `end`.
struct ReaderCatalog;

impl ToolCatalog for ReaderCatalog {
    fn input_schema(&self, _tool: &str) -> Option<RawJson> {
        Some(RawJson::from_value(&json!({"type": "object", "required": ["file"], "properties": {
            "file": {"type": "string"}, "start": {"type": "string", "default": "A1"},
            "end": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}}})))
    }

    fn nearest(&self, _tool: &str) -> Option<String> {
        None
    }
}

fn without_invented_cells(tool: &str, end: &str, request: &str) -> (Map<String, Value>, RepairNotes) {
    let arguments = json!({"file": "B7", "start": "A2", "end": end, "encoding": "UTF8"});
    let call = json!({"call": {"tool_type": tool, "arguments": arguments}});
    let Some(PlannerDecision::Plan(plan)) = parse_decision(&call) else { panic!("no plan") };
    let mut notes = RepairNotes::new();
    let mut plan = remove_invented_cells(plan, &ReaderCatalog, request, &mut notes);
    (plan.steps.remove(0).arguments, notes)
}

#[test]
fn invented_cells_are_removed() {
    let keeps_end = |end: &str, request: &str| {
        let (arguments, notes) = without_invented_cells("read_sheet", end, request);
        let note = format!("`end`: dropped `{end}`, which is not in your request");
        let expected = if arguments.contains_key("end") { Vec::new() } else { vec![note] };
        assert_eq!(notes.into_values().flatten().collect::<Vec<_>>(), expected, "the approver is informed");
        assert!(
            arguments.contains_key("file") && arguments.contains_key("start"),
            "required, or has a default"
        );
        arguments.contains_key("end")
    };
    assert!(!keeps_end("A100", "Read the sales column"));
    assert!(
        !keeps_end("A10", "Read A1 to A100") && !keeps_end("A1", "XA1"),
        "only a part of another address"
    );
    assert!(keeps_end("A100", "读取A1到a100的数据") && keeps_end("A100", "A1:A100"));
    assert!(
        without_invented_cells("read_sheet", "A100", "").0.contains_key("encoding"),
        "not a cell parameter"
    );
    assert!(
        without_invented_cells("clear_sheet", "B10", "Clear rows 2 to 10 of B").0.contains_key("end"),
        "the tool changes something"
    );
    assert!(
        keeps_end("today", "Read it") && keeps_end("2026-11-16", "tomorrow"),
        "only cell addresses are removed"
    );
}

#[test]
fn a_call_with_its_own_result_is_a_repetition() {
    let write = |id: &str, at: &str, data: Value| json!({"id": id, "tool": "anything", "arguments": {"at": at, "data": data}});
    let remaining_steps = |second: Value| {
        let plan = json!({"steps": [write("write", "A1", json!([["x"]])), second]});
        let Some(PlannerDecision::Plan(plan)) = parse_decision(&plan) else { panic!("no plan") };
        let mut notes = RepairNotes::new();
        let plan = normalize(plan, &TestCatalog, &[], "", &mut notes);
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

#[test]
fn notes_are_few_and_short() {
    let long = format!("SUM({})", "A1+".repeat(100));
    let formulas: Vec<Value> = vec![json!(long); 50];
    let call = json!({"call": {"tool_type": "write", "arguments": {"cells`\n": formulas}}});
    let Some(PlannerDecision::Plan(mut plan)) = parse_decision(&call) else { panic!("no plan") };
    let mut notes = RepairNotes::new();
    restore_equals_signs(&mut plan.steps[0], &format!("={long}"), &mut notes);
    let notes: Vec<String> = notes.into_values().flatten().collect();
    assert_eq!(notes.len(), MAX_NOTES);
    assert!(
        notes.iter().all(|note| note.len() < 120 && note.starts_with("`cells__`: added `=` to `SUM(A1+")),
        "{notes:?}"
    );
}

#[test]
fn an_invented_part_of_a_file_is_removed() {
    struct Head;
    impl ToolCatalog for Head {
        fn input_schema(&self, _tool: &str) -> Option<RawJson> {
            Some(RawJson::from_value(&json!({"required": ["path"], "properties": {
                "path": {"type": "string"}, "head": {"type": "number"}, "start_timestamp": {"type": "string"}}})))
        }

        fn nearest(&self, _tool: &str) -> Option<String> {
            None
        }
    }
    let names = |request: &str| {
        let arguments = json!({"path": "a.txt", "head": 1, "start_timestamp": "now"});
        let call = json!({"call": {"tool_type": "read_file", "arguments": arguments}});
        let Some(PlannerDecision::Plan(plan)) = parse_decision(&call) else { panic!("no plan") };
        let mut plan = remove_invented_cells(plan, &Head, request, &mut RepairNotes::new());
        plan.steps.remove(0).arguments.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(names("What is in a.txt?"), ["path"]);
    assert_eq!(names("Show 1 line of a.txt from now on"), ["path", "head", "start_timestamp"]);
}
