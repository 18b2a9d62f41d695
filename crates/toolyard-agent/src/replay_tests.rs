//! What the log alone tells: the same as whoever watched saw.

use serde_json::json;
use toolyard_core::{Journal as _, RunLog as _};

use super::*;
use crate::{
    CancelToken, MemoryLog,
    driver::tests::{Act, House, Seen, ask, plan, saying, tool},
};

#[tokio::test(start_paused = true)]
async fn a_replay_shows_what_whoever_watched_saw() {
    let steps = plan(&[("a", "echo", json!({"x": 1}), &[]), ("b", "echo", json!({"y": "$a.x"}), &[])]);
    let house = House::new(saying([steps, "Done.".to_owned()]), &[tool("echo", Act::Echoes).takes(250)]);
    let watcher = Seen::default();
    let (run, end) = house.agent.ask(ask("?"), &watcher, &CancelToken::new()).await.unwrap();
    let seen: Vec<RunNews> = {
        let news = watcher.news.lock().unwrap();
        news.iter().filter(|news| matches!(news, RunNews::Event { .. })).cloned().collect()
    };
    let (state, events) = load(&house.log, &run).await.unwrap();
    let replayed: Vec<RunNews> = replay(&events).collect();
    // The question was written down before anybody watched.
    assert_eq!(replayed.get(1..).unwrap(), seen);
    assert_eq!(state.end(), Some(&end));
    assert_eq!(worked(&events), Duration::from_millis(500));
    let calls = house.calls().len();
    let _ = replay(&events).count();
    assert_eq!(house.calls().len(), calls, "nothing is called");
}

#[tokio::test]
async fn what_is_no_run_of_an_agent_or_cannot_be_read_is_refused() {
    let log = MemoryLog::new();
    let other = log.create_run("call", &RawJson::empty_object()).await.unwrap();
    assert!(matches!(load(&log, &other).await, Err(AgentError::OtherKind { .. })));
    assert!(matches!(load(&log, &"nowhere".into()).await, Err(AgentError::Journal(_))));
    let run = log.create_run(RUN_KIND, &RawJson::empty_object()).await.unwrap();
    let lease = log.claim(&run, "test", Duration::from_secs(9)).await.unwrap();
    log.append(&lease, 0, &written(&RunEvent::Resumed { owner: "x".to_owned() })).await.unwrap();
    assert!(matches!(load(&log, &run).await, Err(AgentError::Impossible { number: 0, .. })));
    log.append(&lease, 1, &RawJson::from(json!({"event": "of a later version"}))).await.unwrap();
    let run = log.create_run(RUN_KIND, &RawJson::empty_object()).await.unwrap();
    let lease = log.claim(&run, "test", Duration::from_secs(9)).await.unwrap();
    log.append(&lease, 0, &RawJson::from(json!({"event": "of a later version"}))).await.unwrap();
    let refused = load(&log, &run).await.unwrap_err();
    assert!(matches!(refused, AgentError::Unreadable { number: 0, .. }) && refused.hint().is_some());
}

#[test]
fn every_event_keeps_its_fields_without_secrets_in_the_way() {
    let ask = crate::Ask { question: "?".to_owned(), ..crate::Ask::default() };
    let event = RunEvent::Asked { ask };
    let (kept, redacted) = toolyard_core::redact_json(&written(&event));
    assert!(!redacted, "no field of ours looks like a secret");
    assert_eq!(kept.read::<RunEvent>().unwrap(), event);
}
