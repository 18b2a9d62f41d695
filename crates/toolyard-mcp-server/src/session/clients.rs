//! [`ClientRegistry`]: log levels, subscriptions and ended sessions of legacy clients. The state is bounded and lost on
//! restart; clients then fall back to the defaults.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{interaction::request_channel::RequestChannel, session::log_level::LogLevel};

/// Resources that one client may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// State of legacy clients by session number.
#[derive(Debug)]
pub(crate) struct ClientRegistry {
    table: Mutex<ClientTable>,
    /// Tracked clients, and tracked ended sessions.
    limit: usize,
    /// Whether a session was ever ended, and a level ever set: most servers need no lock to look them up.
    any_ended: AtomicBool,
    any_log_level: AtomicBool,
}

#[derive(Debug, Default)]
struct ClientTable {
    clients: HashMap<u64, ClientState>,
    /// Session numbers, oldest first; may contain removed ones.
    insertion_order: VecDeque<u64>,
    /// Sessions that their clients ended.
    ended: HashSet<u64>,
    /// The same sessions, oldest first.
    ended_order: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct ClientState {
    log_level: Option<LogLevel>,
    subscriptions: BTreeSet<String>,
    /// The version of the catalogue that the client listed last. Notifications may have been lost with a stream.
    catalogue_version: Option<u64>,
    /// The stream that carries change notifications.
    stream: Weak<RequestChannel>,
}

impl ClientRegistry {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            table: Mutex::default(),
            limit,
            any_ended: AtomicBool::default(),
            any_log_level: AtomicBool::default(),
        }
    }

    /// The number of clients with state.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().clients.len()
    }

    /// The lowest level of log messages that a client wants.
    pub(crate) fn log_level(&self, session_number: u64) -> LogLevel {
        // Every call asks, and hardly any client sets a level: skip the lock.
        if !self.any_log_level.load(Ordering::Acquire) {
            return LogLevel::Info;
        }
        let table = self.table.lock();
        table.clients.get(&session_number).and_then(|client| client.log_level).unwrap_or(LogLevel::Info)
    }

    pub(crate) fn set_log_level(&self, session_number: u64, level: LogLevel) {
        self.table.lock().client(session_number, self.limit).log_level = Some(level);
        self.any_log_level.store(true, Ordering::Release);
    }

    /// Returns false if the client is subscribed already or has too many subscriptions.
    pub(crate) fn subscribe(&self, session_number: u64, uri: &str) -> bool {
        let mut table = self.table.lock();
        let client = table.client(session_number, self.limit);
        client.subscriptions.len() < MAX_SUBSCRIPTIONS && client.subscriptions.insert(uri.to_owned())
    }

    /// Returns whether the client was subscribed.
    pub(crate) fn unsubscribe(&self, session_number: u64, uri: &str) -> bool {
        self.table
            .lock()
            .clients
            .get_mut(&session_number)
            .is_some_and(|client| client.subscriptions.remove(uri))
    }

    pub(crate) fn is_subscribed(&self, session_number: u64, uri: &str) -> bool {
        self.table
            .lock()
            .clients
            .get(&session_number)
            .is_some_and(|client| client.subscriptions.contains(uri))
    }

    pub(crate) fn record_catalogue_version(&self, session_number: u64, version: u64) {
        self.table.lock().client(session_number, self.limit).catalogue_version = Some(version);
    }

    pub(crate) fn last_catalogue_version(&self, session_number: u64) -> Option<u64> {
        self.table.lock().clients.get(&session_number)?.catalogue_version
    }

    /// Registers a client's change stream and ends the previous one, so that no change is notified twice.
    pub(crate) fn replace_change_stream(&self, session_number: u64, channel: &Arc<RequestChannel>) {
        let previous = {
            let mut table = self.table.lock();
            let client = table.client(session_number, self.limit);
            std::mem::replace(&mut client.stream, Arc::downgrade(channel)).upgrade()
        };
        if let Some(previous) = previous {
            previous.cancel();
        }
    }

    /// The stream of a client that carries change notifications.
    pub(crate) fn change_stream(&self, session_number: u64) -> Option<Weak<RequestChannel>> {
        self.table.lock().clients.get(&session_number).map(|client| Weak::clone(&client.stream))
    }

    /// Ends a session and returns its subscriptions.
    pub(crate) fn end_session(&self, session_number: u64) -> BTreeSet<String> {
        let mut table = self.table.lock();
        if table.ended.insert(session_number) {
            table.ended_order.push_back(session_number);
        }
        if table.ended_order.len() > self.limit
            && let Some(oldest) = table.ended_order.pop_front()
        {
            table.ended.remove(&oldest);
        }
        self.any_ended.store(true, Ordering::Release);
        let client = table.clients.remove(&session_number).unwrap_or_default();
        drop(table);
        if let Some(stream) = client.stream.upgrade() {
            stream.cancel();
        }
        client.subscriptions
    }

    /// Whether the client ended this session in this process.
    pub(crate) fn has_ended(&self, session_number: u64) -> bool {
        self.any_ended.load(Ordering::Acquire) && self.table.lock().ended.contains(&session_number)
    }
}

impl ClientTable {
    /// The state of a client. A new client evicts the oldest ones beyond the limit.
    fn client(&mut self, session_number: u64, limit: usize) -> &mut ClientState {
        if !self.clients.contains_key(&session_number) {
            self.insertion_order.push_back(session_number);
            while self.clients.len() >= limit
                && let Some(first) = self.insertion_order.pop_front()
            {
                self.clients.remove(&first);
            }
            // Numbers of removed clients must not accumulate.
            if self.insertion_order.len() > limit.saturating_mul(2) {
                self.insertion_order.retain(|key| *key == session_number || self.clients.contains_key(key));
            }
        }
        self.clients.entry(session_number).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_clients_are_evicted_first() {
        const MAX_CLIENTS: usize = 3;
        let clients = ClientRegistry::new(MAX_CLIENTS);
        for session_number in 0..10 {
            clients.set_log_level(session_number, LogLevel::Error);
        }
        let remaining: Vec<u64> =
            (0..10).filter(|client| clients.log_level(*client) == LogLevel::Error).collect();
        assert_eq!(remaining, [7, 8, 9]);
        for session_number in 0..100 {
            assert!(clients.subscribe(session_number, "a"));
            assert_eq!(clients.end_session(session_number).len(), 1);
        }
        assert!(clients.table.lock().insertion_order.len() <= 8);
        let ended: Vec<u64> = (0..100).filter(|client| clients.has_ended(*client)).collect();
        assert_eq!(ended, [97, 98, 99]);
    }
}
