//! Clusters of Toolyard on NATS: how the processes of a cluster find each other and exchange messages.
//!
//! [`NatsConnection`] connects, [`NatsPeers`] implements [`toolyard_core::Peers`] on it. NATS only carries messages: who owns
//! what is decided by leases in the store, so that a message that gets lost or comes late harms nothing.

mod connection;
mod exchange;
mod members;
mod peers;
mod settings;
mod subjects;
mod sync;

pub use connection::{NatsConnectError, NatsConnection};
pub use peers::NatsPeers;
pub use settings::{InvalidNatsSettings, NatsCredentials, NatsSettings};
