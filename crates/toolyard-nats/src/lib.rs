//! Clusters of Toolyard on NATS: how the processes of a cluster find each other and exchange messages.
//!
//! [`NatsConnection`] connects, [`NatsPeers`] implements [`toolyard_core::Peers`] on it. NATS only carries messages.
//! Leases in the store decide which process owns what, so a lost or late message cannot change an owner.
//!
//! [`NatsWorker`] is the side of a process that serves its tools to gateways; [`NatsPeers`] is also the side of the gateway.

mod connection;
mod exchange;
mod limits;
mod members;
mod objects;
mod peers;
mod services;
mod settings;
mod subjects;
mod worker;

pub use connection::{NatsConnectError, NatsConnection};
pub use members::{ClusterMember, MemberState};
pub use peers::NatsPeers;
pub use settings::{InvalidNatsSettings, NatsCredentials, NatsSettings};
pub use worker::{NatsWorker, is_worker_group};
