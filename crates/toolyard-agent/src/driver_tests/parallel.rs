//! How long runs take: no longer than their critical path.

use std::{collections::HashMap, time::Duration};

use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::{Caps, RunEnd};

#[tokio::test(start_paused = true)]
async fn three_and_a_join_take_the_critical_path_exactly() {
    let (house, run) = three_and_a_join();
    let began = Instant::now();
    let (_, end) = house.ask(run).await;
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!(began.elapsed().as_millis(), 200, "three at once, then one");
    assert_eq!(house.most_at_once(), 3);
}

#[tokio::test]
async fn three_and_a_join_by_the_clock_on_the_wall() {
    // What is made ready when it is used for the first time is not made ready again.
    let (house, run) = three_and_a_join();
    house.ask(run).await;
    let (house, run) = three_and_a_join();
    let clock = Stopwatch::default();
    let (_, end) = house.agent.ask(run, &clock, &crate::CancelToken::new()).await.unwrap();
    let took = clock.between_first_and_last_step();
    assert!(matches!(end, RunEnd::Answered { .. }));
    println!(
        "3 independent tools of 100 ms and 1 join: {:.1} ms, {:.3} times the critical path",
        took.as_secs_f64() * 1e3,
        took.as_secs_f64() / 0.2
    );
    // A busy machine is no fault of the schedule; the exact figure is the virtual one.
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Knows when the first step began and the last one ended.
#[derive(Debug, Default)]
struct Stopwatch(std::sync::Mutex<Vec<std::time::Instant>>);

impl Stopwatch {
    fn between_first_and_last_step(&self) -> Duration {
        let times = self.0.lock().unwrap();
        *times.last().unwrap() - *times.first().unwrap()
    }
}

impl crate::RunWatcher for Stopwatch {
    fn see(&self, news: &crate::RunNews) {
        use crate::{RunEvent as E, RunNews as N};
        if let N::Event { event: E::StepStarted { .. } | E::StepEnded { .. }, .. } = news {
            self.0.lock().unwrap().push(std::time::Instant::now());
        }
    }

    fn decide<'a>(
        &'a self,
        _question: &'a crate::ApprovalQuestion,
    ) -> toolyard_core::BoxFuture<'a, Option<crate::ApprovalDecision>> {
        Box::pin(std::future::ready(None))
    }
}

fn three_and_a_join() -> (House, crate::Ask) {
    let plan = plan(&[
        ("a", "wait", json!({"n": 1}), &[]),
        ("b", "wait", json!({"n": 2}), &[]),
        ("c", "wait", json!({"n": 3}), &[]),
        ("join", "wait", json!({"all": ["$a.n", "$b.n", "$c.n"]}), &[]),
    ]);
    let house = House::new(saying([plan, "Joined.".to_owned()]), &[tool("wait", Act::Echoes).takes(100)]);
    (house, ask("wait for all"))
}

#[tokio::test(start_paused = true)]
async fn writers_of_one_source_take_turns_and_readers_do_not_wait_for_other_sources() {
    let plan = plan(&[
        ("w1", "write", json!({"n": 1}), &[]),
        ("w2", "write", json!({"n": 2}), &[]),
        ("other", "elsewhere", json!({}), &[]),
    ]);
    let rules = crate::ApprovalRules { allow: vec!["*".to_owned()], ..crate::ApprovalRules::default() };
    let tools = [
        tool("write", Act::Echoes).writes().takes(100),
        tool("elsewhere", Act::Echoes).writes().takes(100).at("other"),
    ];
    let house = House::new(saying([plan, "Done.".to_owned()]), &tools).ruled(rules);
    let began = Instant::now();
    let (_, end) = house.ask(ask("?")).await;
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!((began.elapsed().as_millis(), house.most_at_once()), (200, 2));
}

/// A plan of 200 steps, each with its own duration and up to three steps before it.
fn random_plan(seed: u64, steps: usize) -> (String, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn = |below: usize| random.usize(..below);
    let mut ends: HashMap<usize, u64> = HashMap::new();
    let mut written = Vec::new();
    for at in 0..steps {
        let needs: std::collections::BTreeSet<usize> =
            (0..drawn(4)).filter(|_| at > 0).map(|_| drawn(at.max(1))).collect();
        let milliseconds = 10 + u64::try_from(drawn(90)).unwrap();
        let before = needs.iter().map(|need| ends[need]).max().unwrap_or(0);
        ends.insert(at, before + milliseconds);
        let needs: Vec<String> = needs.iter().map(|need| format!("s{need}")).collect();
        written.push(json!({"id": format!("s{at}"), "tool_type": "wait", "dependencies": needs,
            "arguments": {"milliseconds": milliseconds, "step": at}, "description": "", "complexity": "low"}));
    }
    (json!({ "steps": written }).to_string(), ends.values().copied().max().unwrap())
}

#[tokio::test(start_paused = true)]
async fn two_hundred_steps_take_their_critical_path() {
    for seed in 0..5 {
        let (plan, critical) = random_plan(seed, 200);
        let house = House::new(saying([plan, "Done.".to_owned()]), &[tool("wait", Act::Sleeps)]);
        let began = Instant::now();
        let asked = crate::Ask { caps: Caps { steps: 200, ..Caps::default() }, ..ask("?") };
        let (run, end) = house.ask(asked).await;
        assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
        let took = u64::try_from(began.elapsed().as_millis()).unwrap();
        println!(
            "200 steps: {took} ms, the critical path is {critical} ms, {} at once",
            house.most_at_once()
        );
        assert!(took <= critical * 105 / 100, "{took} > {critical}");
        assert_eq!(house.calls().len(), 200);
        assert!(house.events(&run).await.len() > 600);
    }
}
