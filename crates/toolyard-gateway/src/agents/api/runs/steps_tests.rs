//! Steps of a run after each of its events.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;
use toolyard_agent::{Permission, RunUpdate};
use toolyard_core::ApprovalId;

use super::*;
use crate::agents::{every_end::every_step_end, run_text::progress_line};

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn planned(steps: &[(&str, &str, Value, &[&str])]) -> RunEvent {
    let step = |(id, tool, arguments, dependencies): &(&str, &str, Value, &[&str])| Step {
        id: (*id).to_owned(),
        tool_type: (*tool).to_owned(),
        arguments: object(arguments),
        dependencies: dependencies.iter().map(|id| (*id).to_owned()).collect(),
        description: format!("does {id}"),
    };
    let tool = |read_only| PlannedTool {
        source: Some("files".into()),
        read_only,
        permission: Permission::Ask,
        reads_private: false,
        open_world: false,
        notes: Vec::new(),
    };
    let tools = steps.iter().map(|(id, name, ..)| ((*id).to_owned(), tool(name.starts_with("read"))));
    RunEvent::Planned {
        plan: Plan { steps: steps.iter().map(step).collect() },
        tools: tools.collect::<BTreeMap<_, _>>(),
    }
}

fn started(step: &str, arguments: &str) -> RunEvent {
    RunEvent::StepStarted {
        step: step.to_owned(),
        arguments_preview: arguments.to_owned(),
        target: String::new(),
        may_change: false,
        call: "c".to_owned(),
        notes: vec!["a note".to_owned()],
    }
}

fn ended(step: &str, outcome: StepEnd) -> RunEvent {
    RunEvent::StepEnded { step: step.to_owned(), outcome, milliseconds: 40 }
}

fn done(preview: &str) -> StepEnd {
    StepEnd::Done { source: Some("other".into()), preview: preview.to_owned(), size: 1, reasoned: false }
}

fn failed(message: &str) -> StepEnd {
    StepEnd::Failed { message: message.to_owned(), hint: None, kind: None }
}

fn approval_requested(step: &str) -> RunEvent {
    RunEvent::ApprovalRequested {
        step: step.to_owned(),
        approval_id: ApprovalId(1),
        text: String::new(),
        tool: String::new(),
        call: String::new(),
        details: None,
    }
}

fn approval_decided(step: &str, allowed: bool) -> RunEvent {
    RunEvent::ApprovalDecided { step: step.to_owned(), allowed, always: false, by: "cli".to_owned() }
}

fn steps_after(events: &[RunEvent]) -> Vec<RunStep> {
    run_steps(events.iter().enumerate().map(|(number, event)| (1_000 + number as i64, event)))
}

fn states(events: &[RunEvent]) -> Vec<(String, ApiStepState)> {
    steps_after(events).into_iter().map(|step| (step.id, step.state)).collect()
}

