//! Connections to servers, in both protocol eras, over all transports.

mod environment;
mod exchange;
mod guard;
mod last_words;
mod process;
mod program;
mod stdio;
mod transport;

pub use environment::{HARMLESS, allowed};
pub use exchange::{Exchange, Heard, Waiting};
pub use guard::{GRACE, GuardProgram, guard};
pub use last_words::LastWords;
pub use stdio::{StdioLaunch, StdioTransport, connect};
pub use transport::{Outgoing, Transport, TransportError};
