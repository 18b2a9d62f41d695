//! `/api/v1/overview`: the present state and the recent activity of the gateway, for a dashboard.

use std::{collections::BTreeMap, time::Duration};

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use toolyard_hub::{BreakerState, SourceStatus};
use toolyard_telemetry::metrics::{Activity, SourceActivity, ToolActivity};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    agents::ApiError,
    api::{
        ApiState,
        error_code::ErrorCode,
        openapi::ErrorBody,
        response::{ApiResult, json_of},
    },
};

/// The activity of this gateway since its start. Tool calls are those of all clients and agents.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// Time since the start.
    pub uptime_ms: u64,
    /// Tool calls of each minute of the last hour, oldest first; the last one is the current minute.
    pub calls_per_minute: Vec<u64>,
    /// Those that failed.
    pub failures_per_minute: Vec<u64>,
    /// Median duration of the calls of the last five minutes; null without calls.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the same.
    pub p95_ms: Option<f64>,
    /// Tool calls since the start.
    pub calls_total: u64,
    /// Those that failed.
    pub failures_total: u64,
    /// Tokens of model calls since the start.
    pub tokens: Tokens,
    /// Cost of model calls in the currency of the prices in the settings; null if no price is set.
    pub cost: Option<f64>,
    /// Runs of agents.
    pub runs: Runs,
    /// Number of upstream servers by state: `disabled`, `configured`, `stopped`, `starting`, `ready`, `degraded`, `stopping`,
    /// `down`.
    pub servers: BTreeMap<String, u64>,
    /// By name.
    pub sources: Vec<SourceOverview>,
    /// The tools that were called most, the most frequent first.
    pub top_tools: Vec<ToolOverview>,
}

/// Tokens of model calls.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Tokens {
    /// Sent to models.
    pub input: u64,
    /// Received from models.
    pub output: u64,
}

/// Runs of agents.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Runs {
    /// Runs that this gateway drives.
    pub active: u64,
    /// Runs of the store that wait for an approval; null if the store does not answer, or without agents.
    pub waiting_for_approval: Option<u64>,
    /// Approvals that they wait for.
    pub pending_approvals: Option<u64>,
}

/// A source of tools: `native`, a skill or an upstream server.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SourceOverview {
    /// Its name.
    pub source: String,
    /// `native`, `skill` or `mcp`.
    #[schema(value_type = String)]
    pub kind: toolyard_core::SourceKind,
    /// The state of an upstream server; null for other sources.
    pub state: Option<String>,
    /// Calls that are being executed.
    pub in_flight: u64,
    /// Calls that wait for their turn.
    pub queued: u64,
    /// State of its circuit breaker: `closed`, `half_open` or `open`.
    pub breaker: String,
    /// Calls in the current minute or in the one before, whichever had more.
    pub calls_last_minute: u64,
    /// Those that failed.
    pub failures_last_minute: u64,
    /// Calls of the last hour.
    pub calls_last_hour: u64,
    /// Those that failed.
    pub failures_last_hour: u64,
    /// Median duration of the calls of the last five minutes; null without calls.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the same.
    pub p95_ms: Option<f64>,
}

/// The calls of one tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolOverview {
    /// Its name.
    pub tool: String,
    /// Its source.
    pub source: String,
    /// Calls since the start.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Their mean duration.
    pub mean_ms: f64,
}

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(show_overview))
}

/// Shows the state and the recent activity of the gateway.
#[utoipa::path(get, path = "/overview", tag = "overview",
    responses((status = 200, body = Overview),
        (status = 404, body = ErrorBody, description = "this gateway does not count its operations")))]
async fn show_overview(State(state): State<ApiState>) -> ApiResult {
    let not_counted =
        || ApiError::not_found(ErrorCode::NotOffered, "this gateway does not count its operations");
    let activity = state.metrics.as_ref().ok_or_else(not_counted)?.activity();
    let (active, waiting) = match &state.agents {
        Some(agents) => (agents.active_runs(), agents.waiting_for_approval().await.ok()),
        None => (0, None),
    };
    let servers = state.servers.iter().flat_map(|manager| manager.servers());
    let states: BTreeMap<String, &'static str> =
        servers.map(|server| (server.config().id.to_string(), server.state().label())).collect();
    let mut sources: Vec<SourceOverview> = state
        .hub
        .iter()
        .flat_map(|hub| hub.sources())
        .map(|source| {
            let server_state = states.get(source.info.id.as_str()).copied();
            SourceOverview::of(&source, server_state, &activity.sources)
        })
        .collect();
    sources.sort_by(|one, other| one.source.cmp(&other.source));
    let runs = Runs {
        active,
        waiting_for_approval: waiting.map(|waiting| waiting.runs),
        pending_approvals: waiting.map(|waiting| waiting.approvals),
    };
    let servers = state.servers_by_state().into_iter().map(|(state, count)| (state.to_owned(), count));
    let servers = servers.collect();
    Ok(json_of(StatusCode::OK, &Overview::of(&activity, runs, servers, sources)))
}

impl Overview {
    fn of(
        activity: &Activity,
        runs: Runs,
        servers: BTreeMap<String, u64>,
        sources: Vec<SourceOverview>,
    ) -> Self {
        Self {
            uptime_ms: u64::try_from(activity.uptime.as_millis()).unwrap_or(u64::MAX),
            calls_per_minute: activity.calls_per_minute.to_vec(),
            failures_per_minute: activity.failures_per_minute.to_vec(),
            p50_ms: activity.p50.map(millis),
            p95_ms: activity.p95.map(millis),
            calls_total: activity.calls_total,
            failures_total: activity.failures_total,
            tokens: Tokens { input: activity.input_tokens, output: activity.output_tokens },
            cost: activity.cost,
            runs,
            servers,
            sources,
            top_tools: activity.top_tools.iter().map(ToolOverview::of).collect(),
        }
    }
}

impl SourceOverview {
    fn of(status: &SourceStatus, state: Option<&'static str>, activity: &[SourceActivity]) -> Self {
        let source = status.info.id.to_string();
        let activity = activity.iter().find(|activity| activity.source == source);
        let count = |count: fn(&SourceActivity) -> u64| activity.map(count).unwrap_or_default();
        Self {
            kind: status.info.kind,
            state: state.map(str::to_owned),
            in_flight: status.calls_in_flight as u64,
            queued: status.calls_queued as u64,
            breaker: match status.breaker {
                BreakerState::Closed => "closed",
                BreakerState::HalfOpen => "half_open",
                BreakerState::Open { .. } => "open",
            }
            .to_owned(),
            calls_last_minute: count(|activity| activity.calls_last_minute),
            failures_last_minute: count(|activity| activity.failures_last_minute),
            calls_last_hour: count(|activity| activity.calls_last_hour),
            failures_last_hour: count(|activity| activity.failures_last_hour),
            p50_ms: activity.and_then(|activity| activity.p50).map(millis),
            p95_ms: activity.and_then(|activity| activity.p95).map(millis),
            source,
        }
    }
}

impl ToolOverview {
    fn of(tool: &ToolActivity) -> Self {
        let ToolActivity { tool, source, calls, failures, mean } = tool.clone();
        Self { tool, source, calls, failures, mean_ms: millis(mean) }
    }
}

/// Milliseconds with microseconds as decimals.
fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}
