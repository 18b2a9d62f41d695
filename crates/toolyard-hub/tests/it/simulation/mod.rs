//! Simulations of a hub with a paused clock: callers use tools of several sources, which fail in all ways over virtual time, while the
//! operator replaces and removes sources and changes settings. All that happens follows from a seed.
//!
//! `TOOLYARD_SIMULATION_SEEDS=20000` runs more seeds; `TOOLYARD_SIMULATION_SEED=17` runs one and prints its log.

mod callers;
mod checks;
mod plan;
mod routing_model;
mod sources;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use callers::{FinishedCall, Outcome, Simulation};
use checks::violations;
use plan::Plan;
use tokio::task::JoinSet;
use toolyard_core::ErrorKind;

const DEFAULT_SEEDS: u64 = 1_000;

/// What happened in a simulation.
struct Run {
    log: Vec<String>,
    calls: Vec<FinishedCall>,
    violations: Vec<String>,
}

impl Run {
    fn log_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.log.hash(&mut hasher);
        hasher.finish()
    }

    /// Fails at the first event that differs from a run of the same seed.
    fn check_same_as(&self, replayed: &Self, seed: u64) {
        if self.log_hash() == replayed.log_hash() {
            return;
        }
        let mut pairs = self.log.iter().zip(&replayed.log);
        let difference = pairs.find(|(one, other)| one != other);
        panic!("seed {seed} does not replay identically: {difference:?}");
    }
}

fn simulate(seed: u64, explains: bool) -> Run {
    // The hub takes its random numbers from the generator of the thread.
    fastrand::seed(seed);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let simulation = Arc::new(Simulation::new(Plan::new(seed), explains));
        let world = &simulation.world;
        let of_operator = Arc::clone(&simulation);
        let operator = tokio::spawn(async move { of_operator.make_changes().await });
        let mut tasks = JoinSet::new();
        for call in world.plan.calls.clone() {
            let simulation = Arc::clone(&simulation);
            tasks.spawn(async move { vec![simulation.call(call).await] });
        }
        for source in 0..world.plan.sources.len() {
            let simulation = Arc::clone(&simulation);
            tasks.spawn(async move { simulation.call_after_recovery(source).await });
        }
        let mut calls: Vec<FinishedCall> = tasks.join_all().await.into_iter().flatten().collect();
        operator.await.unwrap();
        calls.sort_by_key(|call| call.plan.number);
        let mut violations = violations(&world.plan, &calls, &world.take_ledger());
        violations.extend(late_recoveries(&simulation, &calls));
        Run { log: world.take_log(), calls, violations }
    })
}

/// The sources that did not answer soon enough after their recovery.
fn late_recoveries(simulation: &Simulation, calls: &[FinishedCall]) -> Vec<String> {
    let is_late = |source: &usize| {
        let tool = simulation.world.plan.sources[*source].probe_tool();
        let is_answer = |call: &&FinishedCall| {
            call.plan.tool == tool
                && call.begun_at > plan::RECOVERY_AT_MS
                && matches!(call.outcome, Outcome::Output(_))
        };
        let answered_at = calls.iter().filter(is_answer).map(|call| call.begun_at).min();
        answered_at.is_none_or(|answered_at| answered_at > simulation.recovery_deadline(*source))
    };
    let late = (0..simulation.world.plan.sources.len()).filter(is_late);
    late.map(|source| format!("{} did not recover in time", simulation.world.plan.sources[source].id))
        .collect()
}

/// Fails with the log of the seed if something did not hold.
fn check(seed: u64, run: &Run) {
    assert!(
        run.violations.is_empty(),
        "seed {seed}: {}\n{}\nseed {seed}: {}\nhint: TOOLYARD_SIMULATION_SEED={seed} replays it",
        run.violations.join("\n"),
        run.log.join("\n"),
        run.violations.join("\n"),
    );
}

/// How often things happened that a simulation is run for.
#[derive(Debug, Default)]
struct Coverage {
    calls: AtomicU64,
    succeeded: AtomicU64,
    merged: AtomicU64,
    retried: AtomicU64,
    circuit_open: AtomicU64,
    outcome_unknown: AtomicU64,
    cancelled: AtomicU64,
}

impl Coverage {
    fn add(&self, run: &Run) {
        let add = |counter: &AtomicU64, is_counted: &dyn Fn(&Outcome) -> bool| {
            let count = run.calls.iter().filter(|call| is_counted(&call.outcome)).count();
            counter.fetch_add(count as u64, Ordering::Relaxed);
        };
        let is_error =
            |outcome: &Outcome, kind| matches!(outcome, Outcome::Error(error) if error.kind() == kind);
        add(&self.calls, &|_| true);
        add(&self.succeeded, &|outcome| matches!(outcome, Outcome::Output(_)));
        add(&self.merged, &|outcome| matches!(outcome, Outcome::Output(output) if output.meta.synthesized));
        add(&self.circuit_open, &|outcome| is_error(outcome, ErrorKind::CircuitOpen));
        add(&self.outcome_unknown, &|outcome| is_error(outcome, ErrorKind::OutcomeUnknown));
        add(&self.cancelled, &|outcome| matches!(outcome, Outcome::Cancelled));
        let retried = run.log.iter().filter(|line| line.contains("attempt 2:")).count();
        self.retried.fetch_add(retried as u64, Ordering::Relaxed);
    }

    /// The simulation is worth something only if most calls succeed and all kinds of trouble happen.
    fn check(&self) {
        let calls = self.calls.load(Ordering::Relaxed);
        let is_share =
            |counter: &AtomicU64, percent: u64| counter.load(Ordering::Relaxed) * 100 >= calls * percent;
        let rare = [&self.merged, &self.retried, &self.circuit_open, &self.outcome_unknown, &self.cancelled];
        assert!(is_share(&self.succeeded, 50) && rare.iter().all(|counter| is_share(counter, 1)), "{self:?}");
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn calls_are_safe_and_end_in_time_whatever_sources_do() {
    if let Some(seed) = variable("TOOLYARD_SIMULATION_SEED") {
        let run = simulate(seed, true);
        println!("{}", run.log.join("\n"));
        return check(seed, &run);
    }
    let seeds = variable("TOOLYARD_SIMULATION_SEEDS").unwrap_or(DEFAULT_SEEDS);
    let (next_seed, coverage) = (AtomicU64::new(0), Coverage::default());
    let run_seeds = || {
        loop {
            let seed = next_seed.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                break;
            }
            let run = simulate(seed, false);
            if !run.violations.is_empty() {
                // No other seed begins.
                next_seed.store(seeds, Ordering::Relaxed);
            }
            check(seed, &run);
            run.check_same_as(&simulate(seed, false), seed);
            coverage.add(&run);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(run_seeds);
        }
    });
    coverage.check();
}
