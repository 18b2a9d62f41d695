//! Quotas of several processes with one store: the sum never exceeds a limit and comes close to it; a failing store refuses.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::{CallQuota as _, ModelUse, QuotaSubject, WindowLimit};
use toolyard_quota::{QuotaRule, Quotas};

use crate::store_double::{Fault, FaultyBudgets, call, call_tool, calls_rule};

/// Drives several processes beyond a limit for three windows; returns when calls were admitted.
async fn drive(limit: u64, processes: usize, pauses_millis: &[u64]) -> (Vec<Instant>, usize) {
    let store = FaultyBudgets::new(Duration::from_millis(4));
    let admitted = Arc::new(Mutex::new(Vec::new()));
    let end = Instant::now() + Duration::from_secs(180);
    let mut clients = tokio::task::JoinSet::new();
    for process in 0..processes {
        let quotas = Quotas::shared(vec![calls_rule(limit, 60_000)], Arc::clone(&store) as _).unwrap();
        let pause = *pauses_millis.get(process % pauses_millis.len()).unwrap();
        for _ in 0..3 {
            let (quotas, admitted) = (quotas.clone(), Arc::clone(&admitted));
            clients.spawn(async move {
                while Instant::now() < end {
                    if call(&quotas).await.is_ok() {
                        admitted.lock().push(Instant::now());
                    }
                    sleep(Duration::from_millis(pause)).await;
                }
            });
        }
    }
    clients.join_all().await;
    let requests = store.requests.load(Ordering::SeqCst);
    (Arc::into_inner(admitted).unwrap().into_inner(), requests)
}

