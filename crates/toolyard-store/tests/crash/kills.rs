//! Kills and pauses processes at every point of the journal, then compares the rows with an independent ledger.

#![expect(clippy::print_stdout, reason = "campaigns print their figures")]

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use tokio::process::{Child, Command};
use toolyard_core::{Journal, RawJson, Resolution, RunId, StepState};
use toolyard_store::{Engine, Store};

use crate::common::TestStore;

crate::on_both_engines!(
    no_kill_at_a_transition_repeats_or_loses_a_step,
    no_kill_at_a_random_instant_repeats_or_loses_a_step,
    a_paused_owner_never_writes
);

const STEPS_PER_RUN: usize = 20;
const KILL_POINTS: [&str; 5] = ["before-begin", "after-begin", "after-send", "after-answer", "after-finish"];
const MAX_CONCURRENT_RUNS: usize = 6;
const LEASE_MILLIS: &str = "150";
/// Arguments of a worker that neither kills itself nor pauses.
const NO_KILL: &str = "";
const NO_PAUSE: &str = "0";
/// The pauses of competing workers are longer than their leases.
const COMPETING_LEASE_MILLIS: &str = "60";
const COMPETING_PAUSE_MILLIS: &str = "70";
/// The exit code of a worker after a step whose outcome is unknown.
const EXIT_UNKNOWN: i32 = 5;

/// The size of a campaign: a smoke test by default, more with `just crash`.
fn campaign_size(variable: &str, smoke: usize) -> usize {
    std::env::var(variable).ok().and_then(|count| count.parse().ok()).unwrap_or(smoke)
}

/// Random kills per engine.
fn random_kills() -> usize {
    campaign_size("TOOLYARD_RANDOM_KILLS", 60)
}

pub(crate) fn worker_path() -> PathBuf {
    // Tests are in `deps`, examples beside it.
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/journal_worker")
}

