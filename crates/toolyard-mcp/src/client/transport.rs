//! What carries messages to one server and back, whatever it is made of.

use toolyard_core::{BoxFuture, RawJson};

use crate::wire::{RpcError, WireError};

/// Carries messages to one server. What comes back is handed to the [`super::Exchange`] the transport was made with.
pub trait Transport: Send + Sync + std::fmt::Debug {
    /// Hands one message over. Some transports bring the answer to a request back at once; the others give it, or a failure,
    /// to the exchange, exactly once and maybe before this is done. When this fails, the exchange hears nothing. Whoever drops
    /// this before it is done gives the request up.
    fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<Sent, TransportError>>;

    /// Nobody waits for the answer to this request any more. Whether that alone tells the server (a closed stream does);
    /// otherwise a `notifications/cancelled` is due.
    fn forget(&self, id: u64) -> bool;

    /// Takes the connection down, politely first. Returns when nothing of it is left.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// The protocol version that was agreed, or is tried; HTTP transports say it in a header and know the era by it. None takes
    /// it back.
    fn set_protocol_version(&self, version: Option<&str>) {
        let _ = version;
    }

    /// Asks for a stream on which a server of the legacy era tells things unasked, where the transport has none by nature.
    /// Nothing happens if the server does not offer one. It is asked for at once; what is given back ends when the server has
    /// answered, and need not be waited for.
    fn open_listen_stream(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The end of what the server said on its side channel (stderr), if it has one.
    fn last_words(&self) -> Option<String> {
        None
    }
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    /// It is on its way; the answer to a request reaches the exchange.
    Taken,
    /// The answer came back the way the request went.
    Answered(Result<RawJson, RpcError>),
}

/// One message on its way out.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The number of a request; none for a notification or an answer.
    pub id: Option<u64>,
    /// The method; empty for an answer.
    pub method: &'static str,
    /// The JSON-RPC message, without a line end.
    pub body: Vec<u8>,
    /// What HTTP transports say in headers besides the body, such as `Mcp-Method`.
    pub headers: Vec<(String, String)>,
}

/// Why a message did not get through.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The server could not be started or reached: nothing was sent.
    #[error("it could not be reached: {0}")]
    Unreachable(String),
    /// The server ended.
    #[error("it ended ({status})")]
    Ended {
        /// Exit status or signal in words.
        status: String,
        /// The end of its stderr.
        last_words: String,
    },
    /// The connection broke after something was sent.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The connection was closed by us.
    #[error("the connection was closed")]
    Closed,
    /// What came back crossed a limit or is not the protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// An HTTP status that is not an answer.
    #[error("it answered with HTTP status {status}{}", .excerpt.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        /// Such as 404.
        status: u16,
        /// The JSON-RPC error in the body, if there is one.
        error: Option<RpcError>,
        /// The beginning of the body, made harmless.
        excerpt: Option<String>,
        /// The header `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// A redirect that is not followed.
    #[error("it redirects to somewhere else, which is not followed: {0}")]
    Redirect(String),
    /// An HTTP answer that is neither JSON nor events, or is compressed though nobody asked for that.
    #[error("it answered with {0}, which is not the protocol")]
    NotTheProtocol(String),
    /// The server does not know our session any more: a new one must be initialized before the message is sent again.
    #[error("it does not know this session any more")]
    SessionGone,
    /// A server wants our messages posted to another server.
    #[error("it wants messages sent to another origin, which is refused: {0}")]
    ForeignEndpoint(String),
    /// Too many requests are waited for already.
    #[error("{0} requests are waited for already")]
    Busy(usize),
}

impl TransportError {
    /// Whether it is certain that nothing of the request reached the server.
    pub fn had_no_effect(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Busy(_) | Self::SessionGone | Self::ForeignEndpoint(_) => true,
            // Whoever is not let in has done nothing.
            Self::Status { status, .. } => matches!(status, 401 | 403 | 404 | 405 | 406 | 415 | 429),
            _ => false,
        }
    }
}
