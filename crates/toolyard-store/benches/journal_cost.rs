//! The cost of journalling a call relative to the engine's own commit of a row of the same size, measured side by side.
//!
//! `scripts/with-postgres cargo bench -p toolyard-store --bench journal_cost`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark prints and may panic"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::{AnyPool, Connection as _, Executor as _, any::AnyPoolOptions};
use toolyard_core::{ContentHash, FinishedStep, Journal, Lease, RawJson, StepIntent, StepState};
use toolyard_store::{Location, Store};

/// The size of a typical small outcome.
const OUTCOME_BYTES: usize = 400;
const ROUNDS: usize = 8;
const CALLS_PER_ROUND: usize = 60;
const CLIENTS: usize = 64;

/// Whether a call may be repeated after a crash.
const REPEATABLE: bool = true;
const NOT_REPEATABLE: bool = false;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        sqlx::any::install_default_drivers();
        let folder = tempfile::tempdir_in(".").unwrap();
        measure_sqlite(folder.path()).await;
        match std::env::var("TOOLYARD_TEST_POSTGRES") {
            Ok(server) => measure_postgres(&server).await,
            Err(_) => println!("PostgreSQL: not measured, TOOLYARD_TEST_POSTGRES is not set"),
        }
    });
}

async fn measure_sqlite(folder: &std::path::Path) {
    let bare = AnyPoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move {
                let pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL";
                connection.execute(sqlx::raw_sql(pragmas)).await.map(|_| ())
            })
        })
        .connect(&format!("sqlite://{}?mode=rwc", folder.join("bare.db").display()))
        .await
        .unwrap();
    let store = Store::open(Location::Sqlite(folder.join("store.db"))).await.unwrap();
    compare("SQLite (FULL)", &bare, &store).await;
}

async fn measure_postgres(server: &str) {
    let mut connection = sqlx::AnyConnection::connect(&format!("{server}/postgres")).await.unwrap();
    for name in ["bench_bare", "bench_store"] {
        connection
            .execute(sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))))
            .await
            .unwrap();
    }
    let bare = AnyPoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false)
        .connect(&format!("{server}/bench_bare"))
        .await
        .unwrap();
    let store = Store::open(Location::Postgres(format!("{server}/bench_store"))).await.unwrap();
    compare("PostgreSQL", &bare, &store).await;
}

async fn compare(engine: &str, bare: &AnyPool, store: &Store) {
    bare.execute("CREATE TABLE bare (id TEXT PRIMARY KEY, outcome TEXT NOT NULL)").await.unwrap();
    let run = store.create_run("bench", &RawJson::empty_object()).await.unwrap();
    let lease = Arc::new(store.claim(&run, "bench", Duration::from_secs(3_600)).await.unwrap());
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..ROUNDS {
        let [bare_times, reads, writes] = &mut times;
        bare_times.push(measure_seconds(run_bare_commits(bare, round)).await);
        reads.push(measure_seconds(run_journalled(store, &lease, &format!("r{round}"), REPEATABLE)).await);
        writes
            .push(measure_seconds(run_journalled(store, &lease, &format!("w{round}"), NOT_REPEATABLE)).await);
    }
    let [bare_time, read, write] = times.map(median);
    println!("{engine}: one client, {CALLS_PER_ROUND} calls a round, medians of {ROUNDS} rounds");
    println!("  the engine's own commit of such a row           1.00");
    println!("  a journalled repeatable call                    {:.2}", read / bare_time);
    println!("  a journalled call with side effects (two syncs) {:.2}", write / bare_time);
    let rate_alone = CALLS_PER_ROUND as f64 / read;
    let started = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let (store, lease) = (store.clone(), Arc::clone(&lease));
        clients.spawn(async move { run_journalled(&store, &lease, &format!("c{client}"), REPEATABLE).await });
    }
    clients.join_all().await;
    let rate_together = (CLIENTS * CALLS_PER_ROUND) as f64 / started.elapsed().as_secs_f64();
    println!(
        "  {CLIENTS} clients against 1, calls a second               {:.1}  ({rate_alone:.0}/s alone, {rate_together:.0}/s together)",
        rate_together / rate_alone
    );
}

async fn measure_seconds(work: impl Future<Output = ()>) -> f64 {
    let started = Instant::now();
    work.await;
    started.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

async fn run_bare_commits(pool: &AnyPool, round: usize) {
    let outcome = "x".repeat(OUTCOME_BYTES);
    for call in 0..CALLS_PER_ROUND {
        let query = sqlx::query("INSERT INTO bare (id, outcome) VALUES ($1, $2)");
        query.bind(format!("{round}-{call}")).bind(outcome.as_str()).execute(pool).await.unwrap();
    }
}

async fn run_journalled(store: &Store, lease: &Lease, name: &str, repeatable: bool) {
    let outcome = RawJson::from(serde_json::json!(random_text(OUTCOME_BYTES)));
    for call in 0..CALLS_PER_ROUND {
        let intent = StepIntent {
            step: format!("{name}-{call}"),
            tool: "bench".to_owned(),
            source: Some("bench".into()),
            definition: ContentHash::of("definition"),
            arguments: ContentHash::of("arguments"),
            redacted_arguments: "{}".to_owned(),
            repeatable,
        };
        store.begin(lease, &intent).await.unwrap();
        let done = FinishedStep { state: StepState::Done, result: outcome.clone() };
        store.finish(lease, &intent.step, &done).await.unwrap();
    }
}

/// Incompressible text.
fn random_text(length: usize) -> String {
    (0..length).map(|_| fastrand::alphanumeric()).collect()
}
