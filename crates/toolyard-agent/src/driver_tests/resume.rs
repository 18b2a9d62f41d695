//! Runs whose process ends at any write, and whoever goes on with them.

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
    wrapped_log::{Between, Wrapped},
    *,
};
use crate::{AgentError, ApprovalRules, CancelToken, MemoryLog, RunEnd, RunEvent, StepEnd, Unwatched};

/// A log that stops working before or after its nth write, as if the process had ended there.
#[derive(Debug)]
struct Mortal {
    log: MemoryLog,
    writes: AtomicUsize,
    dies_at: usize,
    after: bool,
}

impl Between for Mortal {
    type Log = MemoryLog;

    fn log(&self) -> &MemoryLog {
        &self.log
    }

    fn write<'a, T: Send + 'a>(
        &'a self,
        make: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            let number = self.writes.fetch_add(1, Ordering::SeqCst);
            let dead = || JournalError::Failed("the process ended".to_owned());
            // The log in memory acts when it is asked, so nothing may be asked of a dead process.
            if number > self.dies_at || (number == self.dies_at && !self.after) {
                return Err(dead());
            }
            let outcome = make().await;
            if number == self.dies_at { Err(dead()) } else { outcome }
        })
    }
}

/// Twenty steps: two chains of writes and reads in turn; what was read is used, what was written only waited for. A write
/// that a person vouches for has no answer that could be used.
fn twenty_steps() -> String {
    let steps: Vec<Value> = (0..20)
        .map(|at| {
            let tool = if at % 3 == 2 { "read" } else { "write" };
            let mut arguments = json!({"line": at});
            let mut needs = Vec::new();
            if let Some(before) = u32::checked_sub(at, 2) {
                needs.push(format!("s{before}"));
                if before % 3 == 2 {
                    arguments["before"] = json!(format!("$s{before}.line"));
                }
            }
            json!({"id": format!("s{at}"), "tool_type": tool, "arguments": arguments, "dependencies": needs,
                   "description": "", "complexity": "low"})
        })
        .collect();
    json!({ "steps": steps }).to_string()
}

fn house() -> House {
    let allow = ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() };
    let tools = [tool("write", Act::Echoes).writes(), tool("read", Act::Echoes)];
    // A plan to whoever wants one, however often.
    let model = ScriptedModel::new(ToolCalling::Schema, |request| {
        let text = if request.schema.is_some() { twenty_steps() } else { "All twenty.".to_owned() };
        Ok(ModelReply { text, ..ModelReply::default() })
    });
    House::new(model, &tools).ruled(allow)
}

/// Works on a run until it is over; a person, who knows what was called, says what is unknown.
async fn brought_to_an_end(house: &House, run: &RunId) -> (RunEnd, usize) {
    let mut unknown = 0;
    for _ in 0..10 {
        let end = house.resume(run).await;
        let RunEnd::Suspended { waiting } = &end else { return (end, unknown) };
        for step in waiting {
            unknown += 1;
            let step = step.strip_prefix("step ").unwrap();
            let line: Value = step.trim_start_matches('s').parse::<u64>().unwrap().into();
            let happened = house.arguments_of("write").iter().any(|arguments| arguments["line"] == line);
            let word = if happened { Resolution::Done } else { Resolution::NotDone };
            house.log.resolve(run, step, word, "person").await.unwrap();
        }
    }
    panic!("a run must come to an end")
}

#[tokio::test(start_paused = true)]
async fn a_process_may_end_at_any_write_and_nothing_is_done_twice_or_lost() {
    let mut deaths = 0;
    let mut unknown_in_all = 0;
    for dies_at in 0.. {
        let mut died = false;
        for after in [false, true] {
            let house = house();
            let mortal = Arc::new(Wrapped(Mortal {
                log: house.log.clone(),
                writes: AtomicUsize::new(0),
                dies_at,
                after,
            }));
            let doomed = {
                let mut parts = house.agent.parts().clone();
                parts.log = mortal;
                crate::Agent::new(parts)
            };
            let run = house.agent.begin(ask("?")).await.unwrap();
            let end = doomed.drive(&run, &Unwatched, &CancelToken::new()).await;
            // A dead process gives nothing back: its lease must be over first.
            tokio::time::sleep(Duration::from_secs(60)).await;
            died |= matches!(&end, Err(AgentError::Journal(JournalError::Failed(_))));
            let thoughts_before = answered_tasks(&house, &run).await;
            let (end, unknown) = brought_to_an_end(&house, &run).await;
            unknown_in_all += unknown;
            assert_eq!(
                end,
                RunEnd::Answered {
                    answer: "All twenty.".to_owned(),
                    sources: vec!["write (yard)".to_owned(), "read (yard)".to_owned()],
                    cut_off: false,
                },
                "{dies_at} {after}"
            );
            check(&house, &run, thoughts_before).await;
        }
        if !died {
            break;
        }
        deaths += 2;
    }
    println!("{deaths} deaths, {unknown_in_all} outcomes were unknown, 0 writes repeated, 0 lost");
    assert!(deaths > 100, "{deaths}");
}

