//! The lifecycle of a server: starts, failures, retries and stops.

use proptest::prelude::*;

use super::*;

type TestLifecycle = Lifecycle<()>;

/// The longest retry delay of those that jitter allows.
const FULL_JITTER: f64 = 1.0;
const ENABLED: bool = true;
const DISABLED: bool = false;
const KNOWN_TOOLS: bool = true;
const NO_KNOWN_TOOLS: bool = false;

fn enabled_lifecycle(now: Instant) -> TestLifecycle {
    TestLifecycle::new(ENABLED, KNOWN_TOOLS, now)
}

/// Starts a server at `now`.
fn begin_start(lifecycle: &mut TestLifecycle, now: Instant) -> Start<()> {
    match lifecycle.access(StartReason::Explicit, now, |()| true) {
        Ok(SessionAccess::MustStart { start, .. }) => start,
        other => panic!("{other:?}"),
    }
}

/// Starts a server at `now` and completes the start.
fn start_server(lifecycle: &mut TestLifecycle, now: Instant) -> Arc<()> {
    let (start, session) = (begin_start(lifecycle, now), Arc::new(()));
    lifecycle.record_tools(None);
    assert!(lifecycle.finish_start(&start, &session, now));
    session
}

/// How long a call has to wait for the next retry.
fn retry_in(lifecycle: &mut TestLifecycle, now: Instant) -> Option<Duration> {
    match lifecycle.check_start(StartReason::Call, now) {
        Err(ConnectError::TemporarilyUnavailable { retry_in, .. }) => Some(retry_in),
        _ => None,
    }
}

#[test]
fn a_server_goes_through_its_states() {
    let now = Instant::now();
    let mut lifecycle = TestLifecycle::new(ENABLED, NO_KNOWN_TOOLS, now);
    assert_eq!(lifecycle.state(), ServerState::Configured);
    let session = start_server(&mut lifecycle, now);
    assert_eq!(lifecycle.state(), ServerState::Ready { since: now });
    lifecycle.record_tools(Some("1 definition changed".to_owned()));
    let degraded = ServerState::Degraded { since: now, reason: "1 definition changed".to_owned() };
    assert_eq!(lifecycle.state(), degraded);
    assert!(matches!(lifecycle.stop(), StopTarget::Session(stopped) if Arc::ptr_eq(&stopped, &session)));
    assert_eq!(lifecycle.state(), ServerState::Stopping);
    lifecycle.finish_stop();
    assert_eq!(lifecycle.state(), ServerState::Stopped);
    let start = begin_start(&mut lifecycle, now);
    assert_eq!(lifecycle.state(), ServerState::Starting { since: now });
    assert!(lifecycle.fail_start(&start, "the server exited", now, FULL_JITTER));
    assert_eq!(lifecycle.state().label(), "down");
    assert_eq!(retry_in(&mut lifecycle, now), Some(Duration::from_secs(1)));
    assert_eq!(retry_in(&mut lifecycle, now + Duration::from_secs(1)), None);
}

#[test]
fn a_stable_server_may_restart_at_once_and_a_failing_one_may_not() {
    let now = Instant::now();
    let mut lifecycle = enabled_lifecycle(now);
    let session = start_server(&mut lifecycle, now);
    assert!(lifecycle.fail(&session, "the server exited", now + STABLE_AFTER, FULL_JITTER));
    assert_eq!(retry_in(&mut lifecycle, now + STABLE_AFTER), None);
    for delay in [1, 2, 4] {
        let session = start_server(&mut lifecycle, now);
        assert!(lifecycle.fail(&session, "the server exited", now, FULL_JITTER));
        assert_eq!(retry_in(&mut lifecycle, now), Some(Duration::from_secs(delay)));
    }
}

#[test]
fn a_disabled_server_is_never_started() {
    let now = Instant::now();
    let mut lifecycle = TestLifecycle::new(DISABLED, KNOWN_TOOLS, now);
    assert_eq!(lifecycle.state(), ServerState::Disabled);
    for reason in [StartReason::Call, StartReason::Explicit] {
        assert!(matches!(lifecycle.access(reason, now, |()| true), Err(ConnectError::Disabled)));
    }
}

#[test]
fn a_start_is_shared_and_a_stopped_one_does_not_come_back() {
    let now = Instant::now();
    let mut lifecycle = enabled_lifecycle(now);
    let start = begin_start(&mut lifecycle, now);
    assert!(matches!(lifecycle.access(StartReason::Call, now, |()| true), Ok(SessionAccess::Pending(_))));
    assert!(matches!(lifecycle.stop(), StopTarget::Start(_)));
    let next = begin_start(&mut lifecycle, now);
    lifecycle.finish_stop();
    assert!(!lifecycle.finish_start(&start, &Arc::new(()), now), "it was stopped");
    assert!(!lifecycle.fail_start(&start, "late", now, FULL_JITTER));
    assert!(lifecycle.finish_start(&next, &Arc::new(()), now));
}

#[test]
fn only_the_current_session_counts() {
    let now = Instant::now();
    let mut lifecycle = enabled_lifecycle(now);
    let old = start_server(&mut lifecycle, now);
    let replaced = lifecycle.access(StartReason::Call, now, |()| false).unwrap();
    let SessionAccess::MustStart { start, replaced, .. } = replaced else { panic!("{replaced:?}") };
    assert!(replaced.is_some_and(|session| Arc::ptr_eq(&session, &old)));
    let new = Arc::new(());
    lifecycle.finish_start(&start, &new, now);
    assert!(!lifecycle.fail(&old, "late", now, FULL_JITTER) && !lifecycle.expire(&old));
    assert!(!lifecycle.stop_if_idle(&old, Duration::ZERO, now));
    assert!(lifecycle.is_current(&new) && lifecycle.expire(&new));
    assert_eq!(lifecycle.state(), ServerState::Stopped);
}

#[test]
fn reconnects_end_with_the_last_use_or_the_configuration() {
    let now = Instant::now();
    let late = now + RECONNECT_WINDOW + Duration::from_secs(1);
    for unlimited in [false, true] {
        let mut lifecycle = enabled_lifecycle(now);
        let session = start_server(&mut lifecycle, now);
        lifecycle.fail(&session, "the server exited", now, FULL_JITTER);
        assert!(lifecycle.needs_reconnect_task() && !lifecycle.needs_reconnect_task());
        assert_eq!(lifecycle.reconnect_at(now, unlimited), Some(now + Duration::from_secs(1)));
        assert_eq!(lifecycle.reconnect_at(late, unlimited).is_some(), unlimited);
        assert_eq!(lifecycle.state().label(), if unlimited { "down" } else { "stopped" });
        lifecycle.retire();
        assert_eq!(lifecycle.reconnect_at(now, unlimited), None);
        assert!(matches!(
            lifecycle.access(StartReason::Reconnect, now, |()| true),
            Err(ConnectError::NotConfigured)
        ));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn retry_delays_grow_up_to_a_minute(failures in 1_u32..200, jitter in 0.0..=1.0) {
        let delay = retry_delay(failures, jitter);
        prop_assert!(delay >= MIN_RETRY_DELAY / 2 && delay <= MAX_RETRY_DELAY);
        prop_assert!(retry_delay(failures + 1, jitter) >= delay);
    }
}
