//! Quotas of one process: limits hold for every key and window, permits end with their calls, idle counters go.

use std::{collections::HashMap, time::Duration};

use proptest::prelude::*;
use tokio::time::{Instant, advance, sleep};
use toolyard_core::{
    API_KEY_ISSUER, CallQuota as _, CallerIdentity, ModelUse, QuotaCall, QuotaExceeded, QuotaLimit,
    QuotaPermit, QuotaSubject, QuotaTool, SourceId, WindowLimit,
};
use toolyard_quota::{CountedPer, QuotaRule, Quotas};

const MINUTE: WindowLimit = WindowLimit { limit: 3, window_millis: 60_000 };
const PER_CALLER: CountedPer = CountedPer { caller: true, agent: false, tool: false };

fn rule(name: &str, per: CountedPer) -> QuotaRule {
    QuotaRule { name: name.into(), per, ..QuotaRule::default() }
}

fn caller(name: &str) -> CallerIdentity {
    CallerIdentity::principal(API_KEY_ISSUER, name)
}

async fn call(
    quotas: &Quotas,
    identity: Option<&CallerIdentity>,
    agent: Option<&str>,
    tool: &str,
) -> Result<QuotaPermit, Box<QuotaExceeded>> {
    let source = SourceId::from("web");
    let tools = [QuotaTool { name: tool, source: &source }];
    let call = QuotaCall { subject: QuotaSubject { identity, agent }, tools: &tools };
    quotas.take_call(&call).await
}

