//! What the HTTP API shows and changes beyond the hub, its servers and runs: statistics, the audit log, and stored agents.
//! The application that embeds the gateway provides it.

mod cluster;
mod settings;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_core::{AgentOrigin, BoxFuture, SignInLink};
use toolyard_mcp_client::config::McpServerConfig;
use toolyard_telemetry::metrics::StoreGauges;
use utoipa::ToSchema;

pub use cluster::{
    ClusterGateway, ClusterMemberState, ClusterProvider, ClusterReport, ClusterSessions, ClusterWorker,
    ClusterWorkerGroup, ToolAwaitingApproval, WorkerGroupState,
};
pub use settings::{
    ClientConfigFile, ImportReport, ImportState, ImportableServer, NewServer, ServerChange, SettingOrigin,
    SettingValue, SettingsProvider, SettingsReport,
};

/// Knows statistics, the audit log and the definitions of agents.
pub trait AdminProvider: Send + Sync + fmt::Debug {
    /// Call statistics by tool and source.
    fn statistics(&self) -> Vec<CallStatistics>;

    /// Audit records, newest first.
    fn audit(&self, selection: AuditSelection) -> BoxFuture<'_, Result<Vec<AuditLogRecord>, AdminError>>;

    /// Verifies the hash chain of the audit log.
    fn verify_audit(&self) -> BoxFuture<'_, Result<AuditLogVerification, AdminError>>;

    /// All agents, by name.
    fn agents(&self) -> BoxFuture<'_, Result<Vec<AgentDefinition>, AdminError>>;

    /// Adds an agent to the store. `by` is who changes it, for the audit log.
    fn add_agent<'a>(
        &'a self,
        name: &'a str,
        config: Value,
        by: &'a str,
    ) -> BoxFuture<'a, Result<AgentDefinition, AdminError>>;

    /// Replaces the configuration of a stored agent.
    fn replace_agent<'a>(
        &'a self,
        name: &'a str,
        config: Value,
        by: &'a str,
    ) -> BoxFuture<'a, Result<AgentDefinition, AdminError>>;

    /// Removes a stored agent.
    fn remove_agent<'a>(&'a self, name: &'a str, by: &'a str) -> BoxFuture<'a, Result<(), AdminError>>;

    /// What waits to be written to the store; `None` without a store.
    fn store_gauges(&self) -> Option<StoreGauges> {
        None
    }
}

