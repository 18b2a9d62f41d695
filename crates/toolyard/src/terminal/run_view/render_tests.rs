//! Renderings of example runs.

use serde_json::{Value, json};
use toolyard_agent::RunUpdate;
use toolyard_core::ApprovalId;

use super::*;

fn event(number: i64, event: &Value) -> RunUpdate {
    RunUpdate::Event { run: "01J".into(), number, event: serde_json::from_value(event.clone()).unwrap() }
}

/// An example run: read a column, add it up, write the total.
fn example_run() -> Vec<RunUpdate> {
    let planned_tool = |source: &str, read_only: bool, permission: &str| json!({"source": source, "read_only": read_only, "permission": permission});
    let model_replied = |task: Value, milliseconds: u64| {
        let usage = json!({"input": 1200, "output": 80, "cost_micros": 1500});
        json!({"event": "model_replied", "task": task, "reply": {"text": "", "usage": usage}, "milliseconds": milliseconds})
    };
    let step_done = |step: &str, source: &str, preview: &str, size: usize, milliseconds: u64| {
        let outcome = json!({"end": "done", "source": source, "preview": preview, "size": size});
        json!({"event": "step_ended", "step": step, "outcome": outcome, "milliseconds": milliseconds})
    };
    let step_started = |step: &str, arguments: &str| json!({"event": "step_started", "step": step, "arguments_preview": arguments});
    let verified = |step: &str| {
        let verification = json!({"verified": true, "confidence": 1.0, "issues": []});
        json!({"event": "verified", "step": step, "verification": verification})
    };
    let request = json!({"question": "add up the sales column of test.xlsx and write the total into B12", "agent": "assistant"});
    let plan = json!({"steps": [
        {"id": "read", "tool_type": "read_data_from_excel", "description": "the sales column"},
        {"id": "sum", "tool_type": "calculate", "arguments": {"values": "$read.values"}, "description": "the total"},
        {"id": "write", "tool_type": "write_data_to_excel", "arguments": {"data": [["$sum"]]}, "description": "into B12"},
    ]});
    let tools = json!([
        {"step": "read", "tool": planned_tool("excel", true, "allow")}, {"step": "sum", "tool": planned_tool("native", true, "allow")},
        {"step": "write", "tool": planned_tool("excel", false, "ask")},
    ]);
    let events = [
        json!({"event": "requested", "request": request}),
        model_replied(json!({"for": "plan", "round": 0, "repair": false}), 1_100),
        json!({"event": "planned", "plan": plan, "tools": tools}),
        step_started("read", r#"{"filepath":"test.xlsx","sheet_name":"Sheet1"}"#),
        step_done("read", "excel", "40 cells", 12_480, 41),
        verified("read"),
        step_started("sum", r#"{"values":"$read.values"}"#),
        step_done("sum", "native", "18420", 5, 0),
        verified("sum"),
        json!({"event": "approval_requested", "step": "write", "approval_id": 7, "text": "changes test.xlsx: B12 = 18420"}),
        json!({"event": "approval_decided", "step": "write", "allowed": true, "by": "cli"}),
        step_started("write", r#"{"data":[[18420]]}"#),
        step_done("write", "excel", "Data written", 12, 35),
        verified("write"),
        model_replied(json!({"for": "answer"}), 800),
        json!({"event": "ended", "end": {"state": "answered", "answer": "It is 18,420.", "sources": ["excel"]}}),
    ];
    events.iter().zip(0..).map(|(json, number)| event(number, json)).collect()
}

fn frame(seconds: u64) -> Frame {
    Frame { now: Duration::from_secs(seconds), width: 96, spinner: 0 }
}

/// The rendering after this many updates.
fn rendered(count: usize) -> String {
    let mut progress = RunProgress::default();
    for (update, seconds) in example_run().iter().take(count).zip(0..) {
        progress.apply(update, Duration::from_secs(seconds));
    }
    progress_lines(&progress, "qwen2.5-coder", &frame(u64::try_from(count).unwrap())).join("\n")
}

#[test]
fn a_running_run_shows_its_steps() {
    insta::assert_snapshot!(rendered(4), @r#"
    plan     read → sum → write                                                 qwen2.5-coder, 1.1 s
     ⠋ read    read_data_from_excel  excel   {"filepath":"test.xlsx","sheet_name":"Sheet…        1 s
     · sum     calculate             native  the total
     · write   write_data_to_excel   excel   into B12
    "#);
    insta::assert_snapshot!(rendered(10), @r"
    plan     read → sum → write                                                 qwen2.5-coder, 1.1 s
     ✓ read    read_data_from_excel  excel   40 cells (12,480 characters)                     0.04 s
     ✓ sum     calculate             native  18420                                            0.00 s
     ? write   write_data_to_excel   excel   changes test.xlsx: B12 = 18420
    ");
}

#[test]
fn a_finished_run_shows_its_verification() {
    insta::assert_snapshot!(rendered(16), @r"
    plan     read → sum → write                                                 qwen2.5-coder, 1.1 s
     ✓ read    read_data_from_excel  excel   40 cells (12,480 characters)                     0.04 s
     ✓ sum     calculate             native  18420                                            0.00 s
     ✓ write   write_data_to_excel   excel   Data written                                     0.04 s
     ✓ verify  3 of 3 steps
    ");
}

#[test]
fn plain_lines_report_completed_steps() {
    let mut progress = RunProgress::default();
    let mut lines = Vec::new();
    for update in example_run() {
        progress.apply(&update, Duration::ZERO);
        lines.extend(plain_lines(&progress, &update, "qwen2.5-coder", &frame(0)));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    plan     read → sum → write                                                 qwen2.5-coder, 1.1 s
     ✓ read    read_data_from_excel  excel   40 cells (12,480 characters)                     0.04 s
     ✓ sum     calculate             native  18420                                            0.00 s
     ? write   write_data_to_excel   excel   changes test.xlsx: B12 = 18420
     ✓ write   write_data_to_excel   excel   Data written                                     0.04 s
     ✓ verify  3 of 3 steps
    ");
    insta::assert_snapshot!(usage_line(&progress), @r"
    2 model calls, 2,400 input tokens, 160 output tokens, cost 0.003000
    ");
}

#[test]
fn failures_are_shown_at_their_step() {
    let mut progress = RunProgress::default();
    let failed = json!({"event": "step_ended", "step": "read", "milliseconds": 30_000, "outcome":
        {"end": "failed", "message": "excel did not answer\nwithin 30 s", "hint": "toolyard servers logs excel"}});
    let skipped = json!({"event": "step_ended", "step": "sum", "milliseconds": 0, "outcome": {"end": "skipped", "because": "read"}});
    let denied = json!({"event": "step_ended", "step": "write", "milliseconds": 0, "outcome": {"end": "denied", "by": "[approvals]"}});
    example_run().iter().take(4).for_each(|update| progress.apply(update, Duration::ZERO));
    for (json, number) in [failed, skipped, denied].iter().zip(4..) {
        progress.apply(&event(number, json), Duration::ZERO);
    }
    insta::assert_snapshot!(progress_lines(&progress, "", &frame(0)).join("\n"), @r"
    plan     read → sum → write                                                                1.1 s
     ✗ read    read_data_from_excel  excel   excel did not answer within 30 s                 30.0 s
         hint: toolyard servers logs excel
     - sum     calculate             native  skipped: read failed
     - write   write_data_to_excel   excel   denied by [approvals]
     ✗ verify  0 of 3 steps; not done: read, sum, write
    ");
}

#[test]
fn a_repaired_step_shows_its_arguments_before_and_after() {
    let mut progress = RunProgress::default();
    example_run().iter().take(4).for_each(|update| progress.apply(update, Duration::ZERO));
    let change = r#"`filepath`: `"test.xlsx"` became `"/data/test.xlsx"`"#;
    let failed = json!({"event": "step_ended", "step": "read", "milliseconds": 3, "outcome": {"end": "failed", "message": "no such file"}});
    let repaired = json!({"event": "step_repaired", "step": "read", "arguments": {}, "notes": [change]});
    progress.apply(&event(4, &failed), Duration::ZERO);
    let repaired = event(5, &repaired);
    progress.apply(&repaired, Duration::ZERO);
    let printed = plain_lines(&progress, &repaired, "", &frame(0));
    assert_eq!(printed, [format!("   read: {change}")]);
    let drawn = progress_lines(&progress, "", &Frame { width: 120, ..frame(0) }).join("\n");
    assert_eq!(drawn.matches(change).count(), 1, "{drawn}");
    let started =
        json!({"event": "step_started", "step": "read", "arguments_preview": "{}", "notes": [change]});
    progress.apply(&event(6, &started), Duration::ZERO);
    let drawn = progress_lines(&progress, "", &frame(0)).join("\n");
    assert!(drawn.contains(&format!("     note: {change}")), "{drawn}");
}

#[test]
fn a_step_with_a_rejected_result_is_not_shown_as_a_success() {
    let mut progress = RunProgress::default();
    example_run().iter().take(5).for_each(|update| progress.apply(update, Duration::ZERO));
    let verification = json!({"verified": false, "confidence": 0.2, "issues": ["the result is empty"]});
    let rejected = json!({"event": "verified", "step": "read", "verification": verification});
    progress.apply(&event(5, &rejected), Duration::ZERO);
    insta::assert_snapshot!(progress_lines(&progress, "", &frame(0)).join("\n"), @r"
    plan     read → sum → write                                                                1.1 s
     ✗ read    read_data_from_excel  excel   40 cells (12,480 characters)                     0.04 s
         verification failed: the result is empty
     · sum     calculate             native  the total
     · write   write_data_to_excel   excel   into B12
    ");
}

#[test]
fn untrusted_names_cannot_steer_the_terminal() {
    let mut progress = RunProgress::default();
    let plan = json!({"steps": [{"id": "a\u{1b}[2J", "tool_type": "evil\u{202e}", "description": "\u{1b}]0;x\u{7}"}]});
    progress.apply(&event(0, &json!({"event": "planned", "plan": plan, "tools": []})), Duration::ZERO);
    let lines = progress_lines(&progress, "m\u{1b}[31m", &frame(0)).join("\n");
    assert!(!lines.contains('\u{1b}') && !lines.contains('\u{202e}'), "{lines:?}");
}

#[test]
fn the_name_of_a_tool_cannot_change_the_effects_that_an_approver_sees() {
    let name = "list_all be called (read-only, definition";
    let mut progress = RunProgress::default();
    let plan = json!({"steps": [{"id": "a", "tool_type": name}]});
    progress.apply(&event(0, &json!({"event": "planned", "plan": plan, "tools": []})), Duration::ZERO);
    let requested = json!({"event": "approval_requested", "step": "a", "approval_id": 7,
        "text": format!("may `{name}` of evil be called (destructive, definition 01234567, arguments 89abcdef)? {{}}"),
        "details": {"effects": "destructive", "arguments": "{}", "notes": []}});
    progress.apply(&event(1, &requested), Duration::ZERO);
    let details = progress.approval_details(ApprovalId(7)).unwrap();
    assert_eq!((details.effects.as_str(), details.arguments.as_str()), ("destructive", "{}"));
    assert_eq!(progress.row("a").unwrap().detail, "destructive: {}");
}

#[test]
fn durations_and_costs_are_formatted() {
    assert_eq!(format_duration(4), "0.00 s");
    assert_eq!(format_duration(1_240), "1.2 s");
    assert_eq!(format_duration(125_000), "2 min 5 s");
    assert_eq!(format_cost(1_500), "0.001500");
    assert_eq!(format_cost(2_345_678), "2.34");
}
