//! Which request started which run, so that a repeated request starts no second run.
//!
//! Requests of this process are cached; those of other processes, or from before a restart, are found in the run log.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};
use toolyard_agent::{
    AGENT_RUN_KIND, RequestFingerprint, RunEvent, is_being_created, replay_updates, request_fingerprint,
};
use toolyard_core::{ContentHash, JournalError, RunId, RunLog, RunState};
use toolyard_mcp_server::RouteRequest;

use super::{
    call_effects::may_be_repeated,
    unix_time::{milliseconds, now_milliseconds},
};

const MAX_CACHED_REQUESTS: usize = 1_000;
/// How long a repeated request is recognized.
const RETENTION: Duration = Duration::from_hours(24);
const MAX_KEY_BYTES: usize = 256;

#[derive(Debug, thiserror::Error)]
pub(crate) enum IdempotencyError {
    /// The header `Idempotency-Key` is too long.
    ///
    /// Remedy: use a UUID.
    #[error("the Idempotency-Key has more than {MAX_KEY_BYTES} bytes")]
    KeyTooLong,
    /// The header `Idempotency-Key` was sent before with another body.
    ///
    /// Remedy: use a new key for each new request, and the same key only to repeat a request unchanged.
    #[error("this Idempotency-Key was already used for another request")]
    KeyReused,
    /// The same request, by its `Idempotency-Key`, is being processed.
    ///
    /// Remedy: wait and repeat it after the time in `Retry-After`; the run is started once.
    #[error("this request was already received and its run is being started")]
    InProgress,
    /// The same request, by its `Idempotency-Key`, has started a run, whose answer cannot be sent again.
    ///
    /// Remedy: read the run that the message names: `GET /api/v1/runs/RUN`.
    #[error("this request was already received and is not executed again; see GET /runs/{0}")]
    AlreadyStarted(RunId),
    #[error(transparent)]
    Log(#[from] JournalError),
}

/// The requests that started runs, oldest first. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestCache(Arc<Mutex<VecDeque<CachedRequest>>>);

#[derive(Debug)]
struct CachedRequest {
    identity: RequestIdentity,
    /// None while the run is being started.
    run: Option<RunId>,
    received_at: Instant,
}

/// What tells whether two requests are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestIdentity {
    /// A hash of path and body, and one of the caller, the path and its idempotency key.
    fingerprint: RequestFingerprint,
    /// Whether the client says that it repeats the request.
    is_retry: bool,
}

#[derive(Debug)]
pub(super) enum RequestLookup {
    New(Reservation),
    /// The idempotency key names an earlier request, which started this run.
    Duplicate(RunId),
}

/// A request whose run is being started. Dropping it forgets the request, so that it can be repeated.
#[derive(Debug)]
pub(super) struct Reservation {
    cache: RequestCache,
    identity: RequestIdentity,
    is_complete: bool,
}

impl RequestIdentity {
    pub(crate) fn from_request(path: &str, request: &RouteRequest) -> Result<Self, IdempotencyError> {
        let (headers, body) = (&request.headers, request.body.as_bytes());
        let owner = request.identity.owner_hash_ref().as_slice();
        let header = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
        let retry_count =
            headers.get("x-stainless-retry-count").and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
        let idempotency_key = match header("idempotency-key") {
            None | Some([]) => None,
            Some(key) if key.len() > MAX_KEY_BYTES => return Err(IdempotencyError::KeyTooLong),
            Some(key) => Some(ContentHash::of_parts([owner, path.as_bytes(), key])),
        };
        // Another caller may send the same request.
        let content = match request.identity.is_distinguished() {
            true => ContentHash::of_parts([owner, path.as_bytes(), body]),
            false => ContentHash::of_parts([path.as_bytes(), body]),
        };
        let fingerprint = RequestFingerprint { idempotency_key, content };
        Ok(Self { fingerprint, is_retry: retry_count.unwrap_or(0) > 0 })
    }

    pub(crate) fn fingerprint(&self) -> &RequestFingerprint {
        &self.fingerprint
    }

    /// Compares with an earlier request and the run it started. `None` if it is another request; else that run, or the error
    /// to return.
    fn compare(
        &self,
        earlier: &RequestFingerprint,
        run: Option<&RunId>,
    ) -> Option<Result<RunId, IdempotencyError>> {
        let RequestFingerprint { idempotency_key: key, content } = &self.fingerprint;
        let is_same_content = *content == earlier.content;
        if key.is_some() && *key == earlier.idempotency_key {
            return Some(match run {
                _ if !is_same_content => Err(IdempotencyError::KeyReused),
                Some(run) => Ok(run.clone()),
                None => Err(IdempotencyError::InProgress),
            });
        }
        // Without a key a client may mean two equal requests, unless it says that it repeats one.
        let is_repeated = key.is_none() && self.is_retry && is_same_content;
        is_repeated.then(|| {
            Err(run.map_or(IdempotencyError::InProgress, |run| IdempotencyError::AlreadyStarted(run.clone())))
        })
    }

