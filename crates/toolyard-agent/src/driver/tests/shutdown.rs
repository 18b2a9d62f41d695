//! Runs that end early: cancelled, released, timed out, or dropped.

use std::{sync::Arc, time::Duration};

use futures_util::stream;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use toolyard_core::{Journal as _, RawJson, RunState};
use toolyard_model::{Model, ModelEvent, ModelRequest, ModelStream, ToolCalling};

use super::{flaky_log::Fault, store_failures::with_fault, *};
use crate::{
    AgentError, ApprovalRules, CancelToken, NoWatcher, RunEnd, RunEvent, RunLimit, RunLimits, RunRequest,
    StepEnd, cancel_run, request_cancellation,
};

fn allow_all() -> ApprovalRules {
    ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() }
}

fn fixture_with_hanging_tools() -> Fixture {
    let steps = plan(&[
        ("r", "read", json!({}), &[]),
        ("w", "write", json!({}), &[]),
        ("later", "echo", json!({}), &["r"]),
    ]);
    let tools = [
        tool("read", Behavior::Hang),
        tool("write", Behavior::Hang).writes().with_source("other"),
        tool("echo", Behavior::Echo).with_source("third"),
    ];
    Fixture::new(replying([steps, "Done.".to_owned()]), &tools).with_rules(allow_all())
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_run_at_once_and_marks_calls_in_flight() {
    let fixture = fixture_with_hanging_tools();
    let stop = CancelToken::new();
    let run = fixture.agent.create_run(request("?")).await.unwrap();
    let driving = fixture.agent.drive(&run, &NoWatcher, &stop);
    let cancelling = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        stop.cancel();
        Instant::now()
    };
    let (end, cancelled_at) = tokio::join!(driving, cancelling);
    assert_eq!(end.unwrap(), RunEnd::Cancelled);
    assert!(cancelled_at.elapsed() < Duration::from_millis(250), "{:?}", cancelled_at.elapsed());
    assert!(
        matches!(fixture.step_end(&run, "w").await, StepEnd::Unknown { .. }),
        "the call may have taken effect"
    );
    assert!(matches!(fixture.step_end(&run, "r").await, StepEnd::Failed { .. }), "reads have no effect");
    let milliseconds: Vec<u64> = (fixture.events(&run).await.into_iter())
        .filter_map(|event| match event {
            RunEvent::StepEnded { milliseconds, .. } => Some(milliseconds),
            _ => None,
        })
        .collect();
    assert!(milliseconds.iter().all(|time| (3_000..3_250).contains(time)), "{milliseconds:?}");
    let unknown = fixture.log.unknown_steps().await.unwrap();
    assert_eq!((unknown.len(), unknown[0].step.as_str()), (1, "w"), "a user must resolve it");
    assert_eq!(fixture.log.run(&run).await.unwrap().state, RunState::Cancelled);
    assert_eq!(fixture.resume(&run).await, RunEnd::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_released_run_finishes_its_calls_starts_nothing_and_can_be_resumed() {
    let steps = plan(&[("w", "write", json!({}), &[]), ("next", "echo", json!({}), &["w"])]);
    let tools = [
        tool("write", Behavior::Echo).with_delay_ms(5_000).writes(),
        tool("echo", Behavior::Echo).with_source("other"),
    ];
    let fixture = Fixture::new(replying([steps, "Done.".to_owned()]), &tools).with_rules(allow_all());
    let stop = CancelToken::new();
    let run = fixture.agent.create_run(request("?")).await.unwrap();
    let releasing = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.release();
    };
    let (released, ()) = tokio::join!(fixture.agent.drive(&run, &NoWatcher, &stop), releasing);
    assert_eq!(released, Err(AgentError::Released(run.clone())));
    assert!(matches!(fixture.step_end(&run, "w").await, StepEnd::Done { .. }), "the call ended");
    assert_eq!(fixture.calls(), ["write"]);
    let record = fixture.log.run(&run).await.unwrap();
    assert_eq!((record.state, record.owner), (RunState::Open, None), "the lease is released");
    let again = fixture.agent.drive(&run, &NoWatcher, &stop).await;
    assert_eq!(again, Err(AgentError::Released(run.clone())), "a used token starts nothing");
    assert!(matches!(fixture.resume(&run).await, RunEnd::Answered { .. }));
    assert_eq!(fixture.calls(), ["write", "echo"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_cancelled_before_it_starts() {
    let fixture = fixture_with_hanging_tools();
    let stop = CancelToken::new();
    stop.cancel();
    let (_, end) = fixture.agent.ask(request("?"), &NoWatcher, &stop).await.unwrap();
    assert_eq!((end, fixture.calls().len()), (RunEnd::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_tool_ends_at_its_timeout() {
    let fixture = fixture_with_hanging_tools();
    let start = Instant::now();
    let (run, end) = fixture
        .ask(RunRequest { limits: RunLimits { replans: 0, ..RunLimits::default() }, ..request("?") })
        .await;
    assert_eq!(
        end,
        RunEnd::Suspended { waiting_for: vec!["step w".to_owned()] },
        "the write may have taken effect"
    );
    assert!(matches!(fixture.step_end(&run, "r").await, StepEnd::Failed { .. }));
    assert_eq!(fixture.step_end(&run, "later").await, StepEnd::Skipped { because: "r".to_owned() });
    assert!(start.elapsed() < Duration::from_mins(10), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_ends_a_run() {
    let fixture = fixture_with_hanging_tools();
    let start = Instant::now();
    let limits = RunLimits { time: Duration::from_secs(5), ..RunLimits::default() };
    let (_, end) = fixture.ask(RunRequest { limits, ..request("?") }).await;
    assert!(matches!(end, RunEnd::LimitReached { limit: RunLimit::Time, .. }), "{end:?}");
    assert!(start.elapsed() < Duration::from_millis(5_250), "{:?}", start.elapsed());
    assert_eq!(fixture.log.unknown_steps().await.unwrap().len(), 1);
}

/// A model that is slow for everything but plans.
#[derive(Debug)]
struct SlowModel {
    plan: String,
    /// When it replied with anything but a plan.
    replied_at: Arc<Mutex<Option<Instant>>>,
}

impl Model for SlowModel {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn tool_calling(&self) -> ToolCalling {
        ToolCalling::Schema
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        Box::pin(stream::once(async {
            if request.schema.as_ref().is_some_and(|schema| schema.name == "plan") {
                return Ok(ModelEvent::Text(self.plan.clone()));
            }
            tokio::time::sleep(Duration::from_millis(5_100)).await;
            *self.replied_at.lock() = Some(Instant::now());
            Ok(ModelEvent::Text("thought".to_owned()))
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn replies_that_arrive_during_shutdown_are_counted() {
    let steps = plan(&[("r", "read", json!({}), &[]), ("t", "none", json!({}), &[])]);
    let fixture = Fixture::with_model(
        Arc::new(SlowModel { plan: steps, replied_at: Arc::default() }),
        &[tool("read", Behavior::Hang)],
    );
    let limits = RunLimits { time: Duration::from_secs(5), ..RunLimits::default() };
    let (run, end) = fixture.ask(RunRequest { limits, ..request("?") }).await;
    assert!(matches!(end, RunEnd::LimitReached { limit: RunLimit::Time, .. }), "{end:?}");
    let (state, _) = crate::load_run(&fixture.log, &run).await.unwrap();
    assert_eq!(state.usage().model_calls, 2);
}

#[tokio::test(start_paused = true)]
async fn replies_that_arrive_before_release_are_kept() {
    let (mut with_reply, mut without_reply) = (0, 0);
    for milliseconds in (2_500..6_500).step_by(100) {
        let steps = plan(&[
            ("r", "read", json!({}), &[]),
            ("t", "none", json!({}), &[]),
            ("u", "read", json!({"x": "$t"}), &[]),
        ]);
        let replied_at = Arc::default();
        let model = SlowModel { plan: steps, replied_at: Arc::clone(&replied_at) };
        let fixture =
            Fixture::with_model(Arc::new(model), &[tool("read", Behavior::Echo).with_delay_ms(milliseconds)]);
        let fixture = with_fault(fixture, Fault::AppendIsSlow(Duration::from_millis(500)));
        let stop = CancelToken::new();
        let run = fixture.agent.create_run(request("?")).await.unwrap();
        let releasing = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            stop.release();
        };
        let (released, ()) = tokio::join!(fixture.agent.drive(&run, &NoWatcher, &stop), releasing);
        assert_eq!(released, Err(AgentError::Released(run.clone())));
        let has_replied = replied_at.lock().is_some();
        let (state, _) = crate::load_run(&fixture.log, &run).await.unwrap();
        let expected = if has_replied { 2 } else { 1 };
        assert_eq!(state.usage().model_calls, expected, "{milliseconds}");
        *(if has_replied { &mut with_reply } else { &mut without_reply }) += 1;
    }
    assert!(with_reply > 3 && without_reply > 3, "{with_reply} {without_reply}");
}

#[tokio::test(start_paused = true)]
async fn a_run_without_a_request_is_cancelled_when_it_is_driven() {
    let fixture = fixture_with_hanging_tools();
    let create_empty_run =
        || async { fixture.log.create_run("agent", &RawJson::empty_object()).await.unwrap() };
    let run = create_empty_run().await;
    assert_eq!(fixture.resume(&run).await, RunEnd::Cancelled);
    assert_eq!(fixture.log.run(&run).await.unwrap().state, RunState::Cancelled);
    assert_eq!(fixture.resume(&run).await, RunEnd::Cancelled);
    assert_eq!(
        cancel_run(&fixture.log, &fixture.log, &run, "other").await,
        Err(AgentError::Finished(run.clone()))
    );

    let run = create_empty_run().await;
    cancel_run(&fixture.log, &fixture.log, &run, "other").await.unwrap();
    let (state, events) = crate::load_run(&fixture.log, &run).await.unwrap();
    assert_eq!((state.end(), events.len()), (Some(&RunEnd::Cancelled), 1));
    assert!(fixture.model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn suspended_time_does_not_count_towards_the_time_limit() {
    let steps = plan(&[("w", "write", json!({}), &[])]);
    let fixture =
        Fixture::new(replying([steps, "Done.".to_owned()]), &[tool("write", Behavior::Echo).writes()]);
    let limits = RunLimits { time: Duration::from_secs(5), ..RunLimits::default() };
    let (run, end) = fixture.ask(RunRequest { limits, ..request("?") }).await;
    assert!(matches!(end, RunEnd::Suspended { .. }));
    tokio::time::advance(Duration::from_hours(48)).await;
    let question = toolyard_core::Approvals::pending_approvals(&fixture.log).await.unwrap().remove(0);
    crate::decide_approval(&fixture.log, &fixture.log, question.id, crate::ApprovalDecision::Allow, "ada")
        .await
        .unwrap();
    assert!(matches!(fixture.resume(&run).await, RunEnd::Answered { .. }));
}

#[tokio::test(start_paused = true)]
async fn another_process_can_cancel_driven_and_suspended_runs() {
    let fixture = fixture_with_hanging_tools();
    let run = fixture.agent.create_run(request("?")).await.unwrap();
    let elsewhere = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let result = cancel_run(&fixture.log, &fixture.log, &run, "other").await;
        assert!(matches!(result, Err(AgentError::Journal(_))), "{result:?}");
        request_cancellation(&fixture.log, &run, "ada").await.unwrap();
    };
    let stop = CancelToken::new();
    let (end, ()) = tokio::join!(fixture.agent.drive(&run, &NoWatcher, &stop), elsewhere);
    assert_eq!(end.unwrap(), RunEnd::Cancelled);

    let steps = plan(&[("w", "write", json!({}), &[])]);
    let fixture = Fixture::new(replying([steps]), &[tool("write", Behavior::Echo).writes()]);
    let (run, _) = fixture.ask(request("?")).await;
    cancel_run(&fixture.log, &fixture.log, &run, "other").await.unwrap();
    assert_eq!(fixture.resume(&run).await, RunEnd::Cancelled);
    assert_eq!(
        cancel_run(&fixture.log, &fixture.log, &run, "other").await,
        Err(AgentError::Finished(run.clone()))
    );
    assert!(fixture.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_driver_releases_its_lease() {
    let fixture = fixture_with_hanging_tools();
    let run = fixture.agent.create_run(request("?")).await.unwrap();
    let stop = CancelToken::new();
    let dropped =
        tokio::time::timeout(Duration::from_secs(1), fixture.agent.drive(&run, &NoWatcher, &stop)).await;
    assert!(dropped.is_err());
    tokio::task::yield_now().await;
    assert_eq!(fixture.log.run(&run).await.unwrap().owner, None);
    assert_eq!(
        fixture.log.unknown_steps().await.unwrap().len(),
        1,
        "the outcome of the call in flight is unknown"
    );
    cancel_run(&fixture.log, &fixture.log, &run, "other").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_the_lease_during_a_long_step() {
    let steps = plan(&[("slow", "slow", json!({}), &[])]);
    let slow = tool("slow", Behavior::Echo).with_delay_ms(110_000);
    let fixture = Fixture::new(replying([steps, "Done.".to_owned()]), &[slow]);
    let run = fixture.agent.create_run(request("?")).await.unwrap();
    let other_owner = async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        fixture.log.claim(&run, "other", Duration::from_secs(1)).await
    };
    let stop = CancelToken::new();
    let (end, claim) = tokio::join!(fixture.agent.drive(&run, &NoWatcher, &stop), other_owner);
    assert!(matches!(end.unwrap(), RunEnd::Answered { .. }));
    assert!(claim.is_err());
}
