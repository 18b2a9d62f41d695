//! [`BucketStates`]: which buckets can be used on the current connection.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::Instant};

use crate::objects::{bucket::Bucket, error::ObjectError};

/// After a failure, a bucket is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// After no response, which is how missing permissions show. Each attempt takes seconds, and logs an error of NATS.
const RETRY_AFTER_SILENCE: Duration = Duration::from_secs(600);
/// Objects of one bucket that are read at once. Each has a few chunks under way.
const MAX_CONCURRENT_READS: usize = 4;

/// What is known about buckets.
#[derive(Debug, Default)]
pub(super) struct BucketStates(Mutex<HashMap<Bucket, BucketEntry>>);

#[derive(Debug)]
struct BucketEntry {
    verdict: Option<Verdict>,
    is_failure_logged: bool,
    locks: BucketLocks,
}

/// What limits work on a bucket.
#[derive(Debug, Clone)]
pub(super) struct BucketLocks {
    /// Held by the task that checks the bucket.
    pub(super) check: Arc<tokio::sync::Mutex<()>>,
    /// Held by tasks that read objects. Per bucket, so that a worker with false references delays no other group.
    pub(super) readers: Arc<Semaphore>,
}

#[derive(Debug, Clone, Copy)]
struct Verdict {
    /// The connection to NATS that it was found with, counted from the start.
    connection: u64,
    is_usable: bool,
    until: Option<Instant>,
}

impl BucketStates {
    /// Whether a bucket can be used; none if that is not known for this connection.
    pub(super) fn is_usable(&self, bucket: &Bucket, connection: u64) -> Option<bool> {
        let verdict = self.0.lock().get(bucket)?.verdict?;
        let is_current =
            verdict.connection == connection && verdict.until.is_none_or(|until| Instant::now() < until);
        is_current.then_some(verdict.is_usable)
    }

    pub(super) fn set_usable(&self, bucket: &Bucket, connection: u64) {
        self.change(bucket, |entry| {
            if entry.is_failure_logged {
                tracing::info!(%bucket, "messages over the NATS limit pass through the object store again");
            }
            entry.is_failure_logged = false;
            entry.verdict = Some(Verdict { connection, is_usable: true, until: None });
        });
    }

    /// Records a failure, and logs it if it is the first one.
    pub(super) fn set_unusable(&self, bucket: &Bucket, connection: u64, error: &ObjectError) {
        let is_silent = matches!(error, ObjectError::NoResponse(_));
        let until = Instant::now() + if is_silent { RETRY_AFTER_SILENCE } else { RETRY_AFTER };
        self.change(bucket, |entry| {
            if !entry.is_failure_logged {
                tracing::info!(%bucket, reason = %error, "messages over the NATS limit are sent in several frames");
            }
            entry.is_failure_logged = true;
            entry.verdict = Some(Verdict { connection, is_usable: false, until: Some(until) });
        });
    }

    /// Forgets what is known about a bucket.
    pub(super) fn forget(&self, bucket: &Bucket) {
        self.change(bucket, |entry| entry.verdict = None);
    }

    pub(super) fn locks(&self, bucket: &Bucket) -> BucketLocks {
        self.change(bucket, |entry| entry.locks.clone())
    }

    fn change<T>(&self, bucket: &Bucket, change: impl FnOnce(&mut BucketEntry) -> T) -> T {
        let mut entries = self.0.lock();
        change(entries.entry(bucket.clone()).or_insert_with(|| BucketEntry {
            verdict: None,
            is_failure_logged: false,
            locks: BucketLocks {
                check: Arc::default(),
                readers: Arc::new(Semaphore::new(MAX_CONCURRENT_READS)),
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_verdict_holds_for_one_connection() {
        let (states, bucket) = (BucketStates::default(), Bucket::of_gateways("a"));
        assert_eq!(states.is_usable(&bucket, 1), None);
        states.set_usable(&bucket, 1);
        assert_eq!((states.is_usable(&bucket, 1), states.is_usable(&bucket, 2)), (Some(true), None));
        let denied = ObjectError::NoResponse(bucket.clone());
        states.set_unusable(&bucket, 2, &denied);
        tokio::time::advance(2 * RETRY_AFTER).await;
        assert_eq!((states.is_usable(&bucket, 2), states.is_usable(&bucket, 3)), (Some(false), None));
        states.set_unusable(&bucket, 3, &ObjectError::NoBucket(bucket.clone()));
        assert_eq!(states.is_usable(&bucket, 3), Some(false));
        tokio::time::advance(RETRY_AFTER).await;
        assert_eq!(states.is_usable(&bucket, 3), None);
    }
}
