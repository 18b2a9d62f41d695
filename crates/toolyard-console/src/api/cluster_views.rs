//! The shape of `GET /cluster`, as far as pages show it.

use serde::Deserialize;

/// `GET /cluster`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterView {
    pub(crate) nats_connected: bool,
    pub(crate) gateways: Vec<GatewayView>,
    pub(crate) workers: Vec<WorkerGroupView>,
    /// `None` if the store does not answer.
    pub(crate) sessions: Option<Vec<SessionsView>>,
}

/// A gateway of the cluster.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GatewayView {
    pub(crate) process: String,
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) state: String,
    pub(crate) is_this: bool,
    pub(crate) last_seen_at: Option<i64>,
}

/// A group of workers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WorkerGroupView {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) state: String,
    pub(crate) trusted: bool,
    pub(crate) tools: u64,
    pub(crate) awaiting_approval: Vec<ToolAwaitingApprovalView>,
    pub(crate) problem: Option<String>,
    pub(crate) processes: Vec<WorkerView>,
}

/// A tool of a group that awaits approval.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolAwaitingApprovalView {
    pub(crate) tool: String,
}

/// A worker process.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WorkerView {
    pub(crate) process: String,
    pub(crate) name: Option<String>,
    pub(crate) state: String,
    pub(crate) last_seen_at: i64,
    pub(crate) tools: Option<u64>,
    pub(crate) concurrency: Option<u64>,
    pub(crate) running_calls: Option<u64>,
}

/// The sessions with one server that one gateway owns.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionsView {
    pub(crate) server: String,
    pub(crate) gateway: String,
    pub(crate) sessions: u64,
}
