//! Kills a process before and after every write of a run of twenty steps, with a real MCP server as its tool and a real
//! HTTP server as its model: the answer stays the same, no effect is repeated or lost, and no reply is requested again.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};
use toolyard_agent::{EffectState, ModelTask, RunEnd, RunEvent, load_run};
use toolyard_core::{Journal as _, Resolution, RunId};
use toolyard_store::{Location, Store};

const STEPS: usize = 20;
/// More writes than a run makes, so that the last kill points have no effect.
const MAX_WRITES: usize = 140;
/// Concurrent processes.
const CONCURRENCY: usize = 4;
/// Time for the server of a killed process to finish its call.
const SERVER_GRACE: Duration = Duration::from_millis(500);

/// Path of an example program; test binaries are in `deps`, examples in a folder beside it.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: build all examples first", path.display());
    path
}

/// Two chains of steps. Every third step looks at a line, and its successor uses that result; the others record a line.
fn plan(label: &str) -> String {
    let steps = (0..STEPS).map(|at| {
        let tool = if at % 3 == 2 { "look_at_line" } else { "record_line" };
        let mut arguments = json!({"label": label, "line": at});
        let mut dependencies = Vec::new();
        if let Some(before) = at.checked_sub(2) {
            dependencies.push(format!("s{before}"));
            if before % 3 == 2
                && let Some(fields) = arguments.as_object_mut()
            {
                fields.insert("previous_line".to_owned(), json!(format!("$s{before}.line")));
            }
        }
        json!({"id": format!("s{at}"), "tool_type": tool, "arguments": arguments, "dependencies": dependencies,
               "description": format!("step {at}")})
    });
    json!({"steps": steps.collect::<Vec<_>>()}).to_string()
}

fn question(label: &str) -> String {
    format!("record and look at the lines of the ledger, label {label}.")
}

/// The script of the model: a plan for a question, and an answer once there are results.
fn script(labels: &[String]) -> String {
    let mut lines = Vec::new();
    for label in labels {
        let mention = format!("label {label}.");
        lines.push(json!({"contains": [mention, "s19"], "text": "All lines are done."}).to_string());
        lines.push(json!({"anywhere": [mention], "text": plan(label)}).to_string());
    }
    lines.join("\n")
}

struct TestBed {
    store: Store,
    database: PathBuf,
    ledger: PathBuf,
    model: String,
    requests: PathBuf,
    _server: Child,
    _folder: tempfile::TempDir,
}