    fn may_be_duplicate(&self) -> bool {
        self.fingerprint.idempotency_key.is_some() || self.is_retry
    }
}

impl RequestCache {
    /// Reserves a request, unless this or another process has received it before.
    pub(super) async fn reserve(
        &self,
        identity: RequestIdentity,
        log: &dyn RunLog,
    ) -> Result<RequestLookup, IdempotencyError> {
        let mut lookup = self.reserve_in_cache(identity.clone(), Instant::now());
        while let Ok(RequestLookup::Duplicate(run)) | Err(IdempotencyError::AlreadyStarted(run)) = &lookup {
            if !may_be_repeated(replay_updates(&log.events(run, 0).await?)) {
                break;
            }
            self.forget(run);
            lookup = self.reserve_in_cache(identity.clone(), Instant::now());
        }
        let reservation = match lookup? {
            RequestLookup::New(reservation) if reservation.identity.may_be_duplicate() => reservation,
            lookup => return Ok(lookup),
        };
        match find_in_log(&reservation.identity, log).await? {
            Some(run) => Ok(RequestLookup::Duplicate(run)),
            None => Ok(RequestLookup::New(reservation)),
        }
    }

    fn reserve_in_cache(
        &self,
        identity: RequestIdentity,
        now: Instant,
    ) -> Result<RequestLookup, IdempotencyError> {
        let mut cache = self.lock();
        let is_expired =
            |request: &CachedRequest| now.saturating_duration_since(request.received_at) > RETENTION;
        cache.retain(|request| request.run.is_none() || !is_expired(request));
        let compare =
            |earlier: &CachedRequest| identity.compare(&earlier.identity.fingerprint, earlier.run.as_ref());
        if let Some(duplicate) = cache.iter().rev().find_map(compare) {
            return duplicate.map(RequestLookup::Duplicate);
        }
        if cache.len() >= MAX_CACHED_REQUESTS {
            // A run that is being started is not in the log yet, so its request must stay in the cache.
            if let Some(oldest) = cache.iter().position(|request| request.run.is_some()) {
                cache.remove(oldest);
            }
        }
        cache.push_back(CachedRequest { identity: identity.clone(), run: None, received_at: now });
        drop(cache);
        Ok(RequestLookup::New(Reservation { cache: self.clone(), identity, is_complete: false }))
    }

    /// Forgets the request that started a run, so that it can be repeated.
    fn forget(&self, run: &RunId) {
        self.lock().retain(|request| request.run.as_ref() != Some(run));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<CachedRequest>> {
        self.0.lock()
    }
}

/// The run that an earlier request started in another process, or in this one before a restart.
async fn find_in_log(
    identity: &RequestIdentity,
    log: &dyn RunLog,
) -> Result<Option<RunId>, IdempotencyError> {
    let oldest = now_milliseconds().saturating_sub(milliseconds(RETENTION));
    for run in log.runs_since(AGENT_RUN_KIND, oldest).await? {
        let earlier = request_fingerprint(&run);
        let Some(duplicate) = earlier.and_then(|earlier| identity.compare(&earlier, Some(&run.id))) else {
            continue;
        };
        let events = log.events(&run.id, 0).await?;
        if may_be_repeated(replay_updates(&events)) {
            continue;
        }
        let last = events.last();
        // A run without events was never started, unless its owner is about to do so.
        if last.is_none() || is_being_created(&run) {
            if run.leased {
                return Err(IdempotencyError::InProgress);
            }
            continue;
        }
        let is_ended = last.is_some_and(|last| matches!(last.event.read(), Ok(RunEvent::Ended { .. })));
        // A run that was closed without an end was withdrawn: its client was told that it was not started.
        if run.state != RunState::Cancelled || is_ended {
            return duplicate.map(Some);
        }
    }
    Ok(None)
}

impl Reservation {
    pub(super) fn fingerprint(&self) -> &RequestFingerprint {
        &self.identity.fingerprint
    }

    pub(super) fn complete(mut self, run: &RunId) {
        let mut cache = self.cache.lock();
        if let Some(request) = cache.iter_mut().rev().find(|request| self.is_for(request)) {
            request.run = Some(run.clone());
        }
        drop(cache);
        self.is_complete = true;
    }

