//! Runs whose process crashes at any write and that another process resumes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolyard_core::{
    Journal as _, JournalError, JournalFuture, Lease, Resolution, RunId, RunLog as _, RunState,
};

use toolyard_model::{ModelReply, ScriptedModel, ToolCalling};

use super::{
    wrapped_log::{LogInterceptor, WrappedLog},
    *,
};
use crate::{AgentError, ApprovalRules, CancelToken, MemoryRunLog, NoWatcher, RunEnd, RunEvent, StepEnd};

/// A log that fails from its nth write on, before or after making it, as if the process had crashed there.
#[derive(Debug)]
struct CrashingLog {
    log: MemoryRunLog,
    writes: AtomicUsize,
    crash_at: usize,
    crashes_after_write: bool,
}

impl LogInterceptor for CrashingLog {
    type Log = MemoryRunLog;

    fn log(&self) -> &MemoryRunLog {
        &self.log
    }

    fn write<'a, T: Send + 'a>(
        &'a self,
        perform: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            let number = self.writes.fetch_add(1, Ordering::SeqCst);
            let crash_error = || JournalError::Storage("the process ended".to_owned());
            // The log in memory acts at the call, so a crashed process must not call it.
            if number > self.crash_at || (number == self.crash_at && !self.crashes_after_write) {
                return Err(crash_error());
            }
            let outcome = perform().await;
            if number == self.crash_at { Err(crash_error()) } else { outcome }
        })
    }
}

/// Twenty steps in two chains of writes and reads. Later steps use what was read but only wait for what was written,
/// because a write resolved by a user has no result.
fn twenty_steps() -> String {
    let steps: Vec<Value> = (0..20)
        .map(|at| {
            let tool = if at % 3 == 2 { "read" } else { "write" };
            let mut arguments = json!({"line": at});
            let mut dependencies = Vec::new();
            if let Some(before) = u32::checked_sub(at, 2) {
                dependencies.push(format!("s{before}"));
                if before % 3 == 2 {
                    arguments["before"] = json!(format!("$s{before}.line"));
                }
            }
            json!({"id": format!("s{at}"), "tool_type": tool, "arguments": arguments, "dependencies": dependencies,
                   "description": ""})
        })
        .collect();
    json!({ "steps": steps }).to_string()
}

fn fixture() -> Fixture {
    let allow = ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() };
    let tools = [tool("write", Behavior::Echo).writes(), tool("read", Behavior::Echo)];
    // A plan for every planning request.
    let model = ScriptedModel::new(ToolCalling::Schema, |request| {
        let text = if request.schema.is_some() { twenty_steps() } else { "All twenty.".to_owned() };
        Ok(ModelReply { text, ..ModelReply::default() })
    });
    Fixture::new(model, &tools).with_rules(allow)
}

