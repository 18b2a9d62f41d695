//! Settings in the store.

use super::*;

pub(crate) async fn settings_have_versions_and_changes_are_audited(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (store, other) = (test_store.open().await, test_store.open().await);
    assert_eq!(store.latest_settings().await, Ok(None));
    assert_eq!(store.latest_settings_number().await, Ok(0));
    assert_eq!(store.add_settings_version(0, "a = 1", "first", "ada").await, Ok(Some(1)));
    assert_eq!(
        other.add_settings_version(0, "b = 1", "late", "bob").await,
        Ok(None),
        "bob did not see version 1"
    );
    assert_eq!(other.add_settings_version(7, "b = 1", "early", "bob").await, Ok(None));
    assert_eq!(other.add_settings_version(1, "b = 1", "second", "bob").await, Ok(Some(2)));
    let latest = store.latest_settings().await.unwrap().unwrap();
    assert_eq!((latest.number, latest.text.as_str(), latest.changed_by.as_str()), (2, "b = 1", "bob"));
    assert_eq!(store.latest_settings_number().await, Ok(2));
    let versions = store.settings_versions(10).await.unwrap();
    let versions: Vec<_> = versions.iter().map(|version| (version.number, version.change.as_str())).collect();
    assert_eq!(versions, [(2, "second"), (1, "first")]);
    assert_eq!(store.settings_version(1).await.unwrap().unwrap().text, "a = 1");
    assert_eq!(store.settings_version(9).await, Ok(None));
    let audit = store.query_audit(&AuditQuery { limit: 10, ..AuditQuery::default() }).await.unwrap();
    let audit: Vec<_> =
        audit.iter().map(|entry| (entry.record.caller.as_str(), entry.record.outcome.as_str())).collect();
    let expected = [
        ("ada", "decided: settings in the store, version 1: first"),
        ("bob", "decided: settings in the store, version 2: second"),
    ];
    assert_eq!(audit, expected);
}

pub(crate) async fn of_concurrent_changes_one_wins(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let stores = [test_store.open().await, test_store.open().await, test_store.open().await];
    for after in 0..10 {
        let add =
            |store: Store| async move { store.add_settings_version(after, "", "race", "x").await.unwrap() };
        let outcomes = futures_util::future::join_all(stores.iter().cloned().map(add)).await;
        assert_eq!(outcomes.iter().flatten().copied().collect::<Vec<_>>(), [after + 1], "{outcomes:?}");
    }
}
