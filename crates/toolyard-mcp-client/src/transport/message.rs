//! What every transport does, and the messages that it sends.

use std::sync::Arc;

use toolyard_core::{BoxFuture, CallerIdentity, RawJson};
use toolyard_mcp::RpcError;

use crate::transport::error::TransportError;

/// Sends messages to one server. What the server sends goes to the
/// [`PendingRequests`](crate::PendingRequests) that the transport was created with.
pub trait Transport: Send + Sync + std::fmt::Debug {
    /// Sends one message. The response to a request is either returned or delivered to the pending requests, exactly
    /// once and possibly before this future is ready. On an error nothing is delivered. Dropping the future abandons
    /// the request.
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<SendOutcome, TransportError>>;

    /// Whether abandoning a request tells the server, because that closes its stream. Otherwise the session sends
    /// `notifications/cancelled`.
    fn cancels_on_drop(&self) -> bool {
        false
    }

    /// Whether requests of the server usually come on the stream of the request that they belong to.
    fn relates_requests(&self) -> bool {
        false
    }

    /// Whether the server can tell this connection from others, and so may remember something in it.
    fn has_state(&self) -> bool {
        true
    }

    /// Shuts the connection down gracefully. Its tasks and processes have ended when the future is ready.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Sets the revision that was negotiated or is being tried, which HTTP transports send in a header. `None` removes it.
    fn set_protocol_version(&self, version: Option<&str>) {
        let _ = version;
    }

    /// Asks a legacy server for the stream of its unsolicited messages, where the transport needs one. The future is
    /// ready when the server has accepted or declined; it need not be awaited.
    fn open_listen_stream(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The end of the server's stderr, if the transport has access to it.
    fn stderr_tail(&self) -> Option<String> {
        None
    }
}

/// The result of sending a message.
#[derive(Debug, Clone, PartialEq)]
pub enum SendOutcome {
    /// The message was sent. The response to a request will be delivered to the pending requests.
    Accepted,
    /// The response to the request.
    Response(Result<RawJson, RpcError>),
}

/// A message to the server.
#[derive(Debug, Clone)]
pub struct OutgoingMessage {
    /// The id of a request; none for a notification or a response.
    pub id: Option<u64>,
    /// The method; empty for a response.
    pub method: &'static str,
    /// The JSON-RPC message, without a trailing line feed.
    pub body: Vec<u8>,
    /// Headers that HTTP transports add, such as `Mcp-Method`.
    pub headers: Vec<(String, String)>,
    /// For whom the message is sent, if a header depends on that.
    pub identity: Option<Arc<CallerIdentity>>,
}
