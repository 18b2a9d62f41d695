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
//! use toolyard::{
//!     model::{ScriptedModel, ToolCalling},
//!     prelude::*,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolyard::Error> {
//! let plan = r#"{"steps": [{"id": "product", "tool_type": "calculate", "arguments": {"expression": "6*7"}}]}"#;
//! let model = ScriptedModel::with_replies(ToolCalling::Schema, [plan, "It is 42."]);
//! let toolyard = Toolyard::builder().model(model).build().await?;
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
//! The modules re-export the types that an embedding program needs; the program `toolyard` is this library with a command line.

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
pub use agent_handle::{AgentHandle, AgentOutcome, Approver, RunHandle};
#[cfg(feature = "agent")]
pub use agents::{Agents, AgentsError, ChatError};
#[cfg(feature = "gateway")]
pub use gateway_config::{HttpApiBuilder, RemoteApproval};
#[cfg(feature = "agent")]
pub use models::{Models, ModelsError};
#[cfg(feature = "agent")]
pub use policy::PolicyLoadError;
#[cfg(feature = "agent")]
pub use reload::{ReloadReport, ReloadedSettings};
#[cfg(feature = "gateway")]
pub use serve::{McpEndpoint, PromptMessage, PromptText, ResourceContent};
#[cfg(feature = "agent")]
pub use server_watch::{ServerFileError, ServerFileWatchGuard, ServerFileWatcher, read_servers};
#[cfg(feature = "mcp")]
pub use servers::ServersSetup;
#[cfg(feature = "agent")]
pub use settings::{DurationSetting, Settings, SettingsError};
#[cfg(feature = "native")]
pub use toolyard::SkillEnvironment;
pub use toolyard::{Error, Toolyard, ToolyardBuilder};

// Items that are `doc(hidden)`, here and in methods, are for the program `toolyard` only, and may change in any release.
#[doc(hidden)]
#[cfg(feature = "agent")]
pub use policy::load_policy_files;
#[doc(hidden)]
#[cfg(feature = "mcp")]
pub use servers::{ToolWrapper, name_user};

/// Agents, their runs, and the events of runs.
#[cfg(feature = "agent")]
pub mod agent {
    pub use toolyard_agent::{
        Agent, AgentConfig, AgentError, ApprovalDecision, ApprovalRequest, CancelToken, Chat, DEFAULT_AGENT,
        Effect, EffectCause, EffectState, Fulfilled, Plan, PlanProblem, Review, ReviewRule, RunEnd, RunEvent,
        RunLimit, RunLimits, RunRequest, RunUpdate, RunUsage, RunWatcher, Step, StepEnd, Verification,
    };
    pub use toolyard_core::ApprovalId;
}

/// Tools and their calls, and the traits with which a program replaces a part of the hub: history, results, audit log,
/// policy, synthesis, telemetry.
pub mod core {
    pub use toolyard_core::{
        Audit, AuditRecord, AuditUnavailable, AuditedDecision, BoxFuture, CallContext, CallPolicy,
        CallProgress, CallRecord, Caller, CallerIdentity, ContentBlock, ErrorKind, History, OutputMeta,
        PolicyDecision, PolicyGrounds, PolicyRequest, PolicySubject, PolicyTool, RawJson, ResultPage,
        ResultRef, Results, ResultsError, ResultsUsage, RunId, SecretText, SourceId, SourceInfo, SourceKind,
        SuccessRate, SynthesisError, SynthesisInput, SynthesisRequest, Synthesizer, Tool, ToolCallRequest,
        ToolError, ToolHints, ToolOutput, ToolSpec, telemetry,
    };
}

/// The HTTP API and the MCP endpoint that a program serves.
#[cfg(feature = "gateway")]
pub mod gateway {
    pub use toolyard_gateway::{AuthenticatedCaller, HttpApi, OperatorAccess};
    pub use toolyard_mcp_server::{Access, AccessToken, ServeError, SessionKeyError};
}

/// The hub: routes and executes tool calls.
pub mod hub {
    pub use toolyard_hub::{
        Budget, CallOptions, PendingEffect, Profile, SourceStatus, Surface, ToolCandidate, ToolHub, ToolMatch,
    };
}

/// MCP servers as sources of tools.
#[cfg(feature = "mcp")]
pub mod mcp {
    pub use toolyard_mcp_client::{
        ConfigChanges, ConnectError, ManagedServer, McpManager, ServerState,
        config::{McpServerConfig, TransportConfig},
    };
}

/// Language models.
#[cfg(feature = "agent")]
pub mod model {
    pub use toolyard_model::{
        ANTHROPIC_URL, AnthropicModel, FinishReason, Model, ModelError, ModelErrorKind, ModelEvent,
        ModelMessage, ModelReply, ModelRequest, ModelServerConfig, ModelStream, ModelTool, ModelToolCall,
        OpenAiModel, Prices, ResponseLimits, ResponseSchema, Role, ScriptedModel, ToolCallDelta, ToolCalling,
        Usage, collect_reply,
    };
}

/// The durable store of runs, results, statistics and the audit log.
#[cfg(feature = "store")]
pub mod store {
    pub use toolyard_store::{AuditConfig, Location, ResultRetention, Retention, Store, StoreError};
}

/// Functions, skills and native tools.
pub mod tools {
    pub use toolyard_tools::{FunctionTool, Image, IntoOutput, Json, ToolContext, ToolFunction, function};
    #[cfg(feature = "native")]
    pub use toolyard_tools::{
        native::SearchSettings,
        skill::{LoadedSkills, SkillFolder, SkillScope},
    };
}

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

    pub use crate::{Error, Toolyard};
    #[cfg(feature = "agent")]
    pub use crate::{
        RunHandle,
        agent::{ApprovalDecision, RunEvent, RunUpdate},
        model::Model,
    };
}
