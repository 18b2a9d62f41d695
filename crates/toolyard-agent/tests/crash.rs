//! A process is killed before and after every write of a run of twenty steps, with a real MCP server as its tool and a
//! real HTTP server as its model: the answer is the same, no effect is repeated or lost, no reply is asked for again.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test helper fails its test")]

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
use toolyard_agent::{ModelTask, RunEnd, RunEvent, load};
use toolyard_core::{Journal as _, Resolution, RunId};
use toolyard_store::{Location, Store};

const STEPS: usize = 20;
/// More writes than any run makes.
const MOST_WRITES: usize = 140;
/// So many runs are worked on at the same time.
const AT_ONCE: usize = 4;
/// What is given to a server whose caller was killed, until it has done what it was told.
const SETTLED: Duration = Duration::from_millis(500);

/// A program that was built as an example; tests stand in `deps`, examples beside it.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: build all examples first", path.display());
    path
}

/// Every third step only looks, and the next of its chain uses what it saw; the others record a line.
fn plan(mark: &str) -> String {
    let steps = (0..STEPS).map(|at| {
        let tool = if at % 3 == 2 { "look_at_line" } else { "record_line" };
        let mut arguments = json!({"mark": mark, "line": at});
        let mut needs = Vec::new();
        if let Some(before) = at.checked_sub(2) {
            needs.push(format!("s{before}"));
            if before % 3 == 2
                && let Some(fields) = arguments.as_object_mut()
            {
                fields.insert("before".to_owned(), json!(format!("$s{before}.line")));
            }
        }
        json!({"id": format!("s{at}"), "tool_type": tool, "arguments": arguments, "dependencies": needs,
               "description": format!("step {at}"), "complexity": "low"})
    });
    json!({"steps": steps.collect::<Vec<_>>()}).to_string()
}

fn question(mark: &str) -> String {
    format!("record and look at the lines of the ledger, mark {mark}.")
}

/// What the model says: a plan to a question, and an answer once there are results.
fn script(marks: &[String]) -> String {
    let mut lines = Vec::new();
    for mark in marks {
        let said = format!("mark {mark}.");
        lines.push(json!({"contains": [said, "s19"], "text": "All twenty lines are done."}).to_string());
        lines.push(json!({"anywhere": [said], "text": plan(mark)}).to_string());
    }
    lines.join("\n")
}

struct House {
    store: Store,
    place: PathBuf,
    ledger: PathBuf,
    model: String,
    requests: PathBuf,
    _server: Child,
    _folder: tempfile::TempDir,
}

