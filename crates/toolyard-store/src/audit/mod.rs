//! The audit log: one record per tool call, chained by hashes so that tampering is detected.
//!
//! - `entry`: stored records and queries for them
//! - `append`: writing to the end of the chain
//! - `background`, `queue`: an [`Audit`](toolyard_core::Audit) that queues records and writes them in batches
//! - `backlog`, `spill`: batches that the store does not take, in memory and in a file
//! - `take_over`: what earlier processes left in such files
//! - `verify`: checking the whole chain

pub(crate) mod append;
mod background;
mod backlog;
mod entry;
mod queue;
mod spill;
mod take_over;
pub(crate) mod verify;

pub use background::{AuditConfig, AuditQueueStatus, StoredAudit};
pub use entry::{AuditEntry, AuditQuery};
pub use verify::AuditVerification;
