//! Two replicas behind a round-robin proxy, restarted one after the other under load: every client gets its own responses and keeps its session.

mod client;
mod proxy;
mod replica;

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use self::{
    client::Tally,
    proxy::Proxy,
    replica::{Replica, SETTINGS},
};

/// A number from the environment, so that `just replicas` can run longer than CI.
fn number_from_env(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_response_or_session_is_lost_while_replicas_restart() {
    let (clients, calls) = (number_from_env("TOOLYARD_CLIENTS", 60), number_from_env("TOOLYARD_CALLS", 40));
    let home = tempfile::tempdir().unwrap();
    let mut replicas = [Replica::new(home.path(), SETTINGS), Replica::new(home.path(), SETTINGS)];
    for replica in &mut replicas {
        replica.start().await;
    }
    let addresses = replicas.iter().map(|replica| replica.address).collect();
    let proxy = Proxy::start(addresses, Duration::ZERO).await;
    let tally = Arc::new(Tally::default());
    let started = Instant::now();
    let mut work = JoinSet::new();
    for number in 0..clients {
        let (tally, address) = (Arc::clone(&tally), proxy.address);
        let legacy = number % 2 == 0;
        work.spawn(async move { client::run_client(number, calls, legacy, address, &tally).await });
    }
    let mut restarts = 0;
    while !work.is_empty() {
        let replica = &mut replicas[restarts % 2];
        replica.stop().await;
        replica.start().await;
        restarts += 1;
        // Both replicas run for a moment before the next restart, as in a rolling restart.
        let pause = sleep(Duration::from_millis(500));
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => break,
                done = work.join_next() => match done {
                    Some(done) => done.unwrap(),
                    None => break,
                },
            }
        }
    }
    let count = |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::Relaxed);
    let (good, wrong) = (count(&tally.good), count(&tally.wrong_responses));
    let (rejected, unanswered) = (count(&tally.rejected), count(&tally.unanswered));
    eprintln!(
        "{clients} clients, {good} responses, {restarts} restarts, {wrong} wrong, {rejected} rejected, {unanswered} unanswered and repeated, {:.1} s",
        started.elapsed().as_secs_f64()
    );
    assert_eq!((wrong, rejected), (0, 0), "{:?}", tally.first_problem.lock());
    assert_eq!(good, clients * calls, "{:?}", tally.first_problem.lock());
    assert!(restarts >= 2, "each replica was restarted at least once");
    // A connection may arrive just before the listener closes, or outlast the drain period on a busy machine.
    assert!(unanswered <= good / 50, "{unanswered} calls were unanswered: {:?}", tally.first_problem.lock());
}

/// With nginx's defaults, a replica counts as failed for 10 s after it refused a connection, even if it is back at once. Here
/// it is 1 s, and the drain period is as much longer as the default one.
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_behind_a_proxy_with_passive_checks_has_no_errors() {
    let home = tempfile::tempdir().unwrap();
    let settings = format!("{SETTINGS}drain = \"1500ms\"\n");
    let mut replicas = [Replica::new(home.path(), &settings), Replica::new(home.path(), &settings)];
    for replica in &mut replicas {
        replica.start().await;
    }
    let addresses = replicas.iter().map(|replica| replica.address).collect();
    let proxy = Proxy::start(addresses, Duration::from_secs(1)).await;
    let tally = Arc::new(Tally::default());
    let is_restarted = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut work = JoinSet::new();
    for number in 0..8 {
        let (tally, address, is_restarted) = (Arc::clone(&tally), proxy.address, Arc::clone(&is_restarted));
        work.spawn(async move {
            while !is_restarted.load(Ordering::Relaxed) {
                client::run_client(number, 10, number % 2 == 0, address, &tally).await;
                sleep(Duration::from_millis(10)).await;
            }
        });
    }
    for replica in &mut replicas {
        replica.stop().await;
        replica.start().await;
    }
    // Until the proxy uses both again.
    sleep(Duration::from_millis(1_500)).await;
    is_restarted.store(true, Ordering::Relaxed);
    while let Some(done) = work.join_next().await {
        done.unwrap();
    }
    let count = |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::Relaxed);
    assert!(count(&tally.good) > 100, "{}", count(&tally.good));
    let errors = (count(&tally.wrong_responses), count(&tally.rejected), count(&tally.unanswered));
    assert_eq!(errors, (0, 0, 0), "of {}: {:?}", count(&tally.good), tally.first_problem.lock());
}
