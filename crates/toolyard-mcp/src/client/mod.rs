//! Connections to servers, in both protocol eras, over all transports.

mod exchange;
mod transport;

pub use exchange::{Exchange, Heard, Waiting};
pub use transport::{Outgoing, Transport, TransportError};
