//! [`ApiKeyVerifier`]: finds the caller of an API key. It reads all callers at most once a second, so that a revocation counts
//! within a second on every gateway, and a flood of wrong keys causes no flood of queries.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::{Instant, timeout},
};
use toolyard_core::{
    API_KEY_ISSUER, AuthenticationError, CallerIdentity, CallerStore, StoredCaller, unix_millis,
};

use super::key::PresentedKey;

/// How old the callers in memory may be: how long a revocation may take to count.
const MAX_SNAPSHOT_AGE: Duration = Duration::from_secs(1);
/// How long keys are still accepted while the store cannot be read.
const MAX_OUTAGE: Duration = Duration::from_secs(30);
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

const UNKNOWN_KEY: AuthenticationError = AuthenticationError::Invalid("the API key is unknown");

/// Finds the callers of API keys.
pub(crate) struct ApiKeyVerifier {
    store: Arc<dyn CallerStore>,
    snapshot: Arc<ArcSwapOption<CallerSnapshot>>,
    /// When the store was last read, or failed to be; held while reading.
    last_read: Arc<Mutex<Option<Instant>>>,
}

/// All callers at one time, by the id of their key.
struct CallerSnapshot {
    callers: HashMap<String, (StoredCaller, Arc<CallerIdentity>)>,
    read_at: Instant,
}

impl ApiKeyVerifier {
    pub(crate) fn new(store: Arc<dyn CallerStore>) -> Self {
        Self { store, snapshot: Arc::default(), last_read: Arc::default() }
    }

    pub(crate) async fn verify(&self, text: &str) -> Result<Arc<CallerIdentity>, AuthenticationError> {
        let key = PresentedKey::parse(text)
            .ok_or(AuthenticationError::Invalid("the API key is malformed: it is ty_<id>_<secret>"))?;
        let snapshot = self.fresh_snapshot().await?;
        let (caller, identity) = snapshot.callers.get(key.id).ok_or(UNKNOWN_KEY)?;
        if !key.matches(&caller.key) {
            return Err(UNKNOWN_KEY);
        }
        if caller.revoked_at.is_some() {
            return Err(AuthenticationError::Invalid("the API key is revoked"));
        }
        if !caller.is_valid_at(unix_millis()) {
            return Err(AuthenticationError::Invalid("the API key is expired"));
        }
        Ok(Arc::clone(identity))
    }

    async fn fresh_snapshot(&self) -> Result<Arc<CallerSnapshot>, AuthenticationError> {
        if let Some(snapshot) = self.younger_than(MAX_SNAPSHOT_AGE) {
            return Ok(snapshot);
        }
        let last_read = Arc::clone(&self.last_read).lock_owned().await;
        // Another request may have read it meanwhile, or failed to.
        if let Some(snapshot) = self.younger_than(MAX_SNAPSHOT_AGE) {
            return Ok(snapshot);
        }
        if last_read.is_none_or(|read| read.elapsed() >= MAX_SNAPSHOT_AGE) {
            // In a task of its own: a client that disconnects does not end the query, which would not count then.
            let (store, snapshot) = (Arc::clone(&self.store), Arc::clone(&self.snapshot));
            let reading = tokio::spawn(read_snapshot(store, snapshot, last_read)).await;
            if let Ok(Some(snapshot)) = reading {
                return Ok(snapshot);
            }
        }
        self.younger_than(MAX_OUTAGE)
            .ok_or(AuthenticationError::Unavailable { retry_after: MAX_SNAPSHOT_AGE })
    }

    fn younger_than(&self, age: Duration) -> Option<Arc<CallerSnapshot>> {
        self.snapshot.load_full().filter(|snapshot| snapshot.read_at.elapsed() < age)
    }
}

/// Reads all callers and records the attempt. `None` if they cannot be read.
async fn read_snapshot(
    store: Arc<dyn CallerStore>,
    latest: Arc<ArcSwapOption<CallerSnapshot>>,
    mut last_read: OwnedMutexGuard<Option<Instant>>,
) -> Option<Arc<CallerSnapshot>> {
    // The age counts from before the query: a revocation during the query may be missed by it.
    let read_at = Instant::now();
    *last_read = Some(read_at);
    let read = timeout(QUERY_TIMEOUT, store.callers()).await;
    *last_read = Some(Instant::now());
    match read {
        Ok(Ok(callers)) => {
            let snapshot = Arc::new(CallerSnapshot::new(callers, read_at));
            latest.store(Some(Arc::clone(&snapshot)));
            return Some(snapshot);
        }
        Ok(Err(error)) => tracing::warn!(%error, "failed to read the callers from the store"),
        Err(_) => tracing::warn!("failed to read the callers: the store does not answer"),
    }
    None
}

impl CallerSnapshot {
    fn new(callers: Vec<StoredCaller>, read_at: Instant) -> Self {
        let entry = |caller: StoredCaller| {
            let mut identity = CallerIdentity::principal(API_KEY_ISSUER, &caller.name);
            identity.allowed_profiles.clone_from(&caller.allowed_profiles);
            identity.allowed_agents.clone_from(&caller.allowed_agents);
            (caller.key.id.clone(), (caller, Arc::new(identity)))
        };
        Self { callers: callers.into_iter().map(entry).collect(), read_at }
    }
}

impl fmt::Debug for ApiKeyVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyVerifier").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "verifier_tests.rs"]
mod tests;
