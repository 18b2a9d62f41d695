//! The store fails while calls are recorded: records in the store and recorded losses together are the calls.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{AnyPool, Executor as _, Row as _};
use tokio::{task::JoinSet, time::sleep};
use toolyard_core::{Audit as _, AuditRecord, ContentHash};
use toolyard_store::{AuditConfig, AuditQuery, AuditVerification, Engine, Location, Store, StoredAudit};

use crate::{common::TestStore, kills::worker_path, postgres_server::PostgresServer};

pub(crate) fn record(call: String) -> AuditRecord {
    AuditRecord {
        at: 1_700_000_000_000,
        caller: "client".to_owned(),
        call,
        tool: "read".to_owned(),
        sources: vec!["excel".into()],
        arguments: ContentHash::of("arguments"),
        result: Some(ContentHash::of("result")),
        outcome: "ok".to_owned(),
        milliseconds: 3,
    }
}

pub(crate) fn config() -> AuditConfig {
    AuditConfig { store_timeout: Duration::from_millis(300), ..AuditConfig::default() }
}

/// Makes every append to the audit log of a SQLite store fail, as a full disk does, or succeed again.
pub(crate) async fn set_disk_full(test_store: &TestStore, is_full: bool) {
    let pool = AnyPool::connect(&test_store.url()).await.unwrap();
    let sql = match is_full {
        true => {
            "CREATE TRIGGER full_disk BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        }
        false => "DROP TRIGGER full_disk",
    };
    let sql = sqlx::AssertSqlSafe(format!("PRAGMA busy_timeout = 10000; {sql}"));
    pool.execute(sqlx::raw_sql(sql)).await.unwrap();
    pool.close().await;
}

pub(crate) fn spill_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().contains("audit-spill")).collect()
}

pub(crate) fn folder_of(test_store: &TestStore) -> PathBuf {
    let Location::Sqlite(path) = &test_store.location else { panic!("not a file") };
    path.parent().unwrap().to_owned()
}

/// Waits until the log is complete: every call has a record, or is counted as lost. Returns the number of those lost.
async fn wait_until_complete(store: &Store, calls: u64) -> u64 {
    let started = Instant::now();
    let own = AuditQuery { caller: Some("toolyard".to_owned()), limit: i64::MAX, ..AuditQuery::default() };
    let lost = loop {
        let own = store.query_audit(&own).await.unwrap();
        let lost: u64 = own.iter().filter_map(|entry| entry.record.lost_count()).sum();
        let found = count(store, "caller <> 'toolyard'").await + lost;
        assert!(found <= calls, "{found} records and losses of {calls} calls");
        if found == calls {
            break lost;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "only {found} of {calls} calls are accounted for"
        );
        sleep(Duration::from_millis(20)).await;
    };
    let verification = store.verify_audit(None).await.unwrap();
    assert!(
        matches!(verification, AuditVerification::Intact { lost: known, .. } if known == lost),
        "{verification:?}"
    );
    lost
}

async fn count(store: &Store, condition: &str) -> u64 {
    let url = match store.location() {
        Location::Sqlite(path) => format!("sqlite://{}", path.display()),
        Location::Postgres(url) => url.clone(),
    };
    let pool = AnyPool::connect(&url).await.unwrap();
    let sql = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) AS count FROM audit WHERE {condition}"));
    let row = sqlx::query(sql).fetch_one(&pool).await.unwrap();
    pool.close().await;
    u64::try_from(row.get::<i64, _>("count")).unwrap()
}

/// Records calls from several tasks until it is told to stop.
struct Load {
    is_done: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    tasks: JoinSet<()>,
}

