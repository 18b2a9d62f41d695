//! Counters and permits of quotas, as several processes use them.

use sqlx::{Connection as _, Executor as _, Row as _};
use toolyard_core::{BudgetCharge, BudgetName, BudgetTake, PermitHold, QuotaBudgets as _, WindowLimit};
use toolyard_store::QuotaUse;

use super::*;

const HOUR: WindowLimit = WindowLimit { limit: 100, window_millis: 3_600_000 };

fn budget(key: &str, meter: &'static str) -> Arc<BudgetName> {
    let (quota, subject) = ("ci".into(), "caller alice".to_owned());
    Arc::new(BudgetName { key: ContentHash::of(key), quota, meter, subject })
}

fn take(key: &str, limit: u64) -> BudgetTake {
    BudgetTake { budget: budget(key, "calls"), limit: WindowLimit { limit, ..HOUR } }
}

/// A charge of a holder whose earlier totals are not known to be charged.
fn charge(key: &str, holder: &str, total: u64) -> BudgetCharge {
    let budget = budget(key, "tokens");
    BudgetCharge { budget, limit: HOUR, holder: holder.to_owned(), charged_before: 0, total }
}

/// What is used of all limits that are listed.
async fn used(store: &Store) -> Vec<u64> {
    store.quota_use().await.unwrap().iter().map(|listed| listed.used).collect()
}

pub(crate) async fn two_processes_never_get_more_than_the_budget(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let stores = [test_store.open().await, test_store.open().await];
    let takers = (0..16).map(|index: usize| {
        let store = stores[index % 2].clone();
        tokio::spawn(async move {
            let mut taken = 0;
            loop {
                // In both orders.
                let mut takes = [take("one", 100), take("two", 1_000)];
                takes.rotate_left(index / 2 % 2);
                let waits = store.take(&takes).await.unwrap();
                match waits.iter().find(|wait| !wait.is_zero()) {
                    Some(wait) => {
                        assert!(*wait > Duration::from_secs(3_500), "{waits:?}");
                        return taken;
                    }
                    None => taken += 1,
                }
            }
        })
    });
    let mut sum = 0;
    for taker in takers.collect::<Vec<_>>() {
        sum += taker.await.unwrap();
    }
    assert_eq!(sum, 100);
    assert_eq!(used(&stores[0]).await, [100, 100]);
}

pub(crate) async fn a_call_is_taken_from_all_budgets_or_from_none(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    for index in 0..3 {
        let waits = store.take(&[take("large", 100), take("small", 2), take("other", 100)]).await.unwrap();
        let is_used_up: Vec<bool> = waits.iter().map(|wait| !wait.is_zero()).collect();
        assert_eq!(is_used_up, [false, index == 2, false]);
    }
    assert_eq!(used(&store).await, [2, 2, 2]);
    let raised = store.take(&[take("small", 3)]).await.unwrap();
    assert_eq!(raised, [Duration::ZERO], "a changed limit goes on counting");
    let mut sum = used(&store).await;
    sum.sort_unstable();
    assert_eq!(sum, [2, 2, 3]);
}

pub(crate) async fn a_budget_is_charged_and_listed(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    assert_eq!(store.charge(&charge("a", "one", 0)).await, Ok(Duration::ZERO));
    assert_eq!(rows(&test_store, "quota_budgets").await, 0, "reading creates nothing");
    assert_eq!(store.charge(&charge("a", "one", 60)).await, Ok(Duration::ZERO), "40 are left");
    let wait = store.charge(&charge("a", "one", 130)).await.unwrap();
    assert!(wait > Duration::from_secs(3_500), "use beyond the limit counts, and leaves nothing");
    let read = BudgetCharge { charged_before: 130, ..charge("a", "one", 130) };
    assert!(store.charge(&read).await.unwrap() > Duration::from_secs(3_500));
    let listed = store.quota_use().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].quota.as_str(), listed[0].counts.as_str()), ("ci", "tokens"));
    assert_eq!((listed[0].subject.as_str(), listed[0].used, listed[0].limit), ("caller alice", 130, 100));
    let (window, resets_in) = listed[0].window.unwrap();
    assert!(window == HOUR.window() && resets_in > Duration::from_secs(3_500));
    store.purge_budgets().await.unwrap();
    assert_eq!(used(&store).await, [130], "what counts is not purged");
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
    let listed = QuotaUse {
        quota: "ci".to_owned(),
        counts: "concurrent_calls".to_owned(),
        subject: "caller alice".to_owned(),
        used: 4,
        limit: 4,
        window: None,
    };
    assert_eq!(other.quota_use().await.unwrap(), [listed]);
    assert_eq!(one.hold_permits(&hold("one", 0, 60_000)).await, Ok(0));
    assert_eq!(other.quota_use().await.unwrap(), []);
    one.purge_budgets().await.unwrap();
    assert_eq!(rows(&test_store, "quota_permits").await, 0, "the row that serializes requests is not needed");
    assert_eq!(one.hold_permits(&hold("one", 1, 60_000)).await, Ok(1));
}

