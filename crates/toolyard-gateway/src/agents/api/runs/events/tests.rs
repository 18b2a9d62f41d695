//! Every update has a flat form that is valid under the published schema.

use std::{collections::BTreeSet, path::Path};

use serde_json::{Value, json};
use toolyard_agent::{
    ApprovalDetails, EffectCause, EffectState, Fulfilled, Permission, PlanProblem, RunLimit, RunRequest, Step,
};
use toolyard_core::{ApprovalId, ConversationId, ErrorKind, Resolution, RunState};
use toolyard_model::{ModelReply, Usage};

use super::*;
use crate::agents::{
    api::runs::state::ApiRunState,
    every_end::{every_run_end, every_step_end},
};

fn mapper() -> RunEventMapper {
    RunEventMapper { run: "01J".into(), created_at: Some(1_700_000_000_000) }
}

fn flat(update: RunUpdate) -> Value {
    serde_json::to_value(mapper().event(update).unwrap()).unwrap()
}

fn logged(event: RunEvent) -> RunUpdate {
    RunUpdate::Event { run: "01J".into(), number: 7, event }
}

fn ended(end: RunEnd) -> RunUpdate {
    logged(RunEvent::ended(end))
}

fn step_ended(outcome: StepEnd) -> RunUpdate {
    logged(RunEvent::StepEnded { step: "s".to_owned(), outcome, milliseconds: 12 })
}

fn usage() -> Usage {
    Usage { input: 100, cached: 40, output: 9, cost_micros: 3 }
}

/// The type of an update.
fn expected_type(update: &RunUpdate) -> &'static str {
    match update {
        RunUpdate::ModelRequested { .. } => "model_requested",
        RunUpdate::AnswerDelta { .. } => "answer_delta",
        RunUpdate::AnswerDiscarded => "answer_discarded",
        RunUpdate::ReasoningDelta { .. } => "reasoning_delta",
        RunUpdate::StepProgress { .. } => "step_progress",
        RunUpdate::UsageChanged { .. } => "usage_changed",
        RunUpdate::Event { event, .. } => match event {
            RunEvent::Requested { .. } => "run_created",
            RunEvent::ModelReplied { .. } => "model_replied",
            RunEvent::ModelFailed { .. } => "model_failed",
            RunEvent::Planned { .. } => "planned",
            RunEvent::PlanRejected { .. } => "plan_rejected",
            RunEvent::ToolsSearched { .. } => "tools_searched",
            RunEvent::StepStarted { .. } => "step_started",
            RunEvent::StepEnded { .. } => "step_ended",
            RunEvent::StepRepaired { .. } => "step_repaired",
            RunEvent::RepairFailed { .. } => "repair_failed",
            RunEvent::StepResolved { .. } => "step_resolved",
            RunEvent::Verified { .. } => "step_verified",
            RunEvent::ApprovalRequested { .. } => "approval_requested",
            RunEvent::ApprovalDecided { .. } => "approval_decided",
            RunEvent::Ended { end: RunEnd::Suspended { .. }, .. } => "run_suspended",
            RunEvent::Ended { .. } => "run_ended",
            RunEvent::Resumed { .. } => "run_resumed",
            RunEvent::Answered { .. } => "answered",
            other => panic!("not in the API: {other:?}"),
        },
        other => panic!("not in the API: {other:?}"),
    }
}

fn planned() -> RunUpdate {
    let arguments = json!({"text": "$think"}).as_object().unwrap().clone();
    let step =
        |id: &str, tool: &str| Step { id: id.to_owned(), tool_type: tool.to_owned(), ..Step::default() };
    let write = Step { arguments, dependencies: vec!["think".to_owned()], ..step("write", "write_note") };
    let tool = PlannedTool {
        source: Some("notes".into()),
        read_only: false,
        permission: Permission::Ask,
        reads_private: false,
        open_world: false,
        notes: Vec::new(),
    };
    let plan = Plan { steps: vec![step("think", NO_TOOL), write] };
    logged(RunEvent::Planned { plan, tools: [("write".to_owned(), tool)].into() })
}

