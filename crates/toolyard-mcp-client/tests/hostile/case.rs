//! One row of the table: a hostile server, an action, and the expected outcome.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use toolyard_core::{ErrorKind, ToolError, ToolOutput};
use toolyard_mcp_client::{ConnectError, config::McpServerConfig};

use crate::test_host::{ServerTransport, TestHost, TestRegistrar, call};

/// How long a server may take to start, and to list its tools.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a call may be without response or progress.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a call may take at all.
const DEADLINE: Duration = Duration::from_secs(3);
const MAX_EXTRA_MEMORY_BYTES: u64 = 32 << 20;
/// The minimum number of calls to the healthy server.
const MIN_HEALTHY_CALLS: usize = 20;
/// A text in responses that must be dropped.
const POISON: &str = "poison";

/// One row of the table.
pub(crate) struct Case<'a> {
    pub(crate) transport: ServerTransport,
    pub(crate) name: &'a str,
    pub(crate) action: Action,
    pub(crate) expected: Expected,
}

/// What is done with the hostile server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Connect, which includes the list of tools.
    Connect,
    /// Call its tool once.
    Call,
    /// Call its tool fifty times at once.
    Calls,
    /// Call its tool with two megabytes of arguments.
    LargeCall,
    /// Abandon one call, then make another one.
    CancelThenCall,
}