impl Load {
    fn start(audits: &[Arc<StoredAudit>]) -> Self {
        let (is_done, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for (number, audit) in audits.iter().flat_map(|audit| [audit, audit]).enumerate() {
            let (audit, is_done, calls) = (Arc::clone(audit), Arc::clone(&is_done), Arc::clone(&calls));
            tasks.spawn(async move {
                let mut made = 0_u64;
                while !is_done.load(Ordering::Relaxed) {
                    for _ in 0..5 {
                        audit.record(record(format!("{number}:{made}")));
                        made += 1;
                    }
                    calls.fetch_add(5, Ordering::Relaxed);
                    sleep(Duration::from_millis(4)).await;
                }
            });
        }
        Self { is_done, calls, tasks }
    }

    async fn stop(self) -> u64 {
        self.is_done.store(true, Ordering::Relaxed);
        self.tasks.join_all().await;
        self.calls.load(Ordering::Relaxed)
    }
}

/// The records of each task are in the order in which it made them, each once.
async fn assert_in_order(store: &Store) {
    let mut next = std::collections::HashMap::<String, u64>::new();
    let query = AuditQuery { caller: Some("client".to_owned()), limit: i64::MAX, ..AuditQuery::default() };
    for entry in store.query_audit(&query).await.unwrap() {
        let (task, number) = entry.record.call.split_once(':').unwrap();
        let expected = next.entry(task.to_owned()).or_default();
        assert_eq!(number, expected.to_string(), "of task {task}");
        *expected += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_an_outage_are_replayed_in_order() {
    let test_store = TestStore::new(Engine::Sqlite).await;
    let store = test_store.open().await;
    let audit = Arc::new(StoredAudit::start(&store, &config()));
    let load = Load::start(&[Arc::clone(&audit)]);
    sleep(Duration::from_millis(300)).await;
    assert_eq!(audit.queue_status().outage, None);
    set_disk_full(&test_store, true).await;
    sleep(Duration::from_millis(700)).await;
    let [spilled] = spill_files(&folder_of(&test_store)).try_into().unwrap();
    assert_eq!(std::fs::metadata(&spilled).unwrap().permissions().mode() & 0o777, 0o600);
    let during = audit.queue_status();
    assert!(during.spill_bytes > 0 && during.failed_writes > 0, "{during:?}");
    assert!(during.outage.is_some_and(|age| age < Duration::from_secs(30)), "{during:?}");
    set_disk_full(&test_store, false).await;
    sleep(Duration::from_millis(300)).await;
    let calls = load.stop().await;
    audit.close().await;
    assert_eq!(wait_until_complete(&store, calls).await, 0);
    assert_in_order(&store).await;
    assert_eq!(spill_files(&folder_of(&test_store)), [] as [PathBuf; 0]);
    while audit.queue_status().spill_bytes > 0 || audit.queue_status().outage.is_some() {
        sleep(Duration::from_millis(5)).await;
    }
    let marks = AnyPool::connect(&test_store.url()).await.unwrap();
    let row = sqlx::query("SELECT COUNT(*) AS count FROM audit_writers").fetch_one(&marks).await.unwrap();
    assert_eq!(row.get::<i64, _>("count"), 0, "a writer that ended well leaves no mark");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_process_appends_what_an_earlier_one_left_exactly_once() {
    let test_store = TestStore::new(Engine::Sqlite).await;
    let folder = folder_of(&test_store);
    let store = test_store.open().await;
    let audit = StoredAudit::start(&store, &config());
    audit.record(record("0:0".to_owned()));
    audit.flush().await;
    set_disk_full(&test_store, true).await;
    for number in 1..=500 {
        audit.record(record(format!("0:{number}")));
    }
    // Like a process that is killed: what is in the spill file stays there.
    audit.flush().await;
    let [left] = spill_files(&folder).try_into().unwrap();
    let copy = folder.join("copy");
    std::fs::copy(&left, &copy).unwrap();
    drop(audit);
    // Its task unlocks the file at its end; a file that is locked is looked at again only after a minute.
    while std::fs::File::open(&left).unwrap().try_lock().is_err() {
        sleep(Duration::from_millis(5)).await;
    }
    set_disk_full(&test_store, false).await;

    let _next = StoredAudit::start(&test_store.open().await, &config());
    assert_eq!(wait_until_complete(&store, 501).await, 0);
    while !spill_files(&folder).is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    // Killed after the last commit, before the file was deleted: the file is there again.
    std::fs::rename(&copy, &left).unwrap();
    let again = StoredAudit::start(&test_store.open().await, &config());
    while !spill_files(&folder).is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    again.close().await;
    assert_eq!(wait_until_complete(&store, 501).await, 0);
    assert_in_order(&store).await;
}

/// Two processes at once find the same file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spill_file_in_use_is_not_taken_over() {
    let test_store = TestStore::new(Engine::Sqlite).await;
    let store = test_store.open().await;
    let audit = StoredAudit::start(&store, &config());
    set_disk_full(&test_store, true).await;
    audit.record(record("0:0".to_owned()));
    audit.flush().await;
    let [file] = spill_files(&folder_of(&test_store)).try_into().unwrap();
    let other = StoredAudit::start(&test_store.open().await, &config());
    other.record(record("1:0".to_owned()));
    other.flush().await;
    assert_eq!(spill_files(&folder_of(&test_store)).len(), 2, "each has its own");
    assert!(file.exists());
    set_disk_full(&test_store, false).await;
    assert_eq!(wait_until_complete(&store, 2).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_is_recorded_with_its_count() {
    let test_store = TestStore::new(Engine::Sqlite).await;
    let store = test_store.open().await;
    // The spill file is full after a few dozen records, the memory after 200.
    let limits = AuditConfig { max_spill_bytes: 20_000, max_queued_records: 200, ..config() };
    let audit = Arc::new(StoredAudit::start(&store, &limits));
    set_disk_full(&test_store, true).await;
    let load = Load::start(&[Arc::clone(&audit)]);
    sleep(Duration::from_millis(1_500)).await;
    set_disk_full(&test_store, false).await;
    sleep(Duration::from_millis(300)).await;
    let calls = load.stop().await;
    audit.flush().await;
    let lost = wait_until_complete(&store, calls).await;
    assert!(lost > 0, "{calls} calls fit");
    assert!(count(&store, "caller = 'toolyard'").await < 10, "losses are counted together");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_refused_while_required_records_cannot_be_kept() {
    let test_store = TestStore::new(Engine::Sqlite).await;
    let store = test_store.open().await;
    let limits = AuditConfig { required: true, max_spill_bytes: 20_000, ..config() };
    let audit = StoredAudit::start(&store, &limits);
    set_disk_full(&test_store, true).await;
    let (mut calls, mut refused) = (0_u64, 0_u64);
    let started = Instant::now();
    while refused == 0 {
        match audit.admit() {
            Ok(()) => {
                audit.record(record(format!("0:{calls}")));
                calls += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("limit of 20000 bytes"), "{error}");
                refused += 1;
            }
        }
        assert!(started.elapsed() < Duration::from_secs(20), "nothing is refused");
        sleep(Duration::from_millis(1)).await;
    }
    set_disk_full(&test_store, false).await;
    while audit.admit().is_err() {
        refused += 1;
        sleep(Duration::from_millis(5)).await;
    }
    audit.flush().await;
    assert_eq!(wait_until_complete(&store, calls).await, 0, "every call that was made has a record");
    assert_eq!(count(&store, &format!("outcome LIKE '{refused} calls refused: %'")).await, 1);
}

/// A replica that is frozen in the middle of a commit holds the lock on the head of the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_replica_delays_the_records_of_others_by_seconds_only() {
    let test_store = TestStore::new(Engine::Postgres).await;
    let store = test_store.open().await;
    let mut frozen = tokio::process::Command::new(worker_path())
        .args(["audit", &test_store.to_argument()])
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    freeze_in_transaction(&frozen, &test_store.url()).await;
    let audit = StoredAudit::start(&store, &config());
    let started = Instant::now();
    audit.record(record("0:0".to_owned()));
    while count(&store, "call = '0:0'").await == 0 {
        assert!(started.elapsed() < Duration::from_secs(8), "the record waits for the frozen replica");
        sleep(Duration::from_millis(50)).await;
    }
    frozen.start_kill().unwrap();
}

/// Freezes a process while the server waits for the rest of its transaction.
async fn freeze_in_transaction(process: &tokio::process::Child, url: &str) {
    let pid = Pid::from_raw(i32::try_from(process.id().unwrap()).unwrap()).unwrap();
    let pool = AnyPool::connect(url).await.unwrap();
    let open = "SELECT COUNT(*) AS count FROM pg_stat_activity \
                WHERE datname = current_database() AND state = 'idle in transaction'";
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(fastrand::u64(1..20))).await;
        kill_process(pid, Signal::STOP).unwrap();
        // The server finishes the statement that it has.
        sleep(Duration::from_millis(30)).await;
        let row = sqlx::query(open).fetch_one(&pool).await.unwrap();
        if row.get::<i64, _>("count") > 0 {
            return;
        }
        kill_process(pid, Signal::CONT).unwrap();
    }
    panic!("the process was never stopped in a transaction");
}

/// The load of two replicas, and the server stopped, started, frozen and thawed under it. `TOOLYARD_OUTAGE_SECONDS` makes the
/// outages longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_and_a_frozen_postgres_lose_no_record() {
    let seconds =
        std::env::var("TOOLYARD_OUTAGE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let outage = Duration::from_secs_f64(seconds);
    sqlx::any::install_default_drivers();
    let mut server = PostgresServer::start();
    server.locate().await;
    let folder = tempfile::tempdir().unwrap();
    let location = Location::Postgres(format!("{}/postgres", server.url));
    let mut stores = Vec::new();
    for _ in 0..2 {
        stores.push(Store::open(location.clone()).await.unwrap());
    }
    let config = || AuditConfig { data_folder: Some(folder.path().to_owned()), ..config() };
    let audits: Vec<_> = stores.iter().map(|store| Arc::new(StoredAudit::start(store, &config()))).collect();
    let load = Load::start(&audits);
    sleep(Duration::from_millis(300)).await;
    server.stop();
    sleep(outage).await;
    assert_eq!(spill_files(folder.path()).len(), 2, "one of each replica");
    server.restart();
    sleep(Duration::from_millis(500)).await;
    server.signal(Signal::STOP);
    sleep(outage).await;
    server.signal(Signal::CONT);
    sleep(Duration::from_millis(200)).await;
    let calls = load.stop().await;
    for audit in &audits {
        audit.close().await;
    }
    let store = Store::open(location).await.unwrap();
    assert_eq!(wait_until_complete(&store, calls).await, 0);
    assert_in_order(&store).await;
    eprintln!("{calls} calls, two outages of {seconds} s, every record once and in order");
    while !spill_files(folder.path()).is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
}
