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
use tokio::{sync::Mutex, time::Instant};
use toolyard_core::AuthenticationError;

use super::{discovery::read_keys, fetch::MetadataSource, key_set::KeySet};

/// Keys are read at most this often.
pub(super) const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// Older keys are read again in the background, so that removed keys stop to count.
const REFRESH_AGE: Duration = Duration::from_mins(10);
/// Older keys no longer count, if the issuer cannot be reached.
const MAX_AGE: Duration = Duration::from_hours(24);

#[derive(Debug)]
pub(super) struct KeyCache {
    source: Arc<dyn MetadataSource>,
    issuer: String,
    keys: ArcSwapOption<LoadedKeys>,
    /// When the keys were last asked for; held while asking.
    last_attempt: Mutex<Option<Instant>>,
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
            last_attempt: Mutex::default(),
            is_refreshing: AtomicBool::new(false),
        }
    }

    /// The keys; read if there are none.
    pub(super) async fn current(self: &Arc<Self>) -> Result<Arc<LoadedKeys>, AuthenticationError> {
        match self.known() {
            Some(keys) => Ok(keys),
            None => self.refresh(None).await,
        }
    }

    /// The keys in memory. Old ones are read again in the background.
    pub(super) fn known(self: &Arc<Self>) -> Option<Arc<LoadedKeys>> {
        let keys = self.usable();
        if keys.as_ref().is_some_and(|keys| keys.read_at.elapsed() >= REFRESH_AGE) {
            self.refresh_in_background();
        }
        keys
    }

    /// The keys, after another attempt to read them unless the last one was a moment ago.
    pub(super) async fn after_unknown_key(
        &self,
        seen: &Arc<LoadedKeys>,
    ) -> Result<Arc<LoadedKeys>, AuthenticationError> {
        self.refresh(Some(seen)).await
    }

    fn usable(&self) -> Option<Arc<LoadedKeys>> {
        self.keys.load_full().filter(|keys| keys.read_at.elapsed() < MAX_AGE)
    }

    /// Reads the keys, unless others than `seen` were read meanwhile.
    async fn refresh(&self, seen: Option<&Arc<LoadedKeys>>) -> Result<Arc<LoadedKeys>, AuthenticationError> {
        let mut last_attempt = self.last_attempt.lock().await;
        let known = self.usable();
        let is_newer = |keys: &&Arc<LoadedKeys>| seen.is_none_or(|seen| !Arc::ptr_eq(seen, keys));
        if let Some(keys) = known.as_ref().filter(is_newer) {
            return Ok(Arc::clone(keys));
        }
        let since = last_attempt.map(|attempt| attempt.elapsed());
        if let Some(wait) = since.and_then(|since| MIN_REFRESH_INTERVAL.checked_sub(since)) {
            return known.ok_or(AuthenticationError::Unavailable { retry_after: wait });
        }
        let read = read_keys(&*self.source, &self.issuer).await;
        *last_attempt = Some(Instant::now());
        match read {
            Ok((keys, text)) => Ok(self.replace(keys, text)),
            Err(error) => {
                tracing::warn!("failed to read the keys of the issuer: {error}");
                known.ok_or(AuthenticationError::Unavailable { retry_after: MIN_REFRESH_INTERVAL })
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
