//! Quotas with a store that fails, hangs or loses answers, calls that are cancelled, and rules that are replaced: whatever happens,
//! the limits hold, and the store counts all that was used.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::{CallQuota as _, ModelUse, QuotaLimit, QuotaSubject, WindowLimit};
use toolyard_quota::{CountedPer, QuotaRule, Quotas};

use crate::store_double::{Fault, FaultyBudgets, call, call_tool, calls_rule};

const HOUR_MILLIS: u64 = 3_600_000;
/// The longest window, whose slots do not end within a test.
const MONTH_MILLIS: u64 = 31 * 24 * HOUR_MILLIS;

fn shared(rules: Vec<QuotaRule>, store: &Arc<FaultyBudgets>) -> Quotas {
    Quotas::shared(rules, Arc::clone(store) as _).unwrap()
}

fn permits_rule(limit: u64) -> QuotaRule {
    QuotaRule { name: "permits".into(), concurrent_calls: Some(limit), ..QuotaRule::default() }
}

fn tokens_rule(limit: u64) -> QuotaRule {
    let tokens = Some(WindowLimit { limit, window_millis: MONTH_MILLIS });
    QuotaRule { name: "tokens".into(), tokens, ..QuotaRule::default() }
}

fn tokens(tokens: u64) -> ModelUse {
    ModelUse { tokens, cost_micros: 0 }
}

const SUBJECT: QuotaSubject<'static> = QuotaSubject { identity: None, agent: Some("writer") };

