//! Connections to servers, in both protocol eras, over all transports.

mod exchange;
mod http;
mod http_caller;
mod http_events;
mod http_streams;
mod http_target;
#[cfg(test)]
mod http_test_server;
pub mod oauth;
mod sse;
mod transport;

pub use exchange::{Exchange, Heard, Waiting};
pub use http::StreamableHttp;
pub use http_caller::http_client;
pub use http_target::{Authorizer, HttpTarget, SecretHeader};
pub use sse::LegacySse;
pub use transport::{Outgoing, Transport, TransportError};
