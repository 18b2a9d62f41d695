//! Many clients at once for a while: calls a second, times, and what the server under test spent on them.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{process::Command, sync::Barrier};

use crate::{
    Failed,
    client::{Client, Target},
    process::{Spent, spent},
};

/// Calls of each client that are not counted.
const WARM_UP: usize = 5;

/// Who makes the calls.
#[derive(Debug, Clone)]
pub(crate) enum Load {
    /// The clients of this program.
    Own,
    /// The program `bench-load`.
    Shared(PathBuf),
}

/// What one run showed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    pub(crate) calls: f64,
    pub(crate) errors: f64,
    pub(crate) calls_a_second: f64,
    /// Microseconds of the middle call.
    pub(crate) median: f64,
    pub(crate) p99: f64,
    /// Processor time a call of the server under test with all its children, in microseconds.
    pub(crate) processor: f64,
    /// Memory of the same, in MiB.
    pub(crate) memory: f64,
}

impl Load {
    pub(crate) async fn run(
        &self,
        target: &Target,
        process: u32,
        clients: usize,
        seconds: f64,
    ) -> Result<Run, Failed> {
        match self {
            Self::Own => own(target, process, clients, seconds).await,
            Self::Shared(program) => shared(program, target, process, clients, seconds).await,
        }
    }
}

async fn shared(
    program: &PathBuf,
    target: &Target,
    process: u32,
    clients: usize,
    seconds: f64,
) -> Result<Run, Failed> {
    let url = format!("http://{}{}", target.host, target.path);
    let mode = if target.modern { "modern" } else { "legacy" };
    let output = Command::new(program)
        .args(["run", "--url", &url, "--mode", mode, "--tool", "echo", "-c", &clients.to_string()])
        .args(["--secs", &seconds.to_string(), "--pid", &process.to_string()])
        .output()
        .await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with('{')).ok_or("bench-load said nothing")?;
    let said: Value = serde_json::from_str(line)?;
    let number = |key: &str| said[key].as_f64().ok_or_else(|| format!("bench-load: {line}"));
    let calls = number("calls")?;
    Ok(Run {
        calls,
        errors: number("errors")?,
        calls_a_second: number("rps")?,
        median: number("p50_us")?,
        p99: number("p99_us")?,
        processor: number("cpu_us_per_call")?,
        memory: number("rss_mib")?,
    })
}

async fn own(target: &Target, process: u32, clients: usize, seconds: f64) -> Result<Run, Failed> {
    let (stop, start) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(clients + 1)));
    let ended = Arc::new(Barrier::new(clients + 1));
    let mut tasks = Vec::new();
    for number in 0..clients {
        let (target, stop) = (target.clone(), Arc::clone(&stop));
        let (start, ended) = (Arc::clone(&start), Arc::clone(&ended));
        tasks.push(tokio::spawn(async move {
            let mut client = Client::open(&target).await;
            if let Ok(client) = &mut client {
                for round in 0..WARM_UP {
                    let _ = client.echo(&format!("warm {number} {round}")).await;
                }
            }
            start.wait().await;
            let called = match client {
                Ok(client) => call(client, number, &stop).await,
                Err(error) => (Vec::new(), vec![error.to_string()]),
            };
            ended.wait().await;
            called
        }));
    }
    start.wait().await;
    let (before, began) = (spent(process), Instant::now());
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    ended.wait().await;
    let (took, after) = (began.elapsed().as_secs_f64(), spent(process));
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    for task in tasks {
        let (some, failed) = task.await?;
        times.extend(some);
        errors.extend(failed);
    }
    if let Some(error) = errors.first() {
        eprintln!("  {} errors, the first: {error}", errors.len());
    }
    Ok(summary(times, errors.len(), took, before, after))
}

/// Calls again and again until it is enough: microseconds of each call, and what failed.
async fn call(mut client: Client, number: usize, stop: &AtomicBool) -> (Vec<u32>, Vec<String>) {
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    let mut round = 0_u64;
    while !stop.load(Ordering::Relaxed) && errors.len() < 100 {
        round += 1;
        let text = format!("{number}-{round} the quick brown fox jumps over the lazy dog 0123456789");
        let began = Instant::now();
        match client.echo(&text).await {
            Ok(()) => times.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX)),
            Err(error) => errors.push(error.to_string()),
        }
    }
    (times, errors)
}

fn summary(mut times: Vec<u32>, errors: usize, took: f64, before: Spent, after: Spent) -> Run {
    times.sort_unstable();
    let at = |part: f64| {
        let last = times.len().saturating_sub(1);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of the list")]
        let index = (last as f64 * part).round() as usize;
        times.get(index).copied().map_or(f64::NAN, f64::from)
    };
    let calls = times.len() as f64;
    Run {
        calls,
        errors: errors as f64,
        calls_a_second: calls / took,
        median: at(0.5),
        p99: at(0.99),
        processor: (after.seconds - before.seconds) * 1e6 / calls.max(1.0),
        memory: after.memory,
    }
}
