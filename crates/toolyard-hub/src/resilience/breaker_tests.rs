//! When a breaker opens, probes and closes.

use super::*;

fn breaker() -> Arc<Breaker> {
    Arc::new(Breaker::new(BreakerSettings::default(), "native".into(), Some("search_web".into())))
}

async fn fail(breaker: &Arc<Breaker>, times: u32) {
    for _ in 0..times {
        breaker.admit(Instant::now(), "a").unwrap().failed(Instant::now(), "a");
    }
}

#[tokio::test(start_paused = true)]
async fn a_breaker_opens_on_consecutive_failures_only() {
    let breaker = breaker();
    fail(&breaker, 4).await;
    breaker.admit(Instant::now(), "a").unwrap().succeeded();
    fail(&breaker, 4).await;
    assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
    fail(&breaker, 1).await;
    assert_eq!(breaker.state(Instant::now()), BreakerState::Open { retry_in: Duration::from_secs(2) });
    assert!(breaker.admit(Instant::now(), "a").is_err());
}

#[tokio::test(start_paused = true)]
async fn one_probe_runs_at_a_time_and_the_open_time_grows_to_four_seconds() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    for open_time in [2, 4, 4, 4] {
        tokio::time::advance(Duration::from_secs(open_time)).await;
        assert_eq!(breaker.state(Instant::now()), BreakerState::HalfOpen);
        let probe = breaker.admit(Instant::now(), "a").unwrap();
        assert!(breaker.admit(Instant::now(), "a").is_err(), "only one probe at a time");
        probe.failed(Instant::now(), "a");
    }
}

#[tokio::test(start_paused = true)]
async fn one_successful_probe_closes_the_breaker() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    breaker.admit(Instant::now(), "a").unwrap().succeeded();
    assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_probe_allows_the_next_one() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    drop(breaker.admit(Instant::now(), "a").unwrap());
    assert!(breaker.admit(Instant::now(), "a").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_late_failure_does_not_prolong_the_open_time() {
    let breaker = breaker();
    let late = breaker.admit(Instant::now(), "a").unwrap();
    fail(&breaker, 5).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    late.failed(Instant::now(), "a");
    assert_eq!(breaker.state(Instant::now()), BreakerState::Open { retry_in: Duration::from_secs(1) });
}

#[tokio::test(start_paused = true)]
async fn an_overflowing_open_time_causes_no_panic() {
    let endless = BreakerSettings {
        failure_threshold: 1,
        initial_open_time: Duration::MAX,
        max_open_time: Duration::MAX,
    };
    let breaker = Arc::new(Breaker::new(endless, "a".into(), None));
    fail(&breaker, 1).await;
    assert!(breaker.admit(Instant::now(), "a").is_err());
}

#[tokio::test(start_paused = true)]
async fn a_probe_without_a_response_does_not_keep_others_from_probing() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    let hanging = breaker.admit(Instant::now(), "a").unwrap();
    assert!(breaker.admit(Instant::now(), "a").is_err());
    tokio::time::advance(Duration::from_secs(2)).await;
    breaker.admit(Instant::now(), "a").unwrap().succeeded();
    hanging.failed(Instant::now(), "a");
    assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_ready_source_closes_its_breaker_and_calls_from_before_do_not_open_it() {
    let breaker = breaker();
    let before: Vec<_> = (0..9).map(|_| breaker.admit(Instant::now(), "a").unwrap()).collect();
    fail(&breaker, 5).await;
    assert!(breaker.admit(Instant::now(), "a").is_err());
    breaker.close();
    before.into_iter().for_each(|permit| permit.failed(Instant::now(), "a"));
    assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
    fail(&breaker, 5).await;
    assert!(breaker.admit(Instant::now(), "a").is_err(), "later failures count");
}

#[tokio::test(start_paused = true)]
async fn the_timeouts_of_one_caller_do_not_count_while_the_source_responds_to_another() {
    let breaker = breaker();
    for _ in 0..20 {
        let slow = breaker.admit(Instant::now(), "a").unwrap();
        breaker.admit(Instant::now(), "a").unwrap().succeeded();
        tokio::time::advance(Duration::from_secs(30)).await;
        slow.failed(Instant::now(), "a");
    }
    fail(&breaker, 4).await;
    assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn failures_of_one_caller_stop_only_its_calls() {
    let breaker = breaker();
    for _ in 0..20 {
        fail(&breaker, 5).await;
        assert!(breaker.admit(Instant::now(), "a").is_err());
        let (one, two) = (breaker.admit(Instant::now(), "b"), breaker.admit(Instant::now(), "c"));
        drop(two.unwrap());
        // A probe that never gets a response keeps no other caller waiting either.
        tokio::time::advance(Duration::from_secs(4)).await;
        let hanging = breaker.admit(Instant::now(), "a").unwrap();
        let three = breaker.admit(Instant::now(), "c").unwrap();
        one.unwrap().succeeded();
        assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
        three.succeeded();
        hanging.failed(Instant::now(), "a");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_of_two_callers_stop_all_calls() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    breaker.admit(Instant::now(), "b").unwrap().failed(Instant::now(), "b");
    for caller in ["a", "b", "c"] {
        assert!(breaker.admit(Instant::now(), caller).is_err(), "{caller}");
    }
}

proptest::proptest! {
    /// However long an outage lasts, a call every 100 ms is let through within the longest open time.
    #[test]
    fn a_source_is_probed_within_the_longest_open_time_of_its_return(outage_ms in 0_u64..200_000) {
        let (breaker, start) = (breaker(), Instant::now());
        let outage = Duration::from_millis(outage_ms);
        let mut now = start;
        let returned = start + outage;
        loop {
            match breaker.admit(now, "a") {
                Ok(permit) if now < returned => permit.failed(now, "a"),
                Ok(permit) => {
                    permit.succeeded();
                    break;
                }
                Err(_) => {}
            }
            now += Duration::from_millis(100);
        }
        proptest::prop_assert!(now <= returned + Duration::from_millis(4_100), "{:?}", now - returned);
        proptest::prop_assert_eq!(breaker.state(now), BreakerState::Closed);
    }
}