/// How many replies of models are written down.
async fn answered_tasks(house: &House, run: &RunId) -> usize {
    let is = |event: &&RunEvent| matches!(event, RunEvent::ModelAnswered { .. });
    house.events(run).await.iter().filter(is).count()
}

async fn check(house: &House, run: &RunId, replies_before: usize) {
    let mut made: BTreeMap<u64, usize> = BTreeMap::new();
    for arguments in house.arguments_of("write") {
        *made.entry(arguments["line"].as_u64().unwrap()).or_default() += 1;
    }
    let writes: Vec<u64> = (0..20).filter(|at| at % 3 != 2).collect();
    assert_eq!(made.keys().copied().collect::<Vec<_>>(), writes, "every write was made");
    assert!(made.values().all(|times| *times == 1), "and none twice: {made:?}");
    // Whatever was answered and written is not asked again: at most one request of a dead process is lost.
    let asked = house.model.requests().len();
    assert!(asked <= 3 && (replies_before < 2 || asked == 2), "{asked} requests, {replies_before} kept");
    assert!(matches!(house.end_of(run, "s19").await, StepEnd::Done { .. }));
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_slept_through_its_lease_writes_nothing() {
    let steps = plan(&[("a", "slow", json!({}), &[]), ("b", "slow", json!({"x": "$a"}), &[])]);
    let house = House::new(saying([steps, "Done.".to_owned()]), &[tool("slow", Act::Echoes).takes(5_000)]);
    let run = house.agent.begin(ask("?")).await.unwrap();
    let thief = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let lease = Lease { run: run.clone(), owner: "test".to_owned(), fence: 2 };
        house.log.renew(&lease, Duration::ZERO).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        house.log.claim(&run, "thief", Duration::from_mins(10)).await.unwrap()
    };
    let stop = CancelToken::new();
    let (end, lease) = tokio::join!(house.agent.drive(&run, &Unwatched, &stop), thief);
    assert_eq!(end, Err(AgentError::Journal(JournalError::LeaseLost(run.clone()))));
    let before = house.events(&run).await.len();
    house.log.release(&lease, RunState::Open).await.unwrap();
    assert!(matches!(house.resume(&run).await, RunEnd::Answered { .. }));
    assert!(house.events(&run).await.len() > before);
}

#[tokio::test(start_paused = true)]
async fn secrets_are_used_by_whoever_knows_them_and_never_written() {
    let secret = "hunter2hunter2hunter2";
    let steps = plan(&[
        ("login", "login", json!({"password": secret}), &[]),
        ("use", "write", json!({"token": "$login.password"}), &[]),
    ]);
    let tools = [tool("login", Act::Echoes), tool("write", Act::Echoes).writes()];
    let house = House::new(saying([steps, "Done.".to_owned()]), &tools);
    let (run, end) = house.ask(ask("log in")).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    assert_eq!(house.arguments_of("login"), [json!({"password": secret})]);
    let logged = house.log.events(&run, 0).await.unwrap();
    assert!(logged.iter().all(|event| !event.event.get().contains(secret)), "nothing of it is written");
    let question = toolyard_core::Approvals::waiting(&house.log).await.unwrap().remove(0);
    assert!(!question.text.contains(secret));
    // Another process cannot know it, and says so instead of calling with something else.
    crate::answer_question(&house.log, &house.log, question.id, true, "ada").await.unwrap();
    let end = house.resume(&run).await;
    assert!(house.arguments_of("write").is_empty());
    let StepEnd::Failed { message, .. } = house.end_of(&run, "use").await else { panic!("{end:?}") };
    assert!(message.contains("never written down"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn what_was_done_is_used_even_if_its_tool_is_gone() {
    let steps = plan(&[("a", "once", json!({"x": 7}), &[]), ("b", "echo", json!({"y": "$a.x"}), &[])]);
    let tools = [tool("once", Act::Echoes).at("other"), tool("echo", Act::Echoes)];
    for dies_at in 0..12 {
        let house = House::new(saying([steps.clone(), "Done.".to_owned()]), &tools);
        let log = house.log.clone();
        let mortal = Arc::new(Wrapped(Mortal { log, writes: AtomicUsize::new(0), dies_at, after: false }));
        let mut parts = house.agent.parts().clone();
        parts.log = mortal;
        let run = house.agent.begin(ask("?")).await.unwrap();
        let _ = crate::Agent::new(parts).drive(&run, &Unwatched, &CancelToken::new()).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let known = house.log.step(&run, "a").await.unwrap();
        if known.is_none_or(|known| known.state != toolyard_core::StepState::Done) {
            continue;
        }
        house.hub.remove(&"other".into());
        assert!(matches!(house.resume(&run).await, RunEnd::Answered { .. }), "{dies_at}");
        assert_eq!(house.arguments_of("once").len(), 1);
        let used = house.arguments_of("echo");
        // What only reads may be read again.
        assert!(!used.is_empty() && used.iter().all(|used| *used == json!({"y": 7})), "{dies_at}: {used:?}");
    }
}
