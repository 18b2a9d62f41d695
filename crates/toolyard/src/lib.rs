//! One door between AI agents and every tool they may use.
//!
//! A [`Toolyard`] holds native tools, functions of your own and skills behind one hub. Name a tool and its arguments;
//! the hub knows where the tool lives, which of several equals to ask, and how to survive the ones that fail.
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
//! let yard = Toolyard::builder()
//!     .tool("greet", "Greets somebody", |g: Greet| async move { format!("Hello, {}!", g.name) })
//!     .build()
//!     .await?;
//!
//! assert_eq!(yard.call("greet", json!({"name": "Ada"})).await?.to_text(), "Hello, Ada!");
//! assert_eq!(yard.call("calculate", json!({"expression": "0.1+0.2"})).await?.to_text(), "0.3");
//! # Ok(())
//! # }
//! ```
//!
//! An agent plans, calls tools, checks what they say and answers, with any [`model`]; here with one that says what it was
//! told to:
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
//! let model = ScriptedModel::saying(ToolCalling::Schema, [plan, "It is 42."]);
//! let yard = Toolyard::builder().model(Arc::new(model)).build().await?;
//!
//! assert_eq!(yard.agent("assistant").ask("What is 6 times 7?").await?.to_string(), "It is 42.");
//! # Ok(())
//! # }
//! ```
//!
//! The rooms behind it: [`toolyard_core`] (words), [`toolyard_hub`] (one call), [`toolyard_tools`] (native tools,
//! functions, skills), [`toolyard_agent`] and [`toolyard_model`] (agents and what they think with). The program `toolyard` is this library and a command line.

mod agents;
pub mod door;
pub mod evaluation;
mod model_making;
mod models;
mod servers;
pub mod settings;
mod watch;
mod yard;

pub use agents::{AgentAnswer, Agents, AgentsError, YardAgent, told};
pub use models::{Models, ModelsError};
pub use servers::ServersSetup;
pub use settings::{Settings, SettingsError, Span, schema};
pub use toolyard_agent as agent;
pub use toolyard_core as core;
pub use toolyard_hub as hub;
pub use toolyard_mcp as mcp;
pub use toolyard_model as model;
pub use toolyard_store as store;
pub use toolyard_tools as tools;
pub use watch::{Following, ServerFiles, read_servers};
pub use yard::{Error, Surroundings, Toolyard, ToolyardBuilder};

/// What most programs need.
pub mod prelude {
    pub use schemars::{self, JsonSchema};
    pub use serde::{self, Deserialize, Serialize};
    pub use serde_json::{self, json};
    pub use toolyard_core::{Tool, ToolCallRequest, ToolError, ToolOutput};
    pub use toolyard_hub::CallOptions;
    pub use toolyard_tools::{Json, function};

    pub use crate::{Error, Toolyard};
}