/// Why an [`AdminProvider`] cannot do what it is asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The gateway runs without a store, so it keeps no callers, runs, agents or audit log.
    ///
    /// Remedy: set `store` in `toolyard.toml`, or make the data folder writable, and restart the gateway.
    #[error("this gateway has no store")]
    NoStore,
    /// The store failed.
    #[error("{0}")]
    Storage(String),
    /// No agent has this name.
    ///
    /// Remedy: list the agents with `GET /api/v1/agents`, or add it: `[agents.NAME]` in `toolyard.toml`.
    #[error("agent `{0}` does not exist")]
    UnknownAgent(String),
    /// An agent of this name exists.
    ///
    /// Remedy: choose another name, or change the existing agent with `PUT /api/v1/agents/NAME`.
    #[error("agent `{0}` exists already")]
    AgentExists(String),
    /// The agent is defined in a settings file, or is the default one.
    ///
    /// Remedy: change `[agents.NAME]` in `toolyard.toml`; running gateways reload it.
    #[error("agent `{0}` is not kept in the store; it can be changed in the settings file only")]
    ReadOnlyAgent(String),
    /// The name or the configuration of an agent is invalid; the text says what.
    ///
    /// Remedy: correct the request; the keys are those of `[agents.NAME]` in the settings.
    #[error("{0}")]
    InvalidAgent(String),
    /// No server that can be imported has this name.
    ///
    /// Remedy: list what can be imported with `toolyard import --dry-run`, or `GET /api/v1/import`.
    #[error("server `{0}` does not exist")]
    UnknownServer(String),
    /// The settings have this server already, with the same configuration.
    ///
    /// Remedy: nothing is needed; to change it, use `toolyard servers edit NAME --set KEY=VALUE`.
    #[error("the settings have server `{0}` already")]
    ServerExists(String),
    /// The settings have another server of this name, which is kept.
    ///
    /// Remedy: rename one of them: `toolyard servers remove NAME`, then import again, or add the other one under
    /// another name.
    #[error("the settings have another server `{0}`, which is kept")]
    ServerConflicts(String),
    /// Settings, or files of other clients, could not be read.
    #[error("{message}")]
    Unreadable {
        /// What failed and why.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The settings were not changed.
    #[error("{message}")]
    NotChanged {
        /// What failed and why.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

/// Calls of one tool of one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallStatistics {
    /// The tool's name.
    pub tool: String,
    /// The source.
    pub source: String,
    /// Number of calls; older calls count less.
    pub weighted_calls: f64,
    /// Number of calls that failed; older calls count less.
    pub weighted_failures: f64,
    /// Fraction of calls that succeeded.
    pub success_rate: f64,
    /// Median duration in milliseconds.
    pub p50_ms: u64,
    /// 95th percentile of the duration in milliseconds.
    pub p95_ms: u64,
    /// When it was last called.
    pub last_used_at: Option<i64>,
}

/// Which audit records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSelection {
    /// Only records with a smaller number.
    pub before: Option<i64>,
    /// Only records from this time on, as Unix milliseconds.
    pub since: Option<i64>,
    /// Only records before this time.
    pub until: Option<i64>,
    /// The maximum number of records.
    pub limit: usize,
}

/// One record of the audit log. Arguments and results are there as hashes only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLogRecord {
    /// Position in the chain, from 1.
    pub number: i64,
    /// When it was recorded.
    pub recorded_at: i64,
    /// The caller: `cli`, a client's name, a run.
    pub caller: String,
    /// The call's id.
    pub call: String,
    /// The requested tool, or the kind of decision.
    pub tool: String,
    /// The sources of the result, or the one that failed.
    pub sources: Vec<String>,
    /// Hash of the arguments, or of what was decided on.
    pub arguments_hash: String,
    /// Hash of the result, if there is one.
    pub result_hash: Option<String>,
    /// `ok`, the kind of error, or the decision.
    pub outcome: String,
    /// How long the call took.
    pub duration_ms: i64,
    /// Hash of this record and all before it.
    pub hash: String,
}

/// The result of verifying the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLogVerification {
    /// Whether every record is as it was written.
    pub intact: bool,
    /// The number of records, if all are intact.
    pub records: Option<i64>,
    /// Hash of the last record. Kept elsewhere, it later proves that no record before it was changed.
    pub head: Option<String>,
    /// Calls without a record, as other records say.
    pub lost: Option<u64>,
    /// Number of the first record that is wrong or missing.
    pub broken_at: Option<i64>,
    /// What is wrong.
    pub problem: Option<String>,
}

/// An agent and where it is defined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentDefinition {
    /// Its name, which is also its model name under `/v1`.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The model it uses, by its name in the settings; the default model if absent.
    pub model: Option<String>,
    /// Where it is defined: `settings`, `store` or `built_in`.
    #[schema(value_type = String)]
    pub origin: AgentOrigin,
    /// The fields of `[agents.NAME]` in the settings file.
    #[schema(value_type = Object)]
    pub config: Value,
}

/// Begins sign-ins of the operator at upstream servers, whose tokens all callers share.
pub trait OperatorSignIns: Send + Sync + fmt::Debug {
    /// Begins a sign-in at a server; `None` if the server has none, or there is no page for it. May block.
    fn begin_operator_sign_in(&self, server: &McpServerConfig) -> Option<SignInLink>;
}
