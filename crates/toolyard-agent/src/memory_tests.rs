//! The log in memory keeps the rules of the durable one.

use toolyard_core::ContentHash;

use super::*;

const LEASE: Duration = Duration::from_secs(60);

fn intent(step: &str, repeatable: bool) -> Intent {
    Intent {
        step: step.to_owned(),
        tool: "write".to_owned(),
        source: None,
        definition: ContentHash::of("definition"),
        arguments: ContentHash::of("arguments"),
        shown_arguments: "{}".to_owned(),
        repeatable,
    }
}

fn outcome(state: StepState) -> StepOutcome {
    StepOutcome { state, outcome: RawJson::from(serde_json::json!({"text": "said"})) }
}

async fn held(log: &MemoryLog, owner: &str) -> Lease {
    let run = log.create_run("agent", &RawJson::empty_object()).await.unwrap();
    log.claim(&run, owner, LEASE).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_started_write_waits_for_a_person_and_a_read_is_repeated() {
    let log = MemoryLog::new();
    let first = held(&log, "one").await;
    assert_eq!(log.begin(&first, &intent("w", false)).await, Ok(Begun::Call));
    assert_eq!(log.begin(&first, &intent("r", true)).await, Ok(Begun::Call));
    assert!(log.unknown().await.unwrap().is_empty(), "its owner may still be at it");
    assert!(matches!(log.claim(&first.run, "two", LEASE).await, Err(JournalError::Held { .. })));
    tokio::time::advance(LEASE + Duration::from_secs(1)).await;
    assert_eq!(log.unknown().await.unwrap().len(), 1);
    let second = log.claim(&first.run, "two", LEASE).await.unwrap();
    assert!(matches!(log.begin(&second, &intent("w", false)).await, Ok(Begun::Unknown(_))));
    assert_eq!(log.begin(&second, &intent("r", true)).await, Ok(Begun::Call));
    log.finish(&second, "r", &outcome(StepState::Done)).await.unwrap();
    assert!(matches!(log.begin(&second, &intent("r", true)).await, Ok(Begun::Reuse(_))));

    let lost = Err(JournalError::LeaseLost(first.run.clone()));
    assert_eq!(log.finish(&first, "w", &outcome(StepState::Done)).await, lost);
    assert_eq!(log.append(&first, 0, &RawJson::empty_object()).await, lost);
    log.resolve(&first.run, "w", Resolution::NotDone, "ada").await.unwrap();
    assert!(log.resolve(&first.run, "w", Resolution::Done, "bob").await.is_err(), "the first word counts");
    assert_eq!(log.begin(&second, &intent("w", false)).await, Ok(Begun::Call));
    log.release(&second, RunState::Done).await.unwrap();
    assert_eq!(log.claim_next("agent", "three", LEASE).await, Ok(None), "it is over");
}

#[tokio::test(start_paused = true)]
async fn transitions_have_their_places_and_no_secrets() {
    let log = MemoryLog::new();
    let lease = held(&log, "one").await;
    let event = |text: &str| RawJson::from(serde_json::json!({ "text": text }));
    log.append_all(&lease, 0, &[event("a"), event("password=hunter2")]).await.unwrap();
    assert!(matches!(log.append(&lease, 1, &event("b")).await, Err(JournalError::NumberTaken { .. })));
    tokio::time::advance(Duration::from_secs(5)).await;
    log.append(&lease, 2, &event("c")).await.unwrap();
    let kept = log.events(&lease.run, 1).await.unwrap();
    assert_eq!(kept.iter().map(|event| event.number).collect::<Vec<_>>(), [1, 2]);
    assert!(!kept[0].event.get().contains("hunter2"));
    assert_eq!(kept[1].at - kept[0].at, 5_000);
}

#[tokio::test]
async fn the_first_answer_counts() {
    let log = MemoryLog::new();
    let lease = held(&log, "one").await;
    let id = log.ask(&lease.run, Some("a"), QuestionKind::Approval, "may I?").await.unwrap();
    assert_eq!(log.waiting().await.unwrap().len(), 1);
    assert_eq!(log.answer(id, Answer::Allow, "ada").await, Ok(true));
    assert_eq!(log.answer(id, Answer::Deny, "bob").await, Ok(false));
    assert_eq!(log.question(id).await.unwrap().unwrap().by.as_deref(), Some("ada"));
    assert_eq!(log.of_run(&lease.run).await.unwrap().len(), 1);
    assert!(log.waiting().await.unwrap().is_empty());
}
