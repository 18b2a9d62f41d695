//! Runs that the store accepts in time, too late, or not at all.

use std::time::Duration;

use tokio::time::Instant;
use toolyard_core::{Journal as _, RunState};

use super::{flaky_log::Fault, store_failures::with_fault, *};
use crate::{AgentError, RunEnd, RunEvent, discard_run, is_being_created};

const TIMEOUT: Duration = Duration::from_secs(2);

fn answering() -> Fixture {
    Fixture::new(replying([r#"{"steps": [], "answer": "done"}"#.to_owned()]), &[])
}

#[tokio::test(start_paused = true)]
async fn a_run_that_the_store_accepts_in_time_is_driven() {
    let fixture = with_fault(answering(), Fault::AppendIsSlow(Duration::from_millis(500)));
    let deadline = Instant::now() + TIMEOUT;
    let run = fixture.agent.create_run_before(request("?"), deadline).await.unwrap();
    assert!(matches!(fixture.resume(&run).await, RunEnd::Answered { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_the_store_accepts_too_late_is_never_driven() {
    for fault in [Fault::AppendIsSlow(Duration::from_secs(5)), Fault::ReleaseIsSlow(Duration::from_secs(5))] {
        let fixture = with_fault(answering(), fault);
        let started = Instant::now();
        let refused = fixture.agent.create_run_before(request("?"), started + TIMEOUT).await;
        assert_eq!(refused, Err(AgentError::NotStarted), "{fault:?}");
        assert!(started.elapsed() < TIMEOUT + Duration::from_millis(100), "{fault:?}: answered at once");
        tokio::time::sleep(Duration::from_mins(1)).await;
        let record = fixture.log.runs(10).await.unwrap().remove(0);
        if record.state == RunState::Open {
            // Its creator stopped before it released the run, so others discard it.
            assert!(is_being_created(&record) && !record.leased, "{fault:?}: {record:?}");
            discard_run(&fixture.log, &record.id, "other").await.unwrap();
        }
        assert_eq!(fixture.log.run(&record.id).await.unwrap().state, RunState::Cancelled, "{fault:?}");
        assert_eq!(fixture.resume(&record.id).await, RunEnd::Cancelled, "{fault:?}");
        let events = fixture.events(&record.id).await;
        assert!(matches!(events.as_slice(), [RunEvent::Requested { .. }]), "{fault:?}: {events:?}");
        assert!(fixture.model.requests().is_empty(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_starts_no_run() {
    let fixture = with_fault(answering(), Fault::AppendFails { from: 0, to: 100 });
    let refused = fixture.agent.create_run_before(request("?"), Instant::now() + TIMEOUT).await;
    assert!(matches!(refused, Err(AgentError::Journal(_))), "{refused:?}");
    let record = fixture.log.runs(10).await.unwrap().remove(0);
    assert!(is_being_created(&record), "nobody takes it for a started run: {record:?}");
}
