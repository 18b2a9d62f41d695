//! Transient and permanent store failures.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolyard_core::{Approvals as _, Journal as _, RunState, StepState};

use super::{
    flaky_log::{Fault, FlakyLog},
    *,
};
use crate::{ApprovalDecision, ApprovalRules, CancelToken, NoWatcher, RunEnd, StepEnd};

fn allow_all() -> ApprovalRules {
    ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() }
}

pub(super) fn with_fault(fixture: Fixture, fault: Fault) -> Fixture {
    let log = Arc::new(FlakyLog::new(&fixture.log, fault));
    fixture.with_parts(|parts| {
        parts.log = Arc::clone(&log) as _;
        parts.approvals = log;
    })
}

fn fixture_with_write(delay_ms: u64) -> Fixture {
    let steps = plan(&[("w", "write", json!({"x": 1}), &[]), ("after", "echo", json!({"y": "$w.x"}), &[])]);
    let tools =
        [tool("write", Behavior::Echo).writes().with_delay_ms(delay_ms), tool("echo", Behavior::Echo)];
    Fixture::new(replying([steps, "Done.".to_owned()]), &tools)
}

#[tokio::test(start_paused = true)]
async fn a_journaled_outcome_counts_although_the_call_never_returned() {
    for fault in [Fault::FinishNeverReturns, Fault::FinishIsDelayed] {
        let fixture = with_fault(fixture_with_write(100).with_rules(allow_all()), fault);
        let run = fixture.agent.create_run(request("?")).await.unwrap();
        let stop = CancelToken::new();
        let cancelling = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stop.cancel();
        };
        let (end, ()) = tokio::join!(fixture.agent.drive(&run, &NoWatcher, &stop), cancelling);
        assert_eq!(end.unwrap(), RunEnd::Cancelled, "{fault:?}");
        assert!(matches!(fixture.step_end(&run, "w").await, StepEnd::Done { .. }), "{fault:?}");
        assert_eq!(fixture.log.run(&run).await.unwrap().state, RunState::Cancelled);
        assert!(fixture.log.unknown_steps().await.unwrap().is_empty(), "nothing needs resolution");
    }
}

#[tokio::test(start_paused = true)]
async fn transient_store_failures_only_delay_a_run() {
    // The first write is the request, before the run is driven.
    for from in 1..7 {
        for fault in
            [Fault::AppendFails { from, to: from + 4 }, Fault::AppendReportsFailure { from, to: from + 1 }]
        {
            let fixture = with_fault(fixture_with_write(100).with_rules(allow_all()), fault);
            let (run, end) = fixture.ask(request("?")).await;
            assert!(matches!(end, RunEnd::Answered { .. }), "{fault:?}: {end:?}");
            assert_eq!(fixture.calls(), ["write", "echo"], "{fault:?}");
            assert!(!fixture.events(&run).await.is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_approval_request_is_retried_and_stored_once() {
    let fixture = with_fault(fixture_with_write(0), Fault::ApprovalRequestFails { times: 3 });
    let watcher = RecordingWatcher::with_decisions([ApprovalDecision::Allow]);
    let (run, end) = fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!(watcher.requests.lock().len(), 1);
    assert_eq!(fixture.log.approvals_of_run(&run).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_store_failure_ends_the_run_but_calls_in_flight_are_journaled() {
    let steps = plan(&[("slow", "slow", json!({}), &[]), ("w", "write", json!({}), &[])]);
    let slow = tool("slow", Behavior::Echo).writes().with_delay_ms(13_200).with_source("other");
    let rules = ApprovalRules { allow: vec!["slow".to_owned()], ..ApprovalRules::default() };
    let fixture =
        Fixture::new(replying([steps]), &[slow, tool("write", Behavior::Echo).writes()]).with_rules(rules);
    let fixture = with_fault(fixture, Fault::ApprovalRequestFails { times: usize::MAX });
    let run = fixture.agent.create_run(request("?")).await.unwrap();
    let failed = fixture.agent.drive(&run, &NoWatcher, &CancelToken::new()).await;
    assert!(matches!(failed, Err(crate::AgentError::Approvals(_))), "{failed:?}");
    let record = fixture.log.step(&run, "slow").await.unwrap().unwrap();
    assert_eq!(record.state, StepState::Done, "the journal has the outcome");
}
