//! How often servers are started, and that they leave nothing behind.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use parking_lot::{Condvar, Mutex};
use toolyard_core::{CallContext, ErrorKind, RawJson, ToolCallRequest};
use toolyard_mcp_client::{
    HostEnvironment,
    config::{McpServerConfig, TransportConfig},
};

use crate::test_host::{ServerTransport, TestHost, hostile_server};

const TIMEOUT: Duration = Duration::from_secs(10);

/// A server that records each of its starts in a file.
fn recorded_server(host: &TestHost, id: &str, case: &str) -> McpServerConfig {
    let record = host.path("starts").display().to_string();
    host.server_with(
        id,
        ServerTransport::Stdio,
        ["stdio", "--record", &record, case].map(str::to_owned).to_vec(),
    )
}

/// The processes that recorded their start.
fn recorded_starts(host: &TestHost) -> Vec<String> {
    let text = fs::read_to_string(host.path("starts")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

async fn wait_until(description: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {description}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_concurrent_calls_to_a_stopped_server_start_one_process() {
    let host = TestHost::new();
    host.manager.apply(vec![recorded_server(&host, "server", "good")]).await.unwrap();
    host.manager.connect("server").await.unwrap();
    host.manager.server("server").unwrap().stop().await;
    assert_eq!(host.processes(), Vec::<String>::new());
    assert_eq!(recorded_starts(&host).len(), 1);
    let calls = join_all((0..100).map(|number| {
        let (host, text) = (&host, format!("call {number}"));
        async move { (host.call("server", &text, TIMEOUT).await.unwrap().to_text(), text) }
    }));
    for (answer, text) in calls.await {
        assert_eq!(answer, text);
    }
    assert_eq!(recorded_starts(&host).len(), 2, "the calls share one process");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_server_is_started_before_the_first_call() {
    let host = TestHost::new();
    host.manager.apply(vec![recorded_server(&host, "server", "good")]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(recorded_starts(&host), Vec::<String>::new());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_is_stopped_and_restarted_by_a_call() {
    let host = TestHost::new();
    let mut config = recorded_server(&host, "server", "good");
    config.idle_stop = Some(Duration::from_millis(300));
    host.manager.apply(vec![config]).await.unwrap();
    host.manager.connect("server").await.unwrap();
    wait_until("stopped", || host.manager.server("server").unwrap().state().label() == "stopped").await;
    assert_eq!(host.processes(), Vec::<String>::new());
    assert_eq!(host.call("server", "again", TIMEOUT).await.unwrap().to_text(), "again");
    assert_eq!(recorded_starts(&host).len(), 2);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_server_is_restarted_without_a_call() {
    let host = TestHost::new();
    host.manager.apply(vec![recorded_server(&host, "server", "good")]).await.unwrap();
    host.manager.connect("server").await.unwrap();
    assert_eq!(host.registrar.ready_reports(), 1);
    let first = recorded_starts(&host).pop().unwrap();
    let killed = std::process::Command::new("kill").args(["-9", &first]).status().unwrap();
    assert!(killed.success());
    wait_until("started again", || recorded_starts(&host).len() == 2).await;
    wait_until("ready again", || host.manager.is_connected("server")).await;
    wait_until("reported ready again", || host.registrar.ready_reports() == 2).await;
    assert_eq!(host.call("server", "back", TIMEOUT).await.unwrap().to_text(), "back");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tools_of_a_server_that_was_down_are_registered_when_it_is_up() {
    let host = TestHost::new();
    let up_file = host.path("up");
    let script =
        format!("test -e {} || exit 1; exec {} stdio good", up_file.display(), hostile_server().display());
    let config = host.command("server", "/bin/sh".to_owned(), vec!["-c".to_owned(), script]);
    host.manager.apply(vec![config]).await.unwrap();
    assert!(host.manager.connect("server").await.is_err());
    assert_eq!(host.manager.server("server").unwrap().state().label(), "down");
    assert!(host.registrar.find("server", "echo").is_none());
    fs::write(&up_file, "").unwrap();
    wait_until("tools registered", || host.registrar.find("server", "echo").is_some()).await;
    assert_eq!(host.call("server", "up", TIMEOUT).await.unwrap().to_text(), "up");
    host.close().await;
}

/// A call through a tool of a removed server does not restart the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_server_is_never_started_again() {
    let host = TestHost::new();
    host.manager.apply(vec![recorded_server(&host, "server", "good")]).await.unwrap();
    host.manager.connect("server").await.unwrap();
    let tool = host.registrar.find("server", "echo").unwrap();
    host.manager.apply(Vec::new()).await.unwrap();
    assert_eq!(host.processes(), Vec::<String>::new());
    let request = ToolCallRequest::new("echo", RawJson::from(serde_json::json!({"text": "late"})));
    let error = tool.call(&request, &CallContext::until(Instant::now() + TIMEOUT)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(recorded_starts(&host).len(), 1);
    assert!(host.registrar.find("server", "echo").is_none());
    host.close().await;
}

/// The hub repeats calls that are marked as never sent, whatever their tools do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_a_server_received_is_never_marked_as_not_sent() {
    let host = TestHost::new();
    let cases = ["status-404", "status-429", "status-503", "challenge-strange", "nothing"];
    let servers = cases.map(|case| host.server(case, ServerTransport::Http, case));
    host.manager.apply(Vec::from(servers)).await.unwrap();
    for case in cases {
        host.manager.connect(case).await.unwrap();
        let mut error = host.call(case, "received", TIMEOUT).await.unwrap_err();
        assert!(!error.take_never_sent(), "{case}: {error}");
    }
    host.close().await;
}

/// The exit must be noticed among many other messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_during_a_flood_of_requests_is_noticed() {
    let host = TestHost::new();
    host.manager.apply(vec![recorded_server(&host, "server", "requests-then-exit")]).await.unwrap();
    host.manager.connect("server").await.unwrap();
    wait_until("started again", || recorded_starts(&host).len() >= 2).await;
    host.close().await;
}

/// A thousand starts and stops, ten servers at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_descriptors_stay_flat_over_a_thousand_cycles() {
    let host = TestHost::new();
    let ids: Vec<String> = (0..10).map(|number| format!("server{number}")).collect();
    let configs = ids.iter().map(|id| recorded_server(&host, id, "good")).collect();
    host.manager.apply(configs).await.unwrap();
    let cycles = |count: usize| {
        let host = &host;
        join_all(ids.iter().map(move |id| async move {
            for _ in 0..count {
                host.manager.connect(id).await.unwrap();
                host.manager.server(id).unwrap().stop().await;
            }
        }))
    };
    cycles(2).await;
    let (descriptors, tasks) =
        (entry_count(Path::new("/proc/self/fd")), entry_count(Path::new("/proc/self/task")));
    let started = Instant::now();
    cycles(100).await;
    println!("1,000 cycles in {:?}", started.elapsed());
    assert_eq!(entry_count(Path::new("/proc/self/fd")), descriptors);
    // The runtime keeps threads that were blocked, at most one for each server.
    assert!(entry_count(Path::new("/proc/self/task")) <= tasks + ids.len());
    assert_eq!(recorded_starts(&host).len(), 1_020);
    assert_eq!(host.processes(), Vec::<String>::new());
    host.close().await;
}

fn entry_count(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// A keychain that waits for its owner.
#[derive(Default)]
struct LockedKeychain {
    is_unlocked: Mutex<bool>,
    changed: Condvar,
}

impl HostEnvironment for LockedKeychain {
    fn variable(&self, _: &str) -> Option<String> {
        let mut is_unlocked = self.is_unlocked.lock();
        self.changed.wait_while_for(&mut is_unlocked, |is_unlocked| !*is_unlocked, TIMEOUT);
        is_unlocked.then(|| "s3cret-value".to_owned())
    }
}

// One thread: if a variable blocked it, nothing would unlock the keychain.
#[tokio::test]
async fn other_tasks_go_on_while_a_variable_waits_for_the_keychain() {
    let keychain = Arc::new(LockedKeychain::default());
    let host = TestHost::with_environment(Arc::clone(&keychain) as _);
    let mut server = host.server("server", ServerTransport::Stdio, "good");
    let TransportConfig::Stdio { env, .. } = &mut server.transport else { unreachable!() };
    env.insert("TOKEN".to_owned(), "${secret:TOKEN}".to_owned());
    let unlock = async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        *keychain.is_unlocked.lock() = true;
        keychain.changed.notify_all();
    };
    let started = Instant::now();
    let (applied, ()) = tokio::join!(host.manager.apply(vec![server]), unlock());
    applied.unwrap();
    *keychain.is_unlocked.lock() = false;
    let (connected, ()) = tokio::join!(host.manager.connect("server"), unlock());
    connected.unwrap();
    assert!(started.elapsed() < TIMEOUT, "nothing waited until the keychain gave up");
    host.close().await;
}
