//! [`ClusterProvider`]: the cluster that a gateway belongs to. The application that joins one provides it.

use std::fmt;

use serde::{Deserialize, Serialize};
use toolyard_core::BoxFuture;
use toolyard_telemetry::metrics::ClusterGauges;
use utoipa::ToSchema;

/// Knows the gateways and workers of the cluster.
pub trait ClusterProvider: Send + Sync + fmt::Debug {
    /// The cluster as this gateway sees it. Only the store knows the owners of sessions, so that `with_sessions` may wait for it.
    fn cluster(&self, with_sessions: bool) -> BoxFuture<'_, ClusterReport>;

    /// What metrics show of it. Must not wait for anything.
    fn gauges(&self) -> ClusterGauges;
}

/// The cluster as this gateway sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterReport {
    /// Whether this gateway is connected to NATS. Without a connection, it learns of no other process.
    pub nats_connected: bool,
    /// The gateways, by their process.
    pub gateways: Vec<ClusterGateway>,
    /// The groups of workers whose tools this gateway serves, by name.
    pub workers: Vec<ClusterWorkerGroup>,
    /// Which gateway owns the sessions with stateful servers, by server; null if they were not asked for, or the store does not answer.
    pub sessions: Option<Vec<ClusterSessions>>,
}

/// A gateway of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterGateway {
    /// Its number in the cluster, which is another one after each start.
    pub process: String,
    /// Host and process id; null if it is of an earlier version.
    pub name: Option<String>,
    /// Its version; null if it is known by its sessions only.
    pub version: Option<String>,
    /// Whether it answers.
    pub state: ClusterMemberState,
    /// Whether it is the gateway that answers.
    pub is_this: bool,
    /// When it answered last; null if it is known by its sessions only.
    pub last_seen_at: Option<i64>,
}

/// Whether a process of the cluster answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClusterMemberState {
    /// It answered lately.
    Seen,
    /// It is shutting down.
    Leaving,
    /// It stopped answering without leaving.
    Lost,
}

/// Whether a group of workers has processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerGroupState {
    /// A process serves its tools.
    Available,
    /// Its processes were stopped or lost, or none was started yet.
    NoProcess,
}

/// A group of workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterWorkerGroup {
    /// Its name.
    pub name: String,
    /// The source of its tools.
    pub source: String,
    /// Whether it has processes.
    pub state: WorkerGroupState,
    /// Whether its declarations about the effects of its tools are believed.
    pub trusted: bool,
    /// Number of tools that may be used.
    pub tools: usize,
    /// Tools that await approval because their definitions are new or changed.
    pub awaiting_approval: Vec<ToolAwaitingApproval>,
    /// What is wrong with some of its tools.
    pub problem: Option<String>,
    /// Its processes.
    pub processes: Vec<ClusterWorker>,
}

/// A tool that awaits approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolAwaitingApproval {
    /// Its name.
    pub tool: String,
    /// Why it needs an approval.
    pub reason: String,
}

/// A worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterWorker {
    /// Its number in the cluster, which is another one after each start.
    pub process: String,
    /// Host and process id, as it says; null if it is of an earlier version.
    pub name: Option<String>,
    /// Whether it announces itself. A process that shuts down is not listed.
    pub state: ClusterMemberState,
    /// When it announced itself last.
    pub last_seen_at: i64,
    /// Number of tools that it offers; null until it was asked.
    pub tools: Option<usize>,
    /// How many calls it executes at the same time at most; null if it is of an earlier version.
    pub concurrency: Option<u32>,
    /// How many calls it was executing at `last_seen_at`.
    pub running_calls: Option<u32>,
}

/// The sessions with one server that one gateway owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterSessions {
    /// The server.
    pub server: String,
    /// The process number of the gateway.
    pub gateway: String,
    /// The number of sessions: more than one if callers are isolated.
    pub sessions: u64,
}
