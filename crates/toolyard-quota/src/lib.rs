//! Quotas: how many calls, how many at the same time, how many tokens and how much money callers, agents and tools may use.
//!
//! [`Quotas`] implements the port [`toolyard_core::CallQuota`]. What is used of a limit is one counter in a store
//! ([`toolyard_core::QuotaBudgets`]) that all processes ask; without a store, it is one in the memory of the process
//! ([`MemoryBudgets`]).
//!
//! ```
//! use toolyard_core::{CallQuota as _, QuotaCall, QuotaSubject, QuotaTool, SourceId, WindowLimit};
//! use toolyard_quota::{CountedPer, QuotaRule, Quotas};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let quotas = Quotas::local(vec![QuotaRule {
//!     name: "each tool".into(),
//!     per: CountedPer { tool: true, ..CountedPer::default() },
//!     calls: Some(WindowLimit { limit: 1, window_millis: 60_000 }),
//!     ..QuotaRule::default()
//! }])?;
//! let source = SourceId::from("web");
//! let tools = [QuotaTool { name: "search", source: &source }];
//! let call = QuotaCall { subject: QuotaSubject::default(), tools: &tools };
//! assert!(quotas.take_call(&call).await.is_ok());
//! let exceeded = quotas.take_call(&call).await.unwrap_err();
//! assert!(exceeded.retry_after.as_secs() >= 60);
//! # Ok::<(), toolyard_quota::InvalidQuota>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `rule.rs` | whom a quota is for, and its limits |
//! | `quotas.rs` | all quotas, and the port |
//! | `counters.rs` | takes a call from all limits or from none, and asks the store |
//! | `counter.rs`, `counter_key.rs` | what a process knows of one limit, and whose use it counts |
//! | `memory.rs` | the counters without a store |

mod counter;
mod counter_key;
mod counters;
mod memory;
mod quotas;
mod rule;

pub use memory::MemoryBudgets;
pub use quotas::Quotas;
pub use rule::{CountedPer, InvalidQuota, LOCAL_CALLER, QuotaRule};
