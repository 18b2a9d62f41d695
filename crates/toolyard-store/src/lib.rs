//! Durable state in SQL, on SQLite or PostgreSQL.
//!
//! A [`Store`] is one database. It implements the storage traits of `toolyard-core`: the journal of runs and steps,
//! run logs, approvals, servers and trust decisions, stored results. [`StoredHistory`], [`StoredPastRequests`] and
//! [`StoredAudit`] are part of every tool call, so they record in memory and write in batches.
//!
//! ```
//! use std::time::Duration;
//! use toolyard_core::{ContentHash, Journal, RawJson, RunState, StepIntent, FinishedStep, StepStart, StepState};
//! use toolyard_store::{Location, Store};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let folder = tempfile::tempdir()?;
//! let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await?;
//!
//! // A process claims a run before it works on it.
//! let run = store.create_run("call", &RawJson::empty_object()).await?;
//! let lease = store.claim(&run, "worker-1", Duration::from_secs(30)).await?;
//!
//! // The intent is stored before a call with side effects, the outcome after it.
//! let intent = StepIntent {
//!     step: "send".to_owned(),
//!     tool: "send_mail".to_owned(),
//!     source: None,
//!     definition: ContentHash::of("definition of send_mail"),
//!     arguments: ContentHash::of("{}"),
//!     redacted_arguments: "{}".to_owned(),
//!     repeatable: false,
//! };
//! assert_eq!(store.begin(&lease, &intent).await?, StepStart::Call);
//! let outcome = FinishedStep { state: StepState::Done, result: RawJson::empty_object() };
//! store.finish(&lease, "send", &outcome).await?;
//!
//! // After a crash, a finished step is not called again.
//! assert!(matches!(store.begin(&lease, &intent).await?, StepStart::Reuse(_)));
//! store.release(&lease, RunState::Done).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `journal` | runs, leases, step intents and outcomes |
//! | `runs` | run logs and approvals |
//! | `audit` | the hash-chained audit log |
//! | `history`, `past_requests`, `result_shapes`, `argument_examples` | what routing, search and planning learn from earlier calls |
//! | `operator` | what the operator keeps in the store: agents, callers with API keys |
//! | `results`, `conversations`, `servers`, `session_key` | whole results, conversations, servers and trust decisions, the key of session ids |
//! | `quota_budgets` | counters of quotas that replicas share |
//! | `session_leases` | which replica owns a session with a stateful server, and who has used it |
//! | `maintenance`, `retention`, `transfer` | check, vacuum and backup; removal of old data; export and import |
//! | `sql` | engines, migrations and the group-commit writer |

mod argument_examples;
mod audit;
mod conversations;
mod error;
mod history;
mod journal;
mod large_text;
mod location;
mod maintenance;
mod operator;
mod past_requests;
mod quota_budgets;
mod result_shapes;
mod results;
mod retention;
mod runs;
mod servers;
mod session_key;
mod session_leases;
mod sql;
mod store;
mod transfer;

pub use audit::{AuditConfig, AuditEntry, AuditQuery, AuditQueueStatus, AuditVerification, StoredAudit};
pub use error::StoreError;
pub use history::{StoredHistory, ToolStatistics};
pub use location::Location;
pub use maintenance::HealthReport;
pub use past_requests::StoredPastRequests;
pub use quota_budgets::QuotaUse;
pub use results::ResultRetention;
pub use retention::{Removed, Retention};
pub use sql::Engine;
pub use store::{Clock, Store};
pub use transfer::TransferError;
