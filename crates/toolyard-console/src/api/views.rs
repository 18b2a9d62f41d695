//! The shapes of the API's answers, as far as pages show them.

use serde::Deserialize;
use serde_json::Value;

use crate::format::pretty_json;

/// `GET /servers`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerList {
    pub(crate) servers: Vec<ServerView>,
}

/// An upstream MCP server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerView {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) transport: String,
    pub(crate) trusted: bool,
    pub(crate) tools: u64,
    pub(crate) revision: Option<String>,
    pub(crate) problem: Option<String>,
    pub(crate) awaiting_approval: u64,
    pub(crate) needs_sign_in: bool,
}

/// `GET /servers/NAME/details`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerDetails {
    pub(crate) endpoint: String,
    pub(crate) awaiting_approval: Vec<HeldTool>,
    pub(crate) rejected: Vec<String>,
    pub(crate) log: Vec<String>,
}

/// A tool whose definition is new or changed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HeldTool {
    pub(crate) name: String,
    pub(crate) definition: String,
    pub(crate) reason: String,
    pub(crate) difference: Vec<String>,
    /// The whole definition.
    pub(crate) whole: Value,
}

/// `GET /tools`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolList {
    pub(crate) tools: Vec<ToolView>,
    pub(crate) next: Option<String>,
}

/// A tool in a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolView {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) kind: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) effect: String,
    pub(crate) read_only: bool,
    pub(crate) open_world: Option<bool>,
    pub(crate) denied: bool,
    pub(crate) call_as: Option<String>,
}

/// `GET /tools/NAME`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolDetails {
    #[serde(flatten)]
    pub(crate) tool: ToolView,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) statistics: Option<CallStatistics>,
}

/// Calls of one tool of one source.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CallStatistics {
    pub(crate) tool: String,
    pub(crate) source: String,
    pub(crate) weighted_calls: f64,
    pub(crate) weighted_failures: f64,
    pub(crate) success_rate: f64,
    pub(crate) p50_ms: u64,
    pub(crate) p95_ms: u64,
    pub(crate) last_used_at: Option<i64>,
}

/// `GET /statistics`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatisticsList {
    pub(crate) statistics: Vec<CallStatistics>,
}

/// `GET /overview`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OverviewView {
    pub(crate) uptime_ms: u64,
    /// The last 60 minutes, oldest first.
    pub(crate) calls_per_minute: Vec<f64>,
    pub(crate) failures_per_minute: Vec<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) calls_total: u64,
    pub(crate) failures_total: u64,
    pub(crate) tokens: TokenCounts,
    pub(crate) cost: Option<f64>,
    pub(crate) runs: RunCounts,
}

/// Tokens of language models.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TokenCounts {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// Runs by what they are doing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunCounts {
    pub(crate) active: u64,
    pub(crate) waiting_for_approval: Option<u64>,
    pub(crate) pending_approvals: Option<u64>,
}

/// `GET /runs`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunList {
    pub(crate) runs: Vec<ListedRun>,
    pub(crate) next: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ListedRun {
    pub(crate) run: String,
    pub(crate) state: String,
    pub(crate) agent: Option<String>,
    pub(crate) question: Option<String>,
    /// `None` for runs without a conversation, and for those of older versions.
    pub(crate) conversation: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) pending_approvals: u64,
}

/// `GET /approvals`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ApprovalList {
    pub(crate) approvals: Vec<PendingApproval>,
}

/// A tool call that waits for approval.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PendingApproval {
    pub(crate) approval: i64,
    pub(crate) run: String,
    pub(crate) step: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) source: Option<String>,
    /// One line of English with tool, source, effects, arguments and notes.
    pub(crate) text: String,
    /// `None` for runs of older versions, which have no arguments either.
    pub(crate) effects: Option<String>,
    #[serde(flatten)]
    pub(crate) arguments: ArgumentsView,
    pub(crate) notes: Vec<String>,
    pub(crate) requested_at: i64,
}

/// The arguments of a call.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ArgumentsView {
    arguments: Option<Value>,
    /// The arguments as text, in place of `arguments`, if they were shortened or have hidden characters; these are escaped.
    arguments_text: Option<String>,
}

impl ArgumentsView {
    /// JSON with indentation, or the text as it is; `None` if the API has no arguments.
    pub(crate) fn shown(&self) -> Option<String> {
        self.arguments.as_ref().map(pretty_json).or_else(|| self.arguments_text.clone())
    }
}

/// `GET /agents`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentList {
    pub(crate) agents: Vec<AgentView>,
}

/// An agent with its configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentView {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) model: Option<String>,
    pub(crate) origin: String,
    pub(crate) config: Value,
}

/// `GET /audit`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AuditRecords {
    pub(crate) records: Vec<AuditRecord>,
    pub(crate) next: Option<String>,
}

/// A record of the audit log.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AuditRecord {
    pub(crate) number: i64,
    pub(crate) recorded_at: i64,
    pub(crate) caller: String,
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) sources: Vec<String>,
    pub(crate) arguments_hash: String,
    pub(crate) result_hash: Option<String>,
    pub(crate) outcome: String,
    pub(crate) duration_ms: i64,
    pub(crate) hash: String,
}

/// `GET /audit/verify`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AuditVerification {
    pub(crate) intact: bool,
    pub(crate) records: Option<i64>,
    pub(crate) head: Option<String>,
    pub(crate) lost: Option<u64>,
    pub(crate) broken_at: Option<i64>,
    pub(crate) problem: Option<String>,
}

/// `GET /settings`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SettingsView {
    pub(crate) files: Vec<Value>,
    pub(crate) values: Vec<SettingView>,
}

/// A setting in effect.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SettingView {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: String,
    pub(crate) file: Option<String>,
    pub(crate) secret: bool,
}

/// `POST /tools/NAME/call`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolCallResult {
    pub(crate) output: String,
    pub(crate) structured: Option<Value>,
    pub(crate) is_error: bool,
    pub(crate) source: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) duration_ms: u64,
    pub(crate) result_id: Option<String>,
}

/// `GET /import` and `POST /import`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ImportReport {
    pub(crate) servers: Vec<ImportServer>,
}

/// A server in a file of another client.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ImportServer {
    pub(crate) name: String,
    pub(crate) endpoint: String,
    /// `new`, `existing`, `conflicting` or `skipped`.
    pub(crate) state: String,
    pub(crate) clients: Vec<String>,
    pub(crate) notes: Vec<String>,
}
