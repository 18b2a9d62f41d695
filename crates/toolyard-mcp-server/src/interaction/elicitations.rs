//! [`PageElicitations`]: pages that users were asked to open, until the program says that they are done.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use tokio::sync::watch;

/// Elicitations that are remembered; the oldest ones are forgotten first. Their clients are not notified then.
const MAX_ELICITATIONS: usize = 4_096;
/// Clients that are notified of one elicitation.
const MAX_SESSIONS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct PageElicitations(Mutex<ElicitationTable>);

#[derive(Debug, Default)]
struct ElicitationTable {
    pending: HashMap<String, PendingElicitation>,
    /// Ids, oldest first; may contain removed ones.
    insertion_order: VecDeque<String>,
}

#[derive(Debug)]
struct PendingElicitation {
    /// The legacy clients that were asked, which are notified when it is done.
    sessions: Vec<u64>,
    /// Dropped when it is done.
    done: watch::Sender<()>,
}

impl PageElicitations {
    /// Records that a client was asked to open a page. A legacy client has a session.
    pub(crate) fn record(&self, id: &str, session: Option<u64>) {
        let mut table = self.0.lock();
        if !table.pending.contains_key(id) {
            while table.insertion_order.len() >= MAX_ELICITATIONS {
                if let Some(oldest) = table.insertion_order.pop_front() {
                    table.pending.remove(&oldest);
                }
            }
            table.insertion_order.push_back(id.to_owned());
            let pending = PendingElicitation { sessions: Vec::new(), done: watch::Sender::new(()) };
            table.pending.insert(id.to_owned(), pending);
        }
        if let (Some(pending), Some(session)) = (table.pending.get_mut(id), session)
            && pending.sessions.len() < MAX_SESSIONS
            && !pending.sessions.contains(&session)
        {
            pending.sessions.push(session);
        }
    }

    /// Waits until an elicitation is done. Returns at once if it is unknown.
    pub(crate) async fn wait(&self, id: &str) {
        let done = self.0.lock().pending.get(id).map(|pending| pending.done.subscribe());
        if let Some(mut done) = done {
            // Nothing is ever sent; an error means that it is done.
            while done.changed().await.is_ok() {}
        }
    }

    /// Ends an elicitation. Returns the sessions of the clients that were asked.
    pub(crate) fn end(&self, id: &str) -> Vec<u64> {
        let mut table = self.0.lock();
        let ended = table.pending.remove(id);
        table.insertion_order.retain(|known| known != id);
        ended.map(|pending| pending.sessions).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_elicitation() {
        let elicitations = PageElicitations::default();
        elicitations.wait("unknown").await;
        elicitations.record("a", Some(7));
        elicitations.record("a", Some(7));
        elicitations.record("a", None);
        let waiting = tokio::time::timeout(std::time::Duration::from_secs(60), elicitations.wait("a"));
        assert!(waiting.await.is_err(), "it is not done");
        let (_, sessions) = tokio::join!(elicitations.wait("a"), async { elicitations.end("a") });
        assert_eq!(sessions, [7]);
        assert!(elicitations.end("a").is_empty());
    }

    #[test]
    fn the_oldest_elicitations_are_forgotten_first() {
        let elicitations = PageElicitations::default();
        for number in 0..=MAX_ELICITATIONS {
            elicitations.record(&number.to_string(), Some(1));
        }
        assert!(elicitations.end("0").is_empty() && elicitations.end("1") == [1]);
    }
}
