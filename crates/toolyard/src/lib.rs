//! A gateway that gives AI agents one endpoint for all their tools.
//!
//! A [`Toolyard`] registers native tools, your own functions, skills and MCP servers in one hub. A call names a tool; the
//! hub picks the source, retries what is safe to retry, and isolates failures per source.
//!
//! ```
//! use toolyard::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Greet {
//!     name: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolyard::Error> {
//! let toolyard = Toolyard::builder()
//!     .function("greet", "Greets a person", |g: Greet| async move { format!("Hello, {}!", g.name) })
//!     .build()
//!     .await?;
//!
//! assert_eq!(toolyard.call("greet", json!({"name": "Ada"})).await?.to_text(), "Hello, Ada!");
//! assert_eq!(toolyard.call("calculate", json!({"expression": "0.1+0.2"})).await?.to_text(), "0.3");
//! # Ok(())
//! # }
//! ```
//!
//! An agent plans, calls tools, verifies their results and answers, with any [`model`]. This one uses a scripted model:
//!
//! ```
//! use std::sync::Arc;
//!
//! use toolyard::{
//!     model::{ScriptedModel, ToolCalling},
//!     prelude::*,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolyard::Error> {
//! let plan = r#"{"steps": [{"id": "product", "tool_type": "calculate", "arguments": {"expression": "6*7"}}]}"#;
//! let model = ScriptedModel::with_replies(ToolCalling::Schema, [plan, "It is 42."]);
//! let toolyard = Toolyard::builder().model(Arc::new(model)).build().await?;
//!
//! assert_eq!(toolyard.agent("assistant").ask("What is 6 times 7?").await?.to_string(), "It is 42.");
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look next
//!
//! | to | see |
//! |---|---|
//! | configure from `toolyard.toml` | [`Settings`], [`ToolyardBuilder::settings`] |
//! | add MCP servers, reload them when files change | [`ServersSetup`], [`ServerFileWatcher`] |
//! | replace settings while everything keeps running | [`Toolyard::reload`] |
//! | ask agents, watch their runs, approve calls | [`Toolyard::agent`], [`Agents`], [`agent`] |
//! | choose models | [`Models`], [`model`] |
//! | store runs, results and the audit log | [`store`], [`ToolyardBuilder::store`] |
//! | write tools | [`tools`], [`core::Tool`] |
//!
//! The program `toolyard` is this library with a command line.

#[cfg(feature = "gateway")]
mod admin;
#[cfg(feature = "agent")]
mod agent_handle;
#[cfg(feature = "agent")]
mod agents;
#[cfg(feature = "gateway")]
mod gateway_config;
#[cfg(feature = "agent")]
mod models;
#[cfg(feature = "agent")]
mod policy;
#[cfg(feature = "agent")]
mod quotas;
#[cfg(feature = "agent")]
mod reload;
#[cfg(feature = "gateway")]
mod serve;
#[cfg(feature = "agent")]
mod server_watch;
#[cfg(feature = "mcp")]
mod servers;
#[cfg(feature = "agent")]
pub mod settings;
#[cfg(feature = "agent")]
mod stored_agents;
#[cfg(feature = "agent")]
mod synthesis;
mod toolyard;

#[cfg(feature = "agent")]
pub use agent_handle::{AgentAnswer, AgentHandle, Approver, RunHandle, describe_end};
#[cfg(feature = "agent")]
pub use agents::{Agents, AgentsError, ChatError};
#[cfg(feature = "agent")]
pub use models::{Models, ModelsError};
#[cfg(feature = "agent")]
pub use policy::{PolicyLoadError, load_policy, load_policy_files};
#[cfg(feature = "agent")]
pub use reload::{ReloadReport, ReloadedSettings};
#[cfg(feature = "gateway")]
pub use serve::{McpEndpoint, PromptMessage, PromptText, ResourceContent};
#[cfg(feature = "agent")]
pub use server_watch::{ServerFileError, ServerFileWatchGuard, ServerFileWatcher, read_servers};
#[cfg(feature = "mcp")]
pub use servers::{ServersSetup, ToolWrapper, name_user};
#[cfg(feature = "agent")]
pub use settings::{DurationSetting, Settings, SettingsError, schema};
#[cfg(feature = "native")]
pub use toolyard::SkillEnvironment;
pub use toolyard::{Error, Toolyard, ToolyardBuilder};
#[cfg(feature = "agent")]
pub use toolyard_agent as agent;
pub use toolyard_core as core;
#[cfg(feature = "gateway")]
pub use toolyard_gateway as gateway;
pub use toolyard_hub as hub;
#[cfg(feature = "mcp")]
pub use toolyard_mcp as mcp;
#[cfg(feature = "mcp")]
pub use toolyard_mcp_client as mcp_client;
#[cfg(feature = "gateway")]
pub use toolyard_mcp_server as mcp_server;
#[cfg(feature = "agent")]
pub use toolyard_model as model;
pub use toolyard_search as search;
#[cfg(feature = "store")]
pub use toolyard_store as store;
#[cfg(feature = "otlp")]
pub use toolyard_telemetry as telemetry;
pub use toolyard_tools as tools;

/// The names that most programs need.
pub mod prelude {
    pub use schemars::{self, JsonSchema};
    pub use serde::{self, Deserialize, Serialize};
    pub use serde_json::{self, json};
    pub use toolyard_core::{Tool, ToolCallRequest, ToolError, ToolOutput};
    pub use toolyard_hub::CallOptions;
    #[cfg(feature = "mcp")]
    pub use toolyard_mcp_client::config::McpServerConfig;
    pub use toolyard_tools::{Image, Json, ToolContext, function};

    #[cfg(feature = "agent")]
    pub use crate::RunHandle;
    pub use crate::{Error, Toolyard};
}
