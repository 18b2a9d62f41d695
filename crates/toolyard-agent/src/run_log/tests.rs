//! Replay, and runs that cannot be read.

use serde_json::json;
use toolyard_core::{Journal as _, RunLog as _};

use super::*;
use crate::{
    CancelToken, MemoryRunLog,
    driver::tests::{Behavior, Fixture, RecordingWatcher, plan, replying, request, tool},
};

#[tokio::test(start_paused = true)]
async fn a_replay_equals_what_the_watcher_saw() {
    let steps = plan(&[("a", "echo", json!({"x": 1}), &[]), ("b", "echo", json!({"y": "$a.x"}), &[])]);
    let fixture = Fixture::new(
        replying([steps, "Done.".to_owned()]),
        &[tool("echo", Behavior::Echo).with_delay_ms(250)],
    );
    let watcher = RecordingWatcher::default();
    let (run, end) = fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
    let watched: Vec<RunUpdate> = {
        let updates = watcher.updates.lock();
        updates.iter().filter(|update| matches!(update, RunUpdate::Event { .. })).cloned().collect()
    };
    let (state, events) = load_run(&fixture.log, &run).await.unwrap();
    let replayed: Vec<RunUpdate> = replay_updates(&events).collect();
    // The request was logged before the run was watched.
    assert_eq!(replayed.get(1..).unwrap(), watched);
    assert_eq!(state.end(), Some(&end));
    assert_eq!(active_duration(&events), Duration::from_millis(500));
    let calls = fixture.calls().len();
    let _ = replay_updates(&events).count();
    assert_eq!(fixture.calls().len(), calls, "a replay calls nothing");
}

#[tokio::test]
async fn runs_of_other_kinds_and_unreadable_events_are_rejected() {
    let log = MemoryRunLog::new();
    let other = log.create_run("call", &RawJson::empty_object()).await.unwrap();
    assert!(matches!(load_run(&log, &other).await, Err(AgentError::OtherKind { .. })));
    assert!(matches!(load_run(&log, &"nowhere".into()).await, Err(AgentError::Journal(_))));
    let run = log.create_run(AGENT_RUN_KIND, &RawJson::empty_object()).await.unwrap();
    let lease = log.claim(&run, "test", Duration::from_secs(9)).await.unwrap();
    log.append(&lease, 0, &to_json(&RunEvent::Resumed { owner: "x".to_owned() })).await.unwrap();
    assert!(matches!(load_run(&log, &run).await, Err(AgentError::InvalidEvent { number: 0, .. })));
    log.append(&lease, 1, &RawJson::from(json!({"event": "of a later version"}))).await.unwrap();
    let run = log.create_run(AGENT_RUN_KIND, &RawJson::empty_object()).await.unwrap();
    let lease = log.claim(&run, "test", Duration::from_secs(9)).await.unwrap();
    log.append(&lease, 0, &RawJson::from(json!({"event": "of a later version"}))).await.unwrap();
    let error = load_run(&log, &run).await.unwrap_err();
    assert!(matches!(error, AgentError::Unreadable { number: 0, .. }) && error.hint().is_some());
}

#[test]
fn no_event_field_looks_like_a_secret() {
    let run_request = crate::RunRequest { question: "?".to_owned(), ..crate::RunRequest::default() };
    let event = RunEvent::Requested { request: run_request };
    let (logged, redacted) = toolyard_core::redact_json(&to_json(&event));
    assert!(!redacted, "no field name looks like a secret");
    assert_eq!(logged.read::<RunEvent>().unwrap(), event);
}
