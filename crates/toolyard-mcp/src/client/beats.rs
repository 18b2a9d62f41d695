//! Requests under way: their signs of life, each of which starts the wait for the next anew, and who hears of them.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, futures::Notified},
    time::{Instant, sleep},
};
use toolyard_core::{CallProgress, Caller, Patience, RawJson};

use super::whose::{Meant, Party, meant};
use crate::wire::Progress;

/// How long a server may take to hear that a call was given up.
const LINGERS: Duration = Duration::from_secs(60);
/// No more calls that were given up are remembered.
const MOST_LEFT: usize = 64;

/// The requests of one connection that may show signs of life.
#[derive(Debug, Default)]
pub(super) struct Beats(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    requests: HashMap<u64, Arc<Beat>>,
    /// Conversations whose calls were given up, and when that was.
    left: VecDeque<(u64, Instant)>,
}

/// Who a request is made for.
#[derive(Debug, Clone)]
pub(super) enum Whose {
    /// For the connection itself.
    Ours,
    /// For somebody who can be told and asked nothing.
    Nobodys,
    /// For somebody who can.
    Callers(Arc<dyn Caller>, Option<Arc<Patience>>),
}

/// The signs of life of one request.
#[derive(Debug)]
pub(super) struct Beat {
    whose: Whose,
    heart: Notify,
    /// Questions of the server that somebody is asked at this moment.
    questions: AtomicU32,
    over: Notify,
    is_over: AtomicBool,
}

/// Who a server means.
#[derive(Debug)]
pub(super) enum Addressee {
    /// Whoever made this call.
    Caller(Arc<dyn Caller>, Arc<Beat>),
    /// No caller at all.
    House,
    /// A call that is over.
    Over,
    /// One of several, and nothing tells which.
    Unclear,
}

impl Beats {
    /// Follows one request.
    pub(super) fn follow(&self, id: u64, whose: Whose) -> Arc<Beat> {
        let beat = Arc::new(Beat::new(whose));
        self.book().requests.insert(id, Arc::clone(&beat));
        beat
    }

    /// The request is over, whether it was answered or given up.
    pub(super) fn forget(&self, id: u64, answered: bool) {
        let mut book = self.book();
        let Some(beat) = book.requests.remove(&id) else { return };
        if let (Party::Conversation(conversation), false) = (beat.whose.party(), answered) {
            if book.left.len() == MOST_LEFT {
                book.left.pop_front();
            }
            book.left.push_back((conversation, Instant::now()));
        }
        drop(book);
        beat.is_over.store(true, Ordering::Release);
        beat.over.notify_waiters();
    }

