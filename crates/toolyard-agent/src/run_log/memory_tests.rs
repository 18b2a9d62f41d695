//! The log in memory behaves like the durable store.

use toolyard_core::ContentHash;

use super::*;

const LEASE_DURATION: Duration = Duration::from_secs(60);

fn intent(step: &str, repeatable: bool) -> StepIntent {
    StepIntent {
        step: step.to_owned(),
        tool: "write".to_owned(),
        source: None,
        definition: ContentHash::of("definition"),
        arguments: ContentHash::of("arguments"),
        redacted_arguments: "{}".to_owned(),
        repeatable,
    }
}

fn outcome(state: StepState) -> FinishedStep {
    FinishedStep { state, result: RawJson::from(serde_json::json!({"text": "said"})) }
}

async fn claimed_run(log: &MemoryRunLog, owner: &str) -> Lease {
    let run = log.create_run("agent", &RawJson::empty_object()).await.unwrap();
    log.claim(&run, owner, LEASE_DURATION).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_started_write_needs_resolution_and_a_read_is_repeated() {
    let log = MemoryRunLog::new();
    let first = claimed_run(&log, "one").await;
    assert_eq!(log.begin(&first, &intent("w", false)).await, Ok(StepStart::Call));
    assert_eq!(log.begin(&first, &intent("r", true)).await, Ok(StepStart::Call));
    assert!(log.unknown_steps().await.unwrap().is_empty(), "the owner holds the lease");
    assert!(matches!(log.claim(&first.run, "two", LEASE_DURATION).await, Err(JournalError::Leased { .. })));
    tokio::time::advance(LEASE_DURATION + Duration::from_secs(1)).await;
    assert_eq!(log.unknown_steps().await.unwrap().len(), 1);
    let second = log.claim(&first.run, "two", LEASE_DURATION).await.unwrap();
    assert!(matches!(log.begin(&second, &intent("w", false)).await, Ok(StepStart::Unknown(_))));
    assert_eq!(log.begin(&second, &intent("r", true)).await, Ok(StepStart::Call));
    log.finish(&second, "r", &outcome(StepState::Done)).await.unwrap();
    assert!(matches!(log.begin(&second, &intent("r", true)).await, Ok(StepStart::Reuse(_))));

    let lost = Err(JournalError::LeaseLost(first.run.clone()));
    assert_eq!(log.finish(&first, "w", &outcome(StepState::Done)).await, lost);
    assert_eq!(log.append(&first, 0, &RawJson::empty_object()).await, lost);
    log.resolve(&first.run, "w", Resolution::NotDone, "ada").await.unwrap();
    assert!(
        log.resolve(&first.run, "w", Resolution::Done, "bob").await.is_err(),
        "the first resolution counts"
    );
    assert_eq!(log.begin(&second, &intent("w", false)).await, Ok(StepStart::Call));
    log.release(&second, RunState::Done).await.unwrap();
    assert_eq!(log.claim_next("agent", "three", LEASE_DURATION).await, Ok(None), "the run is done");
}

#[tokio::test(start_paused = true)]
async fn events_are_numbered_and_redacted() {
    let log = MemoryRunLog::new();
    let lease = claimed_run(&log, "one").await;
    let event = |text: &str| RawJson::from(serde_json::json!({ "text": text }));
    log.append_all(&lease, 0, &[event("a"), event("password=hunter2")]).await.unwrap();
    assert!(matches!(log.append(&lease, 1, &event("b")).await, Err(JournalError::EventExists { .. })));
    tokio::time::advance(Duration::from_secs(5)).await;
    log.append(&lease, 2, &event("c")).await.unwrap();
    let stored = log.events(&lease.run, 1).await.unwrap();
    assert_eq!(stored.iter().map(|event| event.number).collect::<Vec<_>>(), [1, 2]);
    assert!(!stored[0].event.get().contains("hunter2"));
    assert_eq!(stored[1].at - stored[0].at, 5_000);
}

#[tokio::test]
async fn the_first_decision_counts() {
    let log = MemoryRunLog::new();
    let lease = claimed_run(&log, "one").await;
    let id = log.request_approval(&lease.run, Some("a"), ApprovalKind::ToolCall, "may I?").await.unwrap();
    assert_eq!(log.pending_approvals().await.unwrap().len(), 1);
    assert_eq!(log.decide(id, ApprovalOutcome::Approved, "ada").await, Ok(true));
    assert_eq!(log.decide(id, ApprovalOutcome::Denied, "bob").await, Ok(false));
    assert_eq!(log.approval(id).await.unwrap().unwrap().decided_by.as_deref(), Some("ada"));
    assert_eq!(log.approvals_of_run(&lease.run).await.unwrap().len(), 1);
    assert!(log.pending_approvals().await.unwrap().is_empty());
}
