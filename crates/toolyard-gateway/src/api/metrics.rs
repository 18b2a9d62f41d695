//! `/metrics`: the state and the activity of the gateway for Prometheus.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, header};
use toolyard_hub::{BreakerState, SourceStatus};
use toolyard_mcp_client::ServerState;
use toolyard_telemetry::metrics::{BreakerGauge, ExpositionFormat, Gauges, LabelDetail, SourceGauges};

use super::{ApiState, extract::AuthenticatedCaller};
use crate::agents::ApiError;

/// The path, which Prometheus uses by default.
pub(super) const METRICS_PATH: &str = "/metrics";
/// A store that does not answer must not make the whole scrape fail.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Who may read `/metrics`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricsAccess {
    /// Clients with the token.
    #[default]
    Token,
    /// Everybody; without the token, names of tools, servers, agents and models are left out.
    Open,
    /// Nobody.
    Off,
}

/// `GET /metrics`.
pub(super) async fn serve(
    State(state): State<ApiState>,
    caller: AuthenticatedCaller,
    headers: HeaderMap,
) -> Response {
    let has_token = !caller.0.is_anonymous();
    let detail = match state.metrics_access {
        MetricsAccess::Off => {
            let error = ApiError::not_found("not_offered", "this gateway does not offer metrics");
            return error.into_response();
        }
        MetricsAccess::Open if !has_token => LabelDetail::Public,
        MetricsAccess::Open | MetricsAccess::Token => LabelDetail::All,
    };
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = ExpositionFormat::from_accept(accept);
    let gauges = gauges(&state).await;
    let text = state.metrics.exposition(&gauges, format, detail);
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}

async fn gauges(state: &ApiState) -> Gauges {
    let pending_approvals = match &state.agents {
        Some(agents) => {
            tokio::time::timeout(STORE_TIMEOUT, agents.waiting_for_approval()).await.ok().and_then(Result::ok)
        }
        None => None,
    };
    let mcp_server = state.mcp_server.as_ref();
    Gauges {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        servers: state.servers_by_state(),
        sources: state
            .hub
            .iter()
            .flat_map(|hub| hub.sources())
            .map(|source| source_gauges(&source))
            .collect(),
        mcp_requests: mcp_server.map(|server| server.requests_in_flight() as u64),
        mcp_sessions: mcp_server.map(|server| server.tracked_sessions() as u64),
        active_runs: state.agents.as_ref().map(|agents| agents.active_runs()),
        pending_approvals: pending_approvals.map(|waiting| waiting.approvals),
        indexed_tools: state.hub.as_ref().map(|hub| hub.indexed_tools() as u64),
        store: state.admin.as_ref().and_then(|admin| admin.store_gauges()),
    }
}

fn source_gauges(status: &SourceStatus) -> SourceGauges {
    SourceGauges {
        source: status.info.id.to_string(),
        tools: status.tools.len() as u64,
        in_flight: status.calls_in_flight as u64,
        queued: status.calls_queued as u64,
        breaker: match status.breaker {
            BreakerState::Closed => BreakerGauge::Closed,
            BreakerState::HalfOpen => BreakerGauge::HalfOpen,
            BreakerState::Open { .. } => BreakerGauge::Open,
        },
    }
}

impl ApiState {
    /// The number of upstream servers in each state; those without a server are zero.
    pub(super) fn servers_by_state(&self) -> BTreeMap<&'static str, u64> {
        let mut states: BTreeMap<&'static str, u64> = ServerState::LABELS.map(|state| (state, 0)).into();
        for server in self.servers.iter().flat_map(|manager| manager.servers()) {
            *states.entry(server.state().label()).or_default() += 1;
        }
        states
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
