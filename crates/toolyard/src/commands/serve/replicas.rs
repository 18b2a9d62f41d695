//! What several gateways on one store must have in common, for `serve` and `doctor`.

use std::time::Duration;

use toolyard::settings::ServeSettings;
use toolyard_store::{Engine, Store};

/// nginx compares whole seconds, so its `fail_timeout` of 10 s lasts up to 11 s.
const MIN_REPLICA_DRAIN: Duration = Duration::from_secs(12);

/// Something that replicas need, and how to get it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct ReplicaNote {
    pub(in crate::commands) detail: &'static str,
    pub(in crate::commands) hint: &'static str,
}

/// What is missing for replicas. Only a PostgreSQL store can have them.
pub(in crate::commands) fn notes(
    serve: &ServeSettings,
    store: Option<&Store>,
    no_auth: bool,
) -> Vec<ReplicaNote> {
    match store.map(Store::engine) {
        Some(Engine::Postgres) => missing(serve, no_auth),
        Some(Engine::Sqlite) | None => Vec::new(),
    }
}

fn missing(serve: &ServeSettings, no_auth: bool) -> Vec<ReplicaNote> {
    let token = ReplicaNote {
        detail: "each machine generates a token of its own; clients of several replicas need one token",
        hint: "set [serve] token = \"${TOOLYARD_TOKEN}\" on every replica",
    };
    let hosts = ReplicaNote {
        detail: "requests that name another host than this machine's addresses are refused",
        hint: "behind a proxy, set [serve] allowed_hosts to the host names that it passes on",
    };
    let drain = ReplicaNote {
        detail: "[serve] drain is shorter than the 10 s for which nginx considers a restarted replica failed",
        hint: "set it to 12s or more, unless your load balancer probes /readyz",
    };
    let needed = [
        (token, serve.token.is_none() && !no_auth),
        (hosts, serve.allowed_hosts.is_empty()),
        (drain, serve.drain.is_some_and(|drain| drain.0 < MIN_REPLICA_DRAIN)),
    ];
    needed.into_iter().filter(|(_, is_needed)| *is_needed).map(|(note, _)| note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_missing_where_replicas_share_token_and_hosts() {
        let shared = ServeSettings {
            token: Some("${TOKEN}".to_owned()),
            allowed_hosts: vec!["tools.example.com".to_owned()],
            ..ServeSettings::default()
        };
        assert_eq!(missing(&shared, false), []);
        assert_eq!(missing(&ServeSettings::default(), false).len(), 2);
        assert_eq!(missing(&ServeSettings::default(), true).len(), 1);
        let drain = |seconds| ServeSettings {
            drain: Some(toolyard::settings::DrainPeriod(Duration::from_secs(seconds))),
            ..shared.clone()
        };
        assert_eq!((missing(&drain(3), false).len(), missing(&drain(12), false).len()), (1, 0));
    }
}
