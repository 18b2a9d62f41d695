//! Agents for clients: an OpenAI-compatible API, runs over HTTP, and the tool `ask_agent`.
//!
//! ```text
//! config.rs          the agents, where their runs are stored, what clients may do
//! service.rs         AgentService: the agents that clients can use; shutdown of their runs
//! active_runs.rs     the runs that this process drives, one task each
//! call_effects.rs    whether a run called a tool that may change something
//! conversation_owner.rs  on whose behalf a client acts, and which conversations it may use
//! idempotency.rs     which request started which run, so that a repeated one starts no second run
//! run_notice.rs      what processes of a cluster tell each other about runs
//! run_observer.rs    forwards updates, approval requests and input requests of a run
//! run_peers.rs       runs at other processes of a cluster: notices, live updates
//! run_queue.rs       background runs that wait for a process with capacity
//! orphaned_runs.rs   takes over detached runs whose process ended, and queued runs, as long as the service runs
//! ask_agent.rs       the tool `ask_agent`; with_ask_agent.rs adds it to a tool service
//! run_text.rs        texts for clients about a run without an answer yet: progress lines, notices
//! unix_time.rs       Unix time as the run log stores it
//! api/               handlers of HTTP: /v1 (OpenAI-compatible) and /api/v1/runs
//! testing.rs         agents with a scripted model, for tests
//! every_end.rs       all ends of runs and steps, for tests
//! ```

mod active_runs;
mod api;
mod ask_agent;
mod call_effects;
mod config;
mod conversation_owner;
#[cfg(test)]
mod every_end;
mod idempotency;
#[cfg(test)]
mod orphan_crash_tests;
mod orphaned_runs;
mod run_notice;
mod run_observer;
mod run_peers;
#[cfg(test)]
mod run_peers_tests;
mod run_queue;
mod run_text;
mod service;
#[cfg(test)]
mod store_outage_tests;
#[cfg(test)]
mod testing;
mod unix_time;
mod with_ask_agent;
#[cfg(test)]
#[path = "../../../toolyard-agent/src/driver/tests/wrapped_log.rs"]
mod wrapped_log;

pub use config::{AgentLookupError, AgentProvider, AgentServiceConfig};
pub use orphaned_runs::{OrphanAdopter, OrphanedRuns};
pub use run_notice::RUN_PEER_SERVICE;
pub use run_peers::cluster_owner;
pub use service::AgentService;
pub(crate) use {
    api::{
        AgentApi, ApiError, DEFAULT_RETRY_AFTER, approval_routes, json_of, openai_routes, run_routes,
        schema_routes, unknown_step_routes,
    },
    ask_agent::AskAgent,
    idempotency::{IdempotencyError, RequestIdentity},
    with_ask_agent::WithAskAgent,
};
