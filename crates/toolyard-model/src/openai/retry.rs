//! When to ask again: never once something was said, later the more often it failed, and when the server says.

use std::time::Duration;

use jiff::Timestamp;

/// The first pause; every further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// No pause of our own is longer.
const LONGEST_OWN_PAUSE: Duration = Duration::from_secs(20);

/// How long to wait before attempt number `attempt + 1`; none if the server wants more patience than there is. `jitter`
/// is between 0 and 1.
pub(crate) fn pause(
    attempt: u32,
    wanted: Option<Duration>,
    longest: Duration,
    jitter: f64,
) -> Option<Duration> {
    let jitter = jitter.clamp(0.0, 1.0);
    match wanted {
        Some(wanted) if wanted > longest => None,
        // Not earlier than it says, and not all at the same moment.
        Some(wanted) => Some(wanted.saturating_add(FIRST_PAUSE.mul_f64(jitter / 2.0))),
        None => {
            let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
            Some(doubled.min(LONGEST_OWN_PAUSE).min(longest).mul_f64(0.5 + jitter / 2.0))
        }
    }
}

/// What a server says about when to come back: seconds or a date, or milliseconds in a header of their own.
pub(crate) fn retry_after(
    seconds_or_date: Option<&str>,
    milliseconds: Option<&str>,
    now: Timestamp,
) -> Option<Duration> {
    let milliseconds = milliseconds.and_then(|text| text.trim().parse::<f64>().ok());
    if let Some(wait) = milliseconds.and_then(|number| seconds(number / 1_000.0)) {
        return Some(wait);
    }
    let text = seconds_or_date?.trim();
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let when = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(now.until(when).ok()?).unwrap_or_default())
}

/// Seconds as a server wrote them; less than none is none.
fn seconds(number: f64) -> Option<Duration> {
    if number.is_nan() {
        return None;
    }
    Some(Duration::try_from_secs_f64(number.max(0.0)).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_server_says_when_in_seconds_or_as_a_date() {
        let now: Timestamp = "2026-11-15T10:00:00Z".parse().unwrap();
        let says = |text| retry_after(Some(text), None, now);
        assert_eq!(says("7"), Some(Duration::from_secs(7)));
        assert_eq!(says(" 1.5 "), Some(Duration::from_millis(1_500)));
        assert_eq!(says("Sun, 15 Nov 2026 10:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(says("Sun, 15 Nov 2026 09:00:00 GMT"), Some(Duration::ZERO), "a date that has passed");
        assert_eq!(says("-1"), Some(Duration::ZERO));
        assert_eq!(says("99999999999999999999999"), Some(Duration::MAX));
        assert_eq!(says("soon"), None);
        assert_eq!(says("NaN"), None);
        assert_eq!(retry_after(Some("7"), Some("250"), now), Some(Duration::from_millis(250)));
        assert_eq!(retry_after(None, None, now), None);
    }

    proptest! {
        #[test]
        fn pauses_grow_and_never_undercut_the_server(attempt in 1_u32..100, jitter in 0.0..=1.0, wanted in 0_u64..200) {
            let longest = Duration::from_secs(60);
            let own = pause(attempt, None, longest, jitter).unwrap();
            prop_assert!(own >= Duration::from_millis(250) && own <= LONGEST_OWN_PAUSE);
            prop_assert!(pause(attempt + 1, None, longest, jitter).unwrap() >= own);
            let wanted = Duration::from_secs(wanted);
            match pause(attempt, Some(wanted), longest, jitter) {
                Some(pause) => prop_assert!(pause >= wanted && pause <= wanted + Duration::from_secs(1)),
                None => prop_assert!(wanted > longest),
            }
        }
    }
}
