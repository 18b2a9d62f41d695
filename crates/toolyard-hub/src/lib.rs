//! Decides and carries out one tool call.
//!
//! A call travels one way through this crate:
//!
//! ```text
//! request → router (who may answer) → candidate (do the arguments fit) → order (who goes first)
//!         → strategy (alone, raced, merged, in order) → attempt (breaker, gate, deadline, retry)
//!         → synthesizer (several answers into one) → budget (what is shown) → answer
//! ```
//!
//! The decisions are pure functions; [`ToolHub`] is where they meet the clock and the tools.
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

mod attempt;
mod audit;
mod breaker;
mod budget;
mod candidate;
mod capability_pick;
mod decision;
mod execution;
mod explain;
mod failure;
mod fitted;
mod gate;
mod gather;
mod health;
mod history;
mod hub;
mod hub_search;
mod journalled;
mod names;
mod options;
mod order;
mod patterns;
mod race;
mod registry;
mod results;
mod retry;
mod router;
mod rules;
pub mod search;
mod show;
mod strategy;
mod suggest;
pub mod surface;
mod synthesizer;
mod validate;

pub use breaker::{BreakerSettings, BreakerState};
pub use budget::{Budget, Limits};
pub use candidate::{Source, ToolCandidate};
pub use decision::{Decision, Trail};
pub use history::RecentSuccess;
pub use hub::{HubConfig, SourceStatus, ToolHub};
pub use hub_search::FoundTool;
pub use journalled::definition_of;
pub use names::Found;
pub use options::{CallOptions, Watch};
pub use registry::{Collision, Registration, Registry, Snapshot, SourceEntry};
pub use results::{MemoryResults, new_reference};
pub use retry::RetryPolicy;
pub use router::{Route, RouteCase, route, route_within};
pub use rules::{Prefer, RoutingRules};
pub use strategy::{FIRST_BATCH, Strategy, should_synthesize};
