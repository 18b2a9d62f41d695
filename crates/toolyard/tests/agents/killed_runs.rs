//! A run of twenty writes whose process is killed at many points and then resumed.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, RandomState},
    process::{Output, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{Fixture, test_home::wait_until};

const STEPS: usize = 20;
const ANSWER: &str = "All twenty are written.";

/// When a process is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// As soon as this many lines are written.
    Lines(usize),
    /// After this many milliseconds.
    After(u64),
}

struct Ledger(Fixture);

impl Ledger {
    fn new() -> Self {
        let fixture = Fixture::new();
        // A process that is killed before it reads its input writes nothing.
        let work = "line=$(cat); [ -n \"$line\" ] && echo \"$line\" >> \"$HOME/ledger.txt\"; echo '{\"written\":true}'";
        fixture.has_program("write_line", work);
        let step = |number: usize| {
            let before = if number == 0 { json!([]) } else { json!([format!("s{}", number - 1)]) };
            json!({"id": format!("s{number}"), "tool_type": "write_line", "arguments": {"text": number}, "dependencies": before})
        };
        fixture.model.plans("twenty lines", &(0..STEPS).map(step).collect());
        fixture.model.answers("twenty lines", ANSWER);
        Self(fixture)
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.home.path("ledger.txt")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn command(&self, words: &[&str]) -> Output {
        self.0.home.command(words).output().unwrap()
    }

    fn data(&self, words: &[&str]) -> Value {
        serde_json::from_slice(&self.command(words).stdout).unwrap()
    }

    /// Asks, and kills the process. Returns whether it was still running.
    fn ask_and_kill(&self, kill: Kill) -> bool {
        let mut command = self.0.home.command(&["ask", "--yes", "twenty lines"]);
        let mut asking = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        match kill {
            Kill::Lines(lines) => {
                assert!(wait_until(60_000, || self.lines().len() >= lines
                    || asking.try_wait().unwrap().is_some()));
            }
            Kill::After(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
        }
        let was_there = asking.try_wait().unwrap().is_none();
        asking.kill().unwrap();
        asking.wait().unwrap();
        was_there
    }

    /// Resumes until there is an answer; unknown outcomes are resolved by looking at the ledger.
    fn go_on(&self, run: &str) -> String {
        // A program whose hub is gone may still write its line.
        std::thread::sleep(Duration::from_millis(500));
        for _ in 0..3 {
            let output = self.command(&["runs", "resume", "--yes", run]);
            if output.status.code() != Some(5) {
                return String::from_utf8(output.stdout).unwrap();
            }
            for step in self.data(&["runs", "unknown", "--json"]).as_array().unwrap() {
                let arguments: Value =
                    serde_json::from_str(step["redacted_arguments"].as_str().unwrap()).unwrap();
                let word = if self.lines().contains(&arguments) { "done" } else { "not-done" };
                self.command(&["runs", "resolve", run, step["step"].as_str().unwrap(), word]);
            }
        }
        panic!("it does not come to an end");
    }

    /// How often the model was asked for a plan, and for an answer.
    fn asked(&self) -> (usize, usize) {
        let requests = self.0.model.requests();
        let plans = requests.iter().filter(|request| request.get("response_format").is_some()).count();
        (plans, requests.len() - plans)
    }

    /// Kills once and checks all invariants. Returns whether the process was still running.
    fn check(kill: Kill) -> bool {
        let ledger = Self::new();
        let was_there = ledger.ask_and_kill(kill);
        let (written, asked) = (ledger.lines().len(), ledger.asked());
        let runs = ledger.data(&["runs", "list", "--json"]);
        let answer = match runs[0]["id"].as_str() {
            Some(run) if runs[0]["state"] == "open" => ledger.go_on(run),
            Some(_) => format!("{ANSWER}\n"),
            // It was killed before anything was asked.
            None => String::from_utf8(ledger.command(&["ask", "--yes", "twenty lines"]).stdout).unwrap(),
        };
        assert_eq!(answer.trim(), ANSWER, "{kill:?}");
        let lines = ledger.lines();
        let all: BTreeSet<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!((lines.len(), all.len()), (STEPS, STEPS), "{kill:?}: each line once: {lines:?}");
        let (plans, answers) = ledger.asked();
        if written > 0 {
            assert_eq!(plans, 1, "{kill:?}: what was planned is not planned again");
        }
        // A request that was under way when its process was killed is made again, no other.
        assert!(
            plans <= asked.0.max(1) + 1 && answers <= asked.1 + 1,
            "{kill:?}: {asked:?} {plans} {answers}"
        );
        was_there
    }
}

#[test]
fn a_killed_run_is_resumed_without_losing_or_repeating_a_step() {
    let random = |number: u64| Kill::After(50 + RandomState::new().hash_one(number) % 1_500);
    let kills: Vec<Kill> = (1..=STEPS).map(Kill::Lines).chain((0..6).map(random)).collect();
    let (waiting, killed) = (Mutex::new(kills), Mutex::new(0));
    // Most of the time is spent waiting until the run of a process is free that was killed.
    std::thread::scope(|scope| {
        for _ in 0..9 {
            scope.spawn(|| {
                while let Some(kill) = { waiting.lock().unwrap_or_else(PoisonError::into_inner).pop() } {
                    let was_there = Ledger::check(kill);
                    *killed.lock().unwrap_or_else(PoisonError::into_inner) += usize::from(was_there);
                }
            });
        }
    });
    let killed = *killed.lock().unwrap();
    assert!(killed >= 20, "only {killed} were killed in the middle");
}