/// A process that records every call it receives.
struct Ledger {
    _process: Child,
    address: String,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Ledger {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, log) = (folder.path().join("port"), folder.path().join("log"));
        let process = Command::new(worker_path())
            .arg("ledger")
            .arg(&port)
            .arg(&log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let address = loop {
            match std::fs::read_to_string(&port) {
                Ok(address) if !address.is_empty() => break address,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        Self { _process: process, address, log, _folder: folder }
    }

    /// The calls of one run as (step, owner), in order of arrival.
    fn calls(&self, run: &RunId) -> Vec<(String, String)> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        log.lines()
            .filter_map(|line| {
                let mut fields = line.split(' ');
                (fields.next()? == run.as_str())
                    .then(|| (fields.next().unwrap().to_owned(), fields.next().unwrap().to_owned()))
            })
            .collect()
    }
}

/// Starts one worker process on a run.
fn start_worker(
    test_store: &TestStore,
    run: &RunId,
    ledger: &Ledger,
    owner: &str,
    lease_millis: &str,
    kill_at: &str,
    pause_millis: &str,
) -> Child {
    Command::new(worker_path())
        .args([
            "steps",
            &test_store.to_argument(),
            run.as_str(),
            &ledger.address,
            owner,
            lease_millis,
            kill_at,
            pause_millis,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// The output lines of a worker and its exit code.
async fn wait_for_exit(child: Child) -> (Vec<String>, Option<i32>) {
    let output = child.wait_with_output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("panicked"), "{errors}");
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    (lines, output.status.code())
}

fn finished_steps(lines: &[String]) -> Vec<String> {
    lines
        .iter()
        .filter_map(|line| line.strip_prefix("finished ")?.split(' ').next().map(str::to_owned))
        .collect()
}

/// The course of a run whose first worker was killed.
struct RunTrace {
    run: RunId,
    /// Steps acknowledged as finished, per process, in the order of the processes.
    acknowledged: Vec<(String, Vec<String>)>,
    unknown: Vec<String>,
}

/// Starts workers one after another until the run is finished, and resolves unknown steps by the ledger.
async fn run_to_completion(
    test_store: &TestStore,
    store: &Store,
    ledger: &Ledger,
    run: RunId,
    first: (String, Vec<String>),
) -> RunTrace {
    let mut trace = RunTrace { run, acknowledged: vec![first], unknown: Vec::new() };
    for incarnation in 1.. {
        assert!(incarnation < 60, "the run does not finish");
        let owner = format!("w{incarnation}");
        let (lines, code) = wait_for_exit(start_worker(
            test_store,
            &trace.run,
            ledger,
            &owner,
            LEASE_MILLIS,
            NO_KILL,
            NO_PAUSE,
        ))
        .await;
        trace.acknowledged.push((owner, finished_steps(&lines)));
        match code {
            Some(0) => break,
            Some(EXIT_UNKNOWN) => {
                let step = lines.iter().find_map(|line| line.strip_prefix("unknown ")).unwrap().to_owned();
                let listed = store.unknown_steps().await.unwrap();
                assert!(
                    listed.iter().any(|known| known.run == trace.run && known.step == step),
                    "unknown steps must be listed"
                );
                let happened = ledger.calls(&trace.run).iter().any(|(called, _)| *called == step);
                let resolution = if happened { Resolution::Done } else { Resolution::NotDone };
                store.resolve(&trace.run, &step, resolution, "user").await.unwrap();
                trace.unknown.push(step);
            }
            other => panic!("worker ended with {other:?}: {lines:?}"),
        }
    }
    trace
}

/// Checks that no side effect happened twice or is missing, and that no finished step ran again.
async fn check_trace(trace: &RunTrace, store: &Store, ledger: &Ledger) {
    let calls = ledger.calls(&trace.run);
    let mut calls_per_step: HashMap<&str, usize> = HashMap::new();
    for (step, _) in &calls {
        *calls_per_step.entry(step).or_default() += 1;
    }
    for number in 0..STEPS_PER_RUN {
        let step = format!("{number:02}");
        let times = calls_per_step.get(step.as_str()).copied().unwrap_or(0);
        if number % 3 == 2 {
            assert!(times >= 1, "step {step} of {} never ran", trace.run);
        } else {
            assert_eq!(times, 1, "side effect {step} of {} happened {times} times", trace.run);
        }
    }
    for (index, (_, steps)) in trace.acknowledged.iter().enumerate() {
        let later: HashSet<&String> =
            trace.acknowledged.iter().skip(index + 1).map(|(owner, _)| owner).collect();
        for step in steps {
            let again = calls.iter().any(|(called, owner)| called == step && later.contains(owner));
            assert!(!again, "finished step {step} of {} ran again", trace.run);
        }
    }
    let rows = store.steps(&trace.run).await.unwrap();
    assert_eq!(rows.len(), STEPS_PER_RUN);
    assert!(rows.iter().all(|row| row.state == StepState::Done));
    assert!(
        trace.unknown.iter().all(|step| step.parse::<usize>().unwrap() % 3 != 2),
        "only writes can be unknown"
    );
}

/// Runs, kills, completes and checks one run; returns how many steps were unknown.
async fn trace_run(
    test_store: Arc<TestStore>,
    store: Store,
    ledger: Arc<Ledger>,
    kill_at: String,
    kill_after: Option<Duration>,
) -> usize {
    let run = store.create_run("crash", &RawJson::empty_object()).await.unwrap();
    let mut child = start_worker(&test_store, &run, &ledger, "w0", LEASE_MILLIS, &kill_at, NO_PAUSE);
    if let Some(after) = kill_after {
        tokio::time::sleep(after).await;
        let _ = child.start_kill();
    }
    let (lines, _) = wait_for_exit(child).await;
    let first = ("w0".to_owned(), finished_steps(&lines));
    let trace = run_to_completion(&test_store, &store, &ledger, run, first).await;
    check_trace(&trace, &store, &ledger).await;
    trace.unknown.len()
}

/// Runs all traces; returns how many there were, and how many steps were unknown.
async fn trace_all(engine: Engine, kills: Vec<(String, Option<Duration>)>) -> (usize, usize) {
    let test_store = Arc::new(TestStore::new(engine).await);
    let store = test_store.open().await;
    let ledger = Arc::new(Ledger::start().await);
    let (mut running, mut runs, mut unknown) = (tokio::task::JoinSet::new(), 0, 0);
    for (kill_at, kill_after) in kills {
        if running.len() >= MAX_CONCURRENT_RUNS {
            unknown += running.join_next().await.unwrap().unwrap();
        }
        runs += 1;
        running.spawn(trace_run(
            Arc::clone(&test_store),
            store.clone(),
            Arc::clone(&ledger),
            kill_at,
            kill_after,
        ));
    }
    unknown += running.join_all().await.into_iter().sum::<usize>();
    assert!(store.unknown_steps().await.unwrap().is_empty(), "no step is left unknown");
    (runs, unknown)
}

async fn no_kill_at_a_transition_repeats_or_loses_a_step(engine: Engine) {
    let points = KILL_POINTS
        .iter()
        .flat_map(|point| (0..STEPS_PER_RUN).map(move |step| (format!("{point}:{step}"), None)));
    let (runs, unknown) = trace_all(engine, points.collect()).await;
    println!("{engine:?}: {runs} kills at transitions, {unknown} steps reported unknown, 0 repeated, 0 lost");
    // Between intent and outcome each write is unknown: three points times fourteen writes.
    assert_eq!((runs, unknown), (100, 3 * 14));
}

async fn no_kill_at_a_random_instant_repeats_or_loses_a_step(engine: Engine) {
    let kills = (0..random_kills())
        .map(|_| (String::new(), Some(Duration::from_micros(fastrand::u64(5_000..350_000)))));
    let (runs, unknown) = trace_all(engine, kills.collect()).await;
    println!(
        "{engine:?}: {runs} kills at random instants, {unknown} steps reported unknown, 0 repeated, 0 lost"
    );
}

/// Two processes compete for one run, each pausing at times for longer than its lease.
async fn a_paused_owner_never_writes(engine: Engine) {
    let rounds = campaign_size("TOOLYARD_LEASE_CONTESTS", 25);
    let test_store = Arc::new(TestStore::new(engine).await);
    let store = test_store.open().await;
    let ledger = Arc::new(Ledger::start().await);
    let (mut running, mut lost_leases) = (tokio::task::JoinSet::new(), 0);
    for _ in 0..rounds {
        if running.len() >= MAX_CONCURRENT_RUNS {
            lost_leases += running.join_next().await.unwrap().unwrap();
        }
        running.spawn(compete(Arc::clone(&test_store), store.clone(), Arc::clone(&ledger)));
    }
    lost_leases += running.join_all().await.into_iter().sum::<usize>();
    println!("{engine:?}: {rounds} rounds, leases lost {lost_leases} times");
    assert!(lost_leases > rounds / 4, "the pauses must have cost leases: {lost_leases}");
}

/// Returns how many leases were lost.
async fn compete(test_store: Arc<TestStore>, store: Store, ledger: Arc<Ledger>) -> usize {
    let run = store.create_run("compete", &RawJson::empty_object()).await.unwrap();
    let worker = |owner: &str| {
        wait_for_exit(start_worker(
            &test_store,
            &run,
            &ledger,
            owner,
            COMPETING_LEASE_MILLIS,
            NO_KILL,
            COMPETING_PAUSE_MILLIS,
        ))
    };
    let ((one, one_code), (two, two_code)) = tokio::join!(worker("one"), worker("two"));
    assert_eq!((one_code, two_code), (Some(0), Some(0)), "{one:?} {two:?}");
    // Acknowledged outcomes by step: owner and fencing number.
    let mut acknowledged: HashMap<&str, Vec<(&str, &str)>> = HashMap::new();
    for (owner, lines) in [("one", &one), ("two", &two)] {
        for line in lines.iter().filter_map(|line| line.strip_prefix("finished ")) {
            let (step, fence) = line.split_once(' ').unwrap();
            acknowledged.entry(step).or_default().push((owner, fence));
        }
    }
    let rows = store.steps(&run).await.unwrap();
    assert_eq!(rows.len(), STEPS_PER_RUN);
    for row in &rows {
        let writers = acknowledged.get(row.step.as_str()).map(Vec::as_slice).unwrap_or_default();
        let [(owner, fence)] = writers else {
            panic!("step {} of {run} was written by {writers:?}", row.step)
        };
        let written = row.outcome.as_ref().unwrap().to_value();
        assert_eq!(written["by"], *owner);
        assert_eq!(written["fence"].to_string(), *fence);
        assert_eq!(row.fence.to_string(), *fence);
    }
    assert!(rows.is_sorted_by_key(|row| row.fence), "a later step never has an older owner");
    one.iter().chain(&two).filter(|line| line.starts_with("lost")).count()
}

/// SQLite under many writers, killed again and again: the file is intact and no acknowledged write is missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_killed_under_load_loses_nothing() {
    let rounds = campaign_size("TOOLYARD_WRITER_KILLS", 20);
    let test_store = TestStore::new(Engine::Sqlite).await;
    let run = test_store.open().await.create_run("flood", &RawJson::empty_object()).await.unwrap();
    let mut acknowledged: HashMap<String, StepState> = HashMap::new();
    for _ in 0..rounds {
        let mut child = Command::new(worker_path())
            .args(["flood", &test_store.to_argument(), run.as_str()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(fastrand::u64(30..250))).await;
        child.start_kill().unwrap();
        for line in wait_for_exit(child).await.0 {
            // The kill may truncate the last line; that step was not acknowledged.
            match line.split_once(' ') {
                Some(("began", step)) => {
                    acknowledged.entry(step.to_owned()).or_insert(StepState::Started);
                }
                Some(("finished", step)) => drop(acknowledged.insert(step.to_owned(), StepState::Done)),
                _ => {}
            }
        }
    }
    let store = test_store.open().await;
    assert!(store.check().await.unwrap().is_healthy());
    let rows: HashMap<String, StepState> =
        store.steps(&run).await.unwrap().into_iter().map(|row| (row.step, row.state)).collect();
    println!("{rounds} kills under load, {} acknowledged steps, {} rows", acknowledged.len(), rows.len());
    assert!(acknowledged.len() > rounds, "there must have been load");
    for (step, state) in acknowledged {
        let known = rows.get(&step).unwrap_or_else(|| panic!("{step} was acknowledged and is missing"));
        assert!(
            state != StepState::Done || *known == StepState::Done,
            "{step} was finished and is {known:?}"
        );
    }
}

/// Fails early if the worker is missing.
#[test]
fn the_worker_was_built() {
    assert!(Path::new(&worker_path()).exists(), "{} is missing", worker_path().display());
}