fn not_logged() -> Vec<RunUpdate> {
    let text = || "text".to_owned();
    vec![
        RunUpdate::ModelRequested { task: ModelTask::Repair { step: "s".to_owned() } },
        RunUpdate::AnswerDelta { text: text(), tentative: true },
        RunUpdate::AnswerDiscarded,
        RunUpdate::ReasoningDelta { text: text() },
        RunUpdate::StepProgress { step: "s".to_owned(), message: text() },
        RunUpdate::UsageChanged { usage: usage() },
    ]
}

fn with_receipt() -> RunEvent {
    let effect = Effect {
        step: "write".to_owned(),
        tool: "write_note".to_owned(),
        source: Some("notes".to_owned()),
        target: "a.txt".to_owned(),
        state: EffectState::NotDone,
        cause: Some(EffectCause::Denied),
        reason: Some("you".to_owned()),
        called: false,
    };
    let review = Review { fulfilled: Fulfilled::No, missing: vec!["the note".to_owned()] };
    RunEvent::Ended { end: RunEnd::Cancelled, effects: Some(vec![effect]), review: Some(review) }
}

fn step_started(arguments: &str) -> RunUpdate {
    logged(RunEvent::StepStarted {
        step: "s".to_owned(),
        arguments_preview: arguments.to_owned(),
        target: String::new(),
        may_change: false,
        call: "c".to_owned(),
        notes: vec!["n".to_owned()],
    })
}

