//! Runs that are ended in the middle: by their caller, by time, by a person elsewhere, by being dropped.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::stream;
use serde_json::json;
use tokio::time::Instant;
use toolyard_core::{Journal as _, RawJson, RunState};
use toolyard_model::{Model, ModelEvent, ModelRequest, ModelStream, ToolCalling};

use super::{hiccups::odd, odd_log::Oddity, *};
use crate::{
    AgentError, ApprovalRules, Ask, CancelToken, Cap, Caps, RunEnd, StepEnd, Unwatched, ask_to_stop, cancel,
};

fn allow_all() -> ApprovalRules {
    ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() }
}

fn hanging() -> House {
    let steps = plan(&[
        ("r", "read", json!({}), &[]),
        ("w", "write", json!({}), &[]),
        ("later", "echo", json!({}), &["r"]),
    ]);
    let tools = [
        tool("read", Act::Hangs),
        tool("write", Act::Hangs).writes().at("other"),
        tool("echo", Act::Echoes).at("third"),
    ];
    House::new(saying([steps, "Done.".to_owned()]), &tools).ruled(allow_all())
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_ends_at_once_and_leaves_no_doubt_about_what_was_under_way() {
    let house = hanging();
    let stop = CancelToken::new();
    let run = house.agent.begin(ask("?")).await.unwrap();
    let driving = house.agent.drive(&run, &Unwatched, &stop);
    let cancelling = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        stop.cancel();
        Instant::now()
    };
    let (end, at) = tokio::join!(driving, cancelling);
    assert_eq!(end.unwrap(), RunEnd::Cancelled);
    assert!(at.elapsed() < Duration::from_millis(250), "{:?}", at.elapsed());
    assert!(matches!(house.end_of(&run, "w").await, StepEnd::Unknown { .. }), "it may have happened");
    assert!(matches!(house.end_of(&run, "r").await, StepEnd::Failed { .. }), "reading changed nothing");
    let unknown = house.log.unknown().await.unwrap();
    assert_eq!((unknown.len(), unknown[0].step.as_str()), (1, "w"), "a person is asked about it");
    assert_eq!(house.log.run(&run).await.unwrap().state, RunState::Cancelled);
    assert_eq!(house.resume(&run).await, RunEnd::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_laid_down_ends_its_calls_begins_nothing_and_is_gone_on_with() {
    let steps = plan(&[("w", "write", json!({}), &[]), ("next", "echo", json!({}), &["w"])]);
    let tools = [tool("write", Act::Echoes).takes(5_000).writes(), tool("echo", Act::Echoes).at("other")];
    let house = House::new(saying([steps, "Done.".to_owned()]), &tools).ruled(allow_all());
    let stop = CancelToken::new();
    let run = house.agent.begin(ask("?")).await.unwrap();
    let laying_down = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.lay_down();
    };
    let (laid_down, ()) = tokio::join!(house.agent.drive(&run, &Unwatched, &stop), laying_down);
    assert_eq!(laid_down, Err(AgentError::LaidDown(run.clone())));
    assert!(matches!(house.end_of(&run, "w").await, StepEnd::Done { .. }), "its outcome is known");
    assert_eq!(house.calls(), ["write"]);
    let record = house.log.run(&run).await.unwrap();
    assert_eq!((record.state, record.owner), (RunState::Open, None), "it is free at once");
    let again = house.agent.drive(&run, &Unwatched, &stop).await;
    assert_eq!(again, Err(AgentError::LaidDown(run.clone())), "nobody who leaves begins anything");
    assert!(matches!(house.resume(&run).await, RunEnd::Answered { .. }));
    assert_eq!(house.calls(), ["write", "echo"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_cancelled_before_it_begins_and_while_a_model_thinks() {
    let house = hanging();
    let stop = CancelToken::new();
    stop.cancel();
    let (_, end) = house.agent.ask(ask("?"), &Unwatched, &stop).await.unwrap();
    assert_eq!((end, house.calls().len()), (RunEnd::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_ends_with_its_patience() {
    let house = hanging();
    let began = Instant::now();
    let (run, end) = house.ask(Ask { caps: Caps { replans: 0, ..Caps::default() }, ..ask("?") }).await;
    assert_eq!(end, RunEnd::Suspended { waiting: vec!["step w".to_owned()] }, "the write may have happened");
    assert!(matches!(house.end_of(&run, "r").await, StepEnd::Failed { .. }));
    assert_eq!(house.end_of(&run, "later").await, StepEnd::Skipped { because: "r".to_owned() });
    assert!(began.elapsed() < Duration::from_mins(10), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn time_ends_a_run() {
    let house = hanging();
    let began = Instant::now();
    let caps = Caps { time: Duration::from_secs(5), ..Caps::default() };
    let (_, end) = house.ask(Ask { caps, ..ask("?") }).await;
    assert!(matches!(end, RunEnd::Capped { cap: Cap::Time, .. }), "{end:?}");
    assert!(began.elapsed() < Duration::from_millis(5_250), "{:?}", began.elapsed());
    assert_eq!(house.log.unknown().await.unwrap().len(), 1);
}

/// A model that takes its time for everything but plans.
#[derive(Debug)]
struct Slow {
    plan: String,
    /// When it said anything else.
    said: Arc<Mutex<Option<Instant>>>,
}

impl Model for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn tool_calling(&self) -> ToolCalling {
        ToolCalling::Schema
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        Box::pin(stream::once(async {
            if request.schema.is_some() {
                return Ok(ModelEvent::Text(self.plan.clone()));
            }
            tokio::time::sleep(Duration::from_millis(5_100)).await;
            *self.said.lock().unwrap() = Some(Instant::now());
            Ok(ModelEvent::Text("thought".to_owned()))
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_model_said_while_calls_were_ending_is_counted() {
    let steps = plan(&[("r", "read", json!({}), &[]), ("t", "none", json!({}), &[])]);
    let house =
        House::with_model(Arc::new(Slow { plan: steps, said: Arc::default() }), &[tool("read", Act::Hangs)]);
    let caps = Caps { time: Duration::from_secs(5), ..Caps::default() };
    let (run, end) = house.ask(Ask { caps, ..ask("?") }).await;
    assert!(matches!(end, RunEnd::Capped { cap: Cap::Time, .. }), "{end:?}");
    let (state, _) = crate::load(&house.log, &run).await.unwrap();
    assert_eq!(state.spent().model_calls, 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_model_said_before_a_run_was_laid_down_is_kept() {
    let (mut before, mut after) = (0, 0);
    for milliseconds in (2_500..6_500).step_by(100) {
        let steps = plan(&[("r", "read", json!({}), &[]), ("t", "none", json!({}), &[])]);
        let said = Arc::default();
        let model = Slow { plan: steps, said: Arc::clone(&said) };
        let house = House::with_model(Arc::new(model), &[tool("read", Act::Echoes).takes(milliseconds)]);
        let house = odd(house, Oddity::AppendsSlowly(Duration::from_millis(500)));
        let stop = CancelToken::new();
        let run = house.agent.begin(ask("?")).await.unwrap();
        let laying_down = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            stop.lay_down();
        };
        let (laid_down, ()) = tokio::join!(house.agent.drive(&run, &Unwatched, &stop), laying_down);
        assert_eq!(laid_down, Err(AgentError::LaidDown(run.clone())));
        let was_said = said.lock().unwrap().is_some();
        let (state, _) = crate::load(&house.log, &run).await.unwrap();
        let expected = if was_said { 2 } else { 1 };
        assert_eq!(state.spent().model_calls, expected, "it was paid for, {milliseconds}");
        *(if was_said { &mut before } else { &mut after }) += 1;
    }
    assert!(before > 3 && after > 3, "{before} {after}");
}

#[tokio::test(start_paused = true)]
async fn a_run_of_which_nothing_is_known_is_cancelled_by_whoever_finds_it() {
    let house = hanging();
    let empty = || async { house.log.create_run("agent", &RawJson::empty_object()).await.unwrap() };
    let run = empty().await;
    assert_eq!(house.resume(&run).await, RunEnd::Cancelled);
    assert_eq!(house.log.run(&run).await.unwrap().state, RunState::Cancelled);
    assert_eq!(house.resume(&run).await, RunEnd::Cancelled);
    assert_eq!(cancel(&house.log, &run, "somebody").await, Err(AgentError::Over(run.clone())));

    let run = empty().await;
    cancel(&house.log, &run, "somebody").await.unwrap();
    let (state, events) = crate::load(&house.log, &run).await.unwrap();
    assert_eq!((state.end(), events.len()), (Some(&RunEnd::Cancelled), 1));
    assert!(house.model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn time_in_which_a_run_waits_for_persons_does_not_count() {
    let steps = plan(&[("w", "write", json!({}), &[])]);
    let house = House::new(saying([steps, "Done.".to_owned()]), &[tool("write", Act::Echoes).writes()]);
    let caps = Caps { time: Duration::from_secs(5), ..Caps::default() };
    let (run, end) = house.ask(Ask { caps, ..ask("?") }).await;
    assert!(matches!(end, RunEnd::Suspended { .. }));
    tokio::time::advance(Duration::from_hours(48)).await;
    let question = toolyard_core::Approvals::waiting(&house.log).await.unwrap().remove(0);
    crate::answer_question(&house.log, &house.log, question.id, true, "ada").await.unwrap();
    assert!(matches!(house.resume(&run).await, RunEnd::Answered { .. }));
}

#[tokio::test(start_paused = true)]
async fn somebody_elsewhere_can_cancel_a_run_that_is_worked_on_and_one_that_is_not() {
    let house = hanging();
    let run = house.agent.begin(ask("?")).await.unwrap();
    let elsewhere = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let held = cancel(&house.log, &run, "somebody").await;
        assert!(matches!(held, Err(AgentError::Journal(_))), "{held:?}");
        ask_to_stop(&house.log, &run, "ada").await.unwrap();
    };
    let stop = CancelToken::new();
    let (end, ()) = tokio::join!(house.agent.drive(&run, &Unwatched, &stop), elsewhere);
    assert_eq!(end.unwrap(), RunEnd::Cancelled);

    let steps = plan(&[("w", "write", json!({}), &[])]);
    let house = House::new(saying([steps]), &[tool("write", Act::Echoes).writes()]);
    let (run, _) = house.ask(ask("?")).await;
    cancel(&house.log, &run, "somebody").await.unwrap();
    assert_eq!(house.resume(&run).await, RunEnd::Cancelled);
    assert_eq!(cancel(&house.log, &run, "somebody").await, Err(AgentError::Over(run.clone())));
    assert!(house.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_is_dropped_gives_its_run_back() {
    let house = hanging();
    let run = house.agent.begin(ask("?")).await.unwrap();
    let stop = CancelToken::new();
    let dropped =
        tokio::time::timeout(Duration::from_secs(1), house.agent.drive(&run, &Unwatched, &stop)).await;
    assert!(dropped.is_err());
    tokio::task::yield_now().await;
    assert_eq!(house.log.run(&run).await.unwrap().owner, None);
    assert_eq!(house.log.unknown().await.unwrap().len(), 1, "what was under way is unknown");
    cancel(&house.log, &run, "somebody").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_by_heartbeats_however_long_a_step_takes() {
    let steps = plan(&[("slow", "slow", json!({}), &[])]);
    let slow = tool("slow", Act::Echoes).takes(110_000);
    let house = House::new(saying([steps, "Done.".to_owned()]), &[slow]);
    let run = house.agent.begin(ask("?")).await.unwrap();
    let thief = async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        house.log.claim(&run, "thief", Duration::from_secs(1)).await
    };
    let stop = CancelToken::new();
    let (end, stolen) = tokio::join!(house.agent.drive(&run, &Unwatched, &stop), thief);
    assert!(matches!(end.unwrap(), RunEnd::Answered { .. }));
    assert!(stolen.is_err());
}
