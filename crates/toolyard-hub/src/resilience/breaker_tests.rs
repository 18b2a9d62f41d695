//! When a breaker opens, probes and closes.

use super::*;

fn breaker() -> Arc<Breaker> {
    Arc::new(Breaker::new(BreakerSettings::default(), "native".into(), Some("search_web".into())))
}

async fn fail(breaker: &Arc<Breaker>, times: u32) {
    for _ in 0..times {
        breaker.admit(Instant::now()).unwrap().failed(Instant::now());
    }
}

#[tokio::test(start_paused = true)]
async fn a_breaker_opens_on_consecutive_failures_only() {
    let breaker = breaker();
    fail(&breaker, 4).await;
    breaker.admit(Instant::now()).unwrap().succeeded();
    fail(&breaker, 4).await;
    assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
    fail(&breaker, 1).await;
    assert_eq!(breaker.state(Instant::now()), BreakerState::Open { retry_in: Duration::from_secs(2) });
    assert!(breaker.admit(Instant::now()).is_err());
}

#[tokio::test(start_paused = true)]
async fn one_probe_runs_at_a_time_and_the_open_time_grows_to_thirty_seconds() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    for open_time in [2, 4, 8, 16, 30, 30] {
        tokio::time::advance(Duration::from_secs(open_time)).await;
        assert_eq!(breaker.state(Instant::now()), BreakerState::HalfOpen);
        let probe = breaker.admit(Instant::now()).unwrap();
        assert!(breaker.admit(Instant::now()).is_err(), "only one probe at a time");
        probe.failed(Instant::now());
    }
}

#[tokio::test(start_paused = true)]
async fn one_successful_probe_closes_the_breaker() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    breaker.admit(Instant::now()).unwrap().succeeded();
    assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_probe_allows_the_next_one() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    drop(breaker.admit(Instant::now()).unwrap());
    assert!(breaker.admit(Instant::now()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_late_failure_does_not_prolong_the_open_time() {
    let breaker = breaker();
    let late = breaker.admit(Instant::now()).unwrap();
    fail(&breaker, 5).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    late.failed(Instant::now());
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
    assert!(breaker.admit(Instant::now()).is_err());
}
