//! Which request began which run, so that a request that is made again does not do everything once more.
//!
//! What is begun in this process is remembered here; what others began, or this one before it was started anew, is found in
//! the log of runs.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use http::HeaderMap;
use toolyard_agent::{AgentError, RUN_KIND, RequestMark, request_of};
use toolyard_core::{ContentHash, JournalError, RunId, RunLog};

use super::page_answer::Refused;

/// So many requests are remembered.
const MOST: usize = 1_000;
/// For so long.
const REMEMBERED: Duration = Duration::from_hours(24);
/// A longer key is refused.
const LONGEST_KEY: usize = 256;

/// The requests that began runs, the oldest first. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Begun(Arc<Mutex<VecDeque<Entry>>>);

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
    /// Where it was sent and what it said, and the client's own name for it, under the client's token.
    mark: RequestMark,
    /// Whether the client says that it makes it again.
    again: bool,
}

/// What is known of a request.
#[derive(Debug)]
pub(super) enum Known {
    /// Nothing: whoever begins it says so.
    New(Begins),
    /// The client's key names it: it gets what the first one got.
    Same(RunId),
}

/// A request whose run is being begun; forgotten unless somebody says which it is.
#[derive(Debug)]
pub(super) struct Begins {
    begun: Begun,
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
        let said = ContentHash::of_parts([place.as_bytes(), body.as_bytes()]);
        Ok(Self { mark: RequestMark { named: key, said }, again: count.unwrap_or(0) > 0 })
    }

    /// What an earlier request says about this one, if it is one and the same; its run where that is known.
    fn same_as(&self, earlier: &RequestMark, run: Option<&RunId>) -> Option<Result<RunId, Refused>> {
        if self.mark.named.is_some() && self.mark.named == earlier.named {
            return Some(if self.mark.said == earlier.said {
                run.cloned().ok_or_else(being_begun)
            } else {
                let message = "this Idempotency-Key was used for another request";
                Err(Refused::failed("idempotency_key_reused", message))
            });
        }
        // Without a key two equal requests may be meant, unless the client says that it repeats one by itself.
        let repeats = self.mark.named.is_none() && self.again && self.mark.said == earlier.said;
        repeats.then(|| Err(run.map_or_else(being_begun, already_begun)))
    }

    /// Whether it may be one that was made before.
    fn may_be_known(&self) -> bool {
        self.mark.named.is_some() || self.again
    }
}

impl Begun {
    /// Whether a request was made before, here or elsewhere; if not, it is remembered from now on.
    pub(super) async fn look(&self, request: Request, log: &dyn RunLog) -> Result<Known, Refused> {
        let begins = match self.look_here(request, Instant::now())? {
            Known::New(begins) if begins.request.may_be_known() => begins,
            known => return Ok(known),
        };
        match begun_elsewhere(&begins.request, log).await.map_err(AgentError::from)? {
            Some(known) => known.map(Known::Same),
            None => Ok(Known::New(begins)),
        }
    }