#[test]
fn a_step_goes_from_waiting_to_done() {
    let mut events = vec![planned(&[
        ("read", "read_file", json!({"path": "a"}), &[]),
        ("write", "write_file", json!({"text": "$read"}), &["read"]),
    ])];
    let mut seen = vec![];
    for event in [
        started("read", r#"{"path":"a"}"#),
        ended("read", done("text")),
        approval_requested("write"),
        approval_decided("write", true),
        started("write", r#"{"text":"text"}"#),
        ended("write", StepEnd::Unknown { message: "lost".to_owned() }),
        RunEvent::StepResolved { step: "write".to_owned(), resolution: Resolution::Done },
        ended("write", done("ok")),
    ] {
        events.push(event);
        seen.push(steps_after(&events).iter().map(|step| step.state).collect::<Vec<_>>());
    }
    use ApiStepState as S;
    let expected = [
        [S::Running, S::Waiting],
        [S::Done, S::Waiting],
        [S::Done, S::NeedsApproval],
        [S::Done, S::Waiting],
        [S::Done, S::Running],
        [S::Done, S::Unknown],
        [S::Done, S::Running],
        [S::Done, S::Done],
    ];
    assert_eq!(seen, expected);
    let steps = steps_after(&events);
    let read = &steps[0];
    assert_eq!((read.started_at, read.duration_ms), (Some(1_001), Some(40)));
    assert_eq!((read.source.as_deref(), read.output.as_deref()), (Some("other"), Some("text")));
    assert_eq!(steps[1].depends_on, ["read"]);
    assert_eq!(steps[1].notes, ["a note"]);
    assert_eq!(steps[1].attempts.len(), 1, "{:?}", steps[1]);
}

#[test]
fn a_repaired_step_has_both_attempts() {
    let events = [
        planned(&[("read", "read_file", json!({"path": "a"}), &[])]),
        started("read", r#"{"path":"a"}"#),
        ended("read", failed("no such file")),
        RunEvent::StepRepaired {
            step: "read".to_owned(),
            arguments: object(&json!({"path": "b"})),
            notes: vec!["`path`: `\"a\"` became `\"b\"`".to_owned()],
        },
    ];
    let repaired = &steps_after(&events)[0];
    assert_eq!((repaired.state, repaired.error.as_deref()), (ApiStepState::Waiting, None));
    assert_eq!(repaired.arguments, Some(object(&json!({"path": "b"}))));
    assert_eq!(repaired.notes, ["`path`: `\"a\"` became `\"b\"`"]);
    let all = [&events[..], &[started("read", r#"{"path":"b"}"#), ended("read", done("text"))]].concat();
    let step = &steps_after(&all)[0];
    let attempts: Vec<_> =
        step.attempts.iter().map(|attempt| json!([attempt.arguments, attempt.error])).collect();
    assert_eq!(attempts, [json!([{"path": "a"}, "no such file"]), json!([{"path": "b"}, null])]);
    assert_eq!((step.state, step.started_at), (ApiStepState::Done, Some(1_004)));
}

#[test]
fn a_new_plan_keeps_results_and_replaces_the_rest() {
    let arguments = json!({"path": "a"});
    let events = [
        planned(&[
            ("read", "read_file", arguments.clone(), &[]),
            ("write", "write_file", json!({}), &["read"]),
            ("send", "send_mail", json!({}), &["write"]),
        ]),
        started("read", "{}"),
        ended("read", done("text")),
        started("write", "{}"),
        ended("write", failed("disk full")),
        planned(&[
            ("read", "read_file", arguments, &[]),
            ("write", "write_file", json!({"disk": 2}), &["read"]),
        ]),
    ];
    let steps = steps_after(&events);
    use ApiStepState as S;
    assert_eq!(steps.iter().map(|step| step.state).collect::<Vec<_>>(), [S::Done, S::Waiting, S::Skipped]);
    assert_eq!(steps[1].attempts[0].error.as_deref(), Some("disk full"), "the failed attempt stays visible");
    assert_eq!(steps[2].notes, ["a new plan replaced it"]);
}

#[test]
fn the_end_of_a_run_leaves_no_step_waiting() {
    let plan = || {
        planned(&[
            ("read", "read_file", json!({}), &[]),
            ("write", "write_file", json!({}), &[]),
            ("later", "write_file", json!({}), &["write"]),
        ])
    };
    let events = [plan(), started("read", "{}"), started("write", "{}"), RunEvent::ended(RunEnd::Cancelled)];
    use ApiStepState as S;
    let found: Vec<_> = states(&events).into_iter().map(|(_, state)| state).collect();
    assert_eq!(found, [S::Failed, S::Unknown, S::Skipped], "an unfinished change may have taken effect");
    let only_planned = states(&[plan(), RunEvent::ended(RunEnd::Planned)]);
    assert!(only_planned.iter().all(|(_, state)| *state == S::Waiting), "{only_planned:?}");
}

#[test]
fn a_result_that_reports_an_error_failed() {
    let verification = Verification {
        verified: false,
        confidence: 0.9,
        issues: vec!["the output reports an error".to_owned()],
        reported_error: true,
    };
    let events = [
        planned(&[("read", "read_file", json!({}), &[])]),
        started("read", "{}"),
        ended("read", done("Error: no")),
        RunEvent::Verified { step: "read".to_owned(), verification },
    ];
    let step = &steps_after(&events)[0];
    assert_eq!(
        (step.state, step.error.as_deref()),
        (ApiStepState::Failed, Some("the output reports an error"))
    );
    assert!(!step.verification.as_ref().unwrap().verified);
}

#[test]
fn arguments_of_which_the_log_has_a_part_are_a_text() {
    let events = [
        planned(&[("write", "write_file", json!({"text": "长".repeat(5_000)}), &[])]),
        started("write", r#"{"text":"长长…"#),
    ];
    let waiting = &steps_after(&events[..1])[0];
    let planned = waiting.arguments_text.as_deref().unwrap();
    assert!(waiting.arguments.is_none() && planned.ends_with('…'), "{waiting:?}");
    let step = &steps_after(&events)[0];
    assert_eq!((&step.arguments, step.arguments_text.as_deref()), (&None, Some(r#"{"text":"长长…"#)));
    assert_eq!(step.attempts[0].arguments_text, step.arguments_text);
}

#[test]
fn texts_are_redacted_and_truncated() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let events = [
        planned(&[("read", "read_file", json!({"token": secret}), &[])]),
        started("read", &format!(r#"{{"token":"{secret}"}}"#)),
        ended("read", done(&format!("{secret} {}", "长".repeat(5_000)))),
    ];
    for count in 1..=events.len() {
        let text = serde_json::to_string(&steps_after(&events[..count])).unwrap();
        assert!(!text.contains(secret), "{text}");
    }
    assert_eq!(steps_after(&events)[0].output.as_ref().unwrap().chars().count(), MAX_TEXT_CHARACTERS + 1);
}

/// The state is the word in `step_ended`, which the tests of events compare with the same ends.
#[test]
fn every_end_of_a_step_has_a_state_and_a_text() {
    for end in every_step_end() {
        let name = json!(end)["end"].clone();
        let event = ended("read", end);
        let events = [planned(&[("read", "read_file", json!({}), &[])]), event.clone()];
        assert_eq!(json!(steps_after(&events)[0].state), name);
        let line = progress_line(&RunUpdate::Event { run: "01J".into(), number: 1, event });
        assert_ne!(line.as_deref(), Some("read: ended\n"));
    }
}

fn any_step() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "not_planned"])
}

fn any_outcome() -> impl Strategy<Value = StepEnd> {
    prop_oneof![
        Just(done("text")),
        Just(failed("no")),
        Just(StepEnd::Skipped { because: "a".to_owned() }),
        Just(StepEnd::Denied { by: "cli".to_owned() }),
        Just(StepEnd::Unknown { message: "lost".to_owned() }),
        Just(StepEnd::Simulated),
    ]
}

fn any_plan() -> impl Strategy<Value = RunEvent> {
    let step = (prop::sample::select(vec!["a", "b", "c"]), prop::bool::ANY, 0_u8..2);
    prop::collection::vec(step, 0..4).prop_map(|mut steps| {
        let mut ids = BTreeSet::new();
        steps.retain(|(id, ..)| ids.insert(*id));
        let steps: Vec<_> = steps
            .into_iter()
            .map(|(id, reads, value)| {
                (id, if reads { "read" } else { "write" }, json!({ "value": value }), &[] as &[&str])
            })
            .collect();
        planned(&steps)
    })
}

fn any_event() -> impl Strategy<Value = RunEvent> {
    let end = prop_oneof![
        Just(RunEnd::Cancelled),
        Just(RunEnd::Planned),
        Just(RunEnd::Suspended { waiting_for: vec!["1".to_owned()] }),
    ];
    prop_oneof![
        2 => any_plan(),
        4 => any_step().prop_map(|step| started(step, "{}")),
        4 => (any_step(), any_outcome()).prop_map(|(step, outcome)| ended(step, outcome)),
        1 => any_step().prop_map(|step| RunEvent::StepRepaired { step: step.to_owned(), arguments: Map::new(), notes: Vec::new() }),
        1 => (any_step(), prop::bool::ANY).prop_map(|(step, done)| RunEvent::StepResolved {
            step: step.to_owned(),
            resolution: if done { Resolution::Done } else { Resolution::NotDone },
        }),
        1 => any_step().prop_map(approval_requested),
        1 => (any_step(), prop::bool::ANY).prop_map(|(step, allowed)| approval_decided(step, allowed)),
        1 => any_step().prop_map(|step| RunEvent::Verified {
            step: step.to_owned(),
            verification: Verification { reported_error: true, ..Verification::default() },
        }),
        1 => end.prop_map(RunEvent::ended),
        1 => Just(RunEvent::Resumed { owner: "another".to_owned() }),
    ]
}

/// What holds after every prefix of a log, even of one that no driver would write.
fn check(steps: &[RunStep]) -> Result<(), TestCaseError> {
    let ids: BTreeSet<&str> = steps.iter().map(|step| step.id.as_str()).collect();
    prop_assert_eq!(ids.len(), steps.len(), "every step is there once");
    for step in steps {
        use ApiStepState as S;
        let context = format!("{step:?}");
        if step.state == S::Running {
            prop_assert!(step.is_open(), "{}", context);
            prop_assert!(step.output.is_none() && step.error.is_none(), "{}", context);
            prop_assert!(step.attempts.last().is_some_and(|last| last.duration_ms.is_none()), "{}", context);
        }
        prop_assert!(step.duration_ms.is_none() || step.started_at.is_some(), "{}", context);
        prop_assert!(step.started_at.is_none() || !step.attempts.is_empty(), "{}", context);
        prop_assert_eq!(step.state == S::Done, step.state == S::Done && step.output.is_some(), "{}", context);
        let has_failed = matches!(step.state, S::Failed | S::Denied | S::Unknown);
        prop_assert_eq!(has_failed, step.error.is_some(), "{}", context);
        if step.state == S::Waiting {
            prop_assert!(step.output.is_none() && step.verification.is_none(), "{}", context);
        }
        let times: Vec<i64> = step.attempts.iter().map(|attempt| attempt.started_at).collect();
        prop_assert!(times.is_sorted(), "{}", context);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_prefix_of_a_log_has_a_consistent_list(events in prop::collection::vec(any_event(), 0..40)) {
        let mut previous: Vec<RunStep> = Vec::new();
        for count in 0..=events.len() {
            let steps = steps_after(&events[..count]);
            check(&steps)?;
            let kept: Vec<&str> = steps.iter().take(previous.len()).map(|step| step.id.as_str()).collect();
            let known: Vec<&str> = previous.iter().map(|step| step.id.as_str()).collect();
            prop_assert_eq!(kept, known, "no step disappears or moves");
            for (old, new) in previous.iter().zip(&steps) {
                prop_assert!(new.attempts.len() >= old.attempts.len(), "no attempt disappears");
            }
            previous = steps;
        }
    }
}