impl House {
    async fn new(marks: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("script"), script(marks)).unwrap();
        let mut server = Command::new(example("scripted_model_server"))
            .arg("--script")
            .arg(at("script"))
            .arg("--log")
            .arg(at("requests"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let model = lines.next_line().await.unwrap().unwrap();
        let place = at("toolyard.db");
        let store = Store::open(Location::Sqlite(place.clone())).await.unwrap();
        std::fs::write(at("ledger"), "").unwrap();
        let (ledger, requests) = (at("ledger"), at("requests"));
        Self { store, place, ledger, model, requests, _server: server, _folder: folder }
    }

    async fn process(&self, verb: &str, subject: &str, kill: &str) -> Said {
        let output = Command::new(example("crashing_run"))
            .arg(verb)
            .arg(&self.place)
            .arg(&self.model)
            .arg(&self.ledger)
            .arg(subject)
            .arg(kill)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        Said::of(&tokio::time::timeout(Duration::from_mins(5), output).await.unwrap().unwrap())
    }

    /// How often each line of a mark was recorded.
    fn recorded(&self, mark: &str) -> BTreeMap<usize, usize> {
        let mut lines = BTreeMap::new();
        for line in std::fs::read_to_string(&self.ledger).unwrap().lines() {
            let mut words = line.split(' ');
            if (words.next(), words.next()) == (Some(mark), Some("record_line")) {
                *lines.entry(words.next().unwrap().parse().unwrap()).or_default() += 1;
            }
        }
        lines
    }

    /// How often the model was asked for a plan and for an answer.
    fn asked(&self, mark: &str) -> (usize, usize) {
        let said = format!("mark {mark}.");
        let requests = std::fs::read_to_string(&self.requests).unwrap();
        let of_mark = requests.lines().filter(|line| line.contains(&said));
        let entries: Vec<Value> = of_mark.map(|line| serde_json::from_str(line).unwrap()).collect();
        let plans =
            entries.iter().filter(|entry| entry.pointer("/request/response_format").is_some()).count();
        (plans, entries.len() - plans)
    }

    /// Which replies of the model are written down.
    async fn kept(&self, run: &RunId) -> (bool, bool) {
        let (_, events) = load(&self.store, run).await.unwrap();
        let tasks: Vec<ModelTask> = events
            .iter()
            .filter_map(|logged| match logged.event.read().unwrap() {
                RunEvent::ModelAnswered { task, .. } => Some(task),
                _ => None,
            })
            .collect();
        (tasks.iter().any(|task| matches!(task, ModelTask::Plan { .. })), tasks.contains(&ModelTask::Answer))
    }
}

/// What a process said before it ended.
#[derive(Debug)]
struct Said {
    run: Option<RunId>,
    end: Option<RunEnd>,
    killed: bool,
}

impl Said {
    fn of(output: &Output) -> Self {
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

/// What came of one run.
struct Story {
    killed: bool,
    unknown: usize,
}

/// One run that is killed once, and brought to its end by other processes. A person, who can look at the ledger, says
/// what became of calls that nobody knows the end of.
async fn one_story(house: Arc<House>, mark: String, kill: String, expected: RunEnd) -> Story {
    let first = house.process("new", &question(&mark), &kill).await;
    let run = first.run.clone().unwrap();
    tokio::time::sleep(SETTLED).await;
    let kept = house.kept(&run).await;
    let asked_before = house.asked(&mark);
    let (mut unknown, mut end) = (0, first.end.clone());
    for _ in 0..10 {
        match end {
            Some(RunEnd::Suspended { ref waiting }) => {
                for step in waiting {
                    unknown += 1;
                    let step = step.strip_prefix("step ").unwrap();
                    let line: usize = step.trim_start_matches('s').parse().unwrap();
                    let happened = house.recorded(&mark).contains_key(&line);
                    let word = if happened { Resolution::Done } else { Resolution::NotDone };
                    house.store.resolve(&run, step, word, "person").await.unwrap();
                }
            }
            Some(end) => {
                assert_eq!(end, expected, "{mark}");
                break;
            }
            None => {}
        }
        end = house.process("resume", run.as_str(), "").await.end;
        assert!(end.is_some(), "{mark}: nobody killed this one");
    }
    check(&house, &mark, kept, asked_before);
    Story { killed: first.killed, unknown }
}

/// Every line once, and no request whose reply was kept made again.
fn check(house: &House, mark: &str, kept: (bool, bool), before: (usize, usize)) {
    let recorded = house.recorded(mark);
    let expected: Vec<usize> = (0..STEPS).filter(|at| at % 3 != 2).collect();
    assert_eq!(recorded.keys().copied().collect::<Vec<_>>(), expected, "{mark}: lines are missing");
    assert!(recorded.values().all(|times| *times == 1), "{mark}: lines were recorded twice: {recorded:?}");
    let (plans, answers) = house.asked(mark);
    let most = |kept: bool, before: usize| if kept { before } else { before + 1 };
    assert!(plans <= most(kept.0, before.0), "{mark}: {plans} plans, kept {kept:?}, before {before:?}");
    assert!(answers <= most(kept.1, before.1), "{mark}: {answers} answers, kept {kept:?}, before {before:?}");
    assert!(plans <= 2 && answers <= 2, "{mark}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_before_and_after_every_write_a_run_comes_to_the_same_end() {
    let kills: Vec<(String, String)> = (0..MOST_WRITES)
        .flat_map(|at| {
            [(format!("b{at}x"), format!("before:{at}")), (format!("a{at}x"), format!("after:{at}"))]
        })
        .collect();
    let marks: Vec<String> = kills.iter().map(|(mark, _)| mark.clone()).chain(["whole".to_owned()]).collect();
    let house = Arc::new(House::new(&marks).await);
    let whole = house.process("new", &question("whole"), "").await;
    let expected = whole.end.unwrap();
    let RunEnd::Answered { answer, sources, .. } = &expected else { panic!("{expected:?}") };
    assert_eq!(answer, "All twenty lines are done.");
    assert_eq!(sources.len(), 2);
    assert_eq!(house.asked("whole"), (1, 1));

    let (mut stories, mut unknown, mut survived) = (0, 0, 0);
    for batch in kills.chunks(AT_ONCE) {
        let mut running = tokio::task::JoinSet::new();
        for (mark, kill) in batch {
            running.spawn(one_story(Arc::clone(&house), mark.clone(), kill.clone(), expected.clone()));
        }
        for story in running.join_all().await {
            stories += usize::from(story.killed);
            survived += usize::from(!story.killed);
            unknown += story.unknown;
        }
        if survived >= 2 * AT_ONCE {
            break;
        }
    }
    assert!(survived > 0, "there are kills beyond the last write");
    println!(
        "{stories} kills, each before or after another write: {unknown} calls were unknown and asked about, \
         0 effects repeated, 0 lost, 0 replies of the model asked for again"
    );
    assert!(stories > 100, "{stories}");
}

/// The programs must be there; a missing part fails the run.
#[test]
fn the_programs_were_built() {
    assert!(Path::new(&example("crashing_run")).exists() && example("scripted_model_server").exists());
}
