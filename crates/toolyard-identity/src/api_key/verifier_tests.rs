use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use toolyard_core::{BoxFuture, MemoryCallerStore, StorageError, StoredKey};

use super::*;
use crate::{ApiKey, NewCaller};

/// Counts reads, and fails on demand.
#[derive(Default)]
struct FlakyStore {
    callers: MemoryCallerStore,
    reads: AtomicU64,
    is_down: AtomicBool,
    is_slow: AtomicBool,
    is_hanging: AtomicBool,
}

impl CallerStore for FlakyStore {
    fn callers(&self) -> BoxFuture<'_, Result<Vec<StoredCaller>, StorageError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.is_down.load(Ordering::Relaxed) {
            return Box::pin(async { Err(StorageError::new("down")) });
        }
        Box::pin(async move {
            if self.is_hanging.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            if self.is_slow.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            self.callers.callers().await
        })
    }

    fn add_caller<'a>(
        &'a self,
        caller: &'a StoredCaller,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.callers.add_caller(caller, by)
    }

    fn replace_caller_key<'a>(
        &'a self,
        name: &'a str,
        key: &'a StoredKey,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.callers.replace_caller_key(name, key, by)
    }

    fn revoke_caller<'a>(&'a self, name: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.callers.revoke_caller(name, by)
    }
}

async fn with_caller(caller: NewCaller) -> (Arc<FlakyStore>, ApiKeyVerifier, ApiKey) {
    let store = Arc::new(FlakyStore::default());
    let key = ApiKey::generate().unwrap();
    store.add_caller(&caller.with_key(&key), "ada").await.unwrap();
    let verifier = ApiKeyVerifier::new(Arc::clone(&store) as _);
    (store, verifier, key)
}

#[tokio::test(start_paused = true)]
async fn a_key_leads_to_its_caller_and_what_it_may_use() {
    let caller = NewCaller::new("ci").with_profiles(Some(vec!["office".to_owned()]));
    let (_, verifier, key) = with_caller(caller.with_agents(Some(Vec::new()))).await;
    let identity = verifier.verify(key.text()).await.unwrap();
    assert_eq!((&*identity.issuer, &*identity.subject, &*identity.name), (API_KEY_ISSUER, "ci", "ci"));
    assert!(identity.may_use_profile("office") && !identity.may_use_profile(""));
    assert!(!identity.may_use_agent("writer"));
    let unknown = ApiKey::generate().unwrap();
    assert_eq!(verifier.verify(unknown.text()).await, Err(UNKNOWN_KEY));
    assert!(matches!(verifier.verify("ty_x").await, Err(AuthenticationError::Invalid(_))));
}

#[tokio::test(start_paused = true)]
async fn a_revocation_counts_within_a_second() {
    let (store, verifier, key) = with_caller(NewCaller::new("ci")).await;
    verifier.verify(key.text()).await.unwrap();
    assert_eq!(store.revoke_caller("ci", "ada").await, Ok(true));
    tokio::time::advance(MAX_SNAPSHOT_AGE).await;
    let refused = verifier.verify(key.text()).await;
    assert_eq!(refused, Err(AuthenticationError::Invalid("the API key is revoked")));
}

#[tokio::test(start_paused = true)]
async fn a_replaced_key_is_invalid_and_the_new_one_is_of_the_same_caller() {
    let (store, verifier, key) = with_caller(NewCaller::new("ci")).await;
    let before = verifier.verify(key.text()).await.unwrap();
    let next = ApiKey::generate().unwrap();
    assert_eq!(store.replace_caller_key("ci", &next.stored(None), "ada").await, Ok(true));
    tokio::time::advance(MAX_SNAPSHOT_AGE).await;
    assert_eq!(verifier.verify(key.text()).await, Err(UNKNOWN_KEY));
    assert_eq!(verifier.verify(next.text()).await.unwrap().owner_hash(), before.owner_hash());
}

#[tokio::test(start_paused = true)]
async fn expired_keys_are_refused() {
    let (_, verifier, key) = with_caller(NewCaller::new("ci").expiring_at(Some(unix_millis() - 1))).await;
    let refused = verifier.verify(key.text()).await;
    assert_eq!(refused, Err(AuthenticationError::Invalid("the API key is expired")));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_wrong_keys_causes_two_queries_per_second() {
    let (store, verifier, key) = with_caller(NewCaller::new("ci")).await;
    for _ in 0..1_000 {
        let wrong = ApiKey::generate().unwrap();
        assert_eq!(verifier.verify(wrong.text()).await, Err(UNKNOWN_KEY));
        tokio::time::advance(Duration::from_millis(3)).await;
    }
    verifier.verify(key.text()).await.unwrap();
    assert!((5..=7).contains(&store.reads.load(Ordering::Relaxed)), "3 s: {:?}", store.reads);
}

#[tokio::test(start_paused = true)]
async fn known_keys_survive_a_short_outage_of_the_store_and_no_longer() {
    let (store, verifier, key) = with_caller(NewCaller::new("ci")).await;
    verifier.verify(key.text()).await.unwrap();
    store.is_down.store(true, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(29)).await;
    verifier.verify(key.text()).await.unwrap();
    tokio::time::advance(Duration::from_secs(2)).await;
    let refused = verifier.verify(key.text()).await;
    assert!(matches!(refused, Err(AuthenticationError::Unavailable { .. })), "{refused:?}");
    // The first reading that failed is that of this or the call before.
    tokio::time::advance(Duration::from_secs(20)).await;
    let refused = verifier.verify(key.text()).await.unwrap_err().to_string();
    assert!(refused.contains("reading the API keys in the store has failed for 20 s"), "{refused}");
    store.is_down.store(false, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(1)).await;
    verifier.verify(key.text()).await.unwrap();
}

/// Calls every 10 ms find a store that hangs, and later answers again.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_delays_no_known_key() {
    let (store, verifier, key) = with_caller(NewCaller::new("ci")).await;
    verifier.verify(key.text()).await.unwrap();
    store.is_hanging.store(true, Ordering::Relaxed);
    for _ in 0..2_500 {
        let asked = Instant::now();
        verifier.verify(key.text()).await.unwrap();
        assert_eq!(asked.elapsed(), Duration::ZERO, "a call waited for the store");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.is_hanging.store(false, Ordering::Relaxed);
    assert_eq!(store.revoke_caller("ci", "ada").await, Ok(true));
    let answers = Instant::now();
    while verifier.verify(key.text()).await.is_ok() {
        assert!(answers.elapsed() < QUERY_TIMEOUT + RETRY_DELAY, "the revocation does not count");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// After a pause, a call waits for a moment only.
#[tokio::test(start_paused = true)]
async fn the_first_call_after_a_pause_waits_for_a_moment() {
    let (store, verifier, key) = with_caller(NewCaller::new("ci")).await;
    verifier.verify(key.text()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    store.is_hanging.store(true, Ordering::Relaxed);
    let asked = Instant::now();
    verifier.verify(key.text()).await.unwrap();
    assert_eq!(asked.elapsed(), STALE_READ_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn clients_that_disconnect_cause_no_further_queries() {
    let (store, verifier, key) = with_caller(NewCaller::new("ci")).await;
    store.is_slow.store(true, Ordering::Relaxed);
    for _ in 0..50 {
        let disconnected = timeout(Duration::from_millis(1), verifier.verify(key.text())).await;
        assert!(disconnected.is_err(), "the store has not answered yet");
    }
    verifier.verify(key.text()).await.unwrap();
    assert_eq!(store.reads.load(Ordering::Relaxed), 1);
}
