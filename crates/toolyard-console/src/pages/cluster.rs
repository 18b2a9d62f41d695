//! The gateways and workers of the cluster.

use std::collections::HashMap;

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use crate::{
    api::{ClusterView, GatewayView, SessionsView, WorkerGroupView, WorkerView},
    format::{rfc3339, shorten, time, url_encode},
    page::{Page, Section, render, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::{ClusterText, ServersText, fill},
};

const MAX_ROWS: usize = 35;
const MAX_NAME_CHARS: usize = 64;
const MAX_PROBLEM_CHARS: usize = 100;
/// Names of tools that await approval which are shown.
const MAX_HELD_NAMES: usize = 3;

#[derive(Template)]
#[template(path = "cluster.html")]
struct ClusterPage {
    page: Page,
    text: &'static ClusterText,
    servers_text: &'static ServersText,
    /// None if the gateway is in no cluster.
    cluster: Option<ClusterContent>,
}

struct ClusterContent {
    is_connected: bool,
    gateways: Vec<GatewayRow>,
    more_gateways: Option<String>,
    groups: Vec<GroupRow>,
    more_groups: Option<String>,
    workers: Vec<WorkerRow>,
    more_workers: Option<String>,
    /// None if the store does not answer.
    sessions: Option<Vec<SessionRow>>,
    more_sessions: Option<String>,
}

struct GatewayRow {
    name: String,
    process: String,
    is_this: bool,
    state: StateLabel,
    version: Option<String>,
    sessions: Option<u64>,
    seen: Option<SeenAt>,
}

struct GroupRow {
    name: String,
    tools_path: String,
    state: StateLabel,
    is_trusted: bool,
    tools: u64,
    processes: usize,
    /// The number of tools that await approval, and some of their names.
    held: Option<(String, String)>,
    problem: Option<String>,
}

struct WorkerRow {
    group: String,
    name: String,
    process: String,
    state: StateLabel,
    tools: Option<u64>,
    calls: Option<String>,
    seen: SeenAt,
}

struct SessionRow {
    server: String,
    server_path: String,
    gateway: String,
    sessions: u64,
}

/// A state and the class that colours it.
struct StateLabel {
    label: String,
    class: &'static str,
}

struct SeenAt {
    datetime: String,
    shown: String,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/cluster", get(show))
}

async fn show(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = ClusterText::of(visitor.language());
    let cluster = match state.api.get_if_offered::<ClusterView>(visitor.role(), "/cluster").await {
        Ok(cluster) => cluster,
        Err(failure) => return render_failure(&visitor, Section::Servers, &failure),
    };
    let page = Page::new(&visitor, Section::Servers, text.title);
    let servers_text = ServersText::of(visitor.language());
    let cluster = cluster.map(|cluster| ClusterContent::of(cluster, text));
    render(&ClusterPage { page, text, servers_text, cluster })
}

/// What other pages say of a cluster in one line.
pub(super) fn summary(cluster: &ClusterView, text: &ClusterText) -> String {
    let gateways = cluster.gateways.iter().filter(|gateway| gateway.state == "seen").count();
    let workers = cluster.workers.iter().flat_map(|group| &group.processes);
    let workers = workers.filter(|worker| worker.state == "seen").count();
    format!("{} · {}", fill(text.summary_gateways, gateways), fill(text.summary_workers, workers))
}

impl ClusterContent {
    fn of(cluster: ClusterView, text: &ClusterText) -> Self {
        let names: HashMap<String, String> = cluster
            .gateways
            .iter()
            .map(|gateway| (gateway.process.clone(), display_name(gateway.name.as_deref(), &gateway.process)))
            .collect();
        let sessions = cluster.sessions;
        let (gateways, more_gateways) =
            limited(cluster.gateways, text, |gateway| GatewayRow::of(gateway, sessions.as_deref(), text));
        let workers: Vec<(String, WorkerView)> = cluster
            .workers
            .iter()
            .flat_map(|group| group.processes.iter().map(|worker| (group.name.clone(), worker.clone())))
            .collect();
        let (workers, more_workers) =
            limited(workers, text, |(group, worker)| WorkerRow::of(&group, &worker, text));
        let (groups, more_groups) = limited(cluster.workers, text, |group| GroupRow::of(&group, text));
        let (sessions, more_sessions) = match sessions {
            Some(sessions) => {
                let (rows, more) = limited(sessions, text, |owned| SessionRow::of(&owned, &names));
                (Some(rows), more)
            }
            None => (None, None),
        };
        Self {
            is_connected: cluster.nats_connected,
            gateways,
            more_gateways,
            groups,
            more_groups,
            workers,
            more_workers,
            sessions,
            more_sessions,
        }
    }
}

/// The first rows, and what says how many there are more.
fn limited<T, R>(items: Vec<T>, text: &ClusterText, row: impl FnMut(T) -> R) -> (Vec<R>, Option<String>) {
    let more = items.len().saturating_sub(MAX_ROWS);
    let rows = items.into_iter().take(MAX_ROWS).map(row).collect();
    (rows, (more > 0).then(|| fill(text.more, more)))
}

impl GatewayRow {
    fn of(gateway: GatewayView, sessions: Option<&[SessionsView]>, text: &ClusterText) -> Self {
        let owned = |sessions: &[SessionsView]| {
            let own = sessions.iter().filter(|owned| owned.gateway == gateway.process);
            own.map(|owned| owned.sessions).fold(0, u64::saturating_add)
        };
        Self {
            name: display_name(gateway.name.as_deref(), &gateway.process),
            is_this: gateway.is_this,
            state: StateLabel::of(&gateway.state, text),
            sessions: sessions.map(owned),
            version: gateway.version.map(|version| shorten(&version, MAX_NAME_CHARS).into_owned()),
            seen: gateway.last_seen_at.map(SeenAt::of),
            process: shorten(&gateway.process, MAX_NAME_CHARS).into_owned(),
        }
    }
}

impl GroupRow {
    fn of(group: &WorkerGroupView, text: &ClusterText) -> Self {
        let held = &group.awaiting_approval;
        let names: Vec<_> =
            held.iter().take(MAX_HELD_NAMES).map(|held| shorten(&held.tool, MAX_NAME_CHARS)).collect();
        Self {
            name: shorten(&group.name, MAX_NAME_CHARS).into_owned(),
            tools_path: format!("/console/tools?source={}", url_encode(&group.source)),
            state: StateLabel::of(&group.state, text),
            is_trusted: group.trusted,
            tools: group.tools,
            processes: group.processes.iter().filter(|worker| worker.state == "seen").count(),
            held: (!held.is_empty()).then(|| (fill(text.awaiting, held.len()), names.join(", "))),
            problem: group.problem.as_ref().map(|problem| shorten(problem, MAX_PROBLEM_CHARS).into_owned()),
        }
    }
}

impl WorkerRow {
    fn of(group: &str, worker: &WorkerView, text: &ClusterText) -> Self {
        Self {
            group: shorten(group, MAX_NAME_CHARS).into_owned(),
            name: display_name(worker.name.as_deref(), &worker.process),
            state: StateLabel::of(&worker.state, text),
            tools: worker.tools,
            calls: match (worker.running_calls, worker.concurrency) {
                (Some(running), Some(limit)) => Some(format!("{running} / {limit}")),
                (None, Some(limit)) => Some(format!("– / {limit}")),
                (_, None) => None,
            },
            seen: SeenAt::of(worker.last_seen_at),
            process: shorten(&worker.process, MAX_NAME_CHARS).into_owned(),
        }
    }
}

impl SessionRow {
    fn of(owned: &SessionsView, names: &HashMap<String, String>) -> Self {
        Self {
            server_path: format!("/console/servers/{}", url_encode(&owned.server)),
            server: shorten(&owned.server, MAX_NAME_CHARS).into_owned(),
            gateway: names
                .get(&owned.gateway)
                .cloned()
                .unwrap_or_else(|| shorten(&owned.gateway, MAX_NAME_CHARS).into_owned()),
            sessions: owned.sessions,
        }
    }
}

impl StateLabel {
    fn of(state: &str, text: &ClusterText) -> Self {
        let class = match state {
            "seen" | "available" => "state-ready",
            "leaving" | "no_process" => "state-degraded",
            "lost" => "state-down",
            _ => "state-idle",
        };
        Self { label: shorten(&text.state(state), MAX_NAME_CHARS).into_owned(), class }
    }
}

impl SeenAt {
    fn of(milliseconds: i64) -> Self {
        Self { datetime: rfc3339(milliseconds), shown: time(milliseconds) }
    }
}

/// The name of a process, or else its number.
fn display_name(name: Option<&str>, process: &str) -> String {
    shorten(name.filter(|name| !name.is_empty()).unwrap_or(process), MAX_NAME_CHARS).into_owned()
}
