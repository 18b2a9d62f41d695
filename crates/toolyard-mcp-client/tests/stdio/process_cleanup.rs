//! No process of a server survives its close, its crash, or a killed hub.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};
use toolyard_mcp_client::{Transport, TransportError};

use crate::test_directory::{TestConnection, TestDirectory, open, stdio_hub};

/// Half a second is usual; a busy machine needs longer.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);
/// A server with a wrapper, background children, children in sessions of their own, children that ignore signals, a
/// daemon, and one that starts others all the time. None of them exits when its input is closed.
const PROCESS_TREE: &str = r#"
trap '' TERM
sleep 300 &
setsid sleep 301 &
setsid sh -c 'trap "" TERM HUP; while :; do sleep 302; done' &
python3 - <<'DAEMON'
import os, time
if os.fork() == 0:
    os.setsid()
    os.chdir("/")
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        time.sleep(303)
    os._exit(0)
DAEMON
setsid sh -c 'trap "" TERM; while :; do sleep 0.01 & sleep 0.02; done' &
while :; do sleep 304; done
"#;
/// Guard, shell, four sleeps, two shells that ignore signals, daemon.
const PROCESS_TREE_SIZE: usize = 9;

async fn until_tree_is_complete(directory: &TestDirectory) {
    directory.until_processes(|count| count >= PROCESS_TREE_SIZE, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn nothing_is_left_after_close() {
    let directory = TestDirectory::new();
    let connection = open(directory.shell(PROCESS_TREE)).await;
    until_tree_is_complete(&directory).await;
    let start = Instant::now();
    connection.transport.close().await;
    println!("closing took {:?}", start.elapsed());
    assert!(start.elapsed() < CLEANUP_TIMEOUT);
    assert_eq!(directory.processes().len(), 0, "nothing is left when close returns");
    assert_eq!(connection.requests.closed(), Some(TransportError::Closed));
}

#[tokio::test]
async fn nothing_is_left_after_a_drop() {
    let directory = TestDirectory::new();
    let TestConnection { transport, requests, messages } = open(directory.shell(PROCESS_TREE)).await;
    until_tree_is_complete(&directory).await;
    drop((transport, requests, messages));
    println!("gone after {:?}", directory.until_processes(|count| count == 0, CLEANUP_TIMEOUT).await);
}

#[test]
fn nothing_is_left_after_the_end_of_the_runtime() {
    let directory = TestDirectory::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let connection = runtime.block_on(async {
        let connection = open(directory.shell(PROCESS_TREE)).await;
        until_tree_is_complete(&directory).await;
        connection
    });
    runtime.shutdown_background();
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(async {
        // The guard may be a zombie of this process, which has no environment.
        println!("gone after {:?}", directory.until_processes(|count| count == 0, CLEANUP_TIMEOUT).await);
    });
    drop(connection);
}

#[tokio::test]
async fn nothing_is_left_after_the_hub_is_killed() {
    let directory = TestDirectory::new();
    let launch = directory.shell(PROCESS_TREE);
    let mut hub = Command::new(stdio_hub())
        .arg("hub")
        .arg(&launch.command)
        .args(&launch.args)
        .envs([directory.marker()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(hub.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
    assert_eq!(line, "started\n");
    // The hub has the variable of the directory too.
    directory.until_processes(|count| count > PROCESS_TREE_SIZE, Duration::from_secs(10)).await;
    hub.start_kill().unwrap();
    hub.wait().await.unwrap();
    println!("gone after {:?}", directory.until_processes(|count| count == 0, CLEANUP_TIMEOUT).await);
}

#[tokio::test]
async fn nothing_is_left_after_the_server_crashes() {
    let directory = TestDirectory::new();
    let crash = PROCESS_TREE.replace("while :; do sleep 304; done", "sleep 304 & sleep 0.5; kill -9 $$");
    let connection = open(directory.shell(&crash)).await;
    until_tree_is_complete(&directory).await;
    let error = connection.request("{}").await.unwrap_err();
    assert!(
        matches!(&error, TransportError::Exited { status, .. } if status.contains("signal 9")),
        "{error:?}"
    );
    println!("gone after {:?}", directory.until_processes(|count| count == 0, CLEANUP_TIMEOUT).await);
}

#[tokio::test]
async fn a_terminated_guard_ends_the_whole_tree() {
    let directory = TestDirectory::new();
    let connection = open(directory.shell(PROCESS_TREE)).await;
    until_tree_is_complete(&directory).await;
    let guard = Pid::from_raw(guard_process(&directory)).unwrap();
    kill_process(guard, Signal::TERM).unwrap();
    println!("gone after {:?}", directory.until_processes(|count| count == 0, CLEANUP_TIMEOUT).await);
    assert!(matches!(connection.request("{}").await, Err(TransportError::Exited { .. })));
}

/// A process that replaces itself continuously never has the id that was found.
#[tokio::test]
async fn a_process_that_forks_continuously_is_killed() {
    let directory = TestDirectory::new();
    // It ends after 60 s, so that a killed test run does not leave it using a processor.
    let forking_server = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nend = time.monotonic() + 60\n\
                  if os.fork() == 0:\n    os.setsid()\n    while time.monotonic() < end:\n        if os.fork() > 0:\n            \
                  os._exit(0)\n    os._exit(0)\ninput()\n";
    let connection = open(directory.python(forking_server)).await;
    directory.until_processes(|count| count >= 3, Duration::from_secs(10)).await;
    connection.transport.close().await;
    assert_eq!(directory.processes().len(), 0);
}

/// A stopped guard cannot end its server, so the hub does.
#[tokio::test]
async fn a_guard_that_hangs_is_replaced_by_the_hub() {
    let directory = TestDirectory::new();
    let connection = open(directory.shell(PROCESS_TREE)).await;
    until_tree_is_complete(&directory).await;
    let guard = Pid::from_raw(guard_process(&directory)).unwrap();
    kill_process(guard, Signal::STOP).unwrap();
    connection.transport.close().await;
    directory.until_processes(|count| count == 0, CLEANUP_TIMEOUT).await;
}

/// Without the guard, nobody adopts the orphans, but the process group is known.
#[tokio::test]
async fn a_killed_guard_takes_the_process_group_along() {
    let directory = TestDirectory::new();
    let connection =
        open(directory.shell("trap '' TERM; sleep 300 & sleep 301 & while :; do sleep 302; done")).await;
    directory.until_processes(|count| count == 5, Duration::from_secs(10)).await;
    let guard = Pid::from_raw(guard_process(&directory)).unwrap();
    kill_process(guard, Signal::KILL).unwrap();
    directory.until_processes(|count| count == 0, CLEANUP_TIMEOUT).await;
    let error = connection.request("{}").await.unwrap_err();
    assert!(matches!(&error, TransportError::Exited { status, .. } if status == "signal 9"), "{error:?}");
}

#[tokio::test]
async fn without_a_guard_the_process_group_is_ended() {
    let directory = TestDirectory::new();
    let mut launch = directory.shell("trap '' TERM; sleep 300 & sleep 301 & while :; do sleep 302; done");
    launch.guard = None;
    let first = open(launch.clone()).await;
    directory.until_processes(|count| count == 4, Duration::from_secs(5)).await;
    first.transport.close().await;
    directory.until_processes(|count| count == 0, Duration::from_millis(100)).await;
    let second = open(launch).await;
    directory.until_processes(|count| count == 4, Duration::from_secs(5)).await;
    drop(second);
    directory.until_processes(|count| count == 0, CLEANUP_TIMEOUT).await;
}

/// Only the hub may hold the other end of a server's input; otherwise the server would not see it close.
#[tokio::test]
async fn closing_one_server_leaves_the_others() {
    let directories = [TestDirectory::new(), TestDirectory::new(), TestDirectory::new()];
    let mut connections = Vec::new();
    for directory in &directories {
        connections.push(open(directory.python(crate::test_directory::ECHO_SERVER)).await);
    }
    for connection in &connections {
        assert_eq!(connection.request("{}").await, Ok("{}".to_owned()));
    }
    while let Some(first) = (!connections.is_empty()).then(|| connections.remove(0)) {
        let start = Instant::now();
        first.transport.close().await;
        assert!(
            start.elapsed() < Duration::from_millis(600),
            "a well-behaved server exits at once: {:?}",
            start.elapsed()
        );
        for connection in &connections {
            assert_eq!(connection.request("{}").await, Ok("{}".to_owned()));
        }
    }
}

/// Servers that are closed, that exit by themselves, and that are dropped, in turn.
#[tokio::test]
async fn file_descriptors_stay_flat() {
    let cycles = std::env::var("TOOLYARD_CYCLES").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let directory = TestDirectory::new();
    let open_files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let start = Instant::now();
    let (mut before, mut peak) = (0, 0);
    for cycle in 0..cycles {
        let command = if cycle % 3 == 1 { "true" } else { "cat" };
        let mut connection = open(directory.launch(command, Vec::new())).await;
        match cycle % 3 {
            0 => connection.transport.close().await,
            1 => drop(connection.messages.recv().await),
            _ => {}
        }
        drop(connection);
        peak = open_files().max(peak);
        if cycle == 2 {
            before = peak;
        }
    }
    directory.until_processes(|count| count == 0, CLEANUP_TIMEOUT).await;
    println!("{cycles} cycles in {:?}, {before} then at most {peak} descriptors", start.elapsed());
    assert!(peak <= before + 8, "dropped servers may take a moment: {before} then {peak}");
    assert!(open_files() <= before);
    // Reaping takes a moment.
    let deadline = Instant::now() + CLEANUP_TIMEOUT;
    while zombies() > 0 {
        assert!(Instant::now() < deadline, "{} zombies", zombies());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn zombies() -> usize {
    children().into_iter().filter(|(_, state)| state == "Z").count()
}

/// The guard: the one child of this process in this directory.
fn guard_process(directory: &TestDirectory) -> i32 {
    let processes = directory.processes();
    let (process, _) = children().into_iter().find(|(process, _)| processes.contains(process)).unwrap();
    process.try_into().unwrap()
}

/// The children of this process and their states.
fn children() -> Vec<(u32, String)> {
    let ours = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut rest = line.rsplit(')').next().unwrap_or_default().split_whitespace();
        if let (Some(state), Some(parent)) = (rest.next(), rest.next())
            && parent == ours
        {
            found.push((process, state.to_owned()));
        }
    }
    found
}