/// The expected outcome. Texts must be part of the error message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// The connection fails.
    NoConnection(&'static str),
    /// The call succeeds, and so does the next one.
    Good,
    /// The call succeeds, with any output.
    Succeeds,
    /// The call fails like this.
    Fails(ErrorKind, &'static str),
    /// The same, or the idle timeout comes first: how soon a limit on bytes is reached depends on the machine.
    FailsOrLate(ErrorKind, &'static str),
    /// The call is dropped at its deadline.
    Dropped,
    /// The valid tool works, and an invalid one is quarantined for this reason.
    Quarantined(&'static str),
    /// Fifty responses of 16 MB at once: anything, with three times the memory. They are read one after the other, but the
    /// allocator does not share freed memory between threads.
    Heavy,
    /// Any typed outcome, in time.
    Anything,
}

/// The actual outcome.
#[derive(Debug)]
enum Outcome {
    NoConnection(ConnectError),
    Connected,
    Calls(Vec<Result<ToolOutput, ToolError>>),
}

/// Runs one row in a runtime of its own.
pub(crate) fn run_case(case: &Case<'_>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run_case_async(case));
}

async fn run_case_async(case: &Case<'_>) {
    let host = TestHost::new();
    let mut hostile = host.server("hostile", case.transport, case.name);
    // If the row is about calls, a slow start on a busy machine does not matter.
    hostile.startup_timeout =
        if case.action == Action::Connect { STARTUP_TIMEOUT } else { STARTUP_TIMEOUT * 3 };
    hostile.call_timeout = Some(IDLE_TIMEOUT);
    let healthy = host.server(
        "healthy",
        if case.transport.is_stdio() { ServerTransport::Stdio } else { ServerTransport::Http },
        "good",
    );
    warm_up(&host, vec![hostile, healthy]).await;
    let before = MemoryUse::now();
    let is_over = Arc::new(AtomicBool::new(false));
    let calls = tokio::spawn(healthy_calls(Arc::clone(&host.registrar), Arc::clone(&is_over)));
    let (outcome, duration) = perform(&host, case).await;
    check_outcome(&host, case, &outcome).await;
    assert!(duration <= time_limit(case) + tolerance(), "took {duration:?}: {outcome:?}");
    drop(outcome);
    is_over.store(true, Ordering::Relaxed);
    let (healthy, slowest) = calls.await.unwrap();
    let extra = before.peak_growth();
    println!("{duration:?}, {} kB, {healthy} healthy calls, slowest {slowest:?}", extra >> 10);
    assert!(slowest <= tolerance(), "the healthy server took {slowest:?}");
    let allowed = if matches!(case.expected, Expected::Heavy) {
        3 * MAX_EXTRA_MEMORY_BYTES
    } else {
        MAX_EXTRA_MEMORY_BYTES
    };
    assert!(extra <= allowed, "{extra} bytes more");
    host.close().await;
}

/// Starts and calls the healthy server, so that only the hostile one needs memory from now on.
async fn warm_up(host: &TestHost, servers: Vec<McpServerConfig>) {
    host.manager.apply(servers).await.unwrap();
    host.manager.connect("healthy").await.unwrap();
    for _ in 0..20 {
        host.call("healthy", "warm", DEADLINE).await.unwrap();
    }
}

/// Calls the healthy server until the row is over. Returns the number of calls and the slowest one.
async fn healthy_calls(registrar: Arc<TestRegistrar>, is_over: Arc<AtomicBool>) -> (usize, Duration) {
    let (mut slowest, mut count) = (Duration::ZERO, 0);
    while count < MIN_HEALTHY_CALLS || !is_over.load(Ordering::Relaxed) {
        let text = format!("number {count}");
        let started = Instant::now();
        let output =
            call(&registrar, "healthy", &text, DEADLINE * 2).await.expect("the healthy server answers");
        slowest = slowest.max(started.elapsed());
        assert_eq!(output.to_text(), text);
        count += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    (count, slowest)
}

async fn perform(host: &TestHost, case: &Case<'_>) -> (Outcome, Duration) {
    let started = Instant::now();
    let connected = host.manager.connect("hostile").await;
    if let Err(error) = connected {
        return (Outcome::NoConnection(error), started.elapsed());
    }
    if case.action == Action::Connect {
        return (Outcome::Connected, started.elapsed());
    }
    let started = Instant::now();
    let call = |text: String| async move { host.call("hostile", &text, DEADLINE).await };
    let outcomes = match case.action {
        Action::Connect => Vec::new(),
        Action::Call => vec![call("first".to_owned()).await],
        Action::Calls => join_all((0..50).map(|number| call(format!("call {number}")))).await,
        Action::LargeCall => vec![call("x".repeat(2 << 20)).await],
        Action::CancelThenCall => {
            let abandoned = host.call("hostile", "first", Duration::from_millis(100)).await;
            assert!(abandoned.is_err(), "{abandoned:?}");
            vec![call("second".to_owned()).await]
        }
    };
    (Outcome::Calls(outcomes), started.elapsed())
}

/// How much later than its limit an outcome may be known: one second, or two on a machine that may be busy with other work.
fn tolerance() -> Duration {
    Duration::from_secs(if std::env::var_os("TOOLYARD_ALONE").is_some() { 1 } else { 2 })
}

/// The limit of the action.
fn time_limit(case: &Case<'_>) -> Duration {
    match case.expected {
        Expected::NoConnection(_) | Expected::Quarantined(_) => STARTUP_TIMEOUT,
        Expected::Dropped => DEADLINE,
        _ if case.action == Action::Connect => STARTUP_TIMEOUT,
        _ => IDLE_TIMEOUT,
    }
}

async fn check_outcome(host: &TestHost, case: &Case<'_>, outcome: &Outcome) {
    if let Outcome::Calls(calls) = outcome {
        let poisoned = calls.iter().flatten().any(|output| output.to_text().contains(POISON));
        assert!(!poisoned, "an unmatched response was used: {outcome:?}");
    }
    match (case.expected, outcome) {
        (Expected::Anything | Expected::Heavy, _) => {}
        (Expected::NoConnection(message), Outcome::NoConnection(error)) => {
            assert_message(&error.to_string(), message);
        }
        (Expected::Good, Outcome::Connected) => assert_next_call_succeeds(host).await,
        (Expected::Good, Outcome::Calls(calls)) => {
            assert!(calls.iter().all(Result::is_ok), "{outcome:?}");
            assert_next_call_succeeds(host).await;
        }
        (Expected::Succeeds, Outcome::Calls(calls)) => {
            assert!(calls.iter().all(Result::is_ok), "{outcome:?}");
        }
        (Expected::Fails(kind, message), Outcome::Calls(calls)) => {
            let errors: Vec<&ToolError> =
                calls.iter().map(|call| call.as_ref().expect_err("a failure")).collect();
            assert_eq!(errors.first().map(|error| error.kind()), Some(kind), "{errors:?}");
            for error in errors {
                // Of many calls at once, late ones may not have been sent at all.
                assert!(error.kind() == kind || error.kind() == ErrorKind::Unavailable, "{error}");
                assert_message(&error.to_string(), message);
            }
        }
        (Expected::FailsOrLate(kind, message), Outcome::Calls(calls)) => {
            for error in calls.iter().map(|call| call.as_ref().expect_err("a failure")) {
                if error.kind() != ErrorKind::Timeout {
                    assert_eq!(error.kind(), kind, "{error}");
                    assert_message(&error.to_string(), message);
                }
            }
        }
        (Expected::Dropped, Outcome::Calls(calls)) => {
            let dropped = |call: &Result<_, ToolError>| matches!(call, Err(error) if error.kind() == ErrorKind::Timeout);
            assert!(calls.iter().all(dropped), "{outcome:?}");
        }
        (Expected::Quarantined(message), Outcome::Connected) => {
            let approvals = host.manager.server("hostile").unwrap().tool_approvals();
            let reasons: Vec<&str> = approvals.rejected.iter().map(|tool| tool.reason.as_str()).collect();
            assert!(reasons.iter().any(|reason| reason.contains(message)), "{reasons:?}");
            assert_next_call_succeeds(host).await;
        }
        (expected, outcome) => panic!("expected {expected:?}, got {outcome:?}"),
    }
}

async fn assert_next_call_succeeds(host: &TestHost) {
    let output = host.call("hostile", "another", DEADLINE).await.expect("the next call succeeds");
    assert_eq!(output.to_text(), "another");
}

/// Checks that an error contains the text, is short, and is safe to print.
fn assert_message(error: &str, expected: &str) {
    assert!(error.contains(expected), "`{expected}` is not in: {error}");
    assert!(error.len() < 70_000, "an error of {} bytes", error.len());
    assert!(!error.contains(['\u{1b}', '\0', '\u{202e}']), "unsafe characters: {error:?}");
}

/// The memory of this process, which runs only one case.
struct MemoryUse {
    resident: u64,
}

impl MemoryUse {
    fn now() -> Self {
        // Resets the peak.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        Self { resident: status_bytes("VmRSS:") }
    }

    fn peak_growth(&self) -> u64 {
        status_bytes("VmHWM:").saturating_sub(self.resident)
    }
}

/// A field of the process status, in bytes.
fn status_bytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}
