//! The audit log: one record per tool call, chained by hashes so that tampering is detected.
//!
//! - `entry`: stored records and queries for them
//! - `append`: writing to the end of the chain
//! - `background`: an [`Audit`](toolyard_core::Audit) that queues records and writes them in batches
//! - `verify`: checking the whole chain

pub(crate) mod append;
mod background;
mod entry;
pub(crate) mod verify;

pub use background::StoredAudit;
pub use entry::{AuditEntry, AuditQuery};
pub use verify::AuditVerification;
