//! One row of the table: a hostile server, what is done with it, and what must come of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use toolyard_core::{ErrorKind, ToolError, ToolOutput};
use toolyard_mcp::{client::ConnectError, config::McpServerConfig};

use crate::house::{House, Shelves, Way, call};

/// How long a server may take to start, and to list its tools.
const STARTUP: Duration = Duration::from_secs(2);
/// How long a call may be silent.
const SILENCE: Duration = Duration::from_secs(1);
/// How long a call may take at all.
const DEADLINE: Duration = Duration::from_secs(3);
/// How much memory a hostile server may cost.
const MEMORY: u64 = 32 << 20;
/// How many calls the healthy server answers at least; the slowest may take as long as anything may be late.
const HEALTHY_CALLS: usize = 20;
/// What an answer says that must reach nobody.
const POISON: &str = "poison";

/// One row of the table.
pub(crate) struct Case<'a> {
    pub(crate) way: Way,
    pub(crate) name: &'a str,
    pub(crate) act: Act,
    pub(crate) expected: Expected,
}

/// What is done with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// It is connected to, which includes its list of tools.
    Connect,
    /// Its tool is called once.
    Call,
    /// Its tool is called fifty times at once.
    Calls,
    /// Its tool is called with two megabytes of arguments.
    LargeCall,
    /// One call is given up, then another one is made.
    CancelThenCall,
}

