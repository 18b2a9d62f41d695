//! What clients see of a hub: endpoints, profiles, exposed names, surfaces, the content of all servers, and agents.
//!
//! [`GatewayConfig`] says what is served and builds the MCP server:
//!
//! ```
//! use std::sync::Arc;
//!
//! use toolyard_gateway::GatewayConfig;
//! use toolyard_hub::{Profile, Surface, ToolHub};
//! use toolyard_mcp_server::{McpServer, ServerConfig, SessionKeys};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = GatewayConfig::new(Arc::new(ToolHub::default()));
//! config.profiles.push(Profile { name: "search".into(), surface: Surface::Search, ..Profile::default() });
//! let server: McpServer = config.build(ServerConfig::new("example", "1.0", SessionKeys::random()?));
//! // Serve it with `toolyard_mcp_server::serve_http` or `serve_stdio`.
//! # drop(server);
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `endpoint` | one endpoint per profile, built from the parts below |
//! | `surface` | [`HubService`]: the tools of a profile, all of them or behind a search; [`MainTools`]: those of the main endpoint |
//! | `naming` | unique names of tools, prompts and skills |
//! | `bridge` | [`ServerContentBridge`] and [`LocalSkills`]: prompts, resources and skills |
//! | `agents` | [`AgentService`]: agents for clients, their runs, and the tool `ask_agent` |
//! | `sign_in` | [`SignIns`]: pages at which callers sign in to upstream servers |
//! | `api` | [`HttpApi`]: the HTTP API beside MCP, for servers, tools, agents, runs and the audit log |

mod admin;
mod agents;
mod api;
mod bridge;
mod endpoint;
mod naming;
mod sign_in;
mod surface;

pub use admin::{
    AdminError, AdminProvider, AgentDefinition, AuditLogRecord, AuditLogVerification, AuditSelection,
    CallStatistics, ClientConfigFile, ClusterGateway, ClusterMemberState, ClusterProvider, ClusterReport,
    ClusterSessions, ClusterWorker, ClusterWorkerGroup, ImportReport, ImportState, ImportableServer,
    NewServer, OperatorSignIns, ServerChange, SettingOrigin, SettingValue, SettingsProvider, SettingsReport,
    ToolAwaitingApproval, WorkerGroupState,
};
pub use agents::{
    AgentLookupError, AgentProvider, AgentService, AgentServiceConfig, OrphanAdopter, OrphanedRuns,
    RUN_PEER_SERVICE, cluster_owner,
};
pub use api::{AuthenticatedCaller, HttpApi, HttpApiConfig, MetricsAccess, OperatorAccess, StartsNoTrace};
pub use bridge::{LocalSkills, ServerContentBridge};
pub use endpoint::GatewayConfig;
pub use sign_in::{InvalidPublicUrl, PublicUrl, SignInRequest, SignIns, is_sign_in_path};
pub use surface::{HubService, MainTools, tool_definition};
/// Counts what [`HttpApiConfig::metrics`] shows.
pub use toolyard_telemetry::metrics::{ClusterGauges, Metrics, StoreGauges};

/// Bodies of responses of the HTTP API, which the console reads.
pub mod responses {
    pub use crate::{
        admin::{
            AgentDefinition, AuditLogRecord, AuditLogVerification, CallStatistics, ClientConfigFile,
            ClusterGateway, ClusterMemberState, ClusterReport, ClusterSessions, ClusterWorker,
            ClusterWorkerGroup, ImportReport, ImportState, ImportableServer, SettingOrigin, SettingValue,
            SettingsReport, ToolAwaitingApproval, WorkerGroupState,
        },
        api::{
            AgentList, AuditPage, HeldTool, Overview, Runs, ServerDetails, ServerList, ServerView,
            SourceOverview, StatisticsList, Tokens, ToolCallResult, ToolDetails, ToolList, ToolOverview,
            ToolView,
        },
    };
}
