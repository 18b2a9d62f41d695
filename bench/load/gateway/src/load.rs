//! Many concurrent clients for some seconds: throughput, latency, and the resources that the server under test used.

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
    BenchError,
    client::{Client, Target},
    process::{ResourceUsage, resource_usage},
};

/// Calls of each client before the measurement.
const WARM_UP_CALLS: usize = 5;

/// What makes the calls.
#[derive(Debug, Clone)]
pub(crate) enum Load {
    /// The clients of this program.
    Own,
    /// The program `bench-load`.
    Shared(PathBuf),
}

/// The figures of one run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    pub(crate) calls: f64,
    pub(crate) errors: f64,
    pub(crate) calls_per_second: f64,
    /// Median latency in microseconds.
    pub(crate) median_us: f64,
    /// 99th percentile of the latency in microseconds.
    pub(crate) p99_us: f64,
    /// CPU time per call of the server under test and its child processes, in microseconds.
    pub(crate) cpu_us_per_call: f64,
    /// Memory of the same processes, in MiB.
    pub(crate) memory_mib: f64,
}

impl Load {
    pub(crate) async fn run(
        &self,
        target: &Target,
        process: u32,
        clients: usize,
        seconds: f64,
    ) -> Result<Run, BenchError> {
        match self {
            Self::Own => run_own_clients(target, process, clients, seconds).await,
            Self::Shared(program) => run_bench_load(program, target, process, clients, seconds).await,
        }
    }
}

async fn run_bench_load(
    program: &PathBuf,
    target: &Target,
    process: u32,
    clients: usize,
    seconds: f64,
) -> Result<Run, BenchError> {
    let url = format!("http://{}{}", target.host, target.path);
    let mode = if target.is_modern { "modern" } else { "legacy" };
    let output = Command::new(program)
        .args(["run", "--url", &url, "--mode", mode, "--tool", "echo", "-c", &clients.to_string()])
        .args(["--secs", &seconds.to_string(), "--pid", &process.to_string()])
        .output()
        .await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with('{')).ok_or("bench-load printed no result")?;
    let figures: Value = serde_json::from_str(line)?;
    let number = |key: &str| figures[key].as_f64().ok_or_else(|| format!("bench-load: {line}"));
    let calls = number("calls")?;
    Ok(Run {
        calls,
        errors: number("errors")?,
        calls_per_second: number("rps")?,
        median_us: number("p50_us")?,
        p99_us: number("p99_us")?,
        cpu_us_per_call: number("cpu_us_per_call")?,
        memory_mib: number("rss_mib")?,
    })
}

async fn run_own_clients(
    target: &Target,
    process: u32,
    clients: usize,
    seconds: f64,
) -> Result<Run, BenchError> {
    let (stop, start) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(clients + 1)));
    let finished = Arc::new(Barrier::new(clients + 1));
    let mut tasks = Vec::new();
    for number in 0..clients {
        let (target, stop) = (target.clone(), Arc::clone(&stop));
        let (start, finished) = (Arc::clone(&start), Arc::clone(&finished));
        tasks.push(tokio::spawn(async move {
            let mut client = Client::open(&target).await;
            if let Ok(client) = &mut client {
                for round in 0..WARM_UP_CALLS {
                    let _ = client.echo(&format!("warm {number} {round}")).await;
                }
            }
            start.wait().await;
            let results = match client {
                Ok(client) => call(client, number, &stop).await,
                Err(error) => (Vec::new(), vec![error.to_string()]),
            };
            finished.wait().await;
            results
        }));
    }
    start.wait().await;
    let (before, start) = (resource_usage(process), Instant::now());
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    finished.wait().await;
    let (took, after) = (start.elapsed().as_secs_f64(), resource_usage(process));
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    for task in tasks {
        let (client_times, client_errors) = task.await?;
        times.extend(client_times);
        errors.extend(client_errors);
    }
    if let Some(error) = errors.first() {
        eprintln!("  {} errors, the first: {error}", errors.len());
    }
    Ok(summary(times, errors.len(), took, before, after))
}

/// Calls repeatedly until told to stop. Returns the microseconds of each call, and the errors.
async fn call(mut client: Client, number: usize, stop: &AtomicBool) -> (Vec<u32>, Vec<String>) {
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    let mut round = 0_u64;
    while !stop.load(Ordering::Relaxed) && errors.len() < 100 {
        round += 1;
        let text = format!("{number}-{round} the quick brown fox jumps over the lazy dog 0123456789");
        let start = Instant::now();
        match client.echo(&text).await {
            Ok(()) => times.push(u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX)),
            Err(error) => errors.push(error.to_string()),
        }
    }
    (times, errors)
}

fn summary(
    mut times: Vec<u32>,
    errors: usize,
    took: f64,
    before: ResourceUsage,
    after: ResourceUsage,
) -> Run {
    times.sort_unstable();
    let percentile = |fraction: f64| {
        let last = times.len().saturating_sub(1);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of the list")]
        let index = (last as f64 * fraction).round() as usize;
        times.get(index).copied().map_or(f64::NAN, f64::from)
    };
    let calls = times.len() as f64;
    Run {
        calls,
        errors: errors as f64,
        calls_per_second: calls / took,
        median_us: percentile(0.5),
        p99_us: percentile(0.99),
        cpu_us_per_call: (after.cpu_seconds - before.cpu_seconds) * 1e6 / calls.max(1.0),
        memory_mib: after.memory_mib,
    }
}
