//! A run of twenty writes whose process is killed at many points and then resumed.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, RandomState},
    process::{Output, Stdio},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Fixture;
use crate::test_home::wait_until;

const STEPS: usize = 20;
const ANSWER: &str = "All twenty are written.";

/// When a process is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// As soon as the ledger has this many lines.
    Lines(usize),
    /// After this many milliseconds.
    After(u64),
}

struct Ledger(Fixture);

impl Ledger {
    fn new() -> Self {
        let fixture = Fixture::new();
        // If Toolyard is killed before it writes the program's input, the input is empty, and no line is written.
        let body = "line=$(cat); [ -n \"$line\" ] && echo \"$line\" >> \"$HOME/ledger.txt\"; echo '{\"written\":true}'";
        fixture.add_program("write_line", body);
        let step = |number: usize| {
            let dependencies = if number == 0 { json!([]) } else { json!([format!("s{}", number - 1)]) };
            json!({"id": format!("s{number}"), "tool_type": "write_line", "arguments": {"text": number}, "dependencies": dependencies})
        };
        fixture.model.script_plan("twenty lines", &(0..STEPS).map(step).collect());
        fixture.model.script_answer("twenty lines", ANSWER);
        Self(fixture)
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.home.path("ledger.txt")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn command(&self, args: &[&str]) -> Output {
        self.0.home.command(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.command(args).stdout).unwrap()
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
        let was_running = asking.try_wait().unwrap().is_none();
        asking.kill().unwrap();
        asking.wait().unwrap();
        was_running
    }

    fn ask(&self) -> String {
        String::from_utf8(self.command(&["ask", "--yes", "twenty lines"]).stdout).unwrap()
    }

    /// Resumes until there is an answer; unknown outcomes are resolved by looking at the ledger.
    fn resume_to_end(&self, run: &str) -> String {
        for _ in 0..3 {
            let output = self.command(&["runs", "resume", "--yes", run]);
            let errors = String::from_utf8_lossy(&output.stderr);
            // The process was killed while it created the run; the message says what to do.
            if errors.contains("was never started") {
                assert!(self.command(&["runs", "cancel", run]).status.success());
                return self.ask();
            }
            if output.status.code() != Some(5) {
                assert!(output.status.success(), "{errors}");
                return String::from_utf8(output.stdout).unwrap();
            }
            for step in self.json(&["runs", "unknown", "--json"]).as_array().unwrap() {
                let arguments: Value =
                    serde_json::from_str(step["redacted_arguments"].as_str().unwrap()).unwrap();
                let resolution = if self.lines().contains(&arguments) { "done" } else { "not-done" };
                self.command(&["runs", "resolve", run, step["step"].as_str().unwrap(), resolution]);
            }
        }
        panic!("the run does not finish");
    }

    /// How many plans and how many answers were requested of the model.
    fn model_requests(&self) -> (usize, usize) {
        let requests = self.0.model.requests();
        let plans = requests.iter().filter(|request| request.get("response_format").is_some()).count();
        (plans, requests.len() - plans)
    }

    /// Kills once and checks all invariants. Returns whether the process was still running.
    fn check(kill: Kill) -> bool {
        let ledger = Self::new();
        let was_running = ledger.ask_and_kill(kill);
        // The skill's program may still write its line, and the model may still read a request that was sent before the kill.
        std::thread::sleep(Duration::from_millis(500));
        let (written, requests_before) = (ledger.lines().len(), ledger.model_requests());
        let runs = ledger.json(&["runs", "list", "--json"]);
        let answer = match runs[0]["id"].as_str() {
            Some(run) if runs[0]["state"] == "open" => ledger.resume_to_end(run),
            Some(_) => format!("{ANSWER}\n"),
            // The process was killed before it created a run.
            None => ledger.ask(),
        };
        assert_eq!(answer.trim(), ANSWER, "{kill:?}");
        let lines = ledger.lines();
        let all: BTreeSet<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!((lines.len(), all.len()), (STEPS, STEPS), "{kill:?}: each line once: {lines:?}");
        let (plans, answers) = ledger.model_requests();
        if written > 0 {
            assert_eq!(plans, 1, "{kill:?}: the run is not planned again");
        }
        // Only a model request that was in flight when its process was killed is repeated.
        assert!(
            plans <= requests_before.0.max(1) + 1 && answers <= requests_before.1 + 1,
            "{kill:?}: {requests_before:?} {plans} {answers}"
        );
        was_running
    }
}

#[test]
fn a_killed_run_is_resumed_without_losing_or_repeating_a_step() {
    let random = |number: u64| Kill::After(50 + RandomState::new().hash_one(number) % 1_500);
    let kills: Vec<Kill> = (1..=STEPS).map(Kill::Lines).chain((0..6).map(random)).collect();
    let (pending_kills, killed) = (Mutex::new(kills), Mutex::new(0));
    // Most of the time is spent waiting until the lease of a killed process expires.
    std::thread::scope(|scope| {
        for _ in 0..9 {
            scope.spawn(|| {
                while let Some(kill) = { pending_kills.lock().pop() } {
                    let was_running = Ledger::check(kill);
                    *killed.lock() += usize::from(was_running);
                }
            });
        }
    });
    let killed = *killed.lock();
    assert!(killed >= 20, "only {killed} processes were killed before they finished");
}