fn step_events() -> Vec<RunUpdate> {
    let (text, step) = (|| "text".to_owned(), || "s".to_owned());
    let verification =
        Verification { verified: true, confidence: 0.5, issues: vec![text()], reported_error: false };
    let failed = |kind: Option<ErrorKind>| {
        step_ended(StepEnd::Failed { message: text(), hint: kind.is_some().then(text), kind })
    };
    vec![
        step_started(r#"{"path":"a"}"#),
        step_started(r#"{"path":"…"#),
        step_started(""),
        step_ended(StepEnd::Done { source: Some("notes".into()), preview: text(), size: 4, reasoned: true }),
        step_ended(StepEnd::Done { source: None, preview: text(), size: 4, reasoned: false }),
        failed(Some(ErrorKind::ResponseLost)),
        failed(None),
        step_ended(StepEnd::Skipped { because: text() }),
        step_ended(StepEnd::Denied { by: text() }),
        step_ended(StepEnd::Unknown { message: text() }),
        step_ended(StepEnd::Simulated),
        logged(RunEvent::StepRepaired {
            step: step(),
            arguments: json!({"a": [1]}).as_object().unwrap().clone(),
            notes: vec![text()],
        }),
        logged(RunEvent::RepairFailed { step: step(), reason: text() }),
        logged(RunEvent::StepResolved { step: step(), resolution: Resolution::NotDone }),
        logged(RunEvent::Verified { step: step(), verification }),
        logged(RunEvent::ApprovalRequested {
            step: step(),
            approval_id: ApprovalId(4),
            text: text(),
            tool: text(),
            call: text(),
            details: Some(Box::new(ApprovalDetails {
                effects: text(),
                arguments: text(),
                notes: vec![text()],
            })),
        }),
        logged(RunEvent::ApprovalDecided { step: step(), allowed: true, always: true, by: text() }),
    ]
}

fn run_events() -> Vec<RunUpdate> {
    let text = || "text".to_owned();
    let conversation =
        Some(Box::new(ConversationId { owner: "secret".to_owned(), name: "taxes".to_owned() }));
    let request = RunRequest { question: text(), agent: text(), conversation, ..RunRequest::default() };
    let plan_task = ModelTask::Plan { round: 1, repair: true };
    vec![
        logged(RunEvent::Requested { request }),
        logged(RunEvent::ModelReplied {
            task: plan_task.clone(),
            reply: ModelReply { text: text(), usage: usage(), ..ModelReply::default() },
            milliseconds: 3,
            sent: None,
        }),
        logged(RunEvent::ModelFailed {
            task: plan_task,
            message: text(),
            hint: None,
            kind: None,
            usage: usage(),
            sent: None,
        }),
        planned(),
        logged(RunEvent::PlanRejected { problems: vec![PlanProblem::TooLong { steps: 300, limit: 200 }] }),
        logged(RunEvent::ToolsSearched { words: text() }),
        logged(RunEvent::Resumed { owner: text() }),
        logged(RunEvent::Answered {
            end: RunEnd::Answered { answer: text(), sources: Vec::new(), truncated: false },
        }),
        logged(with_receipt()),
        ended(RunEnd::Suspended {
            waiting_for: vec!["12".to_owned(), "step pay".to_owned(), "step 3".to_owned()],
        }),
        ended(RunEnd::Answered { answer: text(), sources: vec![text()], truncated: false }),
        ended(RunEnd::Partial { answer: text(), sources: Vec::new(), unfinished_steps: vec![text()] }),
        ended(RunEnd::Planned),
        ended(RunEnd::Failed { message: text(), hint: Some(text()), model_error: None }),
        ended(RunEnd::Cancelled),
        ended(RunEnd::LimitReached { limit: RunLimit::IdenticalCalls, message: text() }),
    ]
}

/// All values of `type` in the schema.
fn schema_types(schema: &Value) -> BTreeSet<String> {
    let variants = schema["oneOf"].as_array().unwrap();
    let types = variants.iter().map(|variant| variant["properties"]["type"]["const"].as_str().unwrap());
    types.map(str::to_owned).collect()
}

#[test]
fn every_update_is_a_valid_event_and_every_type_occurs() {
    let schema = run_event_schema().to_value();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut types = BTreeSet::new();
    for update in [not_logged(), step_events(), run_events()].concat() {
        let (expected, is_logged) = (expected_type(&update), matches!(update, RunUpdate::Event { .. }));
        let event = flat(update);
        let errors: Vec<String> = validator.iter_errors(&event).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{event}: {errors:?}");
        assert_eq!(event["type"], expected);
        assert_eq!(event.as_object().unwrap().keys().next().unwrap(), "type", "the type comes first");
        assert_eq!((&event["run"], event.get("number").is_some()), (&json!("01J"), is_logged), "{event}");
        assert!(event.as_object().unwrap().values().all(|value| !value.is_null()), "{event}");
        types.insert(expected.to_owned());
    }
    assert_eq!(types, schema_types(&schema));
}

/// What serde says of an unknown event names all that the log knows, so that a new one cannot be left out of the API unnoticed.
#[test]
fn every_logged_event_is_in_the_api() {
    let error = serde_json::from_value::<RunEvent>(json!({"event": "?"})).unwrap_err().to_string();
    let known: BTreeSet<String> = error.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    let updates = [step_events(), run_events()].concat();
    let name = |update: &RunUpdate| match update {
        RunUpdate::Event { event, .. } => {
            Some(serde_json::to_value(event).unwrap()["event"].as_str()?.to_owned())
        }
        _ => None,
    };
    assert_eq!(updates.iter().filter_map(name).collect::<BTreeSet<_>>(), known);
}

/// The wildcards show a new end as unknown, failed or active.
#[test]
fn every_end_is_in_the_api() {
    for end in every_step_end() {
        assert_eq!(flat(step_ended(end.clone()))["state"], json!(end)["end"]);
    }
    for end in every_run_end() {
        let name = json!(end)["state"].clone();
        assert_eq!(json!(ApiRunState::new(RunState::Open, Some(&end))), name);
        match flat(ended(end)) {
            suspended if suspended["type"] == "run_suspended" => assert_eq!(name, "suspended"),
            ended => assert_eq!(ended["state"], name),
        }
    }
}

#[test]
fn the_schema_rejects_what_is_no_event() {
    let schema = run_event_schema().to_value();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let valid = flat(ended(RunEnd::LimitReached { limit: RunLimit::Time, message: "m".to_owned() }));
    assert!(validator.is_valid(&valid));
    for (field, value) in [
        ("type", json!("ended")),
        ("state", json!("suspended")),
        ("message", json!(7)),
        ("run", json!(null)),
        ("number", json!("1")),
    ] {
        let mut changed = valid.clone();
        changed[field] = value;
        assert!(!validator.is_valid(&changed), "{changed}");
    }
    let mut newer = valid;
    newer["added_later"] = json!(true);
    assert!(validator.is_valid(&newer), "fields may be added within version 1");
}

#[test]
fn events_are_flat() {
    let created = flat(run_events().remove(0));
    let expected = json!({
        "type": "run_created", "agent": "text", "question": "text", "conversation": "taxes", "created_at": 1_700_000_000_000_i64,
        "run": "01J", "number": 7,
    });
    assert_eq!(created, expected, "the owner of a conversation is not shown");
    let replied = RunEvent::ModelReplied {
        task: ModelTask::Reason { step: "s".to_owned() },
        reply: ModelReply { usage: usage(), ..ModelReply::default() },
        milliseconds: 3,
        sent: Some(Box::new(json!({"messages": []}))),
    };
    let expected = json!({
        "type": "model_replied", "task": "reason", "step": "s", "duration_ms": 3, "input_tokens": 100, "cached_tokens": 40,
        "output_tokens": 9, "cost_micros": 3, "run": "01J", "number": 7,
    });
    assert_eq!(flat(logged(replied)), expected);
    let expected = json!({
        "type": "planned",
        "steps": [
            {"id": "think", "description": "", "arguments": {}, "depends_on": []},
            {"id": "write", "description": "", "tool": "write_note", "source": "notes", "arguments": {"text": "$think"},
             "depends_on": ["think"], "permission": "ask"},
        ],
        "run": "01J", "number": 7,
    });
    assert_eq!(flat(planned()), expected);
    for (recorded, name, shown) in [
        (r#"{"path":"a"}"#, "arguments", json!({"path": "a"})),
        (r#"{"path":"…"#, "arguments_text", json!(r#"{"path":"…"#)),
    ] {
        let expected = json!({"type": "step_started", "step": "s", name: shown, "notes": ["n"], "run": "01J", "number": 7});
        assert_eq!(flat(step_started(recorded)), expected);
    }
    let failed = StepEnd::Failed { message: "m".to_owned(), hint: None, kind: Some(ErrorKind::Timeout) };
    let expected = json!({
        "type": "step_ended", "step": "s", "duration_ms": 12, "state": "failed", "message": "m", "error_kind": "timeout",
        "run": "01J", "number": 7,
    });
    assert_eq!(flat(step_ended(failed)), expected);
    let done = StepEnd::Done { source: None, preview: "42".to_owned(), size: 2, reasoned: false };
    let expected = json!({
        "type": "step_ended", "step": "s", "duration_ms": 12, "state": "done", "output": "42", "size": 2, "run": "01J", "number": 7,
    });
    assert_eq!(flat(step_ended(done)), expected);
    let resolved = RunEvent::StepResolved { step: "s".to_owned(), resolution: Resolution::NotDone };
    let expected =
        json!({"type": "step_resolved", "step": "s", "outcome": "not_done", "run": "01J", "number": 7});
    assert_eq!(flat(logged(resolved)), expected);
    let (step, by) = ("s".to_owned(), "you".to_owned());
    let decided = RunEvent::ApprovalDecided { step, allowed: true, always: true, by };
    let expected = json!({
        "type": "approval_decided", "step": "s", "allow": true, "scope": "run", "by": "you", "run": "01J", "number": 7,
    });
    assert_eq!(flat(logged(decided)), expected);
    let waiting_for = vec!["12".to_owned(), "step pay".to_owned(), "step 3".to_owned()];
    let expected = json!({
        "type": "run_suspended", "approvals": [12], "unknown_steps": ["pay", "3"], "run": "01J", "number": 7,
    });
    assert_eq!(flat(ended(RunEnd::Suspended { waiting_for })), expected);
}

#[test]
fn the_schema_file_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/run-events.schema.json");
    let generated = format!("{}\n", serde_json::to_string_pretty(&run_event_schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == generated, "docs/reference/run-events.schema.json is out of date: run `just schema`");
}
