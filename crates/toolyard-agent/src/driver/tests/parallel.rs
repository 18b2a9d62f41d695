//! Parallel execution: runs take no longer than their critical path.

use std::{collections::HashMap, time::Duration};

use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::{RunEnd, RunLimits};

#[tokio::test(start_paused = true)]
async fn three_steps_and_a_join_take_exactly_the_critical_path() {
    let (fixture, run) = three_and_a_join();
    let start = Instant::now();
    let (_, end) = fixture.ask(run).await;
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!(start.elapsed().as_millis(), 200, "three at once, then one");
    assert_eq!(fixture.max_concurrent_calls(), 3);
}

#[tokio::test]
async fn three_steps_and_a_join_in_real_time() {
    // The first run initializes lazy statics.
    let (fixture, run) = three_and_a_join();
    fixture.ask(run).await;
    let (fixture, run) = three_and_a_join();
    let clock = Stopwatch::default();
    let (_, end) = fixture.agent.ask(run, &clock, &crate::CancelToken::new()).await.unwrap();
    let took = clock.between_first_and_last_step();
    assert!(matches!(end, RunEnd::Answered { .. }));
    println!(
        "3 independent tools of 100 ms and 1 join: {:.1} ms, {:.3} times the critical path",
        took.as_secs_f64() * 1e3,
        took.as_secs_f64() / 0.2
    );
    // Generous, because the machine may be busy; the test above is exact.
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Records when steps started and ended.
#[derive(Debug, Default)]
struct Stopwatch(parking_lot::Mutex<Vec<std::time::Instant>>);

impl Stopwatch {
    fn between_first_and_last_step(&self) -> Duration {
        let times = self.0.lock();
        *times.last().unwrap() - *times.first().unwrap()
    }
}

impl crate::RunWatcher for Stopwatch {
    fn on_update(&self, update: &crate::RunUpdate) {
        use crate::{RunEvent as E, RunUpdate as U};
        if let U::Event { event: E::StepStarted { .. } | E::StepEnded { .. }, .. } = update {
            self.0.lock().push(std::time::Instant::now());
        }
    }

    fn decide<'a>(
        &'a self,
        _request: &'a crate::ApprovalRequest,
    ) -> toolyard_core::BoxFuture<'a, Option<crate::ApprovalDecision>> {
        Box::pin(std::future::ready(None))
    }
}

fn three_and_a_join() -> (Fixture, crate::RunRequest) {
    let plan = plan(&[
        ("a", "wait", json!({"n": 1}), &[]),
        ("b", "wait", json!({"n": 2}), &[]),
        ("c", "wait", json!({"n": 3}), &[]),
        ("join", "wait", json!({"all": ["$a.n", "$b.n", "$c.n"]}), &[]),
    ]);
    let fixture = Fixture::new(
        replying([plan, "Joined.".to_owned()]),
        &[tool("wait", Behavior::Echo).with_delay_ms(100)],
    );
    (fixture, request("wait for all"))
}

#[tokio::test(start_paused = true)]
async fn writers_of_one_source_run_one_at_a_time() {
    let plan = plan(&[
        ("w1", "write", json!({"n": 1}), &[]),
        ("w2", "write", json!({"n": 2}), &[]),
        ("other", "elsewhere", json!({}), &[]),
    ]);
    let rules = crate::ApprovalRules { allow: vec!["*".to_owned()], ..crate::ApprovalRules::default() };
    let tools = [
        tool("write", Behavior::Echo).writes().with_delay_ms(100),
        tool("elsewhere", Behavior::Echo).writes().with_delay_ms(100).with_source("other"),
    ];
    let fixture = Fixture::new(replying([plan, "Done.".to_owned()]), &tools).with_rules(rules);
    let start = Instant::now();
    let (_, end) = fixture.ask(request("?")).await;
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!((start.elapsed().as_millis(), fixture.max_concurrent_calls()), (200, 2));
}

/// A random plan with up to three dependencies per step, and the length of its critical path in milliseconds.
fn random_plan(seed: u64, steps: usize) -> (String, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut draw = |below: usize| random.usize(..below);
    let mut ends: HashMap<usize, u64> = HashMap::new();
    let mut steps_json = Vec::new();
    for index in 0..steps {
        let dependencies: std::collections::BTreeSet<usize> =
            (0..draw(4)).filter(|_| index > 0).map(|_| draw(index.max(1))).collect();
        let milliseconds = 10 + u64::try_from(draw(90)).unwrap();
        let ready_at = dependencies.iter().map(|dependency| ends[dependency]).max().unwrap_or(0);
        ends.insert(index, ready_at + milliseconds);
        let dependencies: Vec<String> =
            dependencies.iter().map(|dependency| format!("s{dependency}")).collect();
        steps_json.push(json!({"id": format!("s{index}"), "tool_type": "wait", "dependencies": dependencies,
            "arguments": {"milliseconds": milliseconds, "step": index}, "description": ""}));
    }
    (json!({ "steps": steps_json }).to_string(), ends.values().copied().max().unwrap())
}

#[tokio::test(start_paused = true)]
async fn two_hundred_steps_take_the_critical_path() {
    for seed in 0..5 {
        let (plan, critical_path_ms) = random_plan(seed, 200);
        let fixture = Fixture::new(replying([plan, "Done.".to_owned()]), &[tool("wait", Behavior::Sleep)]);
        let start = Instant::now();
        let request_with_limits =
            crate::RunRequest { limits: RunLimits { steps: 200, ..RunLimits::default() }, ..request("?") };
        let (run, end) = fixture.ask(request_with_limits).await;
        assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
        let took = u64::try_from(start.elapsed().as_millis()).unwrap();
        println!(
            "200 steps: {took} ms, the critical path is {critical_path_ms} ms, at most {} concurrent calls",
            fixture.max_concurrent_calls()
        );
        assert!(took <= critical_path_ms * 105 / 100, "{took} > {critical_path_ms}");
        assert_eq!(fixture.calls().len(), 200);
        assert!(fixture.events(&run).await.len() > 600);
    }
}
