//! Budgets and permits of quotas, as several processes use them.

use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::{Connection as _, Executor as _, Row as _};
use toolyard_core::{BudgetChange, BudgetName, PermitHold, QuotaBudgets as _, StoredPermits, WindowLimit};

use super::*;

const HOUR: WindowLimit = WindowLimit { limit: 100, window_millis: 3_600_000 };

fn budget(key: &str, meter: &'static str) -> Arc<BudgetName> {
    let (quota, subject) = ("ci".into(), "caller alice".to_owned());
    Arc::new(BudgetName { key: ContentHash::of(key), quota, meter, subject })
}

/// A change with a new number.
fn change(key: &str, wanted: u64) -> BudgetChange {
    static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
    BudgetChange {
        budget: budget(key, "calls"),
        limit: HOUR,
        holder: "one".into(),
        number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        wanted,
        charged: 0,
        given_back: Vec::new(),
    }
}

pub(crate) async fn two_processes_never_get_more_than_the_budget(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let stores = [test_store.open().await, test_store.open().await];
    let takers = (0..16).map(|index: usize| {
        let store = stores[index % 2].clone();
        tokio::spawn(async move {
            let mut granted = 0;
            loop {
                let change = BudgetChange { holder: index.to_string().into(), ..change("one", 3) };
                let state = store.change_budget(&change).await.unwrap();
                granted += state.granted;
                if state.granted == 0 {
                    assert!(state.wait > Duration::from_secs(3_500), "{state:?}");
                    return granted;
                }
                assert!(state.slot_ends_in <= Duration::from_secs(60));
            }
        })
    });
    let mut sum = 0;
    for taker in takers.collect::<Vec<_>>() {
        sum += taker.await.unwrap();
    }
    assert_eq!(sum, 100);
    assert_eq!(stores[0].change_budget(&change("other", 3)).await.unwrap().granted, 3, "another budget");
}

pub(crate) async fn a_budget_is_charged_given_back_and_listed(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    assert_eq!(store.change_budget(&change("a", 0)).await.unwrap().used, 0, "reading creates nothing");
    assert_eq!(store.budgets().await.unwrap(), []);
    let granted = store.change_budget(&change("a", 100)).await.unwrap();
    assert_eq!((granted.granted, granted.used), (100, 100));
    let returned = BudgetChange { given_back: vec![(granted.slot, 40)], ..change("a", 0) };
    assert_eq!(store.change_budget(&returned).await.unwrap().used, 60);
    let charged = BudgetChange { charged: 70, ..change("a", 5) };
    let state = store.change_budget(&charged).await.unwrap();
    assert_eq!((state.granted, state.used), (0, 130), "use beyond the limit counts, and leaves nothing");
    assert_eq!(store.change_budget(&change("a", 0)).await.unwrap().used, 130);
    let budgets = store.budgets().await.unwrap();
    assert_eq!(budgets.len(), 1);
    assert_eq!((budgets[0].quota.as_str(), budgets[0].subject.as_str()), ("ci", "caller alice"));
    assert_eq!((budgets[0].used, budgets[0].limit), (130, HOUR));
    assert!(budgets[0].resets_in > Duration::from_secs(3_500));
    store.purge_budgets().await.unwrap();
    assert_eq!(store.budgets().await.unwrap().len(), 1, "what counts is not purged");
}

pub(crate) async fn permits_are_shared_and_expire(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (one, other) = (test_store.open().await, test_store.open().await);
    let hold = |holder: &str, wanted: u64, millis: u64| PermitHold {
        budget: budget("permits", "permits"),
        holder: holder.into(),
        limit: 4,
        wanted,
        expires_in: Duration::from_millis(millis),
    };
    assert_eq!(one.hold_permits(&hold("one", 3, 60_000)).await, Ok(3));
    assert_eq!(other.hold_permits(&hold("other", 3, 60_000)).await, Ok(1), "one is left");
    assert_eq!(
        one.hold_permits(&hold("one", 1, 1)).await,
        Ok(1),
        "two are given back, and the last expires soon"
    );
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(other.hold_permits(&hold("other", 9, 60_000)).await, Ok(4));
    assert_eq!(one.hold_permits(&hold("one", 1, 60_000)).await, Ok(0));
    assert_eq!(other.hold_permits(&hold("other", 0, 60_000)).await, Ok(0));
    assert_eq!(one.hold_permits(&hold("one", 9, 60_000)).await, Ok(4));
    one.purge_budgets().await.unwrap();
    assert_eq!(other.hold_permits(&hold("other", 1, 60_000)).await, Ok(0), "what is held is not purged");
    let listed = other.held_permits().await.unwrap();
    let (quota, subject) = ("ci".to_owned(), "caller alice".to_owned());
    assert_eq!(listed, [StoredPermits { quota, subject, limit: 4, held: 4 }]);
    assert_eq!(one.hold_permits(&hold("one", 0, 60_000)).await, Ok(0));
    assert_eq!(other.held_permits().await.unwrap(), []);
    one.purge_budgets().await.unwrap();
    assert_eq!(rows(&test_store, "quota_permits").await, 0, "the row that serializes requests is not needed");
    assert_eq!(one.hold_permits(&hold("one", 1, 60_000)).await, Ok(1));
}