    /// Whether a request was made before in this process.
    fn look_here(&self, request: Request, now: Instant) -> Result<Known, Refused> {
        let mut all = self.lock();
        let is_old = |entry: &Entry| now.saturating_duration_since(entry.at) > REMEMBERED;
        all.retain(|entry| entry.run.is_none() || !is_old(entry));
        let same = |entry: &Entry| request.same_as(&entry.request.mark, entry.run.as_ref());
        if let Some(known) = all.iter().rev().find_map(same) {
            return known.map(Known::Same);
        }
        if all.len() >= MOST {
            // What is being begun is not written down yet: nobody else could know of it.
            if let Some(oldest) = all.iter().position(|entry| entry.run.is_some()) {
                all.remove(oldest);
            }
        }
        all.push_back(Entry { request: request.clone(), run: None, at: now });
        drop(all);
        Ok(Known::New(Begins { begun: self.clone(), request, is_done: false }))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the log knows of a request: another process may have begun it, or this one before it was started anew.
async fn begun_elsewhere(
    request: &Request,
    log: &dyn RunLog,
) -> Result<Option<Result<RunId, Refused>>, JournalError> {
    let milliseconds = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let now = milliseconds(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
    for run in log.runs_since(RUN_KIND, now.saturating_sub(milliseconds(REMEMBERED))).await? {
        let known = request_of(&run).and_then(|earlier| request.same_as(&earlier, Some(&run.id)));
        if known.is_none() {
            continue;
        }
        if !log.events(&run.id, 0).await?.is_empty() {
            return Ok(known);
        }
        // A run whose question was never written down is nobody's, once nobody is about to write it.
        if run.held {
            return Ok(Some(Err(being_begun())));
        }
    }
    Ok(None)
}

impl Begins {
    /// By what the request is known.
    pub(super) fn mark(&self) -> &RequestMark {
        &self.request.mark
    }

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

impl Drop for Begins {
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
        match begun.look_here(request, Instant::now()) {
            Ok(Known::New(begins)) => begins.began(&run.into()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_names_one_request_of_one_token_for_a_day() {
        let begun = Begun::default();
        begin(&begun, request(Some("k"), false, "x"), "01");
        assert!(
            matches!(begun.look_here(request(Some("k"), false, "x"), Instant::now()), Ok(Known::Same(run)) if run.as_str() == "01")
        );
        let reused = begun.look_here(request(Some("k"), false, "y"), Instant::now()).unwrap_err();
        assert_eq!(reused.code, Some("idempotency_key_reused"));
        let mut other = HeaderMap::new();
        other.insert("authorization", "Bearer two".parse().unwrap());
        other.insert("idempotency-key", "k".parse().unwrap());
        begin(&begun, Request::read("/runs", &other, "x").unwrap(), "02");
        let later = Instant::now() + REMEMBERED + Duration::from_secs(1);
        assert!(matches!(begun.look_here(request(Some("k"), false, "y"), later), Ok(Known::New(_))));
    }

    #[test]
    fn without_a_key_only_what_a_client_repeats_by_itself_is_refused() {
        let begun = Begun::default();
        begin(&begun, request(None, false, "x"), "01");
        begin(&begun, request(None, false, "x"), "02");
        let refused = begun.look_here(request(None, true, "x"), Instant::now()).unwrap_err();
        assert!(refused.message.contains("GET /runs/02"), "{refused:?}");
        begin(&begun, request(None, true, "y"), "03");
    }

    #[test]
    fn of_two_at_once_one_begins_and_what_was_not_begun_may_be_asked_again() {
        let begun = Begun::default();
        let first = begun.look_here(request(Some("k"), false, "x"), Instant::now()).unwrap();
        assert_eq!(
            begun.look_here(request(Some("k"), false, "x"), Instant::now()).unwrap_err().code,
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

    #[test]
    fn the_repetition_of_the_oldest_request_is_known_however_many_there_are() {
        let begun = Begun::default();
        (0..MOST).for_each(|at| begin(&begun, request(Some(&at.to_string()), false, "x"), &at.to_string()));
        let oldest = begun.look_here(request(Some("0"), false, "x"), Instant::now());
        assert!(matches!(oldest, Ok(Known::Same(run)) if run.as_str() == "0"));
        begin(&begun, request(Some("new"), false, "x"), "new");
        let next = begun.look_here(request(Some("1"), false, "x"), Instant::now());
        assert!(matches!(next, Ok(Known::Same(run)) if run.as_str() == "1"), "one more, one less");
    }

    #[test]
    fn what_is_being_begun_is_not_forgotten_for_others() {
        let begun = Begun::default();
        let first = begun.look_here(request(Some("first"), false, "x"), Instant::now()).unwrap();
        (0..=MOST).for_each(|at| begin(&begun, request(Some(&at.to_string()), false, "x"), &at.to_string()));
        let again = begun.look_here(request(Some("first"), false, "x"), Instant::now()).unwrap_err();
        assert_eq!(again.code, Some("already_begun"));
        drop(first);
    }
}