impl TestBed {
    async fn new(labels: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("script"), script(labels)).unwrap();
        let mut server = Command::new(example("scripted_model_server"))
            .arg("--script")
            .arg(path("script"))
            .arg("--log")
            .arg(path("requests"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let model = lines.next_line().await.unwrap().unwrap();
        let database = path("toolyard.db");
        let store = Store::open(Location::Sqlite(database.clone())).await.unwrap();
        std::fs::write(path("ledger"), "").unwrap();
        let (ledger, requests) = (path("ledger"), path("requests"));
        Self { store, database, ledger, model, requests, _server: server, _folder: folder }
    }

    async fn process(&self, verb: &str, subject: &str, kill: &str) -> ProcessReport {
        let output = Command::new(example("crashing_run"))
            .arg(verb)
            .arg(&self.database)
            .arg(&self.model)
            .arg(&self.ledger)
            .arg(subject)
            .arg(kill)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        ProcessReport::parse(&tokio::time::timeout(Duration::from_mins(5), output).await.unwrap().unwrap())
    }

    /// How often each line of a label was recorded.
    fn recorded(&self, label: &str) -> BTreeMap<usize, usize> {
        let mut lines = BTreeMap::new();
        for line in std::fs::read_to_string(&self.ledger).unwrap().lines() {
            let mut words = line.split(' ');
            if (words.next(), words.next()) == (Some(label), Some("record_line")) {
                *lines.entry(words.next().unwrap().parse().unwrap()).or_default() += 1;
            }
        }
        lines
    }

    /// Number of requests for a plan and for an answer.
    fn model_requests(&self, label: &str) -> (usize, usize) {
        let mention = format!("label {label}.");
        let requests = std::fs::read_to_string(&self.requests).unwrap();
        let of_label = requests.lines().filter(|line| line.contains(&mention));
        let entries: Vec<Value> = of_label.map(|line| serde_json::from_str(line).unwrap()).collect();
        let plans =
            entries.iter().filter(|entry| entry.pointer("/request/response_format").is_some()).count();
        (plans, entries.len() - plans)
    }

    /// Whether the plan and the answer are logged.
    async fn logged_replies(&self, run: &RunId) -> (bool, bool) {
        let (_, events) = load_run(&self.store, run).await.unwrap();
        let tasks: Vec<ModelTask> = events
            .iter()
            .filter_map(|logged| match logged.event.read().unwrap() {
                RunEvent::ModelReplied { task, .. } => Some(task),
                _ => None,
            })
            .collect();
        (tasks.iter().any(|task| matches!(task, ModelTask::Plan { .. })), tasks.contains(&ModelTask::Answer))
    }
}

/// What a process printed before it ended.
#[derive(Debug)]
struct ProcessReport {
    run: Option<RunId>,
    end: Option<RunEnd>,
    killed: bool,
}

impl ProcessReport {
    fn parse(output: &Output) -> Self {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("panicked"), "{errors}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = |word: &str| text.lines().find_map(|line| line.strip_prefix(word)).map(str::to_owned);
        if let Some(error) = line("error ") {
            panic!("{error}");
        }
        Self {
            run: line("run ").map(RunId::from),
            end: line("end ").map(|end| serde_json::from_str(&end).unwrap()),
            killed: output.status.code().is_none(),
        }
    }
}

/// The outcome of one killed run.
struct KilledRun {
    killed: bool,
    unknown: usize,
}

/// Kills a run once and resumes it until it finishes. Unknown outcomes are resolved by what the ledger contains.
async fn kill_and_resume(bed: Arc<TestBed>, label: String, kill: String, expected: RunEnd) -> KilledRun {
    let first = bed.process("new", &question(&label), &kill).await;
    let run = first.run.clone().unwrap();
    tokio::time::sleep(SERVER_GRACE).await;
    let logged = bed.logged_replies(&run).await;
    let requests_before = bed.model_requests(&label);
    let (mut unknown, mut end) = (0, first.end.clone());
    for _ in 0..10 {
        match end {
            Some(RunEnd::Suspended { ref waiting_for }) => {
                for step in waiting_for {
                    unknown += 1;
                    let step = step.strip_prefix("step ").unwrap();
                    let line: usize = step.trim_start_matches('s').parse().unwrap();
                    let took_effect = bed.recorded(&label).contains_key(&line);
                    let resolution = if took_effect { Resolution::Done } else { Resolution::NotDone };
                    bed.store.resolve(&run, step, resolution, "ada").await.unwrap();
                }
            }
            Some(end) => {
                assert_eq!(end, expected, "{label}");
                break;
            }
            None => {}
        }
        end = bed.process("resume", run.as_str(), "").await.end;
        assert!(end.is_some(), "{label}: the resumed process was not killed");
    }
    check_invariants(&bed, &label, logged, requests_before);
    check_receipt(&bed, &label, &run).await;
    KilledRun { killed: first.killed, unknown }
}

/// Every line was recorded once, and no request whose reply was logged was repeated.
fn check_invariants(bed: &TestBed, label: &str, logged: (bool, bool), before: (usize, usize)) {
    let recorded = bed.recorded(label);
    let expected: Vec<usize> = (0..STEPS).filter(|at| at % 3 != 2).collect();
    assert_eq!(recorded.keys().copied().collect::<Vec<_>>(), expected, "{label}: lines are missing");
    assert!(recorded.values().all(|times| *times == 1), "{label}: lines were recorded twice: {recorded:?}");
    let (plans, answers) = bed.model_requests(label);
    let max = |logged: bool, before: usize| if logged { before } else { before + 1 };
    assert!(plans <= max(logged.0, before.0), "{label}: {plans} plans, logged {logged:?}, before {before:?}");
    assert!(
        answers <= max(logged.1, before.1),
        "{label}: {answers} answers, logged {logged:?}, before {before:?}"
    );
    assert!(plans <= 2 && answers <= 2, "{label}");
}

/// The receipt names exactly the lines that the ledger has, and was logged with the end.
async fn check_receipt(bed: &TestBed, label: &str, run: &RunId) {
    let (state, events) = load_run(&bed.store, run).await.unwrap();
    let effects = state.effects();
    let is_done = |state: EffectState| state == EffectState::Done;
    let done: Vec<usize> = effects
        .iter()
        .filter(|effect| is_done(effect.state))
        .map(|effect| effect.step.trim_start_matches('s').parse().unwrap())
        .collect();
    assert_eq!(done, bed.recorded(label).into_keys().collect::<Vec<_>>(), "{label}: {effects:?}");
    assert!(effects.iter().all(|effect| effect.target.starts_with(label)), "{label}: {effects:?}");
    let last = events.last().unwrap().event.read::<RunEvent>();
    assert!(
        matches!(last, Ok(RunEvent::Ended { effects: Some(logged), .. }) if logged == effects),
        "{label}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_killed_at_any_write_ends_the_same() {
    // Every third write by default, every write with `just crash`.
    let every_write = std::env::var_os("TOOLYARD_EVERY_WRITE").is_some();
    let kills: Vec<(String, String)> = (0..MAX_WRITES)
        .step_by(if every_write { 1 } else { 3 })
        .flat_map(|at| {
            [(format!("b{at}x"), format!("before:{at}")), (format!("a{at}x"), format!("after:{at}"))]
        })
        .collect();
    let labels: Vec<String> =
        kills.iter().map(|(label, _)| label.clone()).chain(["whole".to_owned()]).collect();
    let bed = Arc::new(TestBed::new(&labels).await);
    let whole = bed.process("new", &question("whole"), "").await;
    let expected = whole.end.unwrap();
    let RunEnd::Answered { answer, sources, .. } = &expected else { panic!("{expected:?}") };
    assert_eq!(answer, "All lines are done.");
    assert_eq!(sources.len(), 2);
    assert_eq!(bed.model_requests("whole"), (1, 1));

    let (mut kills_made, mut unknown, mut survived) = (0, 0, 0);
    for batch in kills.chunks(CONCURRENCY) {
        let mut running = tokio::task::JoinSet::new();
        for (label, kill) in batch {
            running.spawn(kill_and_resume(Arc::clone(&bed), label.clone(), kill.clone(), expected.clone()));
        }
        for run in running.join_all().await {
            kills_made += usize::from(run.killed);
            survived += usize::from(!run.killed);
            unknown += run.unknown;
        }
        if survived >= 2 * CONCURRENCY {
            break;
        }
    }
    assert!(survived > 0, "some kill points are beyond the last write");
    println!(
        "{kills_made} kills, {unknown} unknown outcomes resolved, no effect or model request repeated or lost"
    );
    assert!(kills_made > if every_write { 100 } else { 33 }, "{kills_made}");
}

#[test]
fn example_programs_are_built() {
    assert!(Path::new(&example("crashing_run")).exists() && example("scripted_model_server").exists());
}
