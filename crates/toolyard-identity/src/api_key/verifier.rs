//! [`ApiKeyVerifier`]: finds the caller of an API key. It reads all callers in the background, at most twice a second, so that a revocation
//! counts within a second on every gateway, a flood of wrong keys causes no flood of queries, and a slow store delays calls briefly: 0.25 s at most while known
//! callers count, else 2 s.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use toolyard_core::{
    API_KEY_ISSUER, AuthenticationError, CallerIdentity, CallerStore, StoredCaller, unix_millis,
};

use super::key::PresentedKey;

/// How old the callers in memory may be while the store answers: how long a revocation may take to count.
const MAX_SNAPSHOT_AGE: Duration = Duration::from_secs(1);
/// From this age on they are read again in the background, so that there are younger ones when these are too old.
const REFRESH_AGE: Duration = Duration::from_millis(500);
/// How long a call waits for callers that are too old to be read again. Then the store does not answer, and the old ones count.
const STALE_READ_TIMEOUT: Duration = Duration::from_millis(250);
/// The pause after the store could not be read.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long keys are still accepted while the store cannot be read.
const MAX_OUTAGE: Duration = Duration::from_secs(30);
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

const UNKNOWN_KEY: AuthenticationError = AuthenticationError::Invalid("the API key is unknown");

/// Finds the callers of API keys.
pub(crate) struct ApiKeyVerifier(Arc<CallerReader>);

/// Reads the callers from the store, once at a time.
struct CallerReader {
    store: Arc<dyn CallerStore>,
    snapshot: ArcSwapOption<CallerSnapshot>,
    reading: watch::Sender<Reading>,
    /// The first of the readings that failed since the last one that succeeded.
    first_failure: ArcSwapOption<Instant>,
}

/// The latest reading of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    None,
    Running {
        since: Instant,
        /// Whether the one before failed, so that an answer is not expected.
        is_retry: bool,
    },
    Succeeded,
    Failed {
        at: Instant,
    },
}

/// All callers at one time, by the id of their key.
struct CallerSnapshot {
    callers: HashMap<String, (StoredCaller, Arc<CallerIdentity>)>,
    read_at: Instant,
}

impl ApiKeyVerifier {
    pub(crate) fn new(store: Arc<dyn CallerStore>) -> Self {
        let reading = watch::Sender::new(Reading::None);
        let (snapshot, first_failure) = (ArcSwapOption::default(), ArcSwapOption::default());
        Self(Arc::new(CallerReader { store, snapshot, reading, first_failure }))
    }

    pub(crate) async fn verify(&self, text: &str) -> Result<Arc<CallerIdentity>, AuthenticationError> {
        let key = PresentedKey::parse(text)
            .ok_or(AuthenticationError::Invalid("the API key is malformed: it is ty_<id>_<secret>"))?;
        let snapshot = self.0.current().await?;
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
}

impl CallerReader {
    async fn current(self: &Arc<Self>) -> Result<Arc<CallerSnapshot>, AuthenticationError> {
        if let Some(snapshot) = self.younger_than(REFRESH_AGE) {
            return Ok(snapshot);
        }
        self.begin_reading();
        if let Some(snapshot) = self.younger_than(MAX_SNAPSHOT_AGE) {
            return Ok(snapshot);
        }
        let mut reading = self.reading.subscribe();
        let running = *reading.borrow();
        if let Reading::Running { since, is_retry } = running {
            let wait = match self.younger_than(MAX_OUTAGE) {
                Some(_) if is_retry => Duration::ZERO,
                Some(_) => STALE_READ_TIMEOUT,
                None => QUERY_TIMEOUT,
            };
            // On a timeout, the callers that were read before count.
            let ended = reading.wait_for(|reading| !matches!(reading, Reading::Running { .. }));
            let _ = timeout_at(since + wait, ended).await;
        }
        self.younger_than(MAX_OUTAGE).ok_or_else(|| {
            let outage = self.first_failure.load().as_ref().map(|failure| failure.elapsed());
            let service = "the API keys in the store";
            AuthenticationError::Unavailable { service, outage, retry_after: RETRY_DELAY }
        })
    }

    /// Reads the callers unless that is being done, or failed a moment ago.
    fn begin_reading(self: &Arc<Self>) {
        let now = Instant::now();
        let begins = self.reading.send_if_modified(|reading| {
            let is_retry = match *reading {
                Reading::None | Reading::Succeeded => false,
                // After a pause without requests, the store may answer again.
                Reading::Failed { at } if now - at >= RETRY_DELAY => now - at < 2 * RETRY_DELAY,
                // The task is gone: its runtime has ended.
                Reading::Running { since, .. } if now - since >= 2 * QUERY_TIMEOUT => false,
                Reading::Running { .. } | Reading::Failed { .. } => return false,
            };
            *reading = Reading::Running { since: now, is_retry };
            true
        });
        if begins {
            // In a task of its own: a client that disconnects does not end the query, which would not count then.
            tokio::spawn(Arc::clone(self).read(now));
        }
    }

    /// Reads all callers. Their age counts from before the query: it may miss a revocation that is made meanwhile.
    async fn read(self: Arc<Self>, read_at: Instant) {
        let outcome = match timeout(QUERY_TIMEOUT, self.store.callers()).await {
            Ok(Ok(callers)) => {
                self.snapshot.store(Some(Arc::new(CallerSnapshot::new(callers, read_at))));
                self.first_failure.store(None);
                Reading::Succeeded
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to read the callers from the store");
                Reading::Failed { at: Instant::now() }
            }
            Err(_) => {
                tracing::warn!("failed to read the callers: the store does not answer");
                Reading::Failed { at: Instant::now() }
            }
        };
        if matches!(outcome, Reading::Failed { .. }) && self.first_failure.load().is_none() {
            self.first_failure.store(Some(Arc::new(read_at)));
        }
        self.reading.send_replace(outcome);
    }

    fn younger_than(&self, age: Duration) -> Option<Arc<CallerSnapshot>> {
        self.snapshot.load_full().filter(|snapshot| snapshot.read_at.elapsed() < age)
    }
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
