//! Two replicas behind a round-robin proxy, restarted one after the other under load: no answer crosses, no session is lost.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test helper fails its test"
)]

mod client;
mod proxy;
mod replica;

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use crate::{client::Tally, proxy::Proxy, replica::Replica};

/// A number from the environment, so that `just replicas` can run longer than CI.
fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_response_or_session_is_lost_while_replicas_restart() {
    let (clients, calls) = (number("TOOLYARD_CLIENTS", 60), number("TOOLYARD_CALLS", 40));
    let house = tempfile::tempdir().unwrap();
    let mut replicas = [Replica::new(house.path()), Replica::new(house.path())];
    for replica in &mut replicas {
        replica.start().await;
    }
    let proxy = Proxy::start(replicas.iter().map(|replica| replica.address).collect()).await;
    let tally = Arc::new(Tally::default());
    let started = Instant::now();
    let mut work = JoinSet::new();
    for number in 0..clients {
        let (tally, address) = (Arc::clone(&tally), proxy.address);
        let legacy = number % 2 == 0;
        work.spawn(async move { client::converse(number, calls, legacy, address, &tally).await });
    }
    let mut restarts = 0;
    while !work.is_empty() {
        let replica = &mut replicas[restarts % 2];
        replica.stop().await;
        replica.start().await;
        restarts += 1;
        // Both are there for a moment, as in any rolling restart.
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
    let count = |what: &std::sync::atomic::AtomicUsize| what.load(Ordering::Relaxed);
    let (good, crossed) = (count(&tally.good), count(&tally.crossed));
    let (lost, cut) = (count(&tally.lost_sessions), count(&tally.cut));
    eprintln!(
        "{clients} clients, {good} answers, {restarts} restarts, {crossed} crossed, {lost} sessions lost, {cut} calls cut off and made again, {:.1} s",
        started.elapsed().as_secs_f64()
    );
    assert_eq!((crossed, lost), (0, 0), "{:?}", tally.first_problem.lock().unwrap());
    assert_eq!(good, clients * calls, "{:?}", tally.first_problem.lock().unwrap());
    assert!(restarts >= 2, "each replica was restarted at least once");
    // Somebody may arrive between the last look and the end of the listener, or be slower than the farewell on a busy machine.
    assert!(cut <= good / 50, "{cut} calls were cut off: {:?}", tally.first_problem.lock().unwrap());
}
