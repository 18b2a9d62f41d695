//! Nothing of a server survives: not its close, not its crash, not the violent death of the hub.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};
use toolyard_mcp::client::{Transport, TransportError};

use crate::yard::{Link, Yard, example, link};

/// What the issue promises.
const PROMISED: Duration = Duration::from_secs(2);
/// A server as bad as can be: a wrapper, children in the background, in sessions of their own, deaf ones, daemons, and
/// one that starts others all the time. None of them ends when its input does.
const TREE: &str = r#"
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
        for place in range(3):
            os.dup2(null, place)
        time.sleep(303)
    os._exit(0)
DAEMON
setsid sh -c 'trap "" TERM; while :; do sleep 0.01 & sleep 0.02; done' &
while :; do sleep 304; done
"#;
/// Guardian, shell, four sleeps in it and its children, two deaf shells, daemon.
const TREE_PROCESSES: usize = 9;

async fn grown(yard: &Yard) {
    yard.until_processes(|count| count >= TREE_PROCESSES, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn after_close_nothing_is_left() {
    let yard = Yard::new();
    let link = link(yard.shell(TREE)).await;
    grown(&yard).await;
    let start = Instant::now();
    link.transport.close().await;
    println!("closing took {:?}", start.elapsed());
    assert!(start.elapsed() < PROMISED);
    assert_eq!(yard.processes().len(), 0, "nothing may be left when close returns");
    assert_eq!(link.exchange.closed(), Some(TransportError::Closed));
}

#[tokio::test]
async fn after_a_drop_nothing_is_left() {
    let yard = Yard::new();
    let Link { transport, exchange, heard } = link(yard.shell(TREE)).await;
    grown(&yard).await;
    drop((transport, exchange, heard));
    println!("gone after {:?}", yard.until_processes(|count| count == 0, PROMISED).await);
}

#[test]
fn after_the_end_of_the_runtime_nothing_is_left() {
    let yard = Yard::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let link = runtime.block_on(async {
        let link = link(yard.shell(TREE)).await;
        grown(&yard).await;
        link
    });
    runtime.shutdown_background();
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(async {
        // The guardian itself may be a zombie of this process then, which has no environment any more.
        println!("gone after {:?}", yard.until_processes(|count| count == 0, PROMISED).await);
    });
    drop(link);
}

#[tokio::test]
async fn after_a_violent_death_of_the_hub_nothing_is_left() {
    let yard = Yard::new();
    let launch = yard.shell(TREE);
    let mut hub = Command::new(example())
        .arg("hub")
        .arg(&launch.command)
        .args(&launch.args)
        .envs([yard.mark()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(hub.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
    assert_eq!(line, "started\n");
    // The hub is one of them.
    yard.until_processes(|count| count > TREE_PROCESSES, Duration::from_secs(10)).await;
    hub.start_kill().unwrap();
    hub.wait().await.unwrap();
    println!("gone after {:?}", yard.until_processes(|count| count == 0, PROMISED).await);
}

#[tokio::test]
async fn after_a_crash_of_the_server_nothing_is_left() {
    let yard = Yard::new();
    let crash = TREE.replace("while :; do sleep 304; done", "sleep 304 & sleep 0.5; kill -9 $$");
    let link = link(yard.shell(&crash)).await;
    grown(&yard).await;
    let error = link.ask("{}").await.unwrap_err();
    assert!(
        matches!(&error, TransportError::Ended { status, .. } if status.contains("signal 9")),
        "{error:?}"
    );
    println!("gone after {:?}", yard.until_processes(|count| count == 0, PROMISED).await);
}

#[tokio::test]
async fn a_guardian_that_is_told_to_end_takes_everything_with_it() {
    let yard = Yard::new();
    let link = link(yard.shell(TREE)).await;
    grown(&yard).await;
    let guardian = Pid::from_raw(child_of_ours(&yard)).unwrap();
    kill_process(guardian, Signal::TERM).unwrap();
    println!("gone after {:?}", yard.until_processes(|count| count == 0, PROMISED).await);
    assert!(matches!(link.ask("{}").await, Err(TransportError::Ended { .. })));
}

/// A process that becomes another one all the time is never where it was seen.
#[tokio::test]
async fn who_runs_is_caught() {
    let yard = Yard::new();
    let runner = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nif os.fork() == 0:\n    os.setsid()\n    \
                  while True:\n        if os.fork() > 0:\n            os._exit(0)\ninput()\n";
    let link = link(yard.python(runner)).await;
    yard.until_processes(|count| count >= 3, Duration::from_secs(10)).await;
    link.transport.close().await;
    assert_eq!(yard.processes().len(), 0);
}

/// A guardian that is stopped cannot do its work; the hub does it then.
#[tokio::test]
async fn a_guardian_that_hangs_is_not_waited_for() {
    let yard = Yard::new();
    let link = link(yard.shell(TREE)).await;
    grown(&yard).await;
    let guardian = Pid::from_raw(child_of_ours(&yard)).unwrap();
    kill_process(guardian, Signal::STOP).unwrap();
    link.transport.close().await;
    yard.until_processes(|count| count == 0, PROMISED).await;
}

/// Nobody is left then to whom orphans come, but the group is known.
#[tokio::test]
async fn a_guardian_that_is_killed_takes_the_group_with_it() {
    let yard = Yard::new();
    let link = link(yard.shell("trap '' TERM; sleep 300 & sleep 301 & while :; do sleep 302; done")).await;
    yard.until_processes(|count| count == 5, Duration::from_secs(10)).await;
    let guardian = Pid::from_raw(child_of_ours(&yard)).unwrap();
    kill_process(guardian, Signal::KILL).unwrap();
    yard.until_processes(|count| count == 0, PROMISED).await;
    let error = link.ask("{}").await.unwrap_err();
    assert!(matches!(&error, TransportError::Ended { status, .. } if status == "signal 9"), "{error:?}");
}

#[tokio::test]
async fn without_a_guardian_the_group_is_ended() {
    let yard = Yard::new();
    let mut launch = yard.shell("trap '' TERM; sleep 300 & sleep 301 & while :; do sleep 302; done");
    launch.guard = None;
    let first = link(launch.clone()).await;
    yard.until_processes(|count| count == 4, Duration::from_secs(5)).await;
    first.transport.close().await;
    yard.until_processes(|count| count == 0, Duration::from_millis(100)).await;
    let second = link(launch).await;
    yard.until_processes(|count| count == 4, Duration::from_secs(5)).await;
    drop(second);
    yard.until_processes(|count| count == 0, PROMISED).await;
}

/// Nobody but the hub may hold the other end of a server's input, or its end would never be seen.
#[tokio::test]
async fn closing_one_leaves_the_others() {
    let yards = [Yard::new(), Yard::new(), Yard::new()];
    let mut links = Vec::new();
    for yard in &yards {
        links.push(link(yard.python(crate::yard::ECHO)).await);
    }
    for link in &links {
        assert_eq!(link.ask("{}").await, Ok("{}".to_owned()));
    }
    while let Some(first) = (!links.is_empty()).then(|| links.remove(0)) {
        let start = Instant::now();
        first.transport.close().await;
        assert!(
            start.elapsed() < Duration::from_millis(600),
            "a polite server ends at once: {:?}",
            start.elapsed()
        );
        for link in &links {
            assert_eq!(link.ask("{}").await, Ok("{}".to_owned()));
        }
    }
}

/// Servers that are closed, that end by themselves, and that nobody cares for any more, in turn.
#[tokio::test]
async fn file_descriptors_stay_flat() {
    let cycles = std::env::var("TOOLYARD_CYCLES").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let yard = Yard::new();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let start = Instant::now();
    let (mut before, mut most) = (0, 0);
    for cycle in 0..cycles {
        let command = if cycle % 3 == 1 { "true" } else { "cat" };
        let mut link = link(yard.launch(command, Vec::new())).await;
        match cycle % 3 {
            0 => link.transport.close().await,
            1 => drop(link.heard.recv().await),
            _ => {}
        }
        drop(link);
        most = open().max(most);
        if cycle == 2 {
            before = most;
        }
    }
    yard.until_processes(|count| count == 0, PROMISED).await;
    println!("{cycles} cycles in {:?}, {before} then at most {most} descriptors", start.elapsed());
    assert!(most <= before + 8, "those nobody cares for may take a moment: {before} then {most}");
    assert!(open() <= before);
    // Whoever ended a moment ago is taken note of a moment later.
    let limit = Instant::now() + PROMISED;
    while zombies() > 0 {
        assert!(Instant::now() < limit, "{} zombies", zombies());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn zombies() -> usize {
    children().into_iter().filter(|(_, state)| state == "Z").count()
}

/// The guardian: the one child of this process.
fn child_of_ours(yard: &Yard) -> i32 {
    let of_yard = yard.processes();
    let (process, _) = children().into_iter().find(|(process, _)| of_yard.contains(process)).unwrap();
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
