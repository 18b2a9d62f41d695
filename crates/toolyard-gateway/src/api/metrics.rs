//! `/metrics`: the state and the activity of the gateway for Prometheus.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, header};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};
use toolyard_core::ResultsUsage;
use toolyard_hub::{BreakerState, SourceStatus};
use toolyard_mcp_client::ServerState;
use toolyard_telemetry::metrics::{
    BreakerGauge, ExpositionFormat, Gauges, LabelDetail, Metrics, ResultsGauges, SourceGauges,
};

use super::{ApiState, error_code::ErrorCode, extract::AuthenticatedCaller};
use crate::agents::ApiError;

/// The path, which Prometheus uses by default.
pub(super) const METRICS_PATH: &str = "/metrics";

/// How long a scrape waits for the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// What is read from the store is this old at most, and so is what is shown without a token.
const SCRAPE_MAX_AGE: Duration = Duration::from_secs(1);

/// Who may read `/metrics`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricsAccess {
    /// Clients with the token.
    #[default]
    Token,
    /// Everybody; without the gateway's own token, names of tools, servers, agents and models are left out.
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
    // Names are of all callers; one of several callers gets what everybody gets.
    let has_token = !caller.0.is_anonymous() && !caller.0.is_distinguished();
    let not_offered = || ApiError::not_found(ErrorCode::NotOffered, "this gateway does not offer metrics");
    let Some(metrics) = &state.metrics else { return not_offered().into_response() };
    let detail = match state.metrics_access {
        MetricsAccess::Off => return not_offered().into_response(),
        MetricsAccess::Open if !has_token => LabelDetail::Public,
        MetricsAccess::Open | MetricsAccess::Token => LabelDetail::All,
    };
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = ExpositionFormat::from_accept(accept);
    let text = match detail {
        // Anybody may ask for these, as often as they like.
        LabelDetail::Public => state.scrapes.public_text(&state, metrics, format).await,
        LabelDetail::All => {
            let gauges = gauges(&state, metrics, state.scrapes.stored(&state).await);
            metrics.exposition(&gauges, format, detail)
        }
    };
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}

/// What scrapes cost the store and the processor, at most once per [`SCRAPE_MAX_AGE`].
#[derive(Debug, Default)]
pub(super) struct ScrapeCache {
    stored: Mutex<Option<(Instant, StoredGauges)>>,
    public_texts: Mutex<HashMap<ExpositionFormat, (Instant, String)>>,
}

/// Gauges that are read from the store.
#[derive(Debug, Clone, Copy, Default)]
struct StoredGauges {
    pending_approvals: Option<u64>,
    results: Option<ResultsGauges>,
}

impl ScrapeCache {
    async fn stored(&self, state: &ApiState) -> StoredGauges {
        let mut cached = self.stored.lock().await;
        if let Some((_, stored)) = cached.filter(|(at, _)| at.elapsed() < SCRAPE_MAX_AGE) {
            return stored;
        }
        let stored = stored_gauges(state).await;
        *cached = Some((Instant::now(), stored));
        stored
    }

    /// Without names, and without asking the store.
    async fn public_text(&self, state: &ApiState, metrics: &Metrics, format: ExpositionFormat) -> String {
        let mut texts = self.public_texts.lock().await;
        if let Some((_, text)) = texts.get(&format).filter(|(at, _)| at.elapsed() < SCRAPE_MAX_AGE) {
            return text.clone();
        }
        let gauges = gauges(state, metrics, StoredGauges::default());
        let text = metrics.exposition(&gauges, format, LabelDetail::Public);
        texts.insert(format, (Instant::now(), text.clone()));
        text
    }
}

async fn stored_gauges(state: &ApiState) -> StoredGauges {
    let waiting = async {
        let waiting = state.agents.as_ref()?.waiting_for_approval();
        Some(timeout(STORE_TIMEOUT, waiting).await.ok()?.ok()?.approvals)
    };
    let results = async {
        let usage = timeout(STORE_TIMEOUT, state.hub.as_ref()?.results().usage()).await.ok()??;
        let ResultsUsage { stored, stored_bytes, evicted } = usage;
        Some(ResultsGauges { stored, stored_bytes, evicted })
    };
    let (pending_approvals, results) = tokio::join!(waiting, results);
    StoredGauges { pending_approvals, results }
}

fn gauges(state: &ApiState, metrics: &Metrics, stored: StoredGauges) -> Gauges {
    let sources = state.hub.iter().flat_map(|hub| hub.sources());
    let sources: Vec<SourceGauges> = sources.map(|source| source_gauges(&source)).collect();
    metrics.make_room(|name| sources.iter().any(|source| source.source == name));
    let mcp_server = state.mcp_server.as_ref();
    let instances = state.servers.as_ref().map(|manager| manager.private_instances());
    Gauges {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        servers: state.servers_by_state(),
        sources,
        mcp_requests: mcp_server.map(|server| server.requests_in_flight() as u64),
        mcp_sessions: mcp_server.map(|server| server.tracked_sessions() as u64),
        private_instances: instances.map(|(active, _)| active as u64),
        displaced_instances: instances.map(|(_, displaced)| displaced),
        active_runs: state.agents.as_ref().map(|agents| agents.active_runs()),
        pending_approvals: stored.pending_approvals,
        indexed_tools: state.hub.as_ref().map(|hub| hub.indexed_tools() as u64),
        quota_refusals: state.hub.as_ref().and_then(|hub| Some(hub.quota()?.refusals())).unwrap_or_default(),
        results: stored.results,
        store: state.admin.as_ref().and_then(|admin| admin.store_gauges()),
        cluster: state.cluster.as_ref().map(|cluster| cluster.gauges()),
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
