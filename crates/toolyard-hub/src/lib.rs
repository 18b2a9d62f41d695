//! Decides and executes one tool call.
//!
//! A call passes through this crate in one direction:
//!
//! ```text
//! request → registry (candidates of the name) → routing (which candidates, in which order, by which strategy)
//!         → execution (validate, attempt, retry) → resilience (breaker, concurrency limit, retry budget)
//!         → output (synthesize, truncate, store the whole) → result
//! ```
//!
//! Decisions are pure functions; [`ToolHub`] combines them with the clock and the tools.
//!
//! ```
//! # use std::sync::Arc;
//! # use toolyard_core::{BoxFuture, CallContext, SourceInfo, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec};
//! # struct Hello(ToolSpec);
//! # impl Tool for Hello {
//! #     fn spec(&self) -> &ToolSpec { &self.0 }
//! #     fn call<'a>(&'a self, _: &'a ToolCallRequest, _: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
//! #         Box::pin(async { Ok(ToolOutput::text("hello")) })
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ToolError> {
//! use toolyard_hub::{CallOptions, ToolHub};
//!
//! let hub = ToolHub::default();
//! hub.register(SourceInfo::native(), vec![Arc::new(Hello(ToolSpec::new("hello", "Greets")))]);
//!
//! let request = ToolCallRequest::new("hello", serde_json::json!({}));
//! let output = hub.execute(&request, &CallOptions::default()).await?;
//! assert_eq!(output.to_text(), "hello");
//! assert_eq!(output.meta.source.unwrap().as_str(), "native");
//! # Ok(())
//! # }
//! ```

mod embedding_client;
mod execution;
mod hub;
mod hub_config;
mod output;
mod recent_success;
mod registry;
mod resilience;
mod routing;
mod search;
mod search_index;
mod source_status;

pub use execution::journaled::definition_hash;
pub use execution::options::{CallOptions, PendingEffect};
pub use hub::ToolHub;
pub use hub_config::{HubConfig, HubSettings};
pub use output::budget::{Budget, OutputLimits};
pub use output::memory_results::MemoryResults;
pub use recent_success::RecentSuccess;
pub use registry::candidate::{RegisteredSource, ToolCandidate};
pub use registry::name_entry::NameMatches;
pub use registry::registration::Registration;
pub use registry::snapshot::{Collision, Registry, Snapshot, SourceEntry};
pub use resilience::breaker::{BreakerSettings, BreakerState};
pub use resilience::retry::RetryPolicy;
pub use routing::decision::{Decision, DecisionLog};
pub use routing::names::NameTarget;
pub use routing::profile::{CLIENT_IDLE_TIMEOUT, CLIENT_OUTPUT_BUDGET_CHARS, Profile, Surface};
pub use routing::route::{Route, RouteCase, route, route_within};
pub use routing::rules::{RoutingRules, SourcePreference};
pub use routing::strategy::{MAX_FIRST_BATCH, Strategy, should_synthesize};
pub use search::ToolMatch;
pub use search_index::tool_text;
pub use source_status::SourceStatus;

/// "Did you mean" suggestions for unknown names.
pub use registry::name_suggestions as suggest;
