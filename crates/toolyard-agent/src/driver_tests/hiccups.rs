//! Stores that fail for a moment or for good, and what is known of calls nevertheless.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolyard_core::{Approvals as _, Journal as _, RunState, StepState};

use super::{
    odd_log::{OddLog, Oddity},
    *,
};
use crate::{ApprovalDecision, ApprovalRules, CancelToken, RunEnd, StepEnd, Unwatched};

fn allow_all() -> ApprovalRules {
    ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() }
}

pub(super) fn odd(house: House, oddity: Oddity) -> House {
    let log = Arc::new(OddLog::new(&house.log, oddity));
    house.changed(|parts| {
        parts.log = Arc::clone(&log) as _;
        parts.approvals = log;
    })
}

fn writing(milliseconds: u64) -> House {
    let steps = plan(&[("w", "write", json!({"x": 1}), &[]), ("after", "echo", json!({"y": "$w.x"}), &[])]);
    let tools = [tool("write", Act::Echoes).writes().takes(milliseconds), tool("echo", Act::Echoes)];
    House::new(saying([steps, "Done.".to_owned()]), &tools)
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_end_is_written_down_has_ended_whoever_was_told() {
    for oddity in [Oddity::FinishesInSilence, Oddity::FinishesLate] {
        let house = odd(writing(100).ruled(allow_all()), oddity);
        let run = house.agent.begin(ask("?")).await.unwrap();
        let stop = CancelToken::new();
        let cancelling = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stop.cancel();
        };
        let (end, ()) = tokio::join!(house.agent.drive(&run, &Unwatched, &stop), cancelling);
        assert_eq!(end.unwrap(), RunEnd::Cancelled, "{oddity:?}");
        assert!(matches!(house.end_of(&run, "w").await, StepEnd::Done { .. }), "{oddity:?}");
        assert_eq!(house.log.run(&run).await.unwrap().state, RunState::Cancelled);
        assert!(house.log.unknown().await.unwrap().is_empty(), "nobody needs to be asked");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_moment_costs_nothing_but_time() {
    // The question itself is the first write; nobody works on the run yet.
    for from in 1..7 {
        for oddity in
            [Oddity::FailsToAppend { from, to: from + 4 }, Oddity::SaysItFailed { from, to: from + 1 }]
        {
            let house = odd(writing(100).ruled(allow_all()), oddity);
            let (run, end) = house.ask(ask("?")).await;
            assert!(matches!(end, RunEnd::Answered { .. }), "{oddity:?}: {end:?}");
            assert_eq!(house.calls(), ["write", "echo"], "{oddity:?}");
            assert!(!house.events(&run).await.is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_cannot_be_written_down_is_asked_again_and_once() {
    let house = odd(writing(0), Oddity::FailsToAsk { times: 3 });
    let watcher = Seen::deciding([ApprovalDecision::Allow]);
    let (run, end) = house.agent.ask(ask("?"), &watcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!(watcher.questions.lock().unwrap().len(), 1);
    assert_eq!(house.log.of_run(&run).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_good_ends_the_work_and_not_the_calls_under_way() {
    let steps = plan(&[("slow", "slow", json!({}), &[]), ("w", "write", json!({}), &[])]);
    let slow = tool("slow", Act::Echoes).writes().takes(13_200).at("other");
    let rules = ApprovalRules { allow: vec!["slow".to_owned()], ..ApprovalRules::default() };
    let house = House::new(saying([steps]), &[slow, tool("write", Act::Echoes).writes()]).ruled(rules);
    let house = odd(house, Oddity::FailsToAsk { times: usize::MAX });
    let run = house.agent.begin(ask("?")).await.unwrap();
    let failed = house.agent.drive(&run, &Unwatched, &CancelToken::new()).await;
    assert!(matches!(failed, Err(crate::AgentError::Approvals(_))), "{failed:?}");
    let known = house.log.step(&run, "slow").await.unwrap().unwrap();
    assert_eq!(known.state, StepState::Done, "what came of it is known");
}
