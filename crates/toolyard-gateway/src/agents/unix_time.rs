//! Unix time as the run log stores it.

use std::time::{Duration, SystemTime};

pub(super) fn now_milliseconds() -> i64 {
    milliseconds(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
