//! The drain period: how long connections are accepted after SIGTERM.

use std::time::Duration;

use toolyard::settings::ServeSettings;
use toolyard_mcp_server::McpServer;
use toolyard_store::Engine;

/// Longer than nginx's default `fail_timeout` of 10 s, for which a restarted replica counts as failed: until then, the other
/// replica must not close its listener. Half of the 30 s that Kubernetes waits by default.
const REPLICA_DRAIN: Duration = Duration::from_secs(15);

/// The period of the settings. Without one, only a gateway that may have other replicas drains: elsewhere nobody takes over.
/// Somebody at a terminal waits for the end.
pub(super) fn drain_period(serve: &ServeSettings, engine: Option<Engine>, is_interactive: bool) -> Duration {
    match (serve.drain, engine) {
        _ if is_interactive => Duration::ZERO,
        (Some(drain), _) => drain.0,
        (None, Some(Engine::Postgres)) => REPLICA_DRAIN,
        (None, Some(Engine::Sqlite) | None) => Duration::ZERO,
    }
}

/// Lets load balancers know that requests are to go elsewhere, and waits until they do. Requests are served as before.
pub(super) async fn drain(server: &McpServer, period: Duration) {
    if !period.is_zero() {
        server.begin_drain();
        tokio::time::sleep(period).await;
    }
}

#[cfg(test)]
mod tests {
    use toolyard::settings::DrainPeriod;

    use super::*;

    #[test]
    fn only_gateways_that_may_have_replicas_drain_by_default() {
        let (default, set) = (
            ServeSettings::default(),
            ServeSettings { drain: Some(DrainPeriod(Duration::from_secs(3))), ..ServeSettings::default() },
        );
        let seconds = |serve: &ServeSettings, engine, is_interactive| {
            drain_period(serve, engine, is_interactive).as_secs()
        };
        assert_eq!(seconds(&default, Some(Engine::Postgres), false), 15);
        assert_eq!(seconds(&default, Some(Engine::Sqlite), false), 0);
        assert_eq!(seconds(&default, None, false), 0);
        assert_eq!(seconds(&set, None, false), 3);
        assert_eq!(seconds(&set, Some(Engine::Postgres), true), 0);
    }
}
