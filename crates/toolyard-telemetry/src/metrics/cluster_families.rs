//! The metrics of a cluster as plain data.

use super::{
    families::{Family, Value},
    gauges::ClusterGauges,
};

pub(super) fn cluster_families(cluster: &ClusterGauges) -> [Family; 8] {
    let gauge = |name, help, value: u64| Family::gauge(name, help).with(&[], Value::Integer(value));
    let counter = |name, help, value: u64| Family::counter(name, help).with(&[], Value::Integer(value));
    [
        gauge(
            "toolyard_cluster_nats_connected",
            "1 if the gateway is connected to NATS",
            cluster.is_connected.into(),
        ),
        gauge(
            "toolyard_cluster_gateways",
            "Gateways that answered in the last 3.5 seconds, this one included",
            cluster.gateways,
        ),
        gauge(
            "toolyard_cluster_workers",
            "Worker processes that announced themselves in the last 30 seconds",
            cluster.workers,
        ),
        gauge(
            "toolyard_cluster_sessions_owned",
            "Sessions with stateful servers that this gateway owns",
            cluster.owned_sessions,
        ),
        counter(
            "toolyard_cluster_session_takeovers",
            "Sessions that this gateway began to own and that had an owner before",
            cluster.session_takeovers,
        ),
        counter(
            "toolyard_cluster_sessions_lost",
            "Sessions that this gateway had and that another one took",
            cluster.lost_sessions,
        ),
        by_outcome(
            "toolyard_cluster_forwarded_calls",
            "Calls that other gateways executed for this one",
            &cluster.forwarded_calls,
        ),
        by_outcome(
            "toolyard_cluster_worker_calls",
            "Calls that workers executed for this gateway",
            &cluster.worker_calls,
        ),
    ]
}

fn by_outcome(name: &'static str, help: &'static str, counts: &[(&'static str, u64)]) -> Family {
    let mut family = Family::counter(name, help);
    for (outcome, count) in counts {
        family.insert(&[("outcome", outcome)], Value::Integer(*count));
    }
    family
}
