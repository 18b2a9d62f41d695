//! Which runs a scan takes over, and when.

use toolyard_agent::{ApprovalRules, CancelToken, NoWatcher, RunRequest};
use toolyard_core::{ApprovalOutcome, Lease, RunState};

use super::*;
use crate::agents::{
    orphan_crash_tests::{Ledger, use_ledger},
    testing::TestAgents,
};

const LEASE: Duration = Duration::from_secs(30);

fn action_for(events: Vec<RunEvent>, age: Duration) -> Action {
    let update = |(number, event)| RunUpdate::Event { run: "01".into(), number, event };
    action((0..).zip(events).map(update), milliseconds(age))
}

fn requested(detached: bool) -> RunEvent {
    RunEvent::Requested {
        request: RunRequest { agent: "clerk".to_owned(), detached, ..RunRequest::default() },
    }
}

#[test]
fn only_recent_detached_runs_are_resumed() {
    let (hour, days) = (Duration::from_hours(1), Duration::from_hours(50));
    let suspended = || RunEvent::ended(RunEnd::Suspended { waiting_for: Vec::new() });
    let resumed = || RunEvent::Resumed { owner: "other".to_owned() };
    let resume = || Action::Resume("clerk".to_owned());
    assert_eq!(action_for(vec![requested(true)], hour), resume());
    assert_eq!(action_for(vec![requested(true)], days), Action::LeaveToUser);
    assert_eq!(action_for(vec![requested(false)], hour), Action::LeaveToUser);
    let if_decided = Action::ResumeIfDecided("clerk".to_owned());
    assert_eq!(action_for(vec![requested(true), suspended()], hour), if_decided);
    assert_eq!(action_for(vec![requested(false), suspended()], hour), Action::Ignore);
    assert_eq!(action_for(vec![requested(true), suspended()], days), Action::Ignore);
    assert_eq!(action_for(vec![requested(true), suspended(), resumed()], hour), resume());
    let cancelled = RunEvent::ended(RunEnd::Cancelled);
    assert_eq!(action_for(vec![requested(true), cancelled], hour), Action::Ignore);
    assert_eq!(action_for(vec![requested(true), resumed(), resumed()], hour), resume());
    let resumed_three_times = vec![requested(true), resumed(), resumed(), resumed()];
    assert_eq!(action_for(resumed_three_times, hour), Action::LeaveToUser, "three resumes without progress");
    assert_eq!(action_for(Vec::new(), hour), Action::Ignore);
}

/// A run that a process created for a client, and its lease if that process died while it drove the run.
async fn run_of(agents: &TestAgents, detached: bool) -> (RunId, Lease) {
    let agent = agents.service().0.agent("assistant").unwrap();
    let authority = Some(Box::new(agent.authority()));
    let request = RunRequest { agent: "assistant".to_owned(), detached, authority, ..RunRequest::default() };
    let run = agent.create_run(request).await.unwrap();
    let lease = agents.log().claim(&run, &agents.parts.owner, LEASE).await.unwrap();
    (run, lease)
}

async fn state(agents: &TestAgents, run: &RunId) -> RunState {
    agents.log().run(run).await.unwrap().state
}

