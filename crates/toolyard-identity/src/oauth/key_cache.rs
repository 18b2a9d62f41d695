//! [`KeyCache`]: the issuer's keys. They are read again when they are old, or when a token names an unknown key, but never more often than
//! every few seconds: a flood of made-up key ids must not become a flood of requests to the issuer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::Instant,
};
use toolyard_core::AuthenticationError;

use super::{
    discovery::{DiscoveryError, read_keys},
    fetch::MetadataSource,
    key_set::KeySet,
};

/// Keys are read at most this often.
pub(super) const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// Older keys are read again in the background, so that removed keys stop to count.
const REFRESH_AGE: Duration = Duration::from_mins(10);
/// Older keys count only after an attempt to read them again: the issuer may have removed one long ago, while nobody asked.
const STALE_AGE: Duration = Duration::from_mins(20);
/// How long after a failed attempt stale keys count without another one that requests wait for.
const OUTAGE_PAUSE: Duration = Duration::from_mins(1);
/// Older keys no longer count, if the issuer cannot be reached.
const MAX_AGE: Duration = Duration::from_hours(24);

#[derive(Debug)]
pub(super) struct KeyCache {
    source: Arc<dyn MetadataSource>,
    issuer: String,
    keys: ArcSwapOption<LoadedKeys>,
    /// When the keys were last asked for; held while asking.
    last_attempt: Arc<Mutex<Option<Instant>>>,
    /// When the last attempt failed; none if it succeeded.
    last_failure: ArcSwapOption<Instant>,
    /// The first of the attempts that failed since the last one that succeeded.
    first_failure: ArcSwapOption<Instant>,
    is_refreshing: AtomicBool,
}

#[derive(Debug)]
pub(super) struct LoadedKeys {
    pub(super) keys: KeySet,
    /// Changes when the keys change.
    pub(super) generation: u64,
    text: String,
    read_at: Instant,
}

impl KeyCache {
    pub(super) fn new(source: Arc<dyn MetadataSource>, issuer: &str) -> Self {
        Self {
            source,
            issuer: issuer.to_owned(),
            keys: ArcSwapOption::empty(),
            last_attempt: Arc::default(),
            last_failure: ArcSwapOption::empty(),
            first_failure: ArcSwapOption::empty(),
            is_refreshing: AtomicBool::new(false),
        }
    }

    /// Fails if the keys cannot be read now. Does not count as an attempt.
    pub(super) async fn check(&self) -> Result<(), DiscoveryError> {
        read_keys(&*self.source, &self.issuer).await.map(drop)
    }

    /// The keys; read if there are none, or if they are stale. Stale ones count if that fails.
    pub(super) async fn current(self: &Arc<Self>) -> Result<Arc<LoadedKeys>, AuthenticationError> {
        match self.known() {
            Some(keys) => Ok(keys),
            None => self.refresh(self.usable().as_ref()).await,
        }
    }

    /// The keys in memory, unless they must be read first. Old ones are read again in the background.
    pub(super) fn known(self: &Arc<Self>) -> Option<Arc<LoadedKeys>> {
        let keys = self.usable()?;
        let age = keys.read_at.elapsed();
        if age >= STALE_AGE && !self.has_failed_recently() {
            return None;
        }
        if age >= REFRESH_AGE {
            self.refresh_in_background();
        }
        Some(keys)
    }

    /// The keys, after another attempt to read them unless the last one was a moment ago.
    pub(super) async fn after_unknown_key(
        self: &Arc<Self>,
        seen: &Arc<LoadedKeys>,
    ) -> Result<Arc<LoadedKeys>, AuthenticationError> {
        self.refresh(Some(seen)).await
    }

    fn usable(&self) -> Option<Arc<LoadedKeys>> {
        self.keys.load_full().filter(|keys| keys.read_at.elapsed() < MAX_AGE)
    }

    fn has_failed_recently(&self) -> bool {
        self.last_failure.load().as_ref().is_some_and(|failure| failure.elapsed() < OUTAGE_PAUSE)
    }

    /// Reads the keys, unless others than `seen` were read meanwhile.
    async fn refresh(
        self: &Arc<Self>,
        seen: Option<&Arc<LoadedKeys>>,
    ) -> Result<Arc<LoadedKeys>, AuthenticationError> {
        let last_attempt = Arc::clone(&self.last_attempt).lock_owned().await;
        let known = self.usable();
        let is_newer = |keys: &&Arc<LoadedKeys>| seen.is_none_or(|seen| !Arc::ptr_eq(seen, keys));
        if let Some(keys) = known.as_ref().filter(is_newer) {
            return Ok(Arc::clone(keys));
        }
        let since = last_attempt.map(|attempt| attempt.elapsed());
        if let Some(wait) = since.and_then(|since| MIN_REFRESH_INTERVAL.checked_sub(since)) {
            return known.ok_or_else(|| self.unavailable(wait));
        }
        // In a task of its own: a client that disconnects does not end the attempt, which would not count then.
        let reading = tokio::spawn(Arc::clone(self).read(last_attempt)).await;
        let read = reading.ok().flatten().or(known);
        read.ok_or_else(|| self.unavailable(MIN_REFRESH_INTERVAL))
    }

    fn unavailable(&self, retry_after: Duration) -> AuthenticationError {
        let outage = self.first_failure.load().as_ref().map(|failure| failure.elapsed());
        AuthenticationError::Unavailable { service: "the issuer's keys", outage, retry_after }
    }

    /// Reads the keys and records the attempt. `None` if they cannot be read.
    async fn read(
        self: Arc<Self>,
        mut last_attempt: OwnedMutexGuard<Option<Instant>>,
    ) -> Option<Arc<LoadedKeys>> {
        *last_attempt = Some(Instant::now());
        let read = read_keys(&*self.source, &self.issuer).await;
        *last_attempt = Some(Instant::now());
        match read {
            Ok((keys, text)) => {
                self.last_failure.store(None);
                self.first_failure.store(None);
                Some(self.replace(keys, text))
            }
            Err(error) => {
                tracing::warn!("failed to read the keys of the issuer: {error}");
                let now = Arc::new(Instant::now());
                if self.first_failure.load().is_none() {
                    self.first_failure.store(Some(Arc::clone(&now)));
                }
                self.last_failure.store(Some(now));
                None
            }
        }
    }

    fn replace(&self, keys: KeySet, text: String) -> Arc<LoadedKeys> {
        let previous = self.keys.load_full();
        let generation = match &previous {
            Some(previous) if previous.text == text => previous.generation,
            Some(previous) => previous.generation + 1,
            None => 0,
        };
        let loaded = Arc::new(LoadedKeys { keys, generation, text, read_at: Instant::now() });
        self.keys.store(Some(Arc::clone(&loaded)));
        loaded
    }

    fn refresh_in_background(self: &Arc<Self>) {
        if self.is_refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let cache = Arc::clone(self);
        tokio::spawn(async move {
            let seen = cache.keys.load_full();
            let _ = cache.refresh(seen.as_ref()).await;
            cache.is_refreshing.store(false, Ordering::Release);
        });
    }
}
