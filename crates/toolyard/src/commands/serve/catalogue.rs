//! The tools of servers in a gateway that shares its store with others: one gateway learns them, all have them.
//!
//! Every change of a server is in the store, under a revision. Gateways of a cluster tell each other of changes; what such a message
//! misses, and what commands such as `toolyard servers approve` change, is found by polling.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{broadcast::error::RecvError, mpsc},
    time::{Instant, sleep_until},
};
use toolyard::Toolyard;
use toolyard_core::{BoxFuture, Exchange, PeerService, Peers, SessionLeases as _, SourceId};
use toolyard_mcp_client::{CacheError, CatalogueSharing, DiscoveryTurn, McpManager, ServerEvent};
use toolyard_store::{Engine, Store};

use super::cluster::Cluster;
use crate::{commands::setup::process_owner, config::CliContext};

/// How often the store is read. A change counts in every gateway after this time, part of which is random.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The name under which gateways tell each other of changed servers.
const PEER_SERVICE: &str = "catalogue";
/// Messages of other gateways that wait; what is beyond is found by polling.
const MAX_PENDING_MESSAGES: usize = 1_024;
/// Begins the names of the leases of gateways that learn the tools of a server.
const TURN_PREFIX: &str = "refresh/";

/// Lets one of the gateways with this store start a server to learn its tools.
pub(super) fn share(toolyard: &Toolyard, context: &CliContext, cluster: Option<&Cluster>) {
    let store = context.store.as_ref().filter(|store| store.engine() == Engine::Postgres);
    let (Some(store), Some(servers)) = (store, toolyard.servers()) else { return };
    let (store, owners) = (store.clone(), cluster.map(Cluster::owned_sessions));
    servers.share_catalogue(Arc::new(StoreSharing { store, holder: process_owner(), owners }));
}

/// Puts changes of servers into effect that other processes store, and tells others of those of this one. Never completes.
pub(super) async fn follow(toolyard: &Toolyard, context: &CliContext, cluster: Option<&Cluster>) {
    let Some(manager) = toolyard.servers().filter(|_| context.store.is_some()) else {
        return std::future::pending().await;
    };
    let (sender, mut messages) = mpsc::channel(MAX_PENDING_MESSAGES);
    if let Some(cluster) = cluster {
        cluster.register(PEER_SERVICE, Arc::new(ChangeReceiver(sender.clone())));
    }
    let peers = cluster.map(Cluster::peers);
    let mut events = manager.events();
    let mut polling = Polling::new(Arc::clone(manager));
    // Without a cluster, nobody sends; the channel stays open.
    let _sender = sender;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(ServerEvent::RecordChanged(server)) => notify(peers.as_deref(), server.as_str()),
                Ok(_) => {}
                // The others find what they are not told.
                Err(RecvError::Lagged(_)) => notify(peers.as_deref(), ""),
                Err(RecvError::Closed) => return std::future::pending().await,
            },
            Some(server) = messages.recv() => polling.apply(&server).await,
            () = sleep_until(polling.next) => polling.poll().await,
        }
    }
}

/// Tells the other gateways that a server changed; an unnamed one means that they should look for changes.
fn notify(peers: Option<&dyn Peers>, server: &str) {
    if let Some(peers) = peers {
        peers.notify_all(PEER_SERVICE, server.as_bytes().to_vec());
    }
}

struct Polling {
    manager: Arc<McpManager>,
    next: Instant,
    is_failing: bool,
}

impl Polling {
    fn new(manager: Arc<McpManager>) -> Self {
        Self { manager, next: Instant::now() + poll_delay(fastrand::f64()), is_failing: false }
    }

    /// Reads one server again, or all that changed if none is named.
    async fn apply(&mut self, server: &str) {
        if server.is_empty() {
            return self.poll().await;
        }
        let applied = self.manager.apply_change(server).await;
        self.report(applied.err());
    }

    async fn poll(&mut self) {
        let applied = self.manager.apply_changes().await;
        self.report(applied.err());
        self.next = Instant::now() + poll_delay(fastrand::f64());
    }

    /// Logs the first of several failures in a row.
    fn report(&mut self, failure: Option<CacheError>) {
        let was_failing = std::mem::replace(&mut self.is_failing, failure.is_some());
        if let (Some(error), false) = (failure, was_failing) {
            tracing::warn!(%error, "changes of servers by other processes cannot be read; they are tried again");
        }
    }
}

/// Between 0.8 and 1.2 times the interval, so that gateways do not all read at once. `jitter` is between 0 and 1.
fn poll_delay(jitter: f64) -> Duration {
    POLL_INTERVAL.mul_f64(0.4_f64.mul_add(jitter.clamp(0.0, 1.0), 0.8))
}

/// Receives the names of changed servers.
struct ChangeReceiver(mpsc::Sender<String>);

impl PeerService for ChangeReceiver {
    fn serve(self: Arc<Self>, _request: Vec<u8>, _exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn notified(&self, message: &[u8]) {
        if let Ok(server) = std::str::from_utf8(message) {
            // What does not fit is found by polling.
            let _ = self.0.try_send(server.to_owned());
        }
    }
}

/// Turns are leases in the store.
struct StoreSharing {
    store: Store,
    holder: String,
    /// The sessions that this gateway owns; none without a cluster.
    owners: Option<OwnedSessions>,
}

/// Whether this gateway owns the session with a server.
pub(super) type OwnedSessions = Arc<dyn Fn(&SourceId) -> bool + Send + Sync>;

impl std::fmt::Debug for StoreSharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSharing").field("holder", &self.holder).finish_non_exhaustive()
    }
}

impl CatalogueSharing for StoreSharing {
    fn take<'a>(&'a self, server: &'a SourceId, duration: Duration) -> BoxFuture<'a, Option<DiscoveryTurn>> {
        Box::pin(async move {
            let name = format!("{TURN_PREFIX}{server}");
            match self.store.take_lease(&name, &self.holder, duration).await {
                Ok(lease) => {
                    (lease.holder == self.holder).then_some(DiscoveryTurn { fence: Some(lease.fence) })
                }
                Err(error) => {
                    tracing::debug!(%server, %error, "cannot find out whether another gateway starts the server");
                    Some(DiscoveryTurn { fence: None })
                }
            }
        })
    }

    fn end<'a>(&'a self, server: &'a SourceId, turn: DiscoveryTurn) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(fence) = turn.fence else { return };
            if let Err(error) = self.store.release_lease(&format!("{TURN_PREFIX}{server}"), fence).await {
                tracing::debug!(%server, %error, "the turn to start the server ends by itself");
            }
        })
    }

    fn is_called_elsewhere(&self, server: &SourceId) -> bool {
        self.owners.as_ref().is_some_and(|owns| !owns(server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_of_gateways_are_spread() {
        assert_eq!(poll_delay(0.0), POLL_INTERVAL.mul_f64(0.8));
        assert!(poll_delay(1.0) <= POLL_INTERVAL.mul_f64(1.21) && poll_delay(9.0) == poll_delay(1.0));
    }
}