/// Scans in the background, as `toolyard serve` does.
fn adopt_in_background(service: &AgentService) -> tokio::task::JoinHandle<()> {
    tokio::spawn(service.orphan_adopter().run(drop))
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_killed_process_is_taken_over_when_its_lease_is_over() {
    let agents = TestAgents::in_memory();
    let (first, second) = (agents.in_process("first"), agents.in_process("second"));
    adopt_in_background(&second.service());
    // The survivor has scanned before.
    tokio::time::sleep(Duration::from_mins(2)).await;
    let (run, lease) = run_of(&first, true).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    first.log().renew(&lease, LEASE).await.unwrap();
    let killed = Instant::now();
    while state(&agents, &run).await == RunState::Open {
        assert!(killed.elapsed() <= LEASE + Duration::from_secs(5), "not taken over in time");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(killed.elapsed() >= LEASE, "taken over from a living process after {:?}", killed.elapsed());
    assert_eq!(state(&agents, &run).await, RunState::Done);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_process_was_killed_after_it_logged_the_end_is_closed() {
    let agents = TestAgents::in_memory();
    let first = agents.in_process("first");
    let (run, lease) = run_of(&first, true).await;
    let ended = RunEvent::ended(RunEnd::Cancelled);
    let ended = toolyard_core::RawJson::from_serialize(&ended).unwrap();
    first.log().append(&lease, 1, &ended).await.unwrap();
    let mut adopter = agents.in_process("second").service().orphan_adopter();
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    assert_eq!(adopter.scan().await.unwrap(), OrphanedRuns::default(), "nothing is resumed");
    assert_eq!(state(&agents, &run).await, RunState::Cancelled);

    // A process that is asked to drive such a run closes it, too.
    let (run, lease) = run_of(&first, false).await;
    first.log().append(&lease, 1, &ended).await.unwrap();
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    let agent = agents.in_process("second").service().0.agent("assistant").unwrap();
    let end = agent.drive(&run, &NoWatcher, &CancelToken::default()).await.unwrap();
    assert_eq!((end, state(&agents, &run).await), (RunEnd::Cancelled, RunState::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_released_run_is_taken_over_by_the_next_scan() {
    let agents = TestAgents::in_memory();
    let (run, lease) = run_of(&agents.in_process("first"), true).await;
    let mut adopter = agents.in_process("second").service().orphan_adopter();
    assert_eq!(adopter.scan().await.unwrap(), OrphanedRuns::default());
    agents.log().release(&lease, RunState::Open).await.unwrap();
    assert_eq!(adopter.scan().await.unwrap().resumed, 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(state(&agents, &run).await, RunState::Done);
}

#[tokio::test(start_paused = true)]
async fn a_new_run_is_left_to_its_creator_for_a_moment() {
    let agents = TestAgents::in_memory();
    let agent = agents.in_process("first").service().0.agent("assistant").unwrap();
    let authority = Some(Box::new(agent.authority()));
    let request =
        RunRequest { agent: "assistant".to_owned(), detached: true, authority, ..RunRequest::default() };
    let run = agent.create_run(request).await.unwrap();
    let mut adopter = agents.in_process("second").service().orphan_adopter();
    assert_eq!(adopter.scan().await.unwrap().resumed, 0, "its creator is about to claim it");
    tokio::time::sleep(SCAN_INTERVAL).await;
    assert_eq!(adopter.scan().await.unwrap().resumed, 1, "its creator died");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(state(&agents, &run).await, RunState::Done);
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_nobody_applied_resumes_a_suspended_run() {
    let (mut agents, ledger) = (TestAgents::in_memory(), Ledger::default());
    use_ledger(&mut agents, &ledger);
    let agent = agents.in_process("first").service().0.agent("assistant").unwrap();
    let (question, authority) = ("record all lines, label r0.".to_owned(), Some(Box::new(agent.authority())));
    let request = RunRequest {
        agent: "assistant".to_owned(),
        question,
        detached: true,
        authority,
        ..RunRequest::default()
    };
    let (run, end) = agent.ask(request, &NoWatcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    let fence = agents.log().run(&run).await.unwrap().fence;
    adopt_in_background(&agents.in_process("second").service());
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(agents.log().run(&run).await.unwrap().fence, fence, "the run waits for an approval");
    let approvals = &agents.parts.approvals;
    let approval = approvals.pending_approvals().await.unwrap()[0].id;
    approvals.decide(approval, ApprovalOutcome::Denied, "ada").await.unwrap();
    tokio::time::sleep(DECISION_GRACE - Duration::from_secs(1)).await;
    assert_eq!(state(&agents, &run).await, RunState::Open, "the approver may be about to resume it");
    tokio::time::sleep(RECHECK_INTERVAL * 3).await;
    assert_eq!(state(&agents, &run).await, RunState::Failed);
    assert!(ledger.lock().is_empty(), "the call was denied");
}

#[tokio::test(start_paused = true)]
async fn a_stopping_service_takes_nothing_over() {
    let agents = TestAgents::in_memory();
    let (run, _) = run_of(&agents.in_process("first"), true).await;
    let service = agents.in_process("second").service();
    service.stop_accepting();
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(service.orphan_adopter().scan().await.unwrap(), OrphanedRuns::default());
    assert_eq!(state(&agents, &run).await, RunState::Open);
}

#[tokio::test(start_paused = true)]
async fn runs_of_others_are_left_to_their_users_and_counted_once() {
    let agents = TestAgents::in_memory();
    let first = agents.in_process("first");
    let (waited_for, _) = run_of(&first, false).await;
    let mut other_rules = first.clone();
    other_rules.parts.rules = ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() };
    let (of_other_rules, _) = run_of(&other_rules, true).await;
    // As `toolyard ask` creates it.
    let agent = first.service().0.agent("assistant").unwrap();
    let request = RunRequest { agent: "assistant".to_owned(), detached: true, ..RunRequest::default() };
    let of_command = agent.create_run(request).await.unwrap();
    agents.log().claim(&of_command, "a command", LEASE).await.unwrap();
    tokio::time::sleep(LEASE * 2).await;
    let mut adopter = agents.in_process("second").service().orphan_adopter();
    assert_eq!(adopter.scan().await.unwrap(), OrphanedRuns { resumed: 0, not_resumed: 3 });
    for _ in 0..10 {
        tokio::time::sleep(RECHECK_INTERVAL).await;
        assert_eq!(adopter.scan().await.unwrap(), OrphanedRuns::default());
    }
    for run in [waited_for, of_other_rules, of_command] {
        let record = agents.log().run(&run).await.unwrap();
        assert_eq!((record.state, record.fence), (RunState::Open, 2), "nobody touched it: {record:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_never_started_is_discarded() {
    let agents = TestAgents::in_memory();
    let log = agents.log();
    let run = log.create_run(AGENT_RUN_KIND, &toolyard_core::RawJson::empty_object()).await.unwrap();
    let lease = log.claim(&run, "first-creates", LEASE).await.unwrap();
    let event = toolyard_core::RawJson::from_serialize(&requested(true)).unwrap();
    log.append(&lease, 0, &event).await.unwrap();
    let service = agents.in_process("second").service();
    adopt_in_background(&service);
    tokio::time::sleep(LEASE - Duration::from_secs(1)).await;
    assert_eq!(state(&agents, &run).await, RunState::Open, "its creator may be alive");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(state(&agents, &run).await, RunState::Cancelled);
    assert_eq!(log.events(&run, 0).await.unwrap().len(), 1, "the run was not driven");
}
