//! The little that is remembered of clients of the legacy era between their requests. It is lost with the process, and
//! none of them notices more than that it must say it again.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{line::Line, log_level::LogLevel};

/// More resources than this one client does not subscribe to.
const MAX_SUBSCRIBED: usize = 1_000;

/// What is remembered, by the numbers of conversations.
#[derive(Debug, Default)]
pub(super) struct Clients {
    known: Mutex<Known>,
    some_ended: AtomicBool,
    some_level: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    clients: HashMap<u64, Client>,
    /// The same, oldest first; some may be gone already.
    came: VecDeque<u64>,
    /// Sessions that were ended before their time.
    ended: HashSet<u64>,
    /// The same, oldest first.
    order: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Client {
    level: Option<LogLevel>,
    subscribed: BTreeSet<String>,
    /// The stream on which it hears what changes.
    stream: Weak<Line>,
}

impl Clients {
    /// From which level on a client wants to see log messages.
    pub(super) fn log_level(&self, conversation: u64) -> LogLevel {
        // Nearly nobody ever says it, and every call asks.
        if !self.some_level.load(Ordering::Acquire) {
            return LogLevel::Info;
        }
        let known = self.known();
        known.clients.get(&conversation).and_then(|client| client.level).unwrap_or(LogLevel::Info)
    }

    pub(super) fn set_log_level(&self, conversation: u64, level: LogLevel, at_most: usize) {
        self.known().client(conversation, at_most).level = Some(level);
        self.some_level.store(true, Ordering::Release);
    }

    /// Whether the client did not have it before and there is room.
    pub(super) fn subscribe(&self, conversation: u64, uri: &str, at_most: usize) -> bool {
        let mut known = self.known();
        let client = known.client(conversation, at_most);
        client.subscribed.len() < MAX_SUBSCRIBED && client.subscribed.insert(uri.to_owned())
    }

    /// Whether the client had it.
    pub(super) fn unsubscribe(&self, conversation: u64, uri: &str) -> bool {
        self.known().clients.get_mut(&conversation).is_some_and(|client| client.subscribed.remove(uri))
    }

    pub(super) fn is_subscribed(&self, conversation: u64, uri: &str) -> bool {
        self.known().clients.get(&conversation).is_some_and(|client| client.subscribed.contains(uri))
    }

    /// A client opens its stream. A former one ends: nothing is told twice.
    pub(super) fn open_stream(&self, conversation: u64, line: &Arc<Line>, at_most: usize) {
        let former = {
            let mut known = self.known();
            let client = known.client(conversation, at_most);
            std::mem::replace(&mut client.stream, Arc::downgrade(line)).upgrade()
        };
        if let Some(former) = former {
            former.cancel();
        }
    }

    /// Ends a session. What it had subscribed to is given back.
    pub(super) fn end(&self, conversation: u64, at_most: usize) -> BTreeSet<String> {
        let mut known = self.known();
        if known.ended.insert(conversation) {
            known.order.push_back(conversation);
        }
        if known.order.len() > at_most
            && let Some(oldest) = known.order.pop_front()
        {
            known.ended.remove(&oldest);
        }
        self.some_ended.store(true, Ordering::Release);
        let client = known.clients.remove(&conversation).unwrap_or_default();
        drop(known);
        if let Some(stream) = client.stream.upgrade() {
            stream.cancel();
        }
        client.subscribed
    }

    /// Whether a session was ended here before its time.
    pub(super) fn has_ended(&self, conversation: u64) -> bool {
        self.some_ended.load(Ordering::Acquire) && self.known().ended.contains(&conversation)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// What is known about a client; if it is nothing yet, whoever came first is forgotten to make room.
    fn client(&mut self, conversation: u64, at_most: usize) -> &mut Client {
        if !self.clients.contains_key(&conversation) {
            self.came.push_back(conversation);
            while self.clients.len() >= at_most
                && let Some(first) = self.came.pop_front()
            {
                self.clients.remove(&first);
            }
            // Those that are gone already must not pile up.
            if self.came.len() > at_most.saturating_mul(2) {
                self.came.retain(|came| *came == conversation || self.clients.contains_key(came));
            }
        }
        self.clients.entry(conversation).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_came_first_is_forgotten_first() {
        let clients = Clients::default();
        for conversation in 0..10 {
            clients.set_log_level(conversation, LogLevel::Error, 3);
        }
        let known: Vec<u64> =
            (0..10).filter(|client| clients.log_level(*client) == LogLevel::Error).collect();
        assert_eq!(known, [7, 8, 9]);
        for conversation in 0..100 {
            assert!(clients.subscribe(conversation, "a", 3));
            assert_eq!(clients.end(conversation, 3).len(), 1);
        }
        assert!(clients.known().came.len() <= 8);
        let ended: Vec<u64> = (0..100).filter(|client| clients.has_ended(*client)).collect();
        assert_eq!(ended, [97, 98, 99]);
    }
}
