//! Quotas: how many calls, how many at the same time, how many tokens and how much money callers, agents and tools may use.
//!
//! [`Quotas`] implements the port [`toolyard_core::CallQuota`]. Without a store, a process counts for itself. With a store
//! ([`toolyard_core::QuotaBudgets`]), all processes share the budgets: a process takes a small share of the calls that are left
//! and spends it without asking again.
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
//! assert!(quotas.take_call(&call).wait().await.is_ok());
//! let exceeded = quotas.take_call(&call).wait().await.unwrap_err();
//! assert!(exceeded.retry_after.as_secs() >= 60);
//! # Ok::<(), toolyard_quota::InvalidQuota>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `rule.rs` | whom a quota is for, and its limits |
//! | `quotas.rs` | all quotas, the port, and the upkeep of shares |
//! | `quota.rs`, `counter.rs`, `counter_key.rs` | the counters of one quota, found by caller, agent and tool |
//! | `call_admission.rs` | takes a call from all quotas or from none |
//! | `call_share.rs`, `permits.rs` | the part of a shared budget that this process may spend |
//! | `shared_calls.rs` | asks the store for shares and permits, and gives them back |
//! | `model_use.rs` | tokens and money, which are counted after use |

mod call_admission;
mod call_share;
mod counter;
mod counter_key;
mod model_use;
mod permits;
mod quota;
mod quotas;
mod rule;
mod shared_calls;

pub use quotas::Quotas;
pub use rule::{CountedPer, InvalidQuota, LOCAL_CALLER, QuotaRule};
