//! [`Gauges`]: what is read when metrics are scraped, because nobody is told when it changes.

use std::{collections::BTreeMap, sync::Arc};

/// The present state of a gateway.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauges {
    /// The version of the program.
    pub version: String,
    /// The number of upstream servers by state, such as `ready`.
    pub servers: BTreeMap<&'static str, u64>,
    /// The sources of tools.
    pub sources: Vec<SourceGauges>,
    /// MCP requests that are being handled.
    pub mcp_requests: Option<u64>,
    /// Sessions of MCP clients with state in this process.
    pub mcp_sessions: Option<u64>,
    /// Instances of servers that belong to one caller each; `None` without servers.
    pub private_instances: Option<u64>,
    /// Those that were stopped since the start to make room for others.
    pub displaced_instances: Option<u64>,
    /// Runs that this process drives; `None` without agents.
    pub active_runs: Option<u64>,
    /// Approvals that wait for a decision; `None` without agents.
    pub pending_approvals: Option<u64>,
    /// Tools in the search index.
    pub indexed_tools: Option<u64>,
    /// How many calls and model calls each quota refused since the start.
    pub quota_refusals: Vec<(Arc<str>, u64)>,
    /// Stored results; `None` if they are not counted.
    pub results: Option<ResultsGauges>,
    /// The store; `None` without one.
    pub store: Option<StoreGauges>,
    /// The cluster; `None` if the gateway is in none.
    pub cluster: Option<ClusterGauges>,
}

/// The present state of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceGauges {
    /// The source.
    pub source: String,
    /// Number of its tools.
    pub tools: u64,
    /// Calls that are being executed.
    pub in_flight: u64,
    /// Calls that wait for their turn.
    pub queued: u64,
    /// Its circuit breaker.
    pub breaker: BreakerGauge,
}

/// The state of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerGauge {
    /// Calls pass.
    Closed,
    /// One call may probe the source.
    HalfOpen,
    /// Calls are refused.
    Open,
}

/// Whole results of tools that are kept for reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultsGauges {
    /// Their number.
    pub stored: u64,
    /// Their size before compression.
    pub stored_bytes: u64,
    /// How many were dropped since the start to make room; `None` if that is not counted.
    pub evicted: Option<u64>,
}

/// The present state of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreGauges {
    /// Whether the store answered when it was last asked.
    pub is_reachable: bool,
    /// Writes that wait to be committed: the journal, runs, results.
    pub queued_writes: u64,
    /// Audit records that are only in memory.
    pub queued_audit_records: u64,
    /// The size of the file in which audit records wait while the store does not take them.
    pub spill_bytes: u64,
    /// Audit records that were dropped since the start.
    pub lost_audit_records: u64,
    /// Calls that were refused since the start because their audit record could not be kept.
    pub refused_calls: u64,
    /// How long the store has taken no audit records; 0 while it takes them.
    pub audit_outage_seconds: u64,
    /// Writes of audit records that failed since the start.
    pub failed_audit_writes: u64,
}

/// The cluster, as this gateway sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterGauges {
    /// Whether the gateway is connected to NATS.
    pub is_connected: bool,
    /// Gateways that answered lately, this one included.
    pub gateways: u64,
    /// Worker processes that announced themselves lately, of the groups that this gateway uses.
    pub workers: u64,
    /// Sessions with stateful servers that this gateway owns.
    pub owned_sessions: u64,
    /// Sessions that it began to own since the start and that had an owner before.
    pub session_takeovers: u64,
    /// Sessions that it had and that another gateway took.
    pub lost_sessions: u64,
    /// Calls that other gateways executed for this one since the start, by outcome.
    pub forwarded_calls: Vec<(&'static str, u64)>,
    /// Calls that workers executed for this gateway since the start, by outcome.
    pub worker_calls: Vec<(&'static str, u64)>,
}