/// What must come of it. Words are looked for in the error.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// No connection, and why.
    NoConnection(&'static str),
    /// The call succeeds, and so does the next one.
    Good,
    /// The call succeeds, with whatever the server said.
    Answered,
    /// The call fails like this.
    Fails(ErrorKind, &'static str),
    /// The same, or it is given up as silent first: how soon a limit on bytes is reached depends on the machine.
    FailsOrLate(ErrorKind, &'static str),
    /// The call is dropped at its deadline.
    Dropped,
    /// It connects, its good tool works, and a bad one is quarantined for this reason.
    Quarantined(&'static str),
    /// Fifty answers of 16 MB at once: anything, with three times the memory. They are read one after the other, but the usual
    /// allocator keeps what one worker freed from the other one.
    Heavy,
    /// It connects or not, the call succeeds or not: but in time, and as a typed answer.
    Anything,
}

/// What came of it.
#[derive(Debug)]
enum Outcome {
    NoConnection(ConnectError),
    Connected,
    Calls(Vec<Result<ToolOutput, ToolError>>),
}

/// Plays one row in a runtime of its own.
pub(crate) fn play(case: &Case<'_>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(play_in(case));
}

async fn play_in(case: &Case<'_>) {
    let house = House::new();
    let mut hostile = house.server("hostile", case.way, case.name);
    // Where calls are looked at, a start on a busy machine is none of the row's business.
    hostile.startup_timeout = if case.act == Act::Connect { STARTUP } else { STARTUP * 3 };
    hostile.call_timeout = Some(SILENCE);
    let healthy = house.server("healthy", if case.way.is_program() { Way::Stdio } else { Way::Http }, "good");
    warm_up(&house, vec![hostile, healthy]).await;
    let before = Memory::now();
    let over = Arc::new(AtomicBool::new(false));
    let calls = tokio::spawn(healthy_calls(Arc::clone(&house.shelves), Arc::clone(&over)));
    let (outcome, took) = act(&house, case).await;
    judge(&house, case, &outcome).await;
    assert!(took <= limit(case) + late(), "it took {took:?}: {outcome:?}");
    drop(outcome);
    over.store(true, Ordering::Relaxed);
    let (healthy, slowest) = calls.await.unwrap();
    let extra = before.grown();
    println!("{took:?}, {} kB, {healthy} healthy calls, slowest {slowest:?}", extra >> 10);
    assert!(slowest <= late(), "the healthy server took {slowest:?}");
    let allowed = if matches!(case.expected, Expected::Heavy) { 3 * MEMORY } else { MEMORY };
    assert!(extra <= allowed, "{extra} bytes more");
    house.close().await;
}

/// The healthy server is running and was called, so that only the hostile one costs anything from now on.
async fn warm_up(house: &House, servers: Vec<McpServerConfig>) {
    house.manager.apply(servers).await.unwrap();
    house.manager.connect("healthy").await.unwrap();
    for _ in 0..20 {
        house.call("healthy", "warm", DEADLINE).await.unwrap();
    }
}

/// Calls the healthy server until the hostile one has done its worst; how often, and the slowest.
async fn healthy_calls(shelves: Arc<Shelves>, over: Arc<AtomicBool>) -> (usize, Duration) {
    let (mut slowest, mut count) = (Duration::ZERO, 0);
    while count < HEALTHY_CALLS || !over.load(Ordering::Relaxed) {
        let text = format!("number {count}");
        let asked = Instant::now();
        let output =
            call(&shelves, "healthy", &text, DEADLINE * 2).await.expect("the healthy server answers");
        slowest = slowest.max(asked.elapsed());
        assert_eq!(output.to_text(), text);
        count += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    (count, slowest)
}

async fn act(house: &House, case: &Case<'_>) -> (Outcome, Duration) {
    let started = Instant::now();
    let connected = house.manager.connect("hostile").await;
    if let Err(error) = connected {
        return (Outcome::NoConnection(error), started.elapsed());
    }
    if case.act == Act::Connect {
        return (Outcome::Connected, started.elapsed());
    }
    let started = Instant::now();
    let call = |text: String| async move { house.call("hostile", &text, DEADLINE).await };
    let outcomes = match case.act {
        Act::Connect => Vec::new(),
        Act::Call => vec![call("first".to_owned()).await],
        Act::Calls => join_all((0..50).map(|number| call(format!("call {number}")))).await,
        Act::LargeCall => vec![call("x".repeat(2 << 20)).await],
        Act::CancelThenCall => {
            let given_up = house.call("hostile", "first", Duration::from_millis(100)).await;
            assert!(given_up.is_err(), "{given_up:?}");
            vec![call("second".to_owned()).await]
        }
    };
    (Outcome::Calls(outcomes), started.elapsed())
}

/// How much later than its limit anything may be known. One second is what is promised; a machine that does other work at
/// the same time gets another one, unless it is told that it is alone.
fn late() -> Duration {
    Duration::from_secs(if std::env::var_os("TOOLYARD_ALONE").is_some() { 1 } else { 2 })
}

/// The limit that applies to what was done.
fn limit(case: &Case<'_>) -> Duration {
    match case.expected {
        Expected::NoConnection(_) | Expected::Quarantined(_) => STARTUP,
        Expected::Dropped => DEADLINE,
        _ if case.act == Act::Connect => STARTUP,
        _ => SILENCE,
    }
}

async fn judge(house: &House, case: &Case<'_>, outcome: &Outcome) {
    if let Outcome::Calls(calls) = outcome {
        let poisoned = calls.iter().flatten().any(|output| output.to_text().contains(POISON));
        assert!(!poisoned, "an answer to nobody was taken: {outcome:?}");
    }
    match (case.expected, outcome) {
        (Expected::Anything | Expected::Heavy, _) => {}
        (Expected::NoConnection(words), Outcome::NoConnection(error)) => says(&error.to_string(), words),
        (Expected::Good, Outcome::Connected) => good_call(house).await,
        (Expected::Good, Outcome::Calls(calls)) => {
            assert!(calls.iter().all(Result::is_ok), "{outcome:?}");
            good_call(house).await;
        }
        (Expected::Answered, Outcome::Calls(calls)) => {
            assert!(calls.iter().all(Result::is_ok), "{outcome:?}");
        }
        (Expected::Fails(kind, words), Outcome::Calls(calls)) => {
            let errors: Vec<&ToolError> =
                calls.iter().map(|call| call.as_ref().expect_err("a failure")).collect();
            assert_eq!(errors.first().map(|error| error.kind()), Some(kind), "{errors:?}");
            for error in errors {
                // Of many calls at once, those that came too late were not sent at all.
                assert!(error.kind() == kind || error.kind() == ErrorKind::Unavailable, "{error}");
                says(&error.to_string(), words);
            }
        }
        (Expected::FailsOrLate(kind, words), Outcome::Calls(calls)) => {
            for error in calls.iter().map(|call| call.as_ref().expect_err("a failure")) {
                if error.kind() != ErrorKind::Timeout {
                    assert_eq!(error.kind(), kind, "{error}");
                    says(&error.to_string(), words);
                }
            }
        }
        (Expected::Dropped, Outcome::Calls(calls)) => {
            let dropped = |call: &Result<_, ToolError>| matches!(call, Err(error) if error.kind() == ErrorKind::Timeout);
            assert!(calls.iter().all(dropped), "{outcome:?}");
        }
        (Expected::Quarantined(words), Outcome::Connected) => {
            let shelf = house.manager.server("hostile").unwrap().shelf();
            let reasons: Vec<&str> = shelf.quarantined.iter().map(|tool| tool.reason.as_str()).collect();
            assert!(reasons.iter().any(|reason| reason.contains(words)), "{reasons:?}");
            good_call(house).await;
        }
        (expected, outcome) => panic!("{expected:?} was expected, not {outcome:?}"),
    }
}

async fn good_call(house: &House) {
    let output = house.call("hostile", "another", DEADLINE).await.expect("the next call succeeds");
    assert_eq!(output.to_text(), "another");
}

/// Errors say what is expected, are short, and harmless to show.
fn says(error: &str, words: &str) {
    assert!(error.contains(words), "`{words}` is not in: {error}");
    assert!(error.len() < 70_000, "an error of {} bytes", error.len());
    assert!(!error.contains(['\u{1b}', '\0', '\u{202e}']), "it cannot be shown: {error:?}");
}

/// Memory of this process, which runs one case only.
struct Memory {
    resident: u64,
}

impl Memory {
    fn now() -> Self {
        // The highest mark so far is forgotten.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        Self { resident: status("VmRSS:") }
    }

    fn grown(&self) -> u64 {
        status("VmHWM:").saturating_sub(self.resident)
    }
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}