    /// Hands on what a server tells about a request under way: signs of life and log messages. Whether that was for anyone.
    pub(super) fn told(&self, method: &str, params: &RawJson, related: Option<u64>) -> bool {
        match method {
            "notifications/progress" => {
                let news = Progress::read(params);
                let beat = news.token.and_then(|id| self.book().requests.get(&id).cloned());
                beat.inspect(|beat| beat.progressed(news)).is_some()
            }
            "notifications/message" => match self.addressee(related) {
                Addressee::Caller(caller, _) => {
                    caller.log(params);
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Who is meant by something that came on the stream of a request, or on the one of all.
    pub(super) fn addressee(&self, related: Option<u64>) -> Addressee {
        let mut book = self.book();
        while book.left.front().is_some_and(|(_, since)| since.elapsed() > LINGERS) {
            book.left.pop_front();
        }
        let under_way: Vec<(u64, Party)> =
            book.requests.iter().map(|(id, beat)| (*id, beat.whose.party())).collect();
        let left: Vec<u64> = book.left.iter().map(|(conversation, _)| *conversation).collect();
        match meant(related, &under_way, &left) {
            Meant::Call(id) => match book.requests.get(&id) {
                Some(beat) => match &beat.whose {
                    Whose::Callers(caller, _) => Addressee::Caller(Arc::clone(caller), Arc::clone(beat)),
                    Whose::Ours | Whose::Nobodys => Addressee::House,
                },
                None => Addressee::Over,
            },
            Meant::House => Addressee::House,
            Meant::Over => Addressee::Over,
            Meant::Unclear => Addressee::Unclear,
        }
    }

    /// How many requests are followed.
    pub(super) fn count(&self) -> usize {
        self.book().requests.len()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Whose {
    fn party(&self) -> Party {
        match self {
            Self::Ours => Party::Ourselves,
            Self::Nobodys => Party::Nobody,
            Self::Callers(caller, _) => Party::Conversation(caller.conversation()),
        }
    }

    fn patience(&self) -> Option<&Arc<Patience>> {
        match self {
            Self::Callers(_, patience) => patience.as_ref(),
            Self::Ours | Self::Nobodys => None,
        }
    }
}

impl Beat {
    fn new(whose: Whose) -> Self {
        Self {
            whose,
            heart: Notify::new(),
            questions: AtomicU32::new(0),
            over: Notify::new(),
            is_over: AtomicBool::new(false),
        }
    }

    fn progressed(&self, news: Progress) {
        self.heart.notify_one();
        if let Some(patience) = self.whose.patience() {
            patience.sign_of_life(Instant::now().into_std());
        }
        if let Whose::Callers(caller, _) = &self.whose
            && caller.wants_progress()
        {
            let Progress { progress, total, message, .. } = news;
            caller.progress(&CallProgress { progress, total, message });
        }
    }

    /// What `work` brings, unless there is no sign of life for `limit`. Nobody waits for a server that waits for us.
    pub(super) async fn unless_silent<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return Some(outcome),
                () = self.heart.notified() => {}
                () = sleep(limit), if self.questions.load(Ordering::Acquire) == 0 => return None,
            }
        }
    }

    /// Somebody is asked something for as long as this lasts.
    pub(super) fn asking(&self) -> Asking<'_> {
        self.questions.fetch_add(1, Ordering::AcqRel);
        // The limit is not for as long as somebody is asked.
        self.heart.notify_one();
        self.whose.patience().inspect(|patience| patience.asked());
        Asking(self)
    }

    /// Waits for the end of the request, from now on.
    pub(super) fn over(&self) -> Notified<'_> {
        self.over.notified()
    }

    /// Whether it is over already.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// A question that somebody is asked.
#[derive(Debug)]
pub(super) struct Asking<'a>(&'a Beat);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.questions.fetch_sub(1, Ordering::AcqRel);
        self.0.heart.notify_one();
        self.0.whose.patience().inspect(|patience| patience.answered(Instant::now().into_std()));
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use serde_json::json;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn progress(beats: &Beats, token: u64) {
        let params = json!({"progressToken": token, "progress": 1}).into();
        assert!(beats.told("notifications/progress", &params, None));
    }

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_start_the_wait_anew() {
        let beats = Arc::new(Beats::default());
        let beat = beats.follow(1, Whose::Ours);
        let heart = Arc::clone(&beats);
        tokio::spawn(async move {
            for _ in 0..5 {
                sleep(Duration::from_secs(8)).await;
                progress(&heart, 1);
            }
        });
        let started = Instant::now();
        assert_eq!(beat.unless_silent(LIMIT, pending::<()>()).await, None);
        assert_eq!(started.elapsed(), Duration::from_secs(50));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_waits_for_an_answer_is_not_silent() {
        let beats = Beats::default();
        let beat = beats.follow(1, Whose::Nobodys);
        let person = Arc::clone(&beat);
        tokio::spawn(async move {
            sleep(Duration::from_secs(5)).await;
            let _asking = person.asking();
            sleep(Duration::from_secs(300)).await;
        });
        let started = Instant::now();
        assert_eq!(beat.unless_silent(LIMIT, pending::<()>()).await, None);
        assert_eq!(started.elapsed(), Duration::from_secs(315));
    }

    #[tokio::test]
    async fn news_of_requests_nobody_follows_are_nobodys() {
        let beats = Beats::default();
        beats.follow(1, Whose::Ours);
        for params in [json!({"progressToken": 2, "progress": 1}), json!({}), json!([])] {
            assert!(!beats.told("notifications/progress", &params.into(), None));
        }
        assert!(!beats.told("notifications/message", &json!({"level": "info", "data": 1}).into(), Some(1)));
    }
}
