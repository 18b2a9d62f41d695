//! Durable truth in SQL: what must outlive a process, in one small store, on SQLite or PostgreSQL.
//!
//! One [`Store`] implements the traits of `toolyard-core` that keep something: the journal of runs and steps, approvals,
//! known servers and decisions on trust, whole results. [`StoredHistory`], [`StoredRequests`] and [`StoredAudit`] stand in
//! the path of every call, so they take note in memory and write in batches.
//!
//! All writing goes through one place (`writer.rs`) that makes one commit out of the work of many; what must survive a
//! loss of power is told only when it does.

mod approvals;
mod audit;
mod compress;
mod conversations;
mod engine;
mod error;
mod history;
mod journal;
mod leases;
mod outcomes;
mod past_requests;
mod result_forms;
mod results;
mod rows;
mod run_log;
mod servers;
mod store;
mod tables;
mod transfer;
mod upkeep;
mod words;
mod writer;

pub use audit::{AuditEntry, AuditQuery, StoredAudit, Verdict};
pub use conversations::StoredConversation;
pub use engine::{Engine, Location};
pub use error::StoreError;
pub use history::{Clock, Statistics, StoredHistory};
pub use past_requests::StoredRequests;
pub use results::Keeping;
pub use store::Store;
pub use transfer::TransferError;
pub use upkeep::Health;