    fn is_for(&self, request: &CachedRequest) -> bool {
        request.run.is_none() && request.identity == self.identity
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_complete {
            return;
        }
        let mut cache = self.cache.lock();
        if let Some(position) = cache.iter().rposition(|request| self.is_for(request)) {
            cache.remove(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use toolyard_core::CallerIdentity;

    use super::*;

    fn route_request(caller: &str, key: Option<&str>, is_retry: bool, body: &str) -> RouteRequest {
        let mut headers = HeaderMap::new();
        // A token may be renewed between a request and its repetition.
        headers.insert("authorization", format!("Bearer {:?}", Instant::now()).parse().unwrap());
        if let Some(key) = key {
            headers.insert("idempotency-key", key.parse().unwrap());
        }
        if is_retry {
            headers.insert("x-stainless-retry-count", "1".parse().unwrap());
        }
        RouteRequest {
            method: Method::POST,
            path: "/runs".to_owned(),
            query: String::new(),
            headers,
            identity: Arc::new(CallerIdentity::principal("https://issuer", caller)),
            body: body.to_owned(),
        }
    }

    fn request_of(caller: &str, key: Option<&str>, is_retry: bool, body: &str) -> RequestIdentity {
        RequestIdentity::from_request("/runs", &route_request(caller, key, is_retry, body)).unwrap()
    }

    fn request(key: Option<&str>, is_retry: bool, body: &str) -> RequestIdentity {
        request_of("one", key, is_retry, body)
    }

    fn look_up(cache: &RequestCache, request: RequestIdentity) -> Result<RequestLookup, IdempotencyError> {
        cache.reserve_in_cache(request, Instant::now())
    }

    fn start(cache: &RequestCache, request: RequestIdentity, run: &str) {
        match look_up(cache, request) {
            Ok(RequestLookup::New(reservation)) => reservation.complete(&run.into()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_identifies_one_request_of_one_caller_for_a_day() {
        let cache = RequestCache::default();
        start(&cache, request(Some("k"), false, "x"), "01");
        let repeated = look_up(&cache, request(Some("k"), false, "x"));
        assert!(matches!(repeated, Ok(RequestLookup::Duplicate(run)) if run.as_str() == "01"));
        let reused = look_up(&cache, request(Some("k"), false, "y")).unwrap_err();
        assert!(matches!(reused, IdempotencyError::KeyReused), "{reused:?}");
        start(&cache, request_of("two", Some("k"), false, "x"), "02");
        let later = Instant::now() + RETENTION + Duration::from_secs(1);
        let expired = cache.reserve_in_cache(request(Some("k"), false, "y"), later);
        assert!(matches!(expired, Ok(RequestLookup::New(_))));
    }

    #[test]
    fn without_a_key_only_declared_retries_are_rejected() {
        let cache = RequestCache::default();
        start(&cache, request(None, false, "x"), "01");
        start(&cache, request(None, false, "x"), "02");
        let rejected = look_up(&cache, request(None, true, "x")).unwrap_err();
        assert!(rejected.to_string().contains("GET /runs/02"), "{rejected:?}");
        start(&cache, request(None, true, "y"), "03");
        start(&cache, request_of("two", None, true, "x"), "04");
    }

    #[test]
    fn one_of_two_concurrent_requests_starts_a_run_and_a_failed_start_can_be_repeated() {
        let cache = RequestCache::default();
        let first = look_up(&cache, request(Some("k"), false, "x")).unwrap();
        let second = look_up(&cache, request(Some("k"), false, "x")).unwrap_err();
        assert!(matches!(second, IdempotencyError::InProgress), "{second:?}");
        drop(first);
        start(&cache, request(Some("k"), false, "x"), "01");
    }

    #[test]
    fn a_long_key_is_rejected() {
        let request = route_request("one", Some(&"k".repeat(MAX_KEY_BYTES + 1)), false, "x");
        assert!(RequestIdentity::from_request("/runs", &request).is_err());
    }

    #[test]
    fn the_oldest_request_is_recognized_in_a_full_cache() {
        let cache = RequestCache::default();
        let fill = |number: usize| {
            start(&cache, request(Some(&number.to_string()), false, "x"), &number.to_string());
        };
        (0..MAX_CACHED_REQUESTS).for_each(fill);
        let oldest = look_up(&cache, request(Some("0"), false, "x"));
        assert!(matches!(oldest, Ok(RequestLookup::Duplicate(run)) if run.as_str() == "0"));
        start(&cache, request(Some("new"), false, "x"), "new");
        let next = look_up(&cache, request(Some("1"), false, "x"));
        assert!(
            matches!(next, Ok(RequestLookup::Duplicate(run)) if run.as_str() == "1"),
            "only one was evicted"
        );
    }

    #[test]
    fn a_request_whose_run_is_being_started_is_not_evicted() {
        let cache = RequestCache::default();
        let first = look_up(&cache, request(Some("first"), false, "x")).unwrap();
        let fill = |number: usize| {
            start(&cache, request(Some(&number.to_string()), false, "x"), &number.to_string());
        };
        (0..=MAX_CACHED_REQUESTS).for_each(fill);
        let repeated = look_up(&cache, request(Some("first"), false, "x")).unwrap_err();
        assert!(matches!(repeated, IdempotencyError::InProgress), "{repeated:?}");
        drop(first);
    }
}
