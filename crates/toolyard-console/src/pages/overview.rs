//! The overview: the state of the gateway at a glance.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use crate::{
    api::{ApiFailure, CallStatistics, Overview, RunList, ServerList, StatisticsList},
    format::{count, duration, percent},
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
    activity: Option<Activity>,
    servers: Vec<ServerRow>,
    /// Says how many healthy servers are not in the list.
    more_servers: Option<String>,
    top_tools: Vec<TopTool>,
    /// None if the gateway has no agents.
    runs: Option<Vec<RunRow>>,
    /// Says that parts could not be read.
    notice: Option<Notice>,
}

/// Numbers of the last hour and since the start.
struct Activity {
    uptime: String,
    calls: String,
    calls_note: String,
    calls_line: Line,
    failures: String,
    failures_line: Line,
    latency: String,
    latency_note: String,
    tokens: String,
    tokens_note: String,
    cost: Option<String>,
    runs: String,
    runs_note: String,
    is_waiting: bool,
}

/// Numbers of the last hour as a line of 120 by 32 pixels.
struct Line {
    /// Says the sum of the numbers.
    title: String,
    points: String,
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
        activity: overview.map(|overview| Activity::of(&overview, text)),
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

impl Activity {
    fn of(overview: &Overview, text: &OverviewText) -> Self {
        let latest = overview.calls_per_minute.last().copied().unwrap_or_default();
        let hourly_failures: u64 = overview.failures_per_minute.iter().sum();
        let rounded = |milliseconds: Option<f64>| match milliseconds {
            Some(milliseconds) => format_milliseconds(milliseconds),
            None => "–".to_owned(),
        };
        let waiting = overview.runs.waiting_for_approval.unwrap_or_default();
        let tokens_note = fill(text.tokens_note, count(overview.tokens.input));
        Self {
            uptime: fill(text.uptime, duration(overview.uptime_ms)),
            calls: latest.to_string(),
            calls_note: fill(text.calls_note, count(overview.calls_total)),
            calls_line: Line::of(&overview.calls_per_minute, text.calls_hour),
            failures: count(hourly_failures),
            failures_line: Line::of(&overview.failures_per_minute, text.failures_hour),
            latency: rounded(overview.p50_ms),
            latency_note: fill(text.latency_note, rounded(overview.p95_ms)),
            tokens: count(overview.tokens.input.saturating_add(overview.tokens.output)),
            tokens_note: fill(&tokens_note, count(overview.tokens.output)),
            cost: overview.cost.map(|cost| format!("{cost:.2}")),
            runs: count(overview.runs.active),
            runs_note: if waiting == 0 { text.no_waiting.to_owned() } else { fill(text.waiting, waiting) },
            is_waiting: waiting > 0,
        }
    }
}

impl Line {
    fn of(values: &[u64], title: &str) -> Self {
        let highest = values.iter().copied().max().unwrap_or_default().max(1) as f64;
        let step = 118.0 / values.len().saturating_sub(1).max(1) as f64;
        let point = |(index, value): (usize, &u64)| {
            format!("{:.1},{:.1}", 1.0 + step * index as f64, 30.0 - 28.0 * *value as f64 / highest)
        };
        Self {
            title: fill(title, values.iter().copied().fold(0, u64::saturating_add)),
            points: values.iter().enumerate().map(point).collect::<Vec<_>>().join(" "),
        }
    }
}

/// A latency, with a digit after the point if it is short.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
fn format_milliseconds(milliseconds: f64) -> String {
    if milliseconds < 10.0 { format!("{milliseconds:.1} ms") } else { duration(milliseconds.round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_drawn_of_any_numbers() {
        let points = |values: &[u64]| Line::of(values, "{}").points;
        assert_eq!(points(&[0, 4]), "1.0,30.0 119.0,2.0");
        assert_eq!(points(&[0, 0, 0]), "1.0,30.0 60.0,30.0 119.0,30.0");
        assert_eq!(points(&[]), "");
        assert_eq!(Line::of(&[1, 2], "{} calls").title, "3 calls");
    }
}
