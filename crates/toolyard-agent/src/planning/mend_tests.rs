//! What is mended in plans, and what is said about it.

use serde_json::json;
use toolyard_core::RawJson;

use super::*;
use crate::{
    plan_check::tests::Tools,
    planning::{
        read::{Said, said},
        tidy::tidied,
    },
};

#[test]
fn a_call_that_is_only_repeated_is_made_once() {
    let step = |id: &str, at: &str, needs: &[&str]| json!({"id": id, "tool": "anything", "arguments": {"at": at}, "dependencies": needs});
    let plan = json!({"steps": [
        step("write", "A1", &["read"]), step("again", "A1", &["write"]), step("next", "A2", &["again"]), step("last", "$next.x", &[]),
        step("same", "A1", &[]), step("user", "$same.x", &[]),
    ]});
    let Some(Said::Plan(plan)) = said(&plan) else { panic!("no plan") };
    let mut notes = PlanNotes::new();
    let plan = {
        let plan = tidied(plan, &Tools, &["read"], "", &mut notes);
        without_repeats(plan, &["read"], &mut notes)
    };
    assert_eq!(notes["write"], ["`again`, which repeats this call, was left out"]);
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
        with_equals_sign(&mut value, question, &mut Vec::new());
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

fn cells_of(tool: &str, end: &str, words: &str) -> (Map<String, Value>, PlanNotes) {
    let arguments = json!({"file": "B7", "start": "A2", "end": end, "encoding": "UTF8"});
    let call = json!({"call": {"tool_type": tool, "arguments": arguments}});
    let Some(Said::Plan(plan)) = said(&call) else { panic!("no plan") };
    let mut notes = PlanNotes::new();
    let mut plan = without_made_up_cells(plan, &Reader, words, &mut notes);
    (plan.steps.remove(0).arguments, notes)
}

#[test]
fn cells_that_nobody_spoke_of_are_made_up() {
    let left = |end: &str, words: &str| {
        let (left, notes) = cells_of("read_sheet", end, words);
        let told = format!("`end`: `{end}` was left out, nobody spoke of it");
        let told = if left.contains_key("end") { Vec::new() } else { vec![told] };
        assert_eq!(notes.into_values().flatten().collect::<Vec<_>>(), told, "whoever decides is told");
        assert!(left.contains_key("file") && left.contains_key("start"), "needed, or another cell instead");
        left.contains_key("end")
    };
    assert!(!left("A100", "Read the sales column"));
    assert!(!left("A10", "Read A1 to A100") && !left("A1", "XA1"), "another cell");
    assert!(left("A100", "读取A1到a100的数据") && left("A100", "A1:A100"));
    assert!(cells_of("read_sheet", "A100", "").0.contains_key("encoding"), "no place");
    assert!(
        cells_of("clear_sheet", "B10", "Clear rows 2 to 10 of B").0.contains_key("end"),
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
        let mut notes = PlanNotes::new();
        let plan = tidied(plan, &Tools, &[], "", &mut notes);
        without_repeats(plan, &[], &mut notes).steps.len()
    };
    assert_eq!(kept(write("save", "A1", json!([["$write.result"]]))), 1);
    assert_eq!(kept(write("save", "A2", json!([["$write.result"]]))), 2, "elsewhere");
    assert_eq!(kept(write("save", "A1", json!([["$write.result", 1]]))), 2, "something else with it");
    assert_eq!(kept(json!({"id": "b", "tool": "other", "arguments": {"at": "A1", "data": "$write"}})), 2);
}

#[test]
fn notes_are_few_and_short() {
    let long = format!("SUM({})", "A1+".repeat(100));
    let formulas: Vec<Value> = vec![json!(long); 50];
    let call = json!({"call": {"tool_type": "write", "arguments": {"cells`\n": formulas}}});
    let Some(Said::Plan(mut plan)) = said(&call) else { panic!("no plan") };
    let mut notes = PlanNotes::new();
    with_equals_signs(&mut plan.steps[0], &format!("={long}"), &mut notes);
    let notes: Vec<String> = notes.into_values().flatten().collect();
    assert_eq!(notes.len(), MOST_NOTES);
    assert!(
        notes.iter().all(|note| note.len() < 120 && note.starts_with("`cells__`: `SUM(A1+")),
        "{notes:?}"
    );
}
