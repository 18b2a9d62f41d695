//! Every single change to the audit log is detected.

use std::{
    io::Cursor,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use proptest::{prelude::*, test_runner::TestRunner};
use sqlx::{AnyPool, Executor as _};
use toolyard_core::{AuditRecord, ContentHash};
use toolyard_store::{AuditVerification, Engine, Location, Store};

use crate::common::TestStore;

const RECORDS: i64 = 10_000;

fn record(number: i64) -> AuditRecord {
    AuditRecord {
        at: 1_700_000_000_000 + number,
        caller: format!("client-{}", number % 7),
        call: format!("call_{number}"),
        tool: format!("tool_{}", number % 13),
        sources: vec!["excel".into(), "time".into()],
        arguments: ContentHash::of(number.to_le_bytes()),
        result: (number % 3 > 0).then(|| ContentHash::of("result")),
        outcome: "ok".to_owned(),
        milliseconds: number % 100,
    }
}

/// One change to the log.
#[derive(Debug, Clone)]
enum Tampering {
    Edit { number: i64, column: &'static str },
    Delete { number: i64 },
    Swap { number: i64, with: i64 },
    Truncate { after: i64 },
    TruncateWithHead { after: i64 },
    Insert { after: i64 },
}

fn any_tampering() -> impl Strategy<Value = Tampering> {
    let number = || 1..=RECORDS;
    let columns = [
        "at",
        "caller",
        "call",
        "tool",
        "sources",
        "arguments",
        "result",
        "outcome",
        "milliseconds",
        "hash",
        "number",
    ];
    prop_oneof![
        4 => (number(), proptest::sample::select(columns.to_vec())).prop_map(|(number, column)| Tampering::Edit { number, column }),
        2 => number().prop_map(|number| Tampering::Delete { number }),
        2 => (number(), number()).prop_filter("distinct records", |(a, b)| a != b).prop_map(|(number, with)| Tampering::Swap { number, with }),
        1 => (0..RECORDS).prop_map(|after| Tampering::Truncate { after }),
        1 => (0..RECORDS - 1_000).prop_map(|after| Tampering::TruncateWithHead { after }),
        1 => number().prop_map(|after| Tampering::Insert { after }),
    ]
}

/// The SQL of one change.
fn statements(tampering: &Tampering) -> Vec<String> {
    match tampering {
        Tampering::Edit { number, column } => {
            let value = match *column {
                "at" | "milliseconds" => format!("{column} + 1"),
                "number" => "number + 1000000".to_owned(),
                "sources" => "'[\"time\",\"excel\"]'".to_owned(),
                "arguments" | "hash" => format!("'{}'", ContentHash::of("forged")),
                "result" => format!("CASE WHEN result IS NULL THEN '{}' ELSE NULL END", ContentHash::of("forged")),
                _ => format!("{column} || 'x'"),
            };
            vec![format!("UPDATE audit SET {column} = {value} WHERE number = {number}")]
        }
        Tampering::Delete { number } => vec![format!("DELETE FROM audit WHERE number = {number}")],
        Tampering::Swap { number, with } => vec![
            format!("UPDATE audit SET number = -1 WHERE number = {number}"),
            format!("UPDATE audit SET number = {number} WHERE number = {with}"),
            format!("UPDATE audit SET number = {with} WHERE number = -1"),
        ],
        Tampering::Truncate { after } => vec![format!("DELETE FROM audit WHERE number > {after}")],
        // The head is moved back too; the checkpoints still reveal it.
        Tampering::TruncateWithHead { after } => vec![
            format!("DELETE FROM audit WHERE number > {after}"),
            format!("UPDATE audit_head SET number = {after}, hash = COALESCE((SELECT hash FROM audit WHERE number = {after}), '{}')", "0".repeat(64)),
        ],
        Tampering::Insert { after } => vec![format!(
            "INSERT INTO audit SELECT number, day + 1, at, caller, call, tool, sources, arguments, result, outcome, milliseconds, hash
             FROM audit WHERE number = {after}"
        )],
    }
}

#[test]
fn any_single_change_among_ten_thousand_records_is_detected() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let test_store = runtime.block_on(TestStore::new(Engine::Sqlite));
    let store = runtime.block_on(async {
        let store = test_store.open().await;
        store.append_audit((1..=RECORDS).map(record).collect()).await.unwrap();
        assert!(matches!(
            store.verify_audit(None).await.unwrap(),
            AuditVerification::Intact { records: RECORDS, .. }
        ));
        store
    });
    // A smoke test by default, more with `just crash`.
    let cases = std::env::var("TOOLYARD_AUDIT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(cases));
    let outcome = runner.run(&any_tampering(), |tampering| {
        let verification = runtime.block_on(verify_tampered(&test_store, &store, &tampering));
        prop_assert!(
            matches!(verification, AuditVerification::Broken { .. }),
            "{:?} was not detected: {:?}",
            tampering,
            verification
        );
        Ok(())
    });
    outcome.unwrap();
}

/// Verifies a copy of the log with one change.
async fn verify_tampered(test_store: &TestStore, store: &Store, tampering: &Tampering) -> AuditVerification {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    assert!(matches!(test_store.location, Location::Sqlite(_)));
    store.backup(&copy).await.unwrap();
    let pool = AnyPool::connect(&format!("sqlite://{}", copy.display())).await.unwrap();
    for statement in statements(tampering) {
        let _ = pool.execute(sqlx::query(sqlx::AssertSqlSafe(statement))).await.unwrap();
    }
    pool.close().await;
    Store::open(Location::Sqlite(copy)).await.unwrap().verify_audit(None).await.unwrap()
}

/// Several processes append while the log is verified again and again: their records are no break, and a real one is found.
async fn verification_under_load_tells_progress_from_tampering(engine: Engine) {
    const VERIFICATIONS: usize = 60;
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let is_done = Arc::new(AtomicBool::new(false));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let (store, is_done) = (test_store.open().await, Arc::clone(&is_done));
        writers.spawn(async move {
            let mut written = 0;
            while !is_done.load(Ordering::Relaxed) {
                store
                    .append_audit((written..written + 2).map(|number| record(writer + number)).collect())
                    .await
                    .unwrap();
                written += 2;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            written
        });
    }
    let (mut grown, mut last, started) = (0, 0, Instant::now());
    // Each of them saw other records than the one before.
    while grown < VERIFICATIONS {
        match store.verify_audit(None).await.unwrap() {
            AuditVerification::Intact { records, .. } => {
                grown += usize::from(records > last);
                last = records;
            }
            broken @ AuditVerification::Broken { .. } => panic!("false alarm: {broken:?}"),
        }
        assert!(started.elapsed() < Duration::from_secs(60), "the log grew {grown} times only");
    }
    let pool = AnyPool::connect(&test_store.url()).await.unwrap();
    pool.execute(sqlx::AssertSqlSafe(format!(
        "UPDATE audit SET outcome = 'forged' WHERE number = {}",
        last / 2
    )))
    .await
    .unwrap();
    let verification = store.verify_audit(None).await.unwrap();
    assert!(
        matches!(verification, AuditVerification::Broken { number, .. } if number == last / 2),
        "{verification:?}"
    );
    is_done.store(true, Ordering::Relaxed);
    let written: i64 = writers.join_all().await.into_iter().sum();
    pool.execute(sqlx::AssertSqlSafe(format!("UPDATE audit SET outcome = 'ok' WHERE number = {}", last / 2)))
        .await
        .unwrap();
    assert!(
        matches!(store.verify_audit(None).await.unwrap(), AuditVerification::Intact { records, .. } if records == written)
    );
    // A record that the head does not cover was not written by Toolyard.
    let insert = "INSERT INTO audit SELECT number + 1, day, at, caller, call, tool, sources, arguments, result, outcome,
                  milliseconds, hash FROM audit WHERE number = (SELECT number FROM audit_head)";
    pool.execute(sqlx::query(insert)).await.unwrap();
    assert!(matches!(store.verify_audit(None).await.unwrap(), AuditVerification::Broken { .. }));
}

crate::on_both_engines!(
    verification_under_load_tells_progress_from_tampering,
    an_export_under_load_can_be_imported_and_verified,
);

/// A file that appends records to the store while its export is written.
struct AppendingFile {
    store: Option<Store>,
    runtime: tokio::runtime::Handle,
    bytes: Vec<u8>,
}

impl std::io::Write for AppendingFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        let is_audit = self.bytes.windows(15).any(|part| part == b"\"table\":\"audit\"");
        if let Some(store) = self.store.take_if(|_| is_audit) {
            let runtime = self.runtime.clone();
            let append = move || runtime.block_on(store.append_audit((900..1_100).map(record).collect()));
            std::thread::spawn(append).join().unwrap().unwrap();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An export is of one moment: its checkpoints cover no record that it does not contain.
async fn an_export_under_load_can_be_imported_and_verified(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    store.append_audit((0..900).map(record).collect()).await.unwrap();
    let runtime = tokio::runtime::Handle::current();
    let mut export = AppendingFile { store: Some(test_store.open().await), runtime, bytes: Vec::new() };
    store.export(&mut export).await.unwrap();
    assert!(matches!(
        store.verify_audit(None).await.unwrap(),
        AuditVerification::Intact { records: 1_100, .. }
    ));
    let copy = TestStore::new(Engine::Sqlite).await;
    let copy = (copy.open().await, copy);
    copy.0.import(&mut Cursor::new(export.bytes)).await.unwrap();
    let verification = copy.0.verify_audit(None).await.unwrap();
    assert!(matches!(verification, AuditVerification::Intact { records: 900, .. }), "{verification:?}");
}

/// A rewritten chain is consistent in itself; only a head kept elsewhere reveals it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rewritten_log_does_not_match_a_known_head() {
    let test_store = TestStore::new(Engine::Sqlite).await;
    let store = test_store.open().await;
    store.append_audit((1..=50).map(record).collect()).await.unwrap();
    let AuditVerification::Intact { records, head, .. } = store.verify_audit(None).await.unwrap() else {
        unreachable!()
    };
    let other = TestStore::new(Engine::Sqlite).await;
    let forged = other.open().await;
    forged.append_audit((2..=51).map(record).collect()).await.unwrap();
    assert!(matches!(forged.verify_audit(None).await.unwrap(), AuditVerification::Intact { .. }));
    assert!(matches!(
        forged.verify_audit(Some((records, head))).await.unwrap(),
        AuditVerification::Broken { .. }
    ));
}