#[tokio::test(start_paused = true)]
async fn use_is_charged_once_by_a_store_that_commits_late_or_loses_answers() {
    for fault in [Fault::Hangs, Fault::LosesAnswers, Fault::Refuses] {
        let store = FaultyBudgets::new(Duration::from_millis(1));
        let quotas = shared(vec![tokens_rule(10_000)], &store);
        store.set_fault(fault);
        quotas.charge_model_use(SUBJECT, tokens(100)).await;
        // Several rounds of upkeep try again.
        sleep(Duration::from_secs(9)).await;
        quotas.charge_model_use(SUBJECT, tokens(11)).await;
        store.set_fault(Fault::None);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(store.used("tokens"), 111, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_was_lost_is_refused_and_the_limit_holds() {
    for fault in [Fault::Hangs, Fault::LosesAnswers] {
        let store = FaultyBudgets::new(Duration::from_millis(1));
        let quotas = shared(vec![calls_rule(10, MONTH_MILLIS)], &store);
        store.set_fault(fault);
        for _ in 0..3 {
            let refused = call(&quotas).await.unwrap_err();
            assert!(refused.store_error.is_some(), "{refused}");
            sleep(Duration::from_secs(1)).await;
        }
        store.set_fault(Fault::None);
        sleep(Duration::from_secs(5)).await;
        let mut admitted = 0;
        while call(&quotas).await.is_ok() {
            admitted += 1;
        }
        assert_eq!((admitted, store.used("calls")), (7, 10), "{fault:?}: the lost answers were grants");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_or_cancelled_call_counts_for_all_its_quotas_or_for_none() {
    let store = FaultyBudgets::new(Duration::from_millis(4));
    let second = QuotaRule { name: "second".into(), ..calls_rule(20, MONTH_MILLIS) };
    let quotas = shared(vec![calls_rule(100, MONTH_MILLIS), permits_rule(3), second], &store);
    let (mut admitted, mut attempts) = (0, 0);
    // At each of the two requests to the store, and while others wait for the answer.
    for wait_millis in [1, 3, 5, 7, 9, 11, 13, 15, 40] {
        let calls = (0..3).map(|_| timeout(Duration::from_millis(wait_millis), call(&quotas)));
        for outcome in futures_in_order(calls).await {
            admitted += u64::from(matches!(outcome, Ok(Ok(_))));
            attempts += 1;
        }
        quotas.settle().await;
    }
    let (used, held) = (store.used("calls"), store.held());
    assert!(admitted > 0 && used >= 2 * admitted && used <= 2 * attempts, "{used} for {admitted}");
    assert_eq!((used % 2, held), (0, 0));
    while call(&quotas).await.is_ok() {}
    sleep(Duration::from_secs(2)).await;
    for _ in 0..5 {
        assert_eq!(&*call(&quotas).await.unwrap_err().quota, "second");
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(3)).await;
    assert_eq!((store.used("calls"), store.held()), (40, 0), "a refused call counts for none");
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_a_cancelled_call_asked_for_is_soon_free() {
    let store = FaultyBudgets::new(Duration::from_millis(4));
    let [one, other] = [(); 2].map(|()| shared(vec![permits_rule(1)], &store));
    // The store has answered after 2 ms, and the answer is on its way.
    assert!(timeout(Duration::from_millis(3), call(&one)).await.is_err());
    assert_eq!(store.held(), 1);
    sleep(Duration::from_secs(2)).await;
    assert!(call(&other).await.is_ok());
}

/// The outputs of futures that run at the same time.
async fn futures_in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, output) in &mut pending {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        match pending.iter().all(|(_, output)| output.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    pending.into_iter().filter_map(|(_, output)| output).collect()
}

#[tokio::test(start_paused = true)]
async fn use_is_counted_although_nobody_waits_for_the_store() {
    let store = FaultyBudgets::new(Duration::from_millis(20));
    let quotas = shared(vec![tokens_rule(1_000)], &store);
    drop(quotas.charge_model_use(SUBJECT, tokens(1)));
    for wait_millis in [1, 5, 15, 25] {
        let charging = quotas.charge_model_use(SUBJECT, tokens(10));
        let _ = timeout(Duration::from_millis(wait_millis), charging).await;
    }
    sleep(Duration::from_secs(3)).await;
    assert_eq!(store.used("tokens"), 41);
}

#[tokio::test(start_paused = true)]
async fn replaced_quotas_renew_running_calls_and_settle_the_rest() {
    let store = FaultyBudgets::new(Duration::from_millis(1));
    let rules = vec![permits_rule(2), calls_rule(100, MONTH_MILLIS), tokens_rule(1_000)];
    let (previous, other) = (shared(rules.clone(), &store), shared(rules, &store));
    let running = [call(&previous).await.unwrap(), call(&previous).await.unwrap()];
    store.set_fault(Fault::Refuses);
    previous.charge_model_use(SUBJECT, tokens(7)).await;
    store.set_fault(Fault::None);
    let next = previous.with_rules(vec![]).unwrap();
    drop(previous);
    for _ in 0..40 {
        sleep(Duration::from_secs(1)).await;
        assert!(call(&other).await.is_err(), "both permits are in use");
    }
    assert_eq!((store.used("tokens"), store.used("calls")), (7, 2));
    drop(running);
    sleep(Duration::from_secs(3)).await;
    assert!(call(&other).await.is_ok());
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn a_changed_limit_goes_on_counting() {
    let store = FaultyBudgets::new(Duration::from_millis(1));
    let rules = |calls| vec![calls_rule(calls, HOUR_MILLIS), permits_rule(2)];
    for previous in [Quotas::local(rules(3)).unwrap(), shared(rules(3), &store)] {
        let running = [call(&previous).await.unwrap(), call(&previous).await.unwrap()];
        let next = previous.with_rules(rules(4)).unwrap();
        drop(previous);
        assert_eq!(call(&next).await.unwrap_err().limit, QuotaLimit::ConcurrentCalls(2));
        drop(running);
        sleep(Duration::from_secs(1)).await;
        for _ in 0..2 {
            assert!(call(&next).await.is_ok());
        }
        assert!(matches!(call(&next).await.unwrap_err().limit, QuotaLimit::Calls(_)), "4 of 4 are used");
        // Another window counts anew.
        let other = next.with_rules(vec![calls_rule(4, 2 * HOUR_MILLIS)]).unwrap();
        assert!(call(&other).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn windows_of_a_second_work_with_a_slow_store() {
    // Slots last 17 ms.
    let store = FaultyBudgets::new(Duration::from_millis(40));
    let [one, other] = [(); 2].map(|()| shared(vec![calls_rule(10, 1_000)], &store));
    let (mut admitted, end) = (Vec::new(), Instant::now() + Duration::from_secs(5));
    while Instant::now() < end {
        for quotas in [&one, &other] {
            match call(quotas).await {
                Ok(_) => admitted.push(Instant::now()),
                Err(refused) => assert_eq!(refused.store_error, None, "{refused}"),
            }
        }
        sleep(Duration::from_millis(5)).await;
    }
    assert!(admitted.len() > 30, "{} calls in 5 s", admitted.len());
    let in_window = |first: &Instant| {
        admitted.iter().filter(|at| *at >= first && **at - *first < Duration::from_millis(900)).count()
    };
    assert!(admitted.iter().map(in_window).max().unwrap() <= 10);
}

#[tokio::test(start_paused = true)]
async fn running_calls_of_many_counters_keep_their_permits() {
    let store = FaultyBudgets::new(Duration::from_millis(100));
    let per = CountedPer { tool: true, ..CountedPer::default() };
    let [one, other] = [(); 2].map(|()| shared(vec![QuotaRule { per, ..permits_rule(1) }], &store));
    let names: Vec<String> = (0..300).map(|number| format!("tool{number}")).collect();
    let running = futures_in_order(names.iter().map(|name| call_tool(&one, name))).await;
    assert!(running.iter().all(Result::is_ok));
    for _ in 0..4 {
        sleep(Duration::from_secs(10)).await;
        assert_eq!(store.held(), 300);
    }
    for name in names.iter().step_by(29) {
        assert!(call_tool(&other, name).await.is_err(), "{name}");
    }
}

#[derive(Debug, Clone)]
enum Action {
    Call { gives_up_after_millis: Option<u64>, lasts_millis: u64 },
    Charge { tokens: u64, gives_up_after_millis: Option<u64> },
    Fault(Fault),
    Pause { millis: u64 },
    Settle,
    Reload { limit: u64 },
}

fn any_action() -> impl Strategy<Value = Action> {
    let gives_up = || prop::option::of(0_u64..14);
    let fault = prop::sample::select(vec![
        Fault::None,
        Fault::None,
        Fault::Refuses,
        Fault::LosesAnswers,
        Fault::Hangs,
    ]);
    prop_oneof![
        6 => (gives_up(), 0_u64..5_000)
            .prop_map(|(gives_up_after_millis, lasts_millis)| Action::Call { gives_up_after_millis, lasts_millis }),
        3 => (1_u64..50, gives_up())
            .prop_map(|(tokens, gives_up_after_millis)| Action::Charge { tokens, gives_up_after_millis }),
        2 => fault.prop_map(Action::Fault),
        3 => (1_u64..4_000).prop_map(|millis| Action::Pause { millis }),
        1 => Just(Action::Settle),
        1 => (50_u64..200).prop_map(|limit| Action::Reload { limit }),
    ]
}

/// What a sequence of actions used, and what the store counts in the end.
#[derive(Debug)]
struct Outcome {
    admitted: u64,
    /// Calls that gave up or were refused by a failing store: the store may have counted them.
    uncertain: u64,
    counted_calls: u64,
    used_tokens: u64,
    counted_tokens: u64,
    held_permits: u64,
}

/// Does all this and settles.
async fn perform(actions: Vec<Action>) -> Outcome {
    let store = FaultyBudgets::new(Duration::from_millis(4));
    let rules = |limit| vec![calls_rule(limit, MONTH_MILLIS), permits_rule(3), tokens_rule(1_000_000)];
    let mut quotas = shared(rules(100), &store);
    let (mut admitted, mut uncertain, mut charged) = (0, 0, 0);
    for action in actions {
        match action {
            Action::Call { gives_up_after_millis, lasts_millis } => {
                let patience = gives_up_after_millis.map_or(Duration::from_secs(60), Duration::from_millis);
                match timeout(patience, call(&quotas)).await {
                    Ok(Ok(permit)) => {
                        admitted += 1;
                        tokio::spawn(async move {
                            sleep(Duration::from_millis(lasts_millis)).await;
                            drop(permit);
                        });
                    }
                    Ok(Err(refused)) => uncertain += u64::from(refused.store_error.is_some()),
                    Err(_gave_up) => uncertain += 1,
                }
            }
            Action::Charge { tokens: amount, gives_up_after_millis } => {
                let patience = gives_up_after_millis.map_or(Duration::from_secs(60), Duration::from_millis);
                let _ = timeout(patience, quotas.charge_model_use(SUBJECT, tokens(amount))).await;
                charged += amount;
            }
            Action::Fault(fault) => store.set_fault(fault),
            Action::Pause { millis } => sleep(Duration::from_millis(millis)).await,
            Action::Settle => quotas.settle().await,
            Action::Reload { limit } => quotas = quotas.with_rules(rules(limit)).unwrap(),
        }
    }
    store.set_fault(Fault::None);
    sleep(Duration::from_secs(20)).await;
    quotas.settle().await;
    drop(quotas);
    sleep(Duration::from_secs(5)).await;
    Outcome {
        admitted,
        uncertain,
        counted_calls: store.used("calls"),
        used_tokens: charged,
        counted_tokens: store.used("tokens"),
        held_permits: store.held(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever fails, is cancelled or reloaded, and when: the store counts every call that was made and at most those besides
    /// of which the process did not get its answer, and exactly the tokens that were used.
    #[test]
    fn the_store_counts_what_was_used(actions in prop::collection::vec(any_action(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let outcome = runtime.block_on(perform(actions));
        prop_assert!(outcome.counted_calls >= outcome.admitted, "{outcome:?}");
        prop_assert!(outcome.counted_calls <= outcome.admitted + outcome.uncertain, "{outcome:?}");
        prop_assert_eq!((outcome.counted_tokens, outcome.held_permits), (outcome.used_tokens, 0));
    }
}
