//! [`Peers`]: the other processes of a cluster, and exchanges of messages with them.

use std::{fmt, sync::Arc};

use crate::BoxFuture;

/// Reaches the other processes of a cluster.
pub trait Peers: Send + Sync + fmt::Debug {
    /// The number of this process, by which others reach it.
    fn own_number(&self) -> u64;

    /// The processes that were heard of lately, this one included, in ascending order. What they hold is decided by leases, not by
    /// this list.
    fn members(&self) -> Vec<u64> {
        vec![self.own_number()]
    }

    /// Opens an exchange with a service of one process. That the process cannot be reached may be known only when
    /// [`Exchange::receive`] says so.
    fn open<'a>(
        &'a self,
        process: u64,
        service: &'a str,
        request: Vec<u8>,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>>;

    /// Tells a service of all other processes something that may get lost.
    fn notify_all(&self, service: &str, message: Vec<u8>);
}

/// A request to another process, and the messages that belong to it. Dropping it ends it: the other side's [`Exchange::receive`]
/// returns `None`.
pub trait Exchange: Send {
    /// Sends a message to the other side.
    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>>;

    /// Sends the last message and ends the exchange.
    fn send_last(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        self.send(message)
    }

    /// The next message of the other side; `None` when it has ended the exchange. Safe to drop while it waits.
    fn receive(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, PeerError>>;
}

/// What a process does for its peers.
pub trait PeerService: Send + Sync {
    /// Serves one exchange, which ends when the future is ready.
    fn serve(self: Arc<Self>, request: Vec<u8>, exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()>;

    /// Receives what another process told all others.
    fn notified(&self, message: &[u8]) {
        let _ = message;
    }
}

/// Why an exchange with another process failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// The other gateway or worker certainly received nothing: it is gone, or NATS is unreachable.
    ///
    /// Remedy: check that it runs and that both reach NATS (`toolyard doctor`); then call again.
    #[error("cannot reach another process of the cluster: {0}")]
    NotReached(String),
    /// The other gateway or worker may have received the request, and then its connection was lost or the process
    /// ended.
    ///
    /// Remedy: check on the server whether the call had an effect before you repeat it; see the logs of both processes.
    #[error("lost another process of the cluster: {0}")]
    Lost(String),
}
