//! Which request began which run, so that a request that is made again does not do everything once more.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use http::HeaderMap;
use toolyard_core::{ContentHash, RunId};

use super::page_answer::Refused;

/// So many requests are remembered.
const MOST: usize = 1_000;
/// For so long.
const REMEMBERED: Duration = Duration::from_hours(24);
/// A longer key is refused.
const LONGEST_KEY: usize = 256;

/// The requests that began runs, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Begun(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    request: Request,
    /// None while it is being begun.
    run: Option<RunId>,
    at: Instant,
}

/// A request that may be one that was made before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// Where it was sent, and what it said.
    body: ContentHash,
    /// The client's own name for it, under the client's token.
    key: Option<ContentHash>,
    /// Whether the client says that it makes it again.
    again: bool,
}

/// What is known of a request.
#[derive(Debug)]
pub(super) enum Known<'a> {
    /// Nothing: whoever begins it says so.
    New(Begins<'a>),
    /// The client's key names it: it gets what the first one got.
    Same(RunId),
}

/// A request whose run is being begun; forgotten unless somebody says which it is.
#[derive(Debug)]
pub(super) struct Begins<'a> {
    begun: &'a Begun,
    request: Request,
    is_done: bool,
}

impl Request {
    /// Reads what a client says about a request besides what it wants.
    pub(super) fn read(place: &str, headers: &HeaderMap, body: &str) -> Result<Self, Refused> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let count = text("x-stainless-retry-count").and_then(|count| count.parse::<u32>().ok());
        let key = match headers.get("idempotency-key").map(http::HeaderValue::as_bytes) {
            Some([]) => None,
            Some(key) if key.len() > LONGEST_KEY => {
                let message = format!("an Idempotency-Key has at most {LONGEST_KEY} characters");
                return Err(Refused::bad("", message));
            }
            Some(key) => {
                let token = headers.get("authorization").map(http::HeaderValue::as_bytes).unwrap_or_default();
                Some(ContentHash::of_parts([token, place.as_bytes(), key]))
            }
            None => None,
        };
        let body = ContentHash::of_parts([place.as_bytes(), body.as_bytes()]);
        Ok(Self { body, key, again: count.unwrap_or(0) > 0 })
    }
}

impl Begun {
    /// Whether a request was made before; if not, it is remembered from now on.
    pub(super) fn look(&self, request: Request, now: Instant) -> Result<Known<'_>, Refused> {
        let mut all = self.lock();
        let is_old = |entry: &Entry| now.saturating_duration_since(entry.at) > REMEMBERED;
        while all.len() >= MOST || all.front().is_some_and(is_old) {
            all.pop_front();
        }
        if let Some(key) = request.key
            && let Some(known) = all.iter().find(|entry| entry.request.key == Some(key))
        {
            if known.request.body != request.body {
                let message = "this Idempotency-Key was used for another request";
                return Err(Refused::failed("idempotency_key_reused", message));
            }
            return known.run.clone().map(Known::Same).ok_or_else(being_begun);
        }
        // Without a key two equal requests may be meant, unless the client says that it repeats one by itself.
        if request.again
            && let Some(known) = all.iter().rev().find(|entry| entry.request.body == request.body)
        {
            return Err(known.run.as_ref().map_or_else(being_begun, already_begun));
        }
        all.push_back(Entry { request: request.clone(), run: None, at: now });
        drop(all);
        Ok(Known::New(Begins { begun: self, request, is_done: false }))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Begins<'_> {
    /// It began this run.
    pub(super) fn began(mut self, run: &RunId) {
        let mut all = self.begun.lock();
        if let Some(entry) = all.iter_mut().rev().find(|entry| self.is_ours(entry)) {
            entry.run = Some(run.clone());
        }
        drop(all);
        self.is_done = true;
    }

    fn is_ours(&self, entry: &Entry) -> bool {
        entry.run.is_none() && entry.request == self.request
    }
}

impl Drop for Begins<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        // Nothing was begun: it may be asked for again.
        let mut all = self.begun.lock();
        if let Some(place) = all.iter().rposition(|entry| self.is_ours(entry)) {
            all.remove(place);
        }
    }
}

/// A request whose run is there and not to be begun once more.
pub(super) fn already_begun(run: &RunId) -> Refused {
    let message = format!(
        "this request was made before and is not carried out again by itself; see what became of it: GET /runs/{run}"
    );
    Refused::failed("already_begun", message)
}

fn being_begun() -> Refused {
    Refused::failed("already_begun", "this request was made before and is being carried out")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(key: Option<&str>, again: bool, body: &str) -> Request {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer one".parse().unwrap());
        if let Some(key) = key {
            headers.insert("idempotency-key", key.parse().unwrap());
        }
        if again {
            headers.insert("x-stainless-retry-count", "1".parse().unwrap());
        }
        Request::read("/runs", &headers, body).unwrap()
    }

    fn begin(begun: &Begun, request: Request, run: &str) {
        match begun.look(request, Instant::now()) {
            Ok(Known::New(begins)) => begins.began(&run.into()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_names_one_request_of_one_token_for_a_day() {
        let begun = Begun::default();
        begin(&begun, request(Some("k"), false, "x"), "01");
        assert!(
            matches!(begun.look(request(Some("k"), false, "x"), Instant::now()), Ok(Known::Same(run)) if run.as_str() == "01")
        );
        let reused = begun.look(request(Some("k"), false, "y"), Instant::now()).unwrap_err();
        assert_eq!(reused.code, Some("idempotency_key_reused"));
        let mut other = HeaderMap::new();
        other.insert("authorization", "Bearer two".parse().unwrap());
        other.insert("idempotency-key", "k".parse().unwrap());
        begin(&begun, Request::read("/runs", &other, "x").unwrap(), "02");
        let later = Instant::now() + REMEMBERED + Duration::from_secs(1);
        assert!(matches!(begun.look(request(Some("k"), false, "y"), later), Ok(Known::New(_))));
    }

    #[test]
    fn without_a_key_only_what_a_client_repeats_by_itself_is_refused() {
        let begun = Begun::default();
        begin(&begun, request(None, false, "x"), "01");
        begin(&begun, request(None, false, "x"), "02");
        let refused = begun.look(request(None, true, "x"), Instant::now()).unwrap_err();
        assert!(refused.message.contains("GET /runs/02"), "{refused:?}");
        begin(&begun, request(None, true, "y"), "03");
    }

    #[test]
    fn of_two_at_once_one_begins_and_what_was_not_begun_may_be_asked_again() {
        let begun = Begun::default();
        let first = begun.look(request(Some("k"), false, "x"), Instant::now()).unwrap();
        assert_eq!(
            begun.look(request(Some("k"), false, "x"), Instant::now()).unwrap_err().code,
            Some("already_begun")
        );
        drop(first);
        begin(&begun, request(Some("k"), false, "x"), "01");
    }

    #[test]
    fn a_key_has_its_limits() {
        let mut headers = HeaderMap::new();
        headers.insert("idempotency-key", "k".repeat(LONGEST_KEY + 1).parse().unwrap());
        assert!(Request::read("/runs", &headers, "x").is_err());
    }
}
