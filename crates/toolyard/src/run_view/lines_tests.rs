//! Runs as people see them.

use serde_json::{Value, json};
use toolyard_agent::RunNews;

use super::*;

fn event(number: i64, event: &Value) -> RunNews {
    RunNews::Event { run: "01J".into(), number, event: serde_json::from_value(event.clone()).unwrap() }
}

/// The task of the sketch: read a column, add it up, write the total.
fn story() -> Vec<RunNews> {
    let facts = |source: &str, read_only: bool, permission: &str| json!({"source": source, "read_only": read_only, "permission": permission});
    let answered = |task: Value, milliseconds: u64| {
        let usage = json!({"input": 1200, "output": 80, "cost_micros": 1500});
        json!({"event": "model_answered", "task": task, "reply": {"text": "", "usage": usage}, "milliseconds": milliseconds})
    };
    let done = |step: &str, source: &str, preview: &str, size: usize, milliseconds: u64| {
        let outcome = json!({"end": "done", "source": source, "preview": preview, "size": size});
        json!({"event": "step_ended", "step": step, "outcome": outcome, "milliseconds": milliseconds})
    };
    let started = |step: &str, arguments: &str| json!({"event": "step_started", "step": step, "shown_arguments": arguments});
    let fine = |step: &str| {
        let verification = json!({"verified": true, "confidence": 1.0, "issues": []});
        json!({"event": "verified", "step": step, "verification": verification})
    };
    let ask = json!({"question": "add up the sales column of test.xlsx and write the total into B12", "agent": "assistant"});
    let plan = json!({"steps": [
        {"id": "read", "tool_type": "read_data_from_excel", "description": "the sales column"},
        {"id": "sum", "tool_type": "calculate", "arguments": {"values": "$read.values"}, "description": "the total"},
        {"id": "write", "tool_type": "write_data_to_excel", "arguments": {"data": [["$sum"]]}, "description": "into B12"},
    ]});
    let known = json!([
        {"step": "read", "facts": facts("excel", true, "allow")}, {"step": "sum", "facts": facts("native", true, "allow")},
        {"step": "write", "facts": facts("excel", false, "ask")},
    ]);
    let events = [
        json!({"event": "asked", "ask": ask}),
        answered(json!({"for": "plan", "round": 0, "repair": false}), 1_100),
        json!({"event": "planned", "plan": plan, "facts": known}),
        started("read", r#"{"filepath":"test.xlsx","sheet_name":"Sheet1"}"#),
        done("read", "excel", "40 cells", 12_480, 41),
        fine("read"),
        started("sum", r#"{"values":"$read.values"}"#),
        done("sum", "native", "18420", 5, 0),
        fine("sum"),
        json!({"event": "approval_asked", "step": "write", "question": 7, "text": "changes test.xlsx: B12 = 18420"}),
        json!({"event": "approval_given", "step": "write", "allowed": true, "by": "cli"}),
        started("write", r#"{"data":[[18420]]}"#),
        done("write", "excel", "Data written", 12, 35),
        fine("write"),
        answered(json!({"for": "answer"}), 800),
        json!({"event": "ended", "end": {"state": "answered", "answer": "It is 18,420.", "sources": ["excel"]}}),
    ];
    events.iter().zip(0..).map(|(one, number)| event(number, one)).collect()
}

fn moment(seconds: u64) -> Moment {
    Moment { now: Duration::from_secs(seconds), width: 96, turn: 0 }
}

/// The tree after so many news.
fn drawn(count: usize) -> String {
    let mut tree = RunTree::default();
    for (news, seconds) in story().iter().take(count).zip(0..) {
        tree.see(news, Duration::from_secs(seconds));
    }
    tree_lines(&tree, "qwen2.5-coder", &moment(u64::try_from(count).unwrap())).join("\n")
}

#[test]
fn a_tree_while_it_goes_on() {
    insta::assert_snapshot!(drawn(4), @r#"
    plan     read → sum → write                                                 qwen2.5-coder, 1.1 s
     ⠋ read    read_data_from_excel  excel   {"filepath":"test.xlsx","sheet_name":"Sheet…        1 s
     · sum     calculate             native  the total
     · write   write_data_to_excel   excel   into B12
    "#);
    insta::assert_snapshot!(drawn(10), @r"
    plan     read → sum → write                                                 qwen2.5-coder, 1.1 s
     ✓ read    read_data_from_excel  excel   40 cells (12,480 characters)                     0.04 s
     ✓ sum     calculate             native  18420                                            0.00 s
     ? write   write_data_to_excel   excel   changes test.xlsx: B12 = 18420
    ");
}

#[test]
fn a_tree_at_its_end() {
    insta::assert_snapshot!(drawn(16), @r"
    plan     read → sum → write                                                 qwen2.5-coder, 1.1 s
     ✓ read    read_data_from_excel  excel   40 cells (12,480 characters)                     0.04 s
     ✓ sum     calculate             native  18420                                            0.00 s
     ✓ write   write_data_to_excel   excel   Data written                                     0.04 s
     ✓ verify  3 of 3 results
    ");
}

#[test]
fn plain_lines_tell_what_is_over() {
    let mut tree = RunTree::default();
    let mut said = Vec::new();
    for news in story() {
        tree.see(&news, Duration::ZERO);
        said.extend(plain_lines(&tree, &news, "qwen2.5-coder", &moment(0)));
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    plan     read → sum → write                                                 qwen2.5-coder, 1.1 s
     ✓ read    read_data_from_excel  excel   40 cells (12,480 characters)                     0.04 s
     ✓ sum     calculate             native  18420                                            0.00 s
     ? write   write_data_to_excel   excel   changes test.xlsx: B12 = 18420
     ✓ write   write_data_to_excel   excel   Data written                                     0.04 s
     ✓ verify  3 of 3 results
    ");
    insta::assert_snapshot!(spent_line(&tree), @r"
    model asked 2 times, tokens 2,400 read and 160 written, cost 0.003000
    ");
}

#[test]
fn what_goes_wrong_is_shown_where_it_went_wrong() {
    let mut tree = RunTree::default();
    let failed = json!({"event": "step_ended", "step": "read", "milliseconds": 30_000, "outcome":
        {"end": "failed", "message": "excel did not answer\nwithin 30 s", "hint": "toolyard servers logs excel"}});
    let skipped = json!({"event": "step_ended", "step": "sum", "milliseconds": 0, "outcome": {"end": "skipped", "because": "read"}});
    let denied = json!({"event": "step_ended", "step": "write", "milliseconds": 0, "outcome": {"end": "denied", "by": "[approvals]"}});
    story().iter().take(4).for_each(|news| tree.see(news, Duration::ZERO));
    for (one, number) in [failed, skipped, denied].iter().zip(4..) {
        tree.see(&event(number, one), Duration::ZERO);
    }
    insta::assert_snapshot!(tree_lines(&tree, "", &moment(0)).join("\n"), @r"
    plan     read → sum → write                                                                1.1 s
     ✗ read    read_data_from_excel  excel   excel did not answer within 30 s                 30.0 s
         hint: toolyard servers logs excel
     - sum     calculate             native  not begun, because read failed
     - write   write_data_to_excel   excel   denied by [approvals]
    ");
}

#[test]
fn names_of_others_cannot_steer_the_terminal() {
    let mut tree = RunTree::default();
    let plan = json!({"steps": [{"id": "a\u{1b}[2J", "tool_type": "evil\u{202e}", "description": "\u{1b}]0;x\u{7}"}]});
    tree.see(&event(0, &json!({"event": "planned", "plan": plan, "facts": []})), Duration::ZERO);
    let lines = tree_lines(&tree, "m\u{1b}[31m", &moment(0)).join("\n");
    assert!(!lines.contains('\u{1b}') && !lines.contains('\u{202e}'), "{lines:?}");
}

#[test]
fn times_and_money_are_written_as_people_do() {
    assert_eq!(time(4), "0.00 s");
    assert_eq!(time(1_240), "1.2 s");
    assert_eq!(time(125_000), "2 min 5 s");
    assert_eq!(money(1_500), "0.001500");
    assert_eq!(money(2_345_678), "2.34");
}
