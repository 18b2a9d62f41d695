//! Ports between gateways and workers: processes that serve their own tools to gateways.

use std::{fmt, sync::Arc};

use super::peers::{Exchange, PeerError};
use crate::{BoxFuture, ContentHash};

/// One definition of a tool. All processes of a group that serve it share its calls; processes with another definition of the
/// tool get none of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerEndpoint {
    /// The name of the tool.
    pub tool: Arc<str>,
    /// The hash of its definition.
    pub definition: ContentHash,
}

/// How a gateway reaches workers. Workers with one name form a group.
pub trait WorkerNetwork: Send + Sync + fmt::Debug {
    /// Asks all workers to announce themselves now. May get lost: they do so regularly anyway.
    fn request_announcements(&self);

    /// Whether this process is connected to the network at the moment.
    fn is_connected(&self) -> bool {
        true
    }

    /// Opens an exchange with one process of a group, which answers with what it serves.
    fn open_process<'a>(
        &'a self,
        group: &'a str,
        process: u64,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>>;

    /// Opens an exchange with any one process of a group that serves this definition. That there is none is known when
    /// [`Exchange::receive`] says so.
    fn open_tool<'a>(
        &'a self,
        group: &'a str,
        endpoint: &'a WorkerEndpoint,
        request: Vec<u8>,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>>;
}

/// Receives what workers announce.
pub trait WorkerObserver: Send + Sync {
    /// A process of this group announced itself. The network guarantees the group, not the message.
    fn announced(&self, group: &str, announcement: &[u8]);
}

/// How a worker reaches gateways.
pub trait WorkerTransport: Send + Sync + fmt::Debug {
    /// Tells all gateways something that may get lost.
    fn announce(&self, announcement: Vec<u8>) -> BoxFuture<'_, ()>;

    /// Receives the calls of these definitions from now on, and of no others.
    ///
    /// # Errors
    /// If the network does not accept that.
    fn serve<'a>(&'a self, endpoints: &'a [WorkerEndpoint]) -> BoxFuture<'a, Result<(), PeerError>>;
}