#[tokio::test(start_paused = true)]
async fn callers_are_counted_apart_and_told_when_to_come_back() {
    let quotas = Quotas::local(vec![QuotaRule { calls: Some(MINUTE), ..rule("ci", PER_CALLER) }]).unwrap();
    let (alice, bob) = (caller("alice"), caller("bob"));
    for _ in 0..3 {
        assert!(call(&quotas, Some(&alice), None, "search").await.is_ok());
    }
    let exceeded = call(&quotas, Some(&alice), None, "search").await.unwrap_err();
    assert_eq!((&*exceeded.quota, exceeded.limit), ("ci", QuotaLimit::Calls(MINUTE)));
    assert!(call(&quotas, Some(&bob), None, "search").await.is_ok());
    assert!(call(&quotas, None, None, "search").await.is_ok());
    advance(exceeded.retry_after - Duration::from_millis(1)).await;
    assert!(call(&quotas, Some(&alice), None, "search").await.is_err());
    advance(Duration::from_millis(1)).await;
    assert!(call(&quotas, Some(&alice), None, "search").await.is_ok());
    assert_eq!(quotas.refusals(), [("ci".into(), 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_one_quota_refuses_counts_for_no_other() {
    let all = QuotaRule { calls: Some(MINUTE), ..rule("all", CountedPer::default()) };
    let search = QuotaRule {
        calls: Some(WindowLimit { limit: 1, ..MINUTE }),
        tools: vec!["search@web".to_owned()],
        ..rule("search", CountedPer::default())
    };
    let quotas = Quotas::local(vec![all, search]).unwrap();
    assert!(call(&quotas, None, None, "search").await.is_ok());
    for _ in 0..5 {
        assert_eq!(&*call(&quotas, None, None, "search").await.unwrap_err().quota, "search");
    }
    assert!(call(&quotas, None, None, "fetch").await.is_ok());
    assert!(call(&quotas, None, None, "fetch").await.is_ok());
    assert_eq!(&*call(&quotas, None, None, "fetch").await.unwrap_err().quota, "all");
}

#[tokio::test(start_paused = true)]
async fn equivalent_tools_of_one_call_count_each_for_its_own_quota() {
    let per = CountedPer { tool: true, ..CountedPer::default() };
    let rules = vec![
        QuotaRule { calls: Some(WindowLimit { limit: 2, ..MINUTE }), ..rule("tool", per) },
        QuotaRule { calls: Some(MINUTE), ..rule("all", CountedPer::default()) },
    ];
    let quotas = Quotas::local(rules).unwrap();
    let (one, other) = (SourceId::from("one"), SourceId::from("other"));
    let both = [QuotaTool { name: "search", source: &one }, QuotaTool { name: "search", source: &other }];
    let subject = QuotaSubject::default();
    let take = |tools: &[QuotaTool<'_>]| quotas.take_call(&QuotaCall { subject, tools });
    assert!(take(&both).await.is_ok());
    assert!(take(&both[..1]).await.is_ok());
    assert_eq!(&*take(&both).await.unwrap_err().quota, "tool", "the first tool is used up");
    assert!(take(&both[1..]).await.is_ok());
    assert_eq!(&*take(&both[1..]).await.unwrap_err().quota, "tool");
    assert_eq!(quotas.refusals().iter().map(|(_, count)| count).sum::<u64>(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_permit_ends_with_its_call_however_that_ends() {
    let quotas =
        Quotas::local(vec![QuotaRule { concurrent_calls: Some(2), ..rule("two", PER_CALLER) }]).unwrap();
    let first = call(&quotas, None, None, "a").await.unwrap();
    let dropped = async {
        let _permit = call(&quotas, None, None, "a").await.unwrap();
        sleep(Duration::from_secs(9)).await;
    };
    assert!(tokio::time::timeout(Duration::from_secs(1), dropped).await.is_err());
    let panicking = {
        let permit = call(&quotas, None, None, "a").await.unwrap();
        tokio::spawn(async move {
            let _permit = permit;
            panic!("as intended");
        })
    };
    assert!(panicking.await.is_err());
    let second = call(&quotas, None, None, "a").await.unwrap();
    let exceeded = call(&quotas, None, None, "a").await.unwrap_err();
    assert_eq!(exceeded.limit, QuotaLimit::ConcurrentCalls(2));
    drop(first);
    assert!(call(&quotas, None, None, "a").await.is_ok());
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn tokens_and_money_are_refused_once_they_are_used_up() {
    let rules = vec![QuotaRule {
        tokens: Some(WindowLimit { limit: 1_000, window_millis: 3_600_000 }),
        money: Some(WindowLimit { limit: 50_000, window_millis: 3_600_000 }),
        ..rule("agents", CountedPer { agent: true, ..CountedPer::default() })
    }];
    let quotas = Quotas::local(rules).unwrap();
    let agent = |name| QuotaSubject { identity: None, agent: Some(name) };
    for used in [ModelUse { tokens: 400, cost_micros: 10 }, ModelUse { tokens: 700, cost_micros: 10 }] {
        assert!(quotas.admit_model_use(agent("writer")).await.is_ok());
        quotas.charge_model_use(agent("writer"), used).await;
    }
    let exceeded = quotas.admit_model_use(agent("writer")).await.unwrap_err();
    assert!(matches!(exceeded.limit, QuotaLimit::Tokens(_)), "{exceeded}");
    quotas.charge_model_use(agent("spender"), ModelUse { tokens: 1, cost_micros: 50_000 }).await;
    let exceeded = quotas.admit_model_use(agent("spender")).await.unwrap_err();
    assert!(matches!(exceeded.limit, QuotaLimit::Money(_)), "{exceeded}");
    assert!(quotas.admit_model_use(agent("other")).await.is_ok());
    advance(exceeded.retry_after).await;
    assert!(quotas.admit_model_use(agent("spender")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn idle_counters_are_dropped() {
    let quotas = Quotas::local(vec![QuotaRule { calls: Some(MINUTE), ..rule("ci", PER_CALLER) }]).unwrap();
    for round in 0..10 {
        for number in 0..2_000 {
            let identity = caller(&format!("caller-{round}-{number}"));
            assert!(call(&quotas, Some(&identity), None, "search").await.is_ok());
        }
        advance(Duration::from_secs(61)).await;
    }
    assert!(quotas.counters() <= 4_096, "{} counters for 20,000 callers", quotas.counters());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For every caller and every minute: no more calls than the limit, and after the time to wait there is one again.
    #[test]
    fn no_caller_gets_more_than_its_limit_in_any_minute(
        limit in 1_u64..8,
        calls in prop::collection::vec((0_u64..30_000, 0_usize..3, any::<bool>()), 1..80),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let calls_limit = Some(WindowLimit { limit, window_millis: 60_000 });
            let quotas = Quotas::local(vec![QuotaRule { calls: calls_limit, ..rule("q", PER_CALLER) }]).unwrap();
            let callers = [caller("a"), caller("b"), caller("c")];
            let mut admitted: HashMap<usize, Vec<Instant>> = HashMap::new();
            for (pause, index, waits) in calls {
                advance(Duration::from_millis(pause)).await;
                let identity = callers.get(index);
                let mut outcome = call(&quotas, identity, None, "search").await.map(drop);
                if let (Err(exceeded), true) = (&outcome, waits) {
                    advance(exceeded.retry_after).await;
                    outcome = call(&quotas, identity, None, "search").await.map(drop);
                    prop_assert!(outcome.is_ok());
                }
                if outcome.is_ok() {
                    let times = admitted.entry(index).or_default();
                    times.push(Instant::now());
                    let latest = times.iter().filter(|at| at.elapsed() < Duration::from_secs(60)).count();
                    prop_assert!(u64::try_from(latest).unwrap() <= limit);
                }
            }
            Ok(())
        })?;
    }
}
