//! Budgets and permits of quotas, as several processes use them.

use toolyard_core::{BudgetChange, BudgetName, PermitHold, QuotaBudgets as _, WindowLimit};

use super::*;

const HOUR: WindowLimit = WindowLimit { limit: 100, window_millis: 3_600_000 };

fn change(key: &str, wanted: u64) -> BudgetChange {
    let name = BudgetName {
        key: ContentHash::of(key),
        quota: "ci".into(),
        meter: "calls",
        subject: "caller alice".to_owned(),
    };
    BudgetChange { budget: Arc::new(name), limit: HOUR, wanted, charged: 0, given_back: Vec::new() }
}

pub(crate) async fn two_processes_never_get_more_than_the_budget(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let stores = [test_store.open().await, test_store.open().await];
    let takers = (0..16).map(|index| {
        let store = stores[index % 2].clone();
        tokio::spawn(async move {
            let mut granted = 0;
            loop {
                let state = store.change_budget(&change("one", 3)).await.unwrap();
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
        key: ContentHash::of("permits"),
        holder: holder.to_owned(),
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
}