async fn rows(test_store: &TestStore, table: &'static str) -> i64 {
    let mut connection = sqlx::AnyConnection::connect(&test_store.url()).await.unwrap();
    let sql = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) AS n FROM {table}"));
    connection.fetch_one(sqlx::query(sql)).await.unwrap().try_get("n").unwrap()
}

pub(crate) async fn a_repeated_charge_is_made_once(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (store, other) = (test_store.open().await, test_store.open().await);
    for store in [&store, &other, &store] {
        store.charge(&charge("a", "one", 40)).await.unwrap();
        assert_eq!(used(store).await, [40]);
    }
    store.charge(&charge("a", "two", 40)).await.unwrap();
    assert_eq!(used(&store).await, [80], "totals are those of a holder");
    store.charge(&charge("a", "one", 47)).await.unwrap();
    assert_eq!(used(&store).await, [87], "the answer to the charge of 40 was lost");
    other.charge(&charge("a", "one", 40)).await.unwrap();
    assert_eq!(used(&store).await, [87], "a copy that arrives after a later charge");
    store.purge_budgets().await.unwrap();
    assert_eq!(rows(&test_store, "quota_changes").await, 2, "recent charges are remembered");
}

/// While another process writes, requests time out and are repeated: only one of them counts.
#[tokio::test]
async fn abandoned_requests_of_a_locked_sqlite_store_change_nothing() {
    let test_store = TestStore::new(Engine::Sqlite).await;
    let store = test_store.open().await;
    let hold = PermitHold {
        budget: budget("permits", "permits"),
        holder: "one".into(),
        limit: 4,
        wanted: 3,
        expires_in: Duration::from_secs(60),
    };
    store.take(&[take("other", 9)]).await.unwrap();
    let mut writer = sqlx::AnyConnection::connect(&test_store.url()).await.unwrap();
    writer.execute("BEGIN IMMEDIATE").await.unwrap();
    let patience = Duration::from_millis(100);
    for _ in 0..3 {
        assert!(tokio::time::timeout(patience, store.charge(&charge("a", "one", 30))).await.is_err());
        assert!(tokio::time::timeout(patience, store.take(&[take("other", 9)])).await.is_err());
        assert!(tokio::time::timeout(patience, store.hold_permits(&hold)).await.is_err());
    }
    writer.execute("COMMIT").await.unwrap();
    store.charge(&charge("a", "one", 30)).await.unwrap();
    assert_eq!(used(&store).await, [1, 30], "no abandoned request was granted or charged");
}

pub(crate) async fn old_charges_of_a_budget_are_forgotten_with_the_next_one(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    for holder in ["first command", "second command"] {
        store.charge(&charge("a", holder, 1)).await.unwrap();
    }
    let mut connection = sqlx::AnyConnection::connect(&test_store.url()).await.unwrap();
    connection.execute("UPDATE quota_changes SET changed_at = changed_at - 7200000").await.unwrap();
    store.charge(&charge("a", "third command", 1)).await.unwrap();
    let row = connection.fetch_one("SELECT COUNT(*) AS count FROM quota_changes").await.unwrap();
    assert_eq!(row.try_get::<i64, _>("count").unwrap(), 1);
    let known = BudgetCharge { charged_before: 1, ..charge("a", "first command", 3) };
    store.charge(&known).await.unwrap();
    assert_eq!(used(&store).await, [5], "what is known to be charged is not charged again");
}
