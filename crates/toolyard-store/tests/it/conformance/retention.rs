//! Removal of old data.

use toolyard_store::Removed;

use super::*;

const DAY: Duration = Duration::from_hours(24);

fn record_at(at: i64) -> AuditRecord {
    let call = format!("call {at}");
    AuditRecord::decision(at, toolyard_core::AuditedDecision::Approve, "ada", &call, ContentHash::of("x"))
}

pub(crate) async fn old_audit_records_are_removed_and_the_rest_stays_verifiable(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let now = toolyard_core::unix_millis();
    let day = i64::try_from(DAY.as_millis()).unwrap();
    // Three records a day, over ten days.
    let records = (0..30).map(|number| record_at(now - 9 * day + (number / 3) * day + number));
    store.append_audit(records.collect()).await.unwrap();
    let AuditVerification::Intact { head, .. } = store.verify_audit(None).await.unwrap() else {
        unreachable!()
    };
    let retention = Retention { audit: Some(4 * DAY), ..Retention::default() };
    let removed = store.apply_retention(&retention, "ada").await.unwrap();
    assert_eq!(removed.audit_records % 3, 0, "whole days");
    assert!((12..=15).contains(&removed.audit_records), "{removed:?}");
    assert_eq!(store.removed_audit_records().await.unwrap(), removed.audit_records);
    let verification = store.verify_audit(Some((30, head))).await.unwrap();
    assert!(matches!(verification, AuditVerification::Intact { records: 31, .. }), "{verification:?}");
    let of_removed = store.verify_audit(Some((1, ContentHash::of("x")))).await.unwrap();
    assert!(
        matches!(of_removed, AuditVerification::Broken { number: 1, .. }),
        "nobody can say that it is intact"
    );
    let entries = store.query_audit(&AuditQuery { limit: 100, ..AuditQuery::default() }).await.unwrap();
    assert_eq!(entries.len(), usize::try_from(31 - removed.audit_records).unwrap());
    let last = &entries.last().unwrap().record;
    let expected = format!("decided: audit records 1 to {}, by [retention]", removed.audit_records);
    assert_eq!((last.tool.as_str(), last.outcome.as_str()), ("remove audit records", expected.as_str()));

    assert_eq!(store.apply_retention(&retention, "ada").await.unwrap(), Removed::default());
    // The next removal begins where this one ended, and an export of the rest is verifiable, too.
    store.append_audit(vec![record_at(now)]).await.unwrap();
    let retention = Retention { audit: Some(2 * DAY), ..Retention::default() };
    assert!(store.apply_retention(&retention, "ada").await.unwrap().audit_records > 0);
    let mut export = Vec::new();
    store.export(&mut export).await.unwrap();
    let copy = TestStore::new(Engine::Sqlite).await;
    let (copy, _folder) = (copy.open().await, copy);
    copy.import(&mut Cursor::new(&export)).await.unwrap();
    assert_eq!(copy.verify_audit(None).await.unwrap(), store.verify_audit(None).await.unwrap());
    assert!(matches!(copy.verify_audit(None).await.unwrap(), AuditVerification::Intact { records: 33, .. }));
}

pub(crate) async fn ended_runs_are_removed_and_unclear_ones_are_kept(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let retention = Retention { runs: Some(Duration::from_millis(1)), ..Retention::default() };
    let [ended, unclear, open] =
        [new_run(&store, "one").await, new_run(&store, "one").await, new_run(&store, "one").await];
    store.begin(&ended, &write_intent("a")).await.unwrap();
    store.finish(&ended, "a", &done_with("written")).await.unwrap();
    store.release(&ended, RunState::Done).await.unwrap();
    store.begin(&unclear, &write_intent("w")).await.unwrap();
    expire_lease(&store, &unclear).await;
    let again = store.claim(&unclear.run, "two", LEASE_DURATION).await.unwrap();
    assert!(matches!(store.begin(&again, &write_intent("w")).await.unwrap(), StepStart::Unknown(_)));
    store.release(&again, RunState::Failed).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let removed = store.apply_retention(&retention, "ada").await.unwrap();
    assert_eq!(removed, Removed { runs: 1, ..Removed::default() });
    assert!(store.run(&ended.run).await.is_err() && store.steps(&ended.run).await.unwrap().is_empty());
    for kept in [&unclear.run, &open.run] {
        assert!(store.run(kept).await.is_ok());
    }
}
