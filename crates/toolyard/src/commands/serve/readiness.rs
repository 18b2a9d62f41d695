//! What `/readyz` answers: whether the store can be reached and the required servers can be used.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use toolyard::Toolyard;
use toolyard_core::BoxFuture;
use toolyard_mcp_client::{McpManager, ServerState, config::McpServerConfig};
use toolyard_mcp_server::{ReadinessCheck, ReadinessProbe};
use toolyard_store::Store;

use crate::{
    error::CliError,
    terminal::{logging::STORE_TARGET, run_view::format_duration},
};

/// How long one outcome is reused, because anybody may ask at any rate.
const CACHE_TIME: Duration = Duration::from_secs(1);
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
const STORE_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How long the watch of the store waits for an answer, to say how slow it is.
const MAX_PING_DURATION: Duration = Duration::from_secs(10);

/// The readiness of a gateway.
pub(super) struct GatewayReadiness {
    store: Option<Store>,
    servers: Option<Arc<McpManager>>,
    required_servers: Mutex<Vec<String>>,
    /// The last outcome, and when it was found.
    cached: tokio::sync::Mutex<Option<(Instant, Vec<ReadinessCheck>)>>,
}

impl fmt::Debug for GatewayReadiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayReadiness").finish_non_exhaustive()
    }
}

