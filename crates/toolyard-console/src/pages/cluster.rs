//! The gateways and workers of the cluster.

use std::collections::HashMap;

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use crate::{
    api::{ClusterMemberState, ClusterReport, ClusterWorker, ClusterWorkerGroup, WorkerGroupState},
    format::shorten,
    page::{Page, Section, render, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::{ClusterText, ServersText, fill},
};

const MAX_ROWS: usize = 35;
const MAX_NAME_CHARS: usize = 64;
/// Names of tools that await approval which are shown.
const MAX_HELD_NAMES: usize = 3;

#[derive(Template)]
#[template(path = "cluster.html")]
struct ClusterPage {
    page: Page,
    text: &'static ClusterText,
    servers_text: &'static ServersText,
    /// None if the gateway is in no cluster.
    content: Option<ClusterContent>,
}

/// The cluster, as much of it as fits on a page.
struct ClusterContent {
    cluster: ClusterReport,
    /// Each process with the name of its group.
    workers: Vec<(String, ClusterWorker)>,
    /// The names of the gateways by their processes, and how many sessions they own.
    owners: HashMap<String, (String, u64)>,
    // What is not shown.
    more_gateways: Option<String>,
    more_groups: Option<String>,
    more_workers: Option<String>,
    more_sessions: Option<String>,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/cluster", get(show))
}

async fn show(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = ClusterText::of(visitor.language());
    let cluster = match state.api.get_if_offered::<ClusterReport>(visitor.role(), "/cluster").await {
        Ok(cluster) => cluster,
        Err(failure) => return render_failure(&visitor, Section::Servers, &failure),
    };
    let page = Page::new(&visitor, Section::Servers, text.title);
    let servers_text = ServersText::of(visitor.language());
    let content = cluster.map(|cluster| ClusterContent::of(cluster, text));
    render(&ClusterPage { page, text, servers_text, content })
}

/// What other pages say of a cluster in one line.
pub(super) fn summary(cluster: &ClusterReport, text: &ClusterText) -> String {
    let gateways =
        cluster.gateways.iter().filter(|gateway| gateway.state == ClusterMemberState::Seen).count();
    let workers = cluster.workers.iter().flat_map(|group| &group.processes);
    let workers = workers.filter(|worker| worker.state == ClusterMemberState::Seen).count();
    format!("{} · {}", fill(text.summary_gateways, gateways), fill(text.summary_workers, workers))
}

impl ClusterContent {
    fn of(mut cluster: ClusterReport, text: &ClusterText) -> Self {
        let mut workers: Vec<(String, ClusterWorker)> = cluster
            .workers
            .iter()
            .flat_map(|group| group.processes.iter().map(|worker| (group.name.clone(), worker.clone())))
            .collect();
        let mut owners: HashMap<String, (String, u64)> = HashMap::new();
        for gateway in &cluster.gateways {
            owners.insert(gateway.process.clone(), (display_name(&gateway.name, &gateway.process), 0));
        }
        for owned in cluster.sessions.iter().flatten() {
            let process = &owned.gateway;
            let owner = owners.entry(process.clone()).or_insert_with(|| (display_name(&None, process), 0));
            owner.1 = owner.1.saturating_add(owned.sessions);
        }
        Self {
            more_gateways: limit(&mut cluster.gateways, text),
            more_groups: limit(&mut cluster.workers, text),
            more_workers: limit(&mut workers, text),
            more_sessions: cluster.sessions.as_mut().and_then(|sessions| limit(sessions, text)),
            cluster,
            workers,
            owners,
        }
    }

    fn owner_name(&self, process: &str) -> &str {
        self.owners.get(process).map_or("", |(name, _)| name)
    }

    /// None if the store does not say who owns sessions.
    fn sessions_of(&self, process: &str) -> Option<u64> {
        self.cluster.sessions.as_ref()?;
        self.owners.get(process).map(|(_, sessions)| *sessions)
    }
}

fn running_processes(group: &ClusterWorkerGroup) -> usize {
    group.processes.iter().filter(|worker| worker.state == ClusterMemberState::Seen).count()
}

/// The names of some tools that await approval.
fn held_names(group: &ClusterWorkerGroup) -> String {
    let held = group.awaiting_approval.iter().take(MAX_HELD_NAMES);
    let names: Vec<_> = held.map(|held| shorten(&held.tool, MAX_NAME_CHARS)).collect();
    names.join(", ")
}

fn running_calls(worker: &ClusterWorker) -> String {
    match (worker.running_calls, worker.concurrency) {
        (Some(running), Some(limit)) => format!("{running} / {limit}"),
        (None, Some(limit)) => format!("– / {limit}"),
        (_, None) => "–".to_owned(),
    }
}

/// Keeps the first rows, and returns what says how many there are more.
fn limit<T>(rows: &mut Vec<T>, text: &ClusterText) -> Option<String> {
    let more = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    (more > 0).then(|| fill(text.more, more))
}

/// The class that colours the state of a process.
fn member_class(state: &ClusterMemberState) -> &'static str {
    match state {
        ClusterMemberState::Seen => "state-ready",
        ClusterMemberState::Leaving => "state-degraded",
        ClusterMemberState::Lost => "state-down",
    }
}

/// The class that colours the state of a group.
fn group_class(state: &WorkerGroupState) -> &'static str {
    match state {
        WorkerGroupState::Available => "state-ready",
        WorkerGroupState::NoProcess => "state-degraded",
    }
}

/// The name of a process, or else its number.
fn display_name(name: &Option<String>, process: &str) -> String {
    let name = name.as_deref().filter(|name| !name.is_empty());
    shorten(name.unwrap_or(process), MAX_NAME_CHARS).into_owned()
}
