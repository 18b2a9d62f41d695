//! [`QuotaWait`]: how long a run waits for a quota.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A longer wait stops the run.
const MAX_QUOTA_WAIT: Duration = Duration::from_secs(20);
/// A quota is not asked more often than this.
const MIN_QUOTA_WAIT: Duration = Duration::from_millis(100);

/// A wait for a quota that began.
pub(super) struct QuotaWait {
    give_up_at: Instant,
}

impl QuotaWait {
    pub(super) fn begin() -> Self {
        Self { give_up_at: Instant::now() + MAX_QUOTA_WAIT }
    }

    /// Waits until the quota may be asked again; false, at once, if that takes too long.
    pub(super) async fn wait(&self, retry_after: Duration) -> bool {
        let delay = retry_after.max(MIN_QUOTA_WAIT);
        let is_short_enough = Instant::now() + delay <= self.give_up_at;
        if is_short_enough {
            sleep(delay).await;
        }
        is_short_enough
    }
}
