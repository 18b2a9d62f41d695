//! Attempts of the same request: which failures are retried, and after which delay.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

use crate::ModelError;

/// The delay after the first attempt; each further one is twice as long.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
/// Limits the exponential backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(20);

pub(crate) enum AttemptError {
    /// Another attempt may succeed, after the delay that the server asks for.
    Transient(ModelError, Option<Duration>),
    Permanent(ModelError),
}

/// Waits after attempt number `attempt`, or returns its error if there is no further one.
pub(crate) async fn wait_for_retry(
    error: AttemptError,
    attempt: u32,
    max_attempts: u32,
    max_delay: Duration,
) -> Result<(), ModelError> {
    let (error, retry_after) = match error {
        AttemptError::Transient(error, retry_after) if attempt < max_attempts => (error, retry_after),
        AttemptError::Transient(error, _) | AttemptError::Permanent(error) => return Err(error),
    };
    let Some(delay) = retry_delay(attempt, retry_after, max_delay, fastrand::f64()) else {
        return Err(error);
    };
    tracing::debug!(model = %error.model, attempt, ?delay, %error, "retrying model request");
    tokio::time::sleep(delay).await;
    Ok(())
}

/// The delay before attempt number `attempt + 1`, or `None` if the server asks for more than `max_delay`. `jitter` is
/// between 0 and 1.
fn retry_delay(
    attempt: u32,
    retry_after: Option<Duration>,
    max_delay: Duration,
    jitter: f64,
) -> Option<Duration> {
    let jitter = jitter.clamp(0.0, 1.0);
    match retry_after {
        Some(requested) if requested > max_delay => None,
        // Never earlier than requested, and not all clients at the same moment.
        Some(requested) => Some(requested.saturating_add(FIRST_RETRY_DELAY.mul_f64(jitter / 2.0))),
        None => {
            let doubled = FIRST_RETRY_DELAY.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
            Some(doubled.min(MAX_BACKOFF).min(max_delay).mul_f64(0.5 + jitter / 2.0))
        }
    }
}

/// The delay that the headers `retry-after` and `retry-after-ms` ask for.
pub(crate) fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    delay_from_headers(header("retry-after"), header("retry-after-ms"), Timestamp::now())
}

/// `retry-after` holds seconds or a date, `retry-after-ms` milliseconds.
fn delay_from_headers(
    retry_after: Option<&str>,
    retry_after_ms: Option<&str>,
    now: Timestamp,
) -> Option<Duration> {
    let milliseconds = retry_after_ms.and_then(|text| text.trim().parse::<f64>().ok());
    if let Some(delay) = milliseconds.and_then(|millis| from_seconds(millis / 1_000.0)) {
        return Some(delay);
    }
    let text = retry_after?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return from_seconds(seconds);
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(now.until(date).ok()?).unwrap_or_default())
}

/// Negative numbers are no delay.
fn from_seconds(seconds: f64) -> Option<Duration> {
    if seconds.is_nan() {
        return None;
    }
    Some(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn retry_after_holds_seconds_a_date_or_milliseconds() {
        let now: Timestamp = "2026-11-15T10:00:00Z".parse().unwrap();
        let delay = |text| delay_from_headers(Some(text), None, now);
        assert_eq!(delay("7"), Some(Duration::from_secs(7)));
        assert_eq!(delay(" 1.5 "), Some(Duration::from_millis(1_500)));
        assert_eq!(delay("Sun, 15 Nov 2026 10:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(delay("Sun, 15 Nov 2026 09:00:00 GMT"), Some(Duration::ZERO), "a date that has passed");
        assert_eq!(delay("-1"), Some(Duration::ZERO));
        assert_eq!(delay("99999999999999999999999"), Some(Duration::MAX));
        assert_eq!(delay("soon"), None);
        assert_eq!(delay("NaN"), None);
        assert_eq!(delay_from_headers(Some("7"), Some("250"), now), Some(Duration::from_millis(250)));
        assert_eq!(delay_from_headers(None, None, now), None);
    }

    proptest! {
        #[test]
        fn delays_grow_and_are_never_shorter_than_requested(attempt in 1_u32..100, jitter in 0.0..=1.0, requested in 0_u64..200) {
            let max_delay = Duration::from_secs(60);
            let backoff = retry_delay(attempt, None, max_delay, jitter).unwrap();
            prop_assert!(backoff >= Duration::from_millis(250) && backoff <= MAX_BACKOFF);
            prop_assert!(retry_delay(attempt + 1, None, max_delay, jitter).unwrap() >= backoff);
            let requested = Duration::from_secs(requested);
            match retry_delay(attempt, Some(requested), max_delay, jitter) {
                Some(delay) => prop_assert!(delay >= requested && delay <= requested + Duration::from_secs(1)),
                None => prop_assert!(requested > max_delay),
            }
        }
    }
}