impl GatewayReadiness {
    pub(super) fn new(toolyard: &Toolyard, required_servers: Vec<String>) -> Self {
        Self {
            store: toolyard.store().cloned(),
            servers: toolyard.servers().cloned(),
            required_servers: Mutex::new(required_servers),
            cached: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn require_servers(&self, names: Vec<String>) {
        *self.required_servers.lock() = names;
    }

    async fn check_now(&self) -> Vec<ReadinessCheck> {
        let mut checks = Vec::new();
        if let Some(store) = &self.store {
            let check = match store.ping(STORE_TIMEOUT).await {
                Ok(()) => ReadinessCheck::passed("store"),
                Err(error) => ReadinessCheck::failed("store", "unreachable").with_detail(error.to_string()),
            };
            // Informational: replicas share the store, and an outage would make all of them unready at once.
            checks.push(check.optional());
        }
        checks.push(self.check_servers());
        checks
    }

    fn check_servers(&self) -> ReadinessCheck {
        let required = self.required_servers.lock().clone();
        let problems: Vec<String> = required
            .iter()
            .filter_map(|name| {
                let server = self.servers.as_ref().and_then(|servers| servers.server(name));
                let problem = match server {
                    Some(server) => state_problem(&server.state(), server.has_known_tools())?,
                    None => "not configured",
                };
                Some(format!("{name}: {problem}"))
            })
            .collect();
        match problems.is_empty() {
            true => ReadinessCheck::passed("servers"),
            false => ReadinessCheck::failed("servers", "a required server is not ready")
                .with_detail(problems.join(", ")),
        }
    }
}

impl ReadinessProbe for GatewayReadiness {
    fn check(&self) -> BoxFuture<'_, Vec<ReadinessCheck>> {
        Box::pin(async move {
            let mut cached = self.cached.lock().await;
            match &*cached {
                Some((at, checks)) if at.elapsed() < CACHE_TIME => checks.clone(),
                _ => {
                    let checks = self.check_now().await;
                    *cached = Some((Instant::now(), checks.clone()));
                    checks
                }
            }
        })
    }
}

/// Asks the store from time to time, so that it is known whether it answers even if nobody calls. Never completes.
pub(super) async fn watch_store(toolyard: &Toolyard) {
    let Some(store) = toolyard.store() else { return std::future::pending().await };
    let mut latency = StoreLatency::default();
    loop {
        let started = Instant::now();
        // The store keeps the outcome for metrics.
        let answer = store.ping_patiently(STORE_TIMEOUT, MAX_PING_DURATION).await;
        let took = started.elapsed();
        match latency.observe(started, took, answer.is_ok()) {
            Some(LatencyChange::BecameSlow) => {
                let ping = format_duration(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
                let error = answer.err().map(|error| error.to_string());
                tracing::warn!(
                    target: STORE_TARGET,
                    error = error.as_deref(),
                    hint = "check the load of the database and its disk, and the network to it",
                    "the store is slow: {ping} for a ping"
                );
            }
            Some(LatencyChange::Recovered { seconds }) => {
                tracing::info!(target: STORE_TARGET, seconds, "the store is no longer slow");
            }
            None => {}
        }
        sleep(STORE_CHECK_INTERVAL).await;
    }
}

/// Whether the store is slow, so that the log says once when that begins and when it ends.
#[derive(Debug, Default)]
struct StoreLatency {
    slow_since: Option<Instant>,
}

/// A change that is logged.
#[derive(Debug, PartialEq, Eq)]
enum LatencyChange {
    BecameSlow,
    /// The store was slow for this time.
    Recovered {
        seconds: u64,
    },
}

impl StoreLatency {
    /// Notes a ping. One that fails at once does not tell how slow the store is.
    fn observe(&mut self, started: Instant, took: Duration, is_answered: bool) -> Option<LatencyChange> {
        match self.slow_since {
            None if took > STORE_TIMEOUT => {
                self.slow_since = Some(started);
                Some(LatencyChange::BecameSlow)
            }
            Some(since) if took <= STORE_TIMEOUT && is_answered => {
                self.slow_since = None;
                Some(LatencyChange::Recovered { seconds: started.duration_since(since).as_secs() })
            }
            _ => None,
        }
    }
}

/// Why calls of a server would fail. A stopped server whose tools are known starts with the first call.
fn state_problem(state: &ServerState, has_known_tools: bool) -> Option<&'static str> {
    match state {
        ServerState::Ready { .. } | ServerState::Degraded { .. } => None,
        ServerState::Stopped | ServerState::Starting { .. } | ServerState::Stopping if has_known_tools => {
            None
        }
        ServerState::Disabled => Some("disabled"),
        ServerState::Down { .. } => Some("down"),
        _ => Some("its tools are not known yet"),
    }
}

/// Fails if a required server is not among the configured ones.
pub(super) fn check_required_servers(
    required: &[String],
    servers: &[McpServerConfig],
) -> Result<(), CliError> {
    let known: BTreeSet<&str> = servers.iter().map(|server| server.id.as_str()).collect();
    match required.iter().find(|name| !known.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = known.into_iter().collect();
            Err(CliError::usage(format!("[serve] required_servers: server `{name}` does not exist"))
                .with_hint(format!("configured servers: {}", known.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_store_is_reported_once_and_once_that_it_is_over() {
        let (start, mut latency) = (Instant::now(), StoreLatency::default());
        let mut observe = |second: u64, milliseconds: u64, is_answered: bool| {
            let started = start + Duration::from_secs(second);
            latency.observe(started, Duration::from_millis(milliseconds), is_answered)
        };
        assert_eq!(observe(0, 3, true), None);
        assert_eq!(observe(5, 1, false), None, "refused, not slow");
        assert_eq!(observe(10, 4_600, true), Some(LatencyChange::BecameSlow));
        assert_eq!(observe(20, 10_000, false), None);
        assert_eq!(observe(35, 1, false), None, "a failure is not the end");
        assert_eq!(observe(40, 2_000, true), Some(LatencyChange::Recovered { seconds: 30 }));
        assert_eq!(observe(45, 3, true), None);
        assert_eq!(observe(50, 10_000, false), Some(LatencyChange::BecameSlow), "without an answer");
    }

    #[test]
    fn a_required_server_is_ready_if_a_call_can_reach_it() {
        let now = Instant::now();
        let down = ServerState::Down { reason: String::new(), failures: 1, retry_at: now };
        let states = [
            (ServerState::Ready { since: now }, true, true),
            (ServerState::Stopped, true, true),
            (ServerState::Starting { since: now }, true, true),
            (ServerState::Starting { since: now }, false, false),
            (ServerState::Configured, false, false),
            (ServerState::Disabled, true, false),
            (down, true, false),
        ];
        for (state, has_known_tools, is_ready) in states {
            assert_eq!(state_problem(&state, has_known_tools).is_none(), is_ready, "{state:?}");
        }
    }
}