async fn rows(test_store: &TestStore, table: &'static str) -> i64 {
    let mut connection = sqlx::AnyConnection::connect(&test_store.url()).await.unwrap();
    let sql = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) AS n FROM {table}"));
    connection.fetch_one(sqlx::query(sql)).await.unwrap().try_get("n").unwrap()
}

pub(crate) async fn a_repeated_change_is_made_once(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (store, other) = (test_store.open().await, test_store.open().await);
    let charged = BudgetChange { charged: 40, ..change("a", 7) };
    let first = store.change_budget(&charged).await.unwrap();
    assert_eq!((first.granted, first.used), (7, 47));
    for store in [&store, &other] {
        let again = store.change_budget(&charged).await.unwrap();
        assert_eq!((again.granted, again.slot, again.used), (7, first.slot, 47), "the same grant");
    }
    let other_holder = BudgetChange { holder: "two".into(), ..charged.clone() };
    assert_eq!(other.change_budget(&other_holder).await.unwrap().used, 94, "numbers are those of a holder");
    let returned = BudgetChange { given_back: vec![(first.slot, 7)], ..change("a", 0) };
    for _ in 0..3 {
        assert_eq!(store.change_budget(&returned).await.unwrap().used, 87);
    }
    let late = store.change_budget(&charged).await.unwrap();
    assert_eq!((late.granted, late.used), (0, 87), "a copy that arrives after a later change");
    store.purge_budgets().await.unwrap();
    assert_eq!(rows(&test_store, "quota_changes").await, 2, "recent changes are remembered");
}

/// While another process writes, requests time out and are repeated: only one of them counts.
#[tokio::test]
async fn abandoned_requests_of_a_locked_sqlite_store_change_nothing() {
    let test_store = TestStore::new(Engine::Sqlite).await;
    let store = test_store.open().await;
    let charged = BudgetChange { charged: 30, ..change("a", 0) };
    let hold = PermitHold {
        budget: budget("permits", "permits"),
        holder: "one".into(),
        limit: 4,
        wanted: 3,
        expires_in: Duration::from_secs(60),
    };
    store.change_budget(&change("other", 1)).await.unwrap();
    let mut writer = sqlx::AnyConnection::connect(&test_store.url()).await.unwrap();
    writer.execute("BEGIN IMMEDIATE").await.unwrap();
    let patience = Duration::from_millis(100);
    for _ in 0..3 {
        assert!(tokio::time::timeout(patience, store.change_budget(&charged)).await.is_err());
        assert!(tokio::time::timeout(patience, store.change_budget(&change("a", 5))).await.is_err());
        assert!(tokio::time::timeout(patience, store.hold_permits(&hold)).await.is_err());
    }
    writer.execute("COMMIT").await.unwrap();
    let repeated = store.change_budget(&charged).await.unwrap();
    assert_eq!(repeated.used, 30, "no abandoned request was granted or charged");
    assert_eq!(store.held_permits().await.unwrap(), []);
}

pub(crate) async fn old_changes_of_a_budget_are_forgotten_with_the_next_one(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    for holder in ["first command", "second command"] {
        let change = BudgetChange { holder: holder.into(), ..change("a", 1) };
        store.change_budget(&change).await.unwrap();
    }
    let mut connection = sqlx::AnyConnection::connect(&test_store.url()).await.unwrap();
    connection.execute("UPDATE quota_changes SET changed_at = changed_at - 7200000").await.unwrap();
    store.change_budget(&change("a", 1)).await.unwrap();
    let row = connection.fetch_one("SELECT COUNT(*) AS count FROM quota_changes").await.unwrap();
    assert_eq!(row.try_get::<i64, _>("count").unwrap(), 1);
}
