//! Connections to servers, in both protocol eras, over all transports.

mod environment;
mod exchange;
mod guard;
mod http;
mod http_caller;
mod http_events;
mod http_streams;
mod http_target;
mod last_words;
mod process;
mod program;
mod sse;
mod stand_in;
mod stdio;
mod transport;

pub use environment::{HARMLESS, allowed};
pub use exchange::{Exchange, Heard, Waiting};
pub use guard::{GRACE, GuardProgram, guard};
pub use http::StreamableHttp;
pub use http_caller::http_client;
pub use http_target::{Authorizer, HttpTarget, SecretHeader};
pub use last_words::LastWords;
pub use sse::LegacySse;
pub use stdio::{StdioLaunch, StdioTransport, connect};
pub use transport::{Outgoing, Transport, TransportError};
