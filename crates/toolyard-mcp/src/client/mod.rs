//! Connections to servers, in both protocol eras, over all transports.

pub mod environment;
mod exchange;
mod guard;
mod last_words;
mod process;
mod program;
pub mod stdio;
mod transport;

pub use exchange::{Exchange, Heard, Waiting};
pub use guard::{GuardProgram, guard};
pub use last_words::LastWords;
pub use stdio::{StdioLaunch, StdioTransport};
pub use transport::{Outgoing, Transport, TransportError};
