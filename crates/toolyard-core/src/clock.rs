//! Wall-clock time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 by this machine's clock; 0 if the clock is set before that.
pub fn unix_millis() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

/// Seconds since 1970 by this machine's clock; 0 if the clock is set before that.
pub fn unix_seconds() -> i64 {
    unix_millis() / 1_000
}
