//! The overview: the state of the gateway at a glance.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use crate::{
    api::{ApiFailure, CallStatistics, Overview, RunList, ServerList, StatisticsList},
    format::{duration, percent},
    page::{Notice, Page, PartFailures, Section, fragment_response, page_response},
    pages::{
        runs::RunRow,
        servers::{ServerRow, needs_attention, sort_by_urgency},
        tools::tool_path,
    },
    request_context::Visitor,
    router::ConsoleState,
    text::{OverviewText, RunsText, ServersText, fill},
};

const MAX_TOP_TOOLS: usize = 8;
const MAX_RECENT_RUNS: usize = 6;
/// Servers that need attention.
const MAX_SERVERS: usize = 40;
const MAX_HEALTHY_SERVERS: usize = 8;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    page: Page,
    text: &'static OverviewText,
    content: OverviewContent,
}

/// The part of the page that a script refreshes.
#[derive(Template)]
#[template(path = "overview_fragment.html")]
struct OverviewFragment {
    page: Page,
    text: &'static OverviewText,
    content: OverviewContent,
}

struct OverviewContent {
    pending_approvals: Option<u64>,
    /// None if the gateway does not count.
    overview: Option<Overview>,
    /// Runs that wait for an approval.
    waiting: u64,
    servers: Vec<ServerRow>,
    /// Says how many healthy servers are not in the list.
    more_servers: Option<String>,
    top_tools: Vec<TopTool>,
    /// None if the gateway has no agents.
    runs: Option<Vec<RunRow>>,
    /// Says that parts could not be read.
    notice: Option<Notice>,
}

struct TopTool {
    name: String,
    source: String,
    path: String,
    calls: String,
    success: String,
    median: String,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/", get(show)).route("/console/overview/fragment", get(show_fragment))
}

async fn show(State(state): State<ConsoleState>, mut visitor: Visitor) -> Response {
    let text = OverviewText::of(visitor.language());
    let loaded = load(&state, &visitor).await.map(|content| {
        visitor.pending_approvals = content.pending_approvals;
        OverviewPage { page: Page::new(&visitor, Section::Overview, text.title), text, content }
    });
    page_response(&visitor, Section::Overview, loaded)
}

async fn show_fragment(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = OverviewText::of(visitor.language());
    let loaded = load(&state, &visitor).await.map(|content| OverviewFragment {
        page: Page::new(&visitor, Section::Overview, text.title),
        text,
        content,
    });
    fragment_response(loaded)
}

async fn load(state: &ConsoleState, visitor: &Visitor) -> Result<OverviewContent, ApiFailure> {
    let (role, language) = (visitor.role(), visitor.language());
    let text = OverviewText::of(language);
    let servers: ServerList = state.api.get(role, "/servers").await?;
    let mut failures = PartFailures::default();
    let overview = failures.keep(state.api.get_if_offered::<Overview>(role, "/overview").await);
    let statistics: StatisticsList = failures.keep(state.api.get(role, "/statistics").await);
    let runs_path = format!("/runs?limit={MAX_RECENT_RUNS}");
    let runs = failures.keep(state.api.get_if_offered::<RunList>(role, &runs_path).await);
    let (servers_text, runs_text) = (ServersText::of(language), RunsText::of(language));
    let (urgent, healthy): (Vec<_>, Vec<_>) =
        sort_by_urgency(servers.servers).into_iter().partition(needs_attention);
    let hidden = healthy.len().saturating_sub(MAX_HEALTHY_SERVERS);
    let servers = urgent.into_iter().take(MAX_SERVERS).chain(healthy.into_iter().take(MAX_HEALTHY_SERVERS));
    Ok(OverviewContent {
        pending_approvals: overview.as_ref().and_then(|overview| overview.runs.pending_approvals),
        waiting: overview
            .as_ref()
            .and_then(|overview| overview.runs.waiting_for_approval)
            .unwrap_or_default(),
        overview,
        servers: servers.map(|server| ServerRow::of(server, servers_text)).collect(),
        more_servers: (hidden > 0).then(|| fill(text.more_servers, hidden)),
        top_tools: top_tools(statistics.statistics, text),
        runs: runs.map(|runs| runs.runs.into_iter().map(|run| RunRow::of(run, runs_text)).collect()),
        notice: failures.notice(language),
    })
}

fn top_tools(mut statistics: Vec<CallStatistics>, text: &OverviewText) -> Vec<TopTool> {
    statistics.retain(|entry| entry.weighted_calls >= 0.5);
    statistics.sort_by(|one, other| other.weighted_calls.total_cmp(&one.weighted_calls));
    let row = |entry: CallStatistics| TopTool {
        path: tool_path(&entry.tool, &entry.source),
        calls: fill(text.tool_calls, format_args!("{:.0}", entry.weighted_calls)),
        success: percent(entry.success_rate),
        median: duration(entry.p50_ms),
        name: entry.tool,
        source: entry.source,
    };
    statistics.into_iter().take(MAX_TOP_TOOLS).map(row).collect()
}

/// The sum of the numbers of an hour.
fn sum(values: &[u64]) -> u64 {
    values.iter().copied().fold(0, u64::saturating_add)
}

/// Numbers as the points of a line of 120 by 32 pixels.
fn points(values: &[u64]) -> String {
    let highest = values.iter().copied().max().unwrap_or_default().max(1) as f64;
    let step = 118.0 / values.len().saturating_sub(1).max(1) as f64;
    let point = |(index, value): (usize, &u64)| {
        format!("{:.1},{:.1}", 1.0 + step * index as f64, 30.0 - 28.0 * *value as f64 / highest)
    };
    values.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
}

/// A latency, with a digit after the point if it is short.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
fn latency(milliseconds: &Option<f64>) -> String {
    match *milliseconds {
        Some(milliseconds) if milliseconds < 10.0 => format!("{milliseconds:.1} ms"),
        Some(milliseconds) => duration(milliseconds.round() as u64),
        None => "–".to_owned(),
    }
}

fn cost(cost: &f64) -> String {
    format!("{cost:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_drawn_of_any_numbers() {
        assert_eq!(points(&[0, 4]), "1.0,30.0 119.0,2.0");
        assert_eq!(points(&[0, 0, 0]), "1.0,30.0 60.0,30.0 119.0,30.0");
        assert_eq!(points(&[]), "");
    }
}
