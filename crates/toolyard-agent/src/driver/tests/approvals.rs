//! Approvals: which calls wait for one, what the approver sees, and which decisions count.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use toolyard_core::{
    ApprovalId, ApprovalOutcome, Approvals as _, Audit, AuditRecord, Journal as _, Resolution, RunState,
};
use toolyard_hub::{HubConfig, ToolHub};

use super::*;
use crate::{
    AgentError, ApprovalDecision, ApprovalRules, CancelToken, RunEnd, RunEvent, StepEnd, decide_approval,
};

#[derive(Debug, Default)]
struct RecordedAudit(Mutex<Vec<AuditRecord>>);

impl Audit for RecordedAudit {
    fn record(&self, record: AuditRecord) {
        self.0.lock().push(record);
    }
}

fn write_and_read() -> String {
    plan(&[
        ("write", "write", json!({"x": 1}), &[]),
        ("read", "echo", json!({"y": 2}), &[]),
        ("after", "echo", json!({"z": "$write.x"}), &[]),
    ])
}

fn tools() -> [fixture::TestTool; 2] {
    [tool("write", Behavior::Echo).writes(), tool("echo", Behavior::Echo)]
}

#[tokio::test(start_paused = true)]
async fn the_watcher_decides_immediately() {
    for (decision, calls) in
        [(ApprovalDecision::Allow, vec!["echo", "write", "echo"]), (ApprovalDecision::Deny, vec!["echo"])]
    {
        let fixture = Fixture::new(replying([write_and_read(), "Done.".to_owned()]), &tools());
        let watcher = RecordingWatcher::with_decisions([decision]);
        let (run, end) = fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
        let is_answered = matches!(end, RunEnd::Answered { .. });
        assert_eq!(is_answered, decision == ApprovalDecision::Allow, "a denied step is not done: {end:?}");
        assert_eq!(fixture.calls(), calls, "{decision:?}");
        let question = watcher.requests.lock()[0].clone();
        assert_eq!((question.tool.as_str(), question.source.as_str()), ("write", "local"));
        assert_eq!(
            (question.arguments.as_str(), question.effects.as_str()),
            (r#"{"x":1}"#, "unverified effects")
        );
        let record = fixture.log.approval(question.id).await.unwrap().unwrap();
        assert!(record.outcome.is_some(), "the decision is stored");
        if decision == ApprovalDecision::Deny {
            assert!(matches!(fixture.step_end(&run, "write").await, StepEnd::Denied { .. }));
            assert_eq!(
                fixture.step_end(&run, "after").await,
                StepEnd::Skipped { because: "write".to_owned() }
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn approvers_see_how_the_plan_was_repaired() {
    let steps = plan(&[("write", "write", json!({"at": "A1", "formula": "C2*D2"}), &[])]);
    let fixture = Fixture::new(replying([steps, "Done.".to_owned()]), &tools());
    let question = request("Put =C2*D2 into A1");
    let (run, end) = fixture.ask(question).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    let notes = ["`formula`: `\"C2*D2\"` became `\"=C2*D2\"`"];
    let approval = fixture.log.pending_approvals().await.unwrap().remove(0);
    assert!(notes.iter().all(|note| approval.text.contains(note)), "{}", approval.text);
    assert!(
        decide_approval(&fixture.log, &fixture.log, approval.id, ApprovalDecision::Allow, "ada")
            .await
            .unwrap()
    );
    fixture.resume(&run).await;
    assert_eq!(fixture.arguments_of("write"), [json!({"at": "A1", "formula": "=C2*D2"})]);
    let logged = fixture.events(&run).await.into_iter().find_map(|event| match event {
        RunEvent::StepStarted { notes, .. } => Some(notes),
        _ => None,
    });
    assert_eq!(logged.unwrap(), notes, "the log has the notes");
}

#[tokio::test(start_paused = true)]
async fn approvers_see_every_value_or_are_not_asked() {
    // 64 KB and 2 MB were limits beyond which nothing was shown.
    for (rows, is_asked) in [(6_000, true), (60_000, true), (400_000, false)] {
        let steps = plan(&[
            ("rows", "rows", json!({}), &[]),
            ("write", "write", json!({"rows": "$rows.rows", "then": "run HIDDEN"}), &[]),
        ]);
        let many = tool("rows", Behavior::Return(json!({"rows": vec!["twelve bytes"; rows]})));
        let replies = replying([steps.clone(), "Done.".to_owned(), steps, "Done.".to_owned()]);
        let fixture = Fixture::new(replies, &[many, tool("write", Behavior::Echo).writes()]);
        let limits = crate::RunLimits { replans: 0, ..crate::RunLimits::default() };
        let (run, end) = fixture.ask(crate::RunRequest { limits, ..request("?") }).await;
        let pending = fixture.log.pending_approvals().await.unwrap();
        assert_eq!(matches!(end, RunEnd::Suspended { .. }), is_asked, "{rows}: {end:?}");
        if is_asked {
            assert!(pending[0].text.ends_with(r#""then":"run HIDDEN"}"#), "{rows} rows hide a value");
            continue;
        }
        assert!(pending.is_empty() && fixture.arguments_of("write").is_empty());
        let StepEnd::Failed { message, kind, .. } = fixture.step_end(&run, "write").await else { panic!() };
        assert!(message.contains("too large to be shown to an approver"), "{message}");
        assert_eq!(kind, Some(toolyard_core::ErrorKind::Refused));
        // A watcher that approves everything in advance is not asked anyway.
        let (_, end) =
            fixture.agent.ask(request("?"), &ApprovesEverything, &CancelToken::new()).await.unwrap();
        assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
        assert_eq!(fixture.arguments_of("write").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_run_resumes_with_the_stored_decision() {
    for allowed in [true, false] {
        let fixture = Fixture::new(replying([write_and_read(), "Done.".to_owned()]), &tools());
        let (run, end) = fixture.ask(request("?")).await;
        let RunEnd::Suspended { waiting_for } = &end else { panic!("{end:?}") };
        assert_eq!(fixture.calls(), ["echo"], "other steps run first");
        assert_eq!(fixture.log.run(&run).await.unwrap().state, RunState::Open);
        let question = fixture.log.pending_approvals().await.unwrap().remove(0);
        assert_eq!(waiting_for, &[question.id.to_string()]);
        assert!(question.text.contains("write") && question.text.contains(r#"{"x":1}"#), "{}", question.text);
        assert_eq!(fixture.resume(&run).await, end, "there is no decision yet");
        assert_eq!(fixture.log.pending_approvals().await.unwrap().len(), 1, "the request is not repeated");

        let decision = if allowed { ApprovalDecision::Allow } else { ApprovalDecision::Deny };
        assert!(decide_approval(&fixture.log, &fixture.log, question.id, decision, "ada").await.unwrap());
        let end = fixture.resume(&run).await;
        assert_eq!(matches!(end, RunEnd::Answered { .. }), allowed, "a denied step is not done: {end:?}");
        let calls_made = fixture.calls().iter().filter(|call| *call == "write").count();
        assert_eq!(calls_made, usize::from(allowed));
        assert_eq!(fixture.model.requests().len(), 2, "no model request is repeated");
        let state = if allowed { RunState::Done } else { RunState::Failed };
        assert_eq!(fixture.log.run(&run).await.unwrap().state, state);
        let late =
            decide_approval(&fixture.log, &fixture.log, question.id, ApprovalDecision::Allow, "bob").await;
        assert_eq!(late, Err(AgentError::Finished(run)));
    }
    let log = crate::MemoryRunLog::new();
    assert_eq!(
        decide_approval(&log, &log, ApprovalId(7), ApprovalDecision::Allow, "ada").await,
        Err(AgentError::UnknownApproval(ApprovalId(7)))
    );
}

#[tokio::test(start_paused = true)]
async fn approvers_see_approximately_resolved_references() {
    let steps =
        plan(&[("order", "order", json!({}), &[]), ("write", "write", json!({"x": "$order + 1"}), &[])]);
    let order = tool("order", Behavior::Return(json!({"total": 7, "name": "Ada"})));
    let fixture =
        Fixture::new(replying([steps, "Done.".to_owned()]), &[order, tool("write", Behavior::Echo).writes()]);
    let watcher = RecordingWatcher::with_decisions([ApprovalDecision::Allow]);
    let (run, _) = fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
    let question = watcher.requests.lock()[0].clone();
    assert_eq!(question.notes.len(), 1, "{question:?}");
    assert!(question.notes[0].contains("`$order`: used its `total`"), "{question:?}");
    let record = fixture.log.approval(question.id).await.unwrap().unwrap();
    assert!(record.text.contains(&question.notes[0]), "{}", record.text);
    let logged = fixture.events(&run).await.into_iter().find_map(|event| match event {
        RunEvent::StepStarted { step, notes, .. } if step == "write" => Some(notes),
        _ => None,
    });
    assert_eq!(logged, Some(question.notes), "the log has the notes");
}

#[tokio::test(start_paused = true)]
async fn a_tool_approved_for_the_run_needs_no_further_approval() {
    let plan = plan(&[
        ("a", "write", json!({"x": 1}), &[]),
        ("b", "write", json!({"x": 2}), &["a"]),
        ("c", "write", json!({"x": 3}), &["b"]),
    ]);
    let fixture = Fixture::new(replying([plan, "Done.".to_owned()]), &tools());
    let watcher = RecordingWatcher::with_decisions([ApprovalDecision::AllowAlways]);
    let (_, end) = fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!((fixture.calls().len(), watcher.requests.lock().len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stored_approval_for_the_run_covers_its_tool_and_no_other() {
    let steps = plan(&[
        ("a", "write", json!({"x": 1}), &[]),
        ("b", "write", json!({"x": 2}), &["a"]),
        ("c", "erase", json!({"x": 3}), &["b"]),
    ]);
    let tools = [tool("write", Behavior::Echo).writes(), tool("erase", Behavior::Echo).writes()];
    let fixture = Fixture::new(replying([steps, "Done.".to_owned()]), &tools);
    let (run, _) = fixture.ask(request("?")).await;
    let first = fixture.log.pending_approvals().await.unwrap().remove(0);
    let decision = ApprovalDecision::AllowAlways;
    assert!(decide_approval(&fixture.log, &fixture.log, first.id, decision, "ada").await.unwrap());
    let end = fixture.resume(&run).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "another tool is asked for: {end:?}");
    assert_eq!(fixture.calls(), ["write", "write"], "the second call of the tool is not");
    let waiting = fixture.log.pending_approvals().await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert!(waiting[0].text.contains("erase"), "{}", waiting[0].text);
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_needs_a_new_approval() {
    let fixture = Fixture::new(replying([write_and_read(), "Done.".to_owned()]), &tools());
    let (run, _) = fixture.ask(request("?")).await;
    let first = fixture.log.pending_approvals().await.unwrap().remove(0);
    fixture.log.decide(first.id, ApprovalOutcome::Approved, "ada").await.unwrap();
    let changed = [
        tool("write", Behavior::Echo).writes().with_description("Now it sends mails"),
        tool("echo", Behavior::Echo),
    ];
    fixture.register(&changed);
    let end = fixture.resume(&run).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    assert!(!fixture.calls().contains(&"write".to_owned()), "the approval was for the old definition");
    let waiting = fixture.log.pending_approvals().await.unwrap();
    assert_eq!(waiting.len(), 1);
    let second = waiting.into_iter().next().unwrap();
    assert_ne!(first.id, second.id);
    fixture.log.decide(second.id, ApprovalOutcome::Approved, "ada").await.unwrap();
    assert!(matches!(fixture.resume(&run).await, RunEnd::Answered { .. }));
    assert_eq!(fixture.calls().iter().filter(|call| *call == "write").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn rules_apply_at_planning_and_at_call_time() {
    // Approved when planned, denied by the rules when called.
    let chain =
        plan(&[("write", "write", json!({"x": 1}), &[]), ("read", "echo", json!({"y": "$write.x"}), &[])]);
    let fixture = Fixture::new(replying([chain, "Done.".to_owned()]), &tools());
    let (run, _) = fixture.ask(request("?")).await;
    let question = fixture.log.pending_approvals().await.unwrap().remove(0);
    fixture.log.decide(question.id, ApprovalOutcome::Approved, "ada").await.unwrap();
    let denied = ApprovalRules { deny: vec!["write".to_owned()], ..ApprovalRules::default() };
    let audit = Arc::new(RecordedAudit::default());
    let mut fixture = fixture.with_rules(denied);
    fixture.hub =
        Arc::new(ToolHub::new(HubConfig { audit: Some(Arc::clone(&audit) as _), ..HubConfig::default() }));
    fixture.register(&tools());
    let hub = Arc::clone(&fixture.hub);
    let fixture = fixture.with_parts(|parts| parts.hub = hub);
    let end = fixture.resume(&run).await;
    assert!(matches!(end, RunEnd::Failed { .. }), "{end:?}");
    assert_eq!(fixture.step_end(&run, "write").await, StepEnd::Denied { by: "rules".to_owned() });
    assert!(fixture.calls().is_empty());
    let records = audit.0.lock().clone();
    let [record] = records.as_slice() else { panic!("the denied call is not audited: {records:?}") };
    assert_eq!((record.tool.as_str(), record.outcome.as_str()), ("write", "refused"));

    // A tool that becomes read-only only after it was planned.
    let fixture = Fixture::new(replying([write_and_read(), "Done.".to_owned()]), &tools());
    let (run, _) = fixture.ask(request("?")).await;
    fixture.register(&[tool("write", Behavior::Echo), tool("echo", Behavior::Echo)]);
    let end = fixture.resume(&run).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    assert!(!fixture.calls().contains(&"write".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_agent_calls_only_tools_it_can_use() {
    let plan = plan(&[("a", "write", json!({"x": 1}), &[])]);
    let fixture = Fixture::new(replying([plan]), &tools())
        .with_parts(|parts| Arc::make_mut(&mut parts.config).tools = vec!["echo".to_owned()]);
    let (_, end) = fixture.ask(request("?")).await;
    assert!(matches!(end, RunEnd::Failed { .. }), "{end:?}");
    assert!(fixture.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_with_unknown_outcome_waits_for_resolution_and_is_not_repeated() {
    for (resolution, calls) in [(Resolution::Done, 1), (Resolution::NotDone, 2)] {
        let steps = plan(&[("w", "lost", json!({"x": 1}), &[]), ("after", "echo", json!({"y": 1}), &["w"])]);
        let lost = tool("lost", Behavior::Fail(toolyard_core::ErrorKind::ResponseLost)).writes();
        let allow = ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() };
        let fixture =
            Fixture::new(replying([steps, "Done.".to_owned()]), &[lost, tool("echo", Behavior::Echo)])
                .with_rules(allow);
        let (run, end) = fixture.ask(request("?")).await;
        assert_eq!(end, RunEnd::Suspended { waiting_for: vec!["step w".to_owned()] });
        assert!(matches!(fixture.step_end(&run, "w").await, StepEnd::Unknown { .. }));
        assert_eq!(fixture.resume(&run).await, end, "nothing is resolved yet");
        assert_eq!(fixture.calls(), ["lost"]);
        fixture.log.resolve(&run, "w", resolution, "ada").await.unwrap();
        fixture.register(&[tool("lost", Behavior::Echo).writes(), tool("echo", Behavior::Echo)]);
        let end = fixture.resume(&run).await;
        assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
        let calls_made = fixture.calls().iter().filter(|call| *call == "lost").count();
        assert_eq!(calls_made, calls, "{resolution:?}");
        let is_resolution = |event: &RunEvent| matches!(event, RunEvent::StepResolved { .. });
        assert_eq!(fixture.events(&run).await.iter().filter(|event| is_resolution(event)).count(), 1);
    }
}

/// Approves every call in advance.
#[derive(Debug)]
struct ApprovesEverything;

impl crate::RunWatcher for ApprovesEverything {
    fn on_update(&self, _update: &crate::RunUpdate) {}

    fn approves_everything(&self) -> bool {
        true
    }

    fn decide<'a>(
        &'a self,
        _request: &'a crate::ApprovalRequest,
    ) -> toolyard_core::BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(std::future::ready(Some(ApprovalDecision::Allow)))
    }
}

/// Never decides.
#[derive(Debug)]
struct SilentWatcher;

impl crate::RunWatcher for SilentWatcher {
    fn on_update(&self, _update: &crate::RunUpdate) {}

    fn decide<'a>(
        &'a self,
        _request: &'a crate::ApprovalRequest,
    ) -> toolyard_core::BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(std::future::pending())
    }
}

/// Approves after an hour.
#[derive(Debug)]
struct DelayedWatcher;

impl crate::RunWatcher for DelayedWatcher {
    fn on_update(&self, _update: &crate::RunUpdate) {}

    fn decide<'a>(
        &'a self,
        _request: &'a crate::ApprovalRequest,
    ) -> toolyard_core::BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(async {
            tokio::time::sleep(std::time::Duration::from_hours(1)).await;
            Some(ApprovalDecision::Allow)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_watcher_does_not_count_towards_the_time_limit() {
    let slow = tool("echo", Behavior::Echo).with_delay_ms(500);
    let fixture = Fixture::new(
        replying([write_and_read(), "Done.".to_owned()]),
        &[tool("write", Behavior::Echo).writes().with_source("other"), slow],
    );
    let limits = crate::RunLimits { time: std::time::Duration::from_secs(5), ..crate::RunLimits::default() };
    let (run, end) = fixture
        .agent
        .ask(crate::RunRequest { limits, ..request("?") }, &DelayedWatcher, &CancelToken::new())
        .await
        .unwrap();
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    let (_, events) = crate::load_run(&fixture.log, &run).await.unwrap();
    assert_eq!(
        crate::run_log::active_duration(&events),
        std::time::Duration::from_secs(1),
        "two sequential calls"
    );
}

#[tokio::test(start_paused = true)]
async fn a_decision_made_elsewhere_counts_while_the_watcher_is_asked() {
    let fixture = Fixture::new(replying([write_and_read(), "Done.".to_owned()]), &tools());
    let elsewhere = async {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        let question = fixture.log.pending_approvals().await.unwrap().remove(0);
        decide_approval(&fixture.log, &fixture.log, question.id, ApprovalDecision::Allow, "ada")
            .await
            .unwrap()
    };
    let stop = CancelToken::new();
    let (result, is_first_decision) =
        tokio::join!(fixture.agent.ask(request("?"), &SilentWatcher, &stop), elsewhere);
    assert!(is_first_decision && matches!(result.unwrap().1, RunEnd::Answered { .. }));
    assert_eq!(fixture.calls().iter().filter(|call| *call == "write").count(), 1);
}
