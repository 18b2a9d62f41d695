//! Any single change to the audit log is found, wherever it is and whatever it is.

#![expect(clippy::unwrap_used, reason = "a test helper fails its test")]

mod common;

use common::Place;
use proptest::{prelude::*, test_runner::TestRunner};
use sqlx::{AnyPool, Executor as _};
use toolyard_core::{AuditRecord, ContentHash};
use toolyard_store::{Engine, Location, Store, Verdict};

const RECORDS: i64 = 10_000;

fn record(number: i64) -> AuditRecord {
    AuditRecord {
        at: 1_700_000_000_000 + number,
        who: format!("client-{}", number % 7),
        call: format!("call_{number}"),
        tool: format!("tool_{}", number % 13),
        sources: vec!["excel".into(), "time".into()],
        arguments: ContentHash::of(number.to_le_bytes()),
        result: (number % 3 > 0).then(|| ContentHash::of("result")),
        outcome: "ok".to_owned(),
        milliseconds: number % 100,
    }
}

/// One thing somebody might do to the log.
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
        "who",
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
        2 => (number(), number()).prop_filter("two different ones", |(a, b)| a != b).prop_map(|(number, with)| Tampering::Swap { number, with }),
        1 => (0..RECORDS).prop_map(|after| Tampering::Truncate { after }),
        1 => (0..RECORDS - 1_000).prop_map(|after| Tampering::TruncateWithHead { after }),
        1 => number().prop_map(|after| Tampering::Insert { after }),
    ]
}

/// The statements of one change, all in one transaction that is taken back afterwards.
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
        // Somebody careful, who also moves the end of the chain back; the checkpoints still know.
        Tampering::TruncateWithHead { after } => vec![
            format!("DELETE FROM audit WHERE number > {after}"),
            format!("UPDATE audit_head SET number = {after}, hash = COALESCE((SELECT hash FROM audit WHERE number = {after}), '{}')", "0".repeat(64)),
        ],
        Tampering::Insert { after } => vec![format!(
            "INSERT INTO audit SELECT number, day + 1, at, who, call, tool, sources, arguments, result, outcome, milliseconds, hash
             FROM audit WHERE number = {after}"
        )],
    }
}

#[test]
fn any_single_change_among_ten_thousand_records_is_found() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let place = runtime.block_on(Place::new(Engine::Sqlite));
    let store = runtime.block_on(async {
        let store = place.open().await;
        store.append_audit((1..=RECORDS).map(record).collect()).await.unwrap();
        assert!(matches!(store.verify_audit(None).await.unwrap(), Verdict::Whole { records: RECORDS, .. }));
        store
    });
    let mut runner = TestRunner::new(ProptestConfig::with_cases(150));
    let outcome = runner.run(&any_tampering(), |tampering| {
        let verdict = runtime.block_on(tampered(&place, &store, &tampering));
        prop_assert!(matches!(verdict, Verdict::Broken { .. }), "{:?} went unseen: {:?}", tampering, verdict);
        Ok(())
    });
    outcome.unwrap();
}

/// What verification says of a copy with one change.
async fn tampered(place: &Place, store: &Store, tampering: &Tampering) -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    assert!(matches!(place.location, Location::Sqlite(_)));
    store.backup(&copy).await.unwrap();
    let pool = AnyPool::connect(&format!("sqlite://{}", copy.display())).await.unwrap();
    for statement in statements(tampering) {
        let _ = pool.execute(sqlx::query(sqlx::AssertSqlSafe(statement))).await.unwrap();
    }
    pool.close().await;
    Store::open(Location::Sqlite(copy)).await.unwrap().verify_audit(None).await.unwrap()
}

/// A chain written anew from its beginning is whole in itself; only a hash noted elsewhere tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_written_anew_does_not_match_what_was_noted() {
    let place = Place::new(Engine::Sqlite).await;
    let store = place.open().await;
    store.append_audit((1..=50).map(record).collect()).await.unwrap();
    let Verdict::Whole { records, head } = store.verify_audit(None).await.unwrap() else { unreachable!() };
    let other = Place::new(Engine::Sqlite).await;
    let forged = other.open().await;
    forged.append_audit((2..=51).map(record).collect()).await.unwrap();
    assert!(matches!(forged.verify_audit(None).await.unwrap(), Verdict::Whole { .. }));
    assert!(matches!(forged.verify_audit(Some((records, head))).await.unwrap(), Verdict::Broken { .. }));
}
