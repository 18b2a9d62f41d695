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
        assert_eq!(lifecycle.reconnect_at(now, unlimited).0, Some(now + Duration::from_secs(1)));
        assert_eq!(lifecycle.reconnect_at(late, unlimited).0.is_some(), unlimited);
        assert_eq!(lifecycle.state().label(), if unlimited { "down" } else { "stopped" });
        lifecycle.retire();
        assert_eq!(lifecycle.reconnect_at(now, unlimited), (None, None));
        assert!(matches!(
            lifecycle.access(StartReason::Reconnect, now, |()| true),
            Err(ConnectError::NotConfigured)
        ));
    }
}

/// A server whose session lost contact at `now`.
fn lost_contact(now: Instant) -> (TestLifecycle, Arc<()>) {
    let mut lifecycle = enabled_lifecycle(now);
    let session = start_server(&mut lifecycle, now);
    assert!(lifecycle.lose_contact(&session, "cannot reach the server", now, FULL_JITTER));
    assert!(!lifecycle.is_current(&session) && lifecycle.is_kept(&session));
    (lifecycle, session)
}

#[test]
fn a_session_that_lost_contact_is_kept_until_the_server_is_known_not_to_have_it() {
    let now = Instant::now();
    let (mut lifecycle, session) = lost_contact(now);
    for _ in 0..3 {
        let access = lifecycle.access(StartReason::Explicit, now, |()| true).unwrap();
        let SessionAccess::MustStart { start, kept, replaced: None, .. } = access else {
            panic!("{access:?}")
        };
        assert!(kept.is_some_and(|kept| Arc::ptr_eq(&kept, &session)));
        assert!(lifecycle.is_kept(&session));
        assert!(lifecycle.fail_start(&start, "cannot reach the server", now, FULL_JITTER));
        assert!(lifecycle.is_kept(&session));
    }
    lifecycle.forget_kept(&Arc::new(()));
    assert!(lifecycle.is_kept(&session), "another session is forgotten");
    lifecycle.forget_kept(&session);
    assert!(!lifecycle.is_kept(&session));
}

#[test]
fn a_kept_session_ends_with_its_connection_its_server_or_its_use() {
    let now = Instant::now();
    let (mut lifecycle, _) = lost_contact(now);
    let access = lifecycle.access(StartReason::Explicit, now, |()| false).unwrap();
    assert!(
        matches!(access, SessionAccess::MustStart { kept: None, .. }),
        "its connection is closed: {access:?}"
    );

    let (mut lifecycle, session) = lost_contact(now);
    assert!(matches!(lifecycle.stop(), StopTarget::Session(stopped) if Arc::ptr_eq(&stopped, &session)));

    let (mut lifecycle, session) = lost_contact(now);
    assert!(!lifecycle.stop_if_idle(&session, Duration::from_secs(1), now));
    assert!(lifecycle.stop_if_idle(&session, Duration::from_secs(1), now + Duration::from_secs(1)));

    let (mut lifecycle, session) = lost_contact(now);
    let late = now + RECONNECT_WINDOW + Duration::from_secs(1);
    let (retry_at, given_up) = lifecycle.reconnect_at(late, false);
    assert!(retry_at.is_none() && given_up.is_some_and(|given_up| Arc::ptr_eq(&given_up, &session)));
}

/// Reconnects a server that is down, as the reconnect task does, and lets it run for `runs_for`. Returns when it failed.
fn crash_once(lifecycle: &mut TestLifecycle, now: Instant, runs_for: Duration) -> Instant {
    let started_at = lifecycle.reconnect_at(now, true).0.unwrap().max(now);
    let Ok(SessionAccess::MustStart { start, .. }) =
        lifecycle.access(StartReason::Reconnect, started_at, |()| true)
    else {
        panic!("not started: {:?}", lifecycle.state());
    };
    let session = Arc::new(());
    assert!(lifecycle.finish_start(&start, &session, started_at));
    let failed_at = started_at + runs_for;
    assert!(lifecycle.fail(&session, "the server exited", failed_at, FULL_JITTER));
    failed_at
}

#[test]
fn a_crash_looping_server_that_nobody_calls_backs_off() {
    let start = Instant::now();
    let runs_for = STABLE_AFTER + Duration::from_secs(1);
    let mut lifecycle = enabled_lifecycle(start);
    let session = start_server(&mut lifecycle, start);
    let mut now = start + runs_for;
    assert!(lifecycle.fail(&session, "the server exited", now, FULL_JITTER));
    let mut delays = Vec::new();
    for _ in 0..20 {
        let failed_at = crash_once(&mut lifecycle, now, runs_for);
        delays.push(failed_at - runs_for - now);
        now = failed_at;
    }
    let seconds: Vec<u64> = delays.iter().map(Duration::as_secs).collect();
    assert_eq!(seconds[..10], [0, 1, 2, 4, 8, 16, 32, 60, 60, 60], "at once only after it was in use");
    assert_eq!(lifecycle.reconnect_at(now, false), (None, None), "nobody called it for a long time");
}

#[test]
fn a_call_does_not_wait_for_the_long_delay_of_an_unused_server() {
    let start = Instant::now();
    let mut lifecycle = enabled_lifecycle(start);
    let session = start_server(&mut lifecycle, start);
    assert!(lifecycle.fail(&session, "the server exited", start, FULL_JITTER));
    let mut now = start;
    for _ in 0..30 {
        now = crash_once(&mut lifecycle, now, Duration::ZERO);
    }
    assert!(lifecycle.reconnect_at(now, true).0 > Some(now + MAX_RETRY_DELAY));
    assert_eq!(retry_in(&mut lifecycle, now), Some(MAX_RETRY_DELAY));
    assert_eq!(retry_in(&mut lifecycle, now + MAX_RETRY_DELAY), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn retry_delays_grow_up_to_the_longest(failures in 1_u32..200, jitter in 0.0..=1.0) {
        for max_delay in [MAX_RETRY_DELAY, MAX_UNUSED_RETRY_DELAY] {
            let delay = retry_delay(failures, max_delay, jitter);
            prop_assert!(delay >= MIN_RETRY_DELAY / 2 && delay <= max_delay);
            prop_assert!(retry_delay(failures + 1, max_delay, jitter) >= delay);
        }
    }

    /// A server that is called during its outage is started again within 4 s of its return, however long the outage lasts.
    #[test]
    fn a_server_in_use_is_reconnected_soon_after_its_return(outage_secs in 0_u64..600, jitter in 0.0..=1.0) {
        let now = Instant::now();
        let mut lifecycle = enabled_lifecycle(now);
        let session = start_server(&mut lifecycle, now);
        lifecycle.fail(&session, "cannot reach the server", now, jitter);
        let returned = now + Duration::from_secs(outage_secs);
        let mut retry_at = now;
        while retry_at < returned {
            // The call is refused, but it is a use.
            let _ = lifecycle.access(StartReason::Call, retry_at, |()| true);
            if let Phase::Starting { start, .. } = &lifecycle.phase {
                let start = start.clone();
                prop_assert!(lifecycle.fail_start(&start, "cannot reach the server", retry_at, jitter));
            }
            retry_at = lifecycle.reconnect_at(retry_at, true).0.unwrap();
        }
        prop_assert!(retry_at - returned <= Duration::from_secs(4), "{:?}", retry_at - returned);
    }
}