#[tokio::test(start_paused = true)]
async fn processes_together_stay_below_the_limit_and_within_five_percent() {
    for (limit, processes, pauses) in
        [(20, 2, [40, 40]), (600, 2, [11, 11]), (600, 2, [11, 400]), (600, 5, [25, 31]), (5_000, 3, [5, 9])]
    {
        let (mut admitted, requests) = drive(limit, processes, &pauses).await;
        admitted.sort_unstable();
        let window = Duration::from_secs(60);
        let in_window = |start: usize| {
            let first = admitted.get(start).copied().unwrap();
            admitted.iter().skip(start).take_while(|at| **at - first < window).count()
        };
        let most = (0..admitted.len()).map(in_window).max().unwrap();
        assert!(u64::try_from(most).unwrap() <= limit, "{most} of {limit} within a minute");
        let sum = u64::try_from(admitted.len()).unwrap();
        assert!(sum * 100 >= 95 * 3 * limit, "{sum} of {} in three minutes", 3 * limit);
        // A call that is refused is refused without the store for up to a second.
        let most = admitted.len() + 1_000 * processes;
        assert!(requests < most, "{requests} requests to the store for {sum} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_refuses_by_its_name_and_is_not_asked_for_every_call() {
    let permits = QuotaRule { name: "permits".into(), concurrent_calls: Some(9), ..QuotaRule::default() };
    for rule in [calls_rule(1_000, 60_000), permits] {
        let store = FaultyBudgets::new(Duration::ZERO);
        let quotas = Quotas::shared(vec![rule], Arc::clone(&store) as _).unwrap();
        assert!(call(&quotas).await.is_ok());
        store.set_fault(Fault::Refuses);
        let refused = call(&quotas).await.unwrap_err();
        assert!(refused.to_string().contains("the store failed: connection refused"), "{refused}");
        assert!(!refused.retry_after.is_zero());
        let asked = store.requests.load(Ordering::SeqCst);
        for _ in 0..100 {
            assert!(call(&quotas).await.is_err());
        }
        assert_eq!(store.requests.load(Ordering::SeqCst), asked);
        store.set_fault(Fault::None);
        sleep(refused.retry_after).await;
        assert!(call(&quotas).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_process_leaves_others_get() {
    let store = FaultyBudgets::new(Duration::from_millis(1));
    let rules = || vec![calls_rule(100, 3_600_000)];
    let [one, other] = [(); 2].map(|()| Quotas::shared(rules(), Arc::clone(&store) as _).unwrap());
    for _ in 0..10 {
        assert!(call(&one).await.is_ok());
    }
    let mut admitted = 0;
    while call(&other).await.is_ok() {
        admitted += 1;
    }
    assert_eq!(admitted, 90);
    assert!(call(&one).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_quota_does_not_ask_the_store() {
    let store = FaultyBudgets::new(Duration::from_millis(1));
    let rule = QuotaRule { tools: vec!["fetch".to_owned()], ..calls_rule(1, 60_000) };
    let quotas = Quotas::shared(vec![rule], Arc::clone(&store) as _).unwrap();
    store.set_fault(Fault::Refuses);
    assert!(call_tool(&quotas, "search").await.is_ok());
    assert!(call_tool(&quotas, "fetch").await.is_err());
    assert_eq!(store.requests.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn permits_are_shared_and_come_back() {
    let store = FaultyBudgets::new(Duration::from_millis(1));
    let rule = QuotaRule { name: "four".into(), concurrent_calls: Some(4), ..QuotaRule::default() };
    let [one, other] = [(); 2].map(|()| Quotas::shared(vec![rule.clone()], Arc::clone(&store) as _).unwrap());
    let mut held = Vec::new();
    for quotas in [&one, &one, &one, &other] {
        held.push(call(quotas).await.unwrap());
    }
    assert!(call(&one).await.is_err() && call(&other).await.is_err());
    // Longer than permits last without renewal.
    sleep(Duration::from_secs(40)).await;
    assert!(call(&one).await.is_err() && call(&other).await.is_err(), "running calls keep their permits");
    held.clear();
    sleep(Duration::from_secs(3)).await;
    for _ in 0..4 {
        held.push(call(&other).await.unwrap());
    }
    assert!(call(&one).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn tokens_are_counted_for_all_processes_also_after_an_outage() {
    let store = FaultyBudgets::new(Duration::from_millis(1));
    let tokens = Some(WindowLimit { limit: 1_000, window_millis: 3_600_000 });
    let rule = QuotaRule { name: "tokens".into(), tokens, ..QuotaRule::default() };
    let [one, other] = [(); 2].map(|()| Quotas::shared(vec![rule.clone()], Arc::clone(&store) as _).unwrap());
    let subject = QuotaSubject { identity: None, agent: Some("writer") };
    let used = |tokens| ModelUse { tokens, cost_micros: 0 };
    assert!(one.admit_model_use(subject).await.is_ok());
    one.charge_model_use(subject, used(600)).await;
    assert!(other.admit_model_use(subject).await.is_ok());
    store.set_fault(Fault::Refuses);
    other.charge_model_use(subject, used(500)).await;
    let refused = one.admit_model_use(subject).await.unwrap_err();
    assert!(refused.store_error.is_some(), "{refused}");
    store.set_fault(Fault::None);
    sleep(Duration::from_secs(2)).await;
    for quotas in [&one, &other] {
        let refused = quotas.admit_model_use(subject).await.unwrap_err();
        assert_eq!(refused.store_error, None, "600 and 500 of 1,000 are used");
    }
}

#[tokio::test(start_paused = true)]
async fn permits_that_others_hold_are_not_asked_for_at_every_call() {
    let store = FaultyBudgets::new(Duration::ZERO);
    let rule = QuotaRule { name: "one".into(), concurrent_calls: Some(1), ..QuotaRule::default() };
    let [one, other] = [(); 2].map(|()| Quotas::shared(vec![rule.clone()], Arc::clone(&store) as _).unwrap());
    let running = call(&one).await.unwrap();
    let asked = store.requests.load(Ordering::SeqCst);
    for _ in 0..100 {
        assert!(call(&other).await.is_err());
    }
    assert_eq!(store.requests.load(Ordering::SeqCst), asked + 1);
    drop(running);
    sleep(Duration::from_secs(2)).await;
    assert!(call(&other).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_window_refuses_gives_its_permit_back_at_once() {
    let store = FaultyBudgets::new(Duration::ZERO);
    let permits = QuotaRule { name: "permits".into(), concurrent_calls: Some(3), ..QuotaRule::default() };
    let quotas = Quotas::shared(vec![permits, calls_rule(1, 3_600_000)], Arc::clone(&store) as _).unwrap();
    drop(call(&quotas).await.unwrap());
    sleep(Duration::from_secs(2)).await;
    assert!(call(&quotas).await.is_err());
    assert_eq!(store.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_do_not_wait_longer_for_their_turn_than_for_the_store() {
    let store = FaultyBudgets::new(Duration::from_millis(1_900));
    let permits = QuotaRule { name: "permits".into(), concurrent_calls: Some(3), ..QuotaRule::default() };
    let quotas = Quotas::shared(vec![permits, calls_rule(9, 3_600_000)], Arc::clone(&store) as _).unwrap();
    let first = tokio::spawn({
        let quotas = quotas.clone();
        async move { call(&quotas).await.is_ok() }
    });
    // The first call has the turn, for two requests.
    sleep(Duration::from_millis(1)).await;
    let refused = timeout(Duration::from_millis(2_100), call(&quotas)).await.unwrap().unwrap_err();
    assert!(refused.store_error.is_some(), "{refused}");
    assert!(first.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_counter_of_tokens_outlives_pauses_between_calls() {
    let store = FaultyBudgets::new(Duration::from_millis(1));
    let tokens = Some(WindowLimit { limit: 1_000, window_millis: 3_600_000 });
    let rule = QuotaRule { name: "tokens".into(), tokens, ..QuotaRule::default() };
    let quotas = Quotas::shared(vec![rule], Arc::clone(&store) as _).unwrap();
    let subject = QuotaSubject { identity: None, agent: Some("writer") };
    quotas.charge_model_use(subject, ModelUse { tokens: 1, cost_micros: 0 }).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(quotas.counters(), 1, "another counter would be another holder in the store");
    sleep(Duration::from_secs(600)).await;
    assert_eq!(quotas.counters(), 0);
}
