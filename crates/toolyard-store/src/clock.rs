//! Wall-clock time in milliseconds.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// Returns milliseconds since 1970; replaceable in tests.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Milliseconds since 1970 by this machine's clock.
pub(crate) fn unix_millis() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
