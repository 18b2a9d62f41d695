//! [`ClientRegistry`]: log levels, subscriptions and ended sessions of legacy clients. The state is bounded and lost on
//! restart; clients then fall back to the defaults.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{interaction::request_channel::RequestChannel, session::log_level::LogLevel};

/// Resources that one client may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// State of legacy clients by session key.
#[derive(Debug, Default)]
pub(crate) struct ClientRegistry {
    table: Mutex<ClientTable>,
    any_ended: AtomicBool,
    any_log_level: AtomicBool,
}

#[derive(Debug, Default)]
struct ClientTable {
    clients: HashMap<u64, ClientState>,
    /// Session keys, oldest first; may contain removed ones.
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
    catalogue: Option<u64>,
    /// The stream that carries change notifications.
    stream: Weak<RequestChannel>,
}

impl ClientRegistry {
    /// The lowest level of log messages that a client wants.
    pub(crate) fn log_level(&self, session_key: u64) -> LogLevel {
        // Every call asks, and hardly any client sets a level: skip the lock.
        if !self.any_log_level.load(Ordering::Acquire) {
            return LogLevel::Info;
        }
        let table = self.table();
        table.clients.get(&session_key).and_then(|client| client.log_level).unwrap_or(LogLevel::Info)
    }

    pub(crate) fn set_log_level(&self, session_key: u64, level: LogLevel, limit: usize) {
        self.table().client(session_key, limit).log_level = Some(level);
        self.any_log_level.store(true, Ordering::Release);
    }

    /// Returns false if the client is subscribed already or has too many subscriptions.
    pub(crate) fn subscribe(&self, session_key: u64, uri: &str, limit: usize) -> bool {
        let mut table = self.table();
        let client = table.client(session_key, limit);
        client.subscriptions.len() < MAX_SUBSCRIPTIONS && client.subscriptions.insert(uri.to_owned())
    }

    /// Returns whether the client was subscribed.
    pub(crate) fn unsubscribe(&self, session_key: u64, uri: &str) -> bool {
        self.table().clients.get_mut(&session_key).is_some_and(|client| client.subscriptions.remove(uri))
    }

    pub(crate) fn is_subscribed(&self, session_key: u64, uri: &str) -> bool {
        self.table().clients.get(&session_key).is_some_and(|client| client.subscriptions.contains(uri))
    }

    /// Records the catalogue version that a client has listed.
    pub(crate) fn record_catalogue(&self, session_key: u64, catalogue: u64, limit: usize) {
        self.table().client(session_key, limit).catalogue = Some(catalogue);
    }

    /// The catalogue version that a client listed last.
    pub(crate) fn last_catalogue(&self, session_key: u64) -> Option<u64> {
        self.table().clients.get(&session_key)?.catalogue
    }

    /// Registers a client's change stream and ends the previous one, so that no change is notified twice.
    pub(crate) fn open_stream(&self, session_key: u64, channel: &Arc<RequestChannel>, limit: usize) {
        let former = {
            let mut table = self.table();
            let client = table.client(session_key, limit);
            std::mem::replace(&mut client.stream, Arc::downgrade(channel)).upgrade()
        };
        if let Some(former) = former {
            former.cancel();
        }
    }

    /// Ends a session and returns its subscriptions.
    pub(crate) fn end_session(&self, session_key: u64, limit: usize) -> BTreeSet<String> {
        let mut table = self.table();
        if table.ended.insert(session_key) {
            table.ended_order.push_back(session_key);
        }
        if table.ended_order.len() > limit
            && let Some(oldest) = table.ended_order.pop_front()
        {
            table.ended.remove(&oldest);
        }
        self.any_ended.store(true, Ordering::Release);
        let client = table.clients.remove(&session_key).unwrap_or_default();
        drop(table);
        if let Some(stream) = client.stream.upgrade() {
            stream.cancel();
        }
        client.subscriptions
    }

    /// Whether the client ended this session in this process.
    pub(crate) fn has_ended(&self, session_key: u64) -> bool {
        self.any_ended.load(Ordering::Acquire) && self.table().ended.contains(&session_key)
    }

    fn table(&self) -> MutexGuard<'_, ClientTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientTable {
    /// The state of a client. A new client evicts the oldest ones beyond the limit.
    fn client(&mut self, session_key: u64, limit: usize) -> &mut ClientState {
        if !self.clients.contains_key(&session_key) {
            self.insertion_order.push_back(session_key);
            while self.clients.len() >= limit
                && let Some(first) = self.insertion_order.pop_front()
            {
                self.clients.remove(&first);
            }
            // Keys of removed clients must not accumulate.
            if self.insertion_order.len() > limit.saturating_mul(2) {
                self.insertion_order.retain(|key| *key == session_key || self.clients.contains_key(key));
            }
        }
        self.clients.entry(session_key).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_clients_are_evicted_first() {
        let clients = ClientRegistry::default();
        for session_key in 0..10 {
            clients.set_log_level(session_key, LogLevel::Error, 3);
        }
        let table: Vec<u64> =
            (0..10).filter(|client| clients.log_level(*client) == LogLevel::Error).collect();
        assert_eq!(table, [7, 8, 9]);
        for session_key in 0..100 {
            assert!(clients.subscribe(session_key, "a", 3));
            assert_eq!(clients.end_session(session_key, 3).len(), 1);
        }
        assert!(clients.table().insertion_order.len() <= 8);
        let ended: Vec<u64> = (0..100).filter(|client| clients.has_ended(*client)).collect();
        assert_eq!(ended, [97, 98, 99]);
    }
}