/// Drives a run until it finishes; unknown outcomes are resolved by what was really called.
async fn drive_to_end(fixture: &Fixture, run: &RunId) -> (RunEnd, usize) {
    let mut unknown = 0;
    for _ in 0..10 {
        let end = fixture.resume(run).await;
        let RunEnd::Suspended { waiting_for } = &end else { return (end, unknown) };
        for step in waiting_for {
            unknown += 1;
            let step = step.strip_prefix("step ").unwrap();
            let line: Value = step.trim_start_matches('s').parse::<u64>().unwrap().into();
            let took_effect = fixture.arguments_of("write").iter().any(|arguments| arguments["line"] == line);
            let resolution = if took_effect { Resolution::Done } else { Resolution::NotDone };
            fixture.log.resolve(run, step, resolution, "ada").await.unwrap();
        }
    }
    panic!("the run does not finish")
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_neither_repeats_nor_loses_calls() {
    let mut crashes = 0;
    let mut unknown_total = 0;
    for crash_at in 0.. {
        let mut crashed = false;
        for crashes_after_write in [false, true] {
            let fixture = fixture();
            let crashing_log = Arc::new(WrappedLog(CrashingLog {
                log: fixture.log.clone(),
                writes: AtomicUsize::new(0),
                crash_at,
                crashes_after_write,
            }));
            let crashing_agent = {
                let mut parts = fixture.agent.parts().clone();
                parts.log = crashing_log;
                crate::Agent::new(parts)
            };
            let run = fixture.agent.create_run(request("?")).await.unwrap();
            let end = crashing_agent.drive(&run, &NoWatcher, &CancelToken::new()).await;
            // A crashed process releases nothing: its lease must expire first.
            tokio::time::sleep(Duration::from_secs(60)).await;
            crashed |= matches!(&end, Err(AgentError::Journal(JournalError::Storage(_))));
            let replies_before = logged_replies(&fixture, &run).await;
            let (end, unknown) = drive_to_end(&fixture, &run).await;
            unknown_total += unknown;
            assert_eq!(
                end,
                RunEnd::Answered {
                    answer: "All twenty.".to_owned(),
                    sources: vec!["write (local)".to_owned(), "read (local)".to_owned()],
                    truncated: false,
                },
                "write {crash_at}, crash after it: {crashes_after_write}"
            );
            check_invariants(&fixture, &run, replies_before).await;
        }
        if !crashed {
            break;
        }
        crashes += 2;
    }
    println!("{crashes} crashes, {unknown_total} unknown outcomes, no write repeated or lost");
    assert!(crashes > 100, "{crashes}");
}

/// Number of logged model replies.
async fn logged_replies(fixture: &Fixture, run: &RunId) -> usize {
    let is_reply = |event: &&RunEvent| matches!(event, RunEvent::ModelReplied { .. });
    fixture.events(run).await.iter().filter(is_reply).count()
}

async fn check_invariants(fixture: &Fixture, run: &RunId, replies_before: usize) {
    let mut write_counts: BTreeMap<u64, usize> = BTreeMap::new();
    for arguments in fixture.arguments_of("write") {
        *write_counts.entry(arguments["line"].as_u64().unwrap()).or_default() += 1;
    }
    let writes: Vec<u64> = (0..20).filter(|at| at % 3 != 2).collect();
    assert_eq!(write_counts.keys().copied().collect::<Vec<_>>(), writes, "every write was made");
    assert!(write_counts.values().all(|times| *times == 1), "no write was repeated: {write_counts:?}");
    // Logged replies are not requested again: a crash loses one request at most.
    let requests = fixture.model.requests().len();
    assert!(
        requests <= 3 && (replies_before < 2 || requests == 2),
        "{requests} requests, {replies_before} replies were logged"
    );
    assert!(matches!(fixture.step_end(run, "s19").await, StepEnd::Done { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_driver_whose_lease_expired_writes_nothing() {
    let steps = plan(&[("a", "slow", json!({}), &[]), ("b", "slow", json!({"x": "$a"}), &[])]);
    let fixture = Fixture::new(
        replying([steps, "Done.".to_owned()]),
        &[tool("slow", Behavior::Echo).with_delay_ms(5_000)],
    );
    let run = fixture.agent.create_run(request("?")).await.unwrap();
    let other_owner = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let lease = Lease { run: run.clone(), owner: "test".to_owned(), fence: 2 };
        fixture.log.renew(&lease, Duration::ZERO).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        fixture.log.claim(&run, "other", Duration::from_mins(10)).await.unwrap()
    };
    let stop = CancelToken::new();
    let (end, lease) = tokio::join!(fixture.agent.drive(&run, &NoWatcher, &stop), other_owner);
    assert_eq!(end, Err(AgentError::Journal(JournalError::LeaseLost(run.clone()))));
    let before = fixture.events(&run).await.len();
    fixture.log.release(&lease, RunState::Open).await.unwrap();
    assert!(matches!(fixture.resume(&run).await, RunEnd::Answered { .. }));
    assert!(fixture.events(&run).await.len() > before);
}

#[tokio::test(start_paused = true)]
async fn secrets_are_passed_in_memory_and_never_stored() {
    let secret = "hunter2hunter2hunter2";
    let steps = plan(&[
        ("login", "login", json!({"password": secret}), &[]),
        ("use", "write", json!({"token": "$login.password"}), &[]),
    ]);
    let tools = [tool("login", Behavior::Echo), tool("write", Behavior::Echo).writes()];
    let fixture = Fixture::new(replying([steps, "Done.".to_owned()]), &tools);
    let (run, end) = fixture.ask(request("log in")).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    assert_eq!(fixture.arguments_of("login"), [json!({"password": secret})]);
    let logged = fixture.log.events(&run, 0).await.unwrap();
    assert!(logged.iter().all(|event| !event.event.get().contains(secret)), "the secret is not stored");
    let question = toolyard_core::Approvals::pending_approvals(&fixture.log).await.unwrap().remove(0);
    assert!(!question.text.contains(secret));
    // Another process does not have the secret, and fails the step rather than call with something else.
    crate::decide_approval(&fixture.log, &fixture.log, question.id, crate::ApprovalDecision::Allow, "ada")
        .await
        .unwrap();
    let end = fixture.resume(&run).await;
    assert!(fixture.arguments_of("write").is_empty());
    let StepEnd::Failed { message, .. } = fixture.step_end(&run, "use").await else { panic!("{end:?}") };
    assert!(message.contains("never stored"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn recorded_results_are_used_although_their_tool_is_gone() {
    let steps = plan(&[("a", "once", json!({"x": 7}), &[]), ("b", "echo", json!({"y": "$a.x"}), &[])]);
    let tools =
        [tool("once", Behavior::Echo).with_source("other"), tool("echo", Behavior::Echo).keeps_inside()];
    for crash_at in 0..12 {
        let fixture = Fixture::new(replying([steps.clone(), "Done.".to_owned()]), &tools);
        let log = fixture.log.clone();
        let crashing_log = Arc::new(WrappedLog(CrashingLog {
            log,
            writes: AtomicUsize::new(0),
            crash_at,
            crashes_after_write: false,
        }));
        let mut parts = fixture.agent.parts().clone();
        parts.log = crashing_log;
        let run = fixture.agent.create_run(request("?")).await.unwrap();
        let _ = crate::Agent::new(parts).drive(&run, &NoWatcher, &CancelToken::new()).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let record = fixture.log.step(&run, "a").await.unwrap();
        if record.is_none_or(|record| record.state != toolyard_core::StepState::Done) {
            continue;
        }
        fixture.hub.remove(&"other".into());
        assert!(matches!(fixture.resume(&run).await, RunEnd::Answered { .. }), "{crash_at}");
        assert_eq!(fixture.arguments_of("once").len(), 1);
        let echo_arguments = fixture.arguments_of("echo");
        // Reads may be repeated.
        assert!(
            !echo_arguments.is_empty()
                && echo_arguments.iter().all(|arguments| *arguments == json!({"y": 7})),
            "{crash_at}: {echo_arguments:?}"
        );
    }
}
