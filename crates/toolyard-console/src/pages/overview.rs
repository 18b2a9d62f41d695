//! The overview: the state of the gateway at a glance.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use crate::{
    api::{ApiFailure, CallStatistics, OverviewView, RunList, ServerList, StatisticsList},
    format::{count, duration, percent},
    page::{Notice, Page, PartFailures, Section, fragment_response, page_response},
    pages::{
        runs::RunRow,
        servers::{ServerRow, needs_attention, sort_by_urgency},
        tools::tool_path,
    },
    request_context::Visitor,
    router::ConsoleState,
    svg::charts::{Series, TimeSeries, draw_sparkline, draw_time_series},
    text::{OverviewText, RunsText, ServersText, fill},
};

const MAX_TOP_TOOLS: usize = 8;
const MAX_RECENT_RUNS: usize = 6;
/// Servers that need attention.
const MAX_SERVERS: usize = 40;
const MAX_HEALTHY_SERVERS: usize = 8;
/// Minutes that a row of the table beside the chart sums up.
const TABLE_MINUTES: usize = 10;
const MAX_TABLE_ROWS: usize = 12;

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
    calls_spark: String,
    failures: String,
    failures_spark: String,
    latency: String,
    latency_note: String,
    tokens: String,
    tokens_note: String,
    cost: Option<String>,
    runs: String,
    runs_note: String,
    is_waiting: bool,
    /// None without calls in the last hour.
    chart: Option<String>,
    chart_rows: Vec<ChartRow>,
}

struct TopTool {
    name: String,
    source: String,
    path: String,
    calls: String,
    success: String,
    median: String,
}

/// Calls and failures of ten minutes, for readers who do not see the chart.
struct ChartRow {
    period: String,
    calls: String,
    failures: String,
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
    let overview = failures.keep(state.api.get_if_offered::<OverviewView>(role, "/overview").await);
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
    fn of(overview: &OverviewView, text: &OverviewText) -> Self {
        let latest = overview.calls_per_minute.last().copied().unwrap_or_default();
        let hourly_calls: f64 = overview.calls_per_minute.iter().sum();
        let hour_title = |title: &str, count: f64| fill(title, format_args!("{count:.0}"));
        let hourly_failures: f64 = overview.failures_per_minute.iter().sum();
        let rounded = |milliseconds: Option<f64>| match milliseconds {
            Some(milliseconds) => format_milliseconds(milliseconds),
            None => "–".to_owned(),
        };
        let waiting = overview.runs.waiting_for_approval.unwrap_or_default();
        let tokens_note = fill(text.tokens_note, count(overview.tokens.input));
        Self {
            uptime: fill(text.uptime, duration(overview.uptime_ms)),
            calls: format!("{latest:.0}"),
            calls_note: fill(text.calls_note, count(overview.calls_total)),
            calls_spark: draw_sparkline(
                &overview.calls_per_minute,
                "calls",
                &hour_title(text.calls_hour, hourly_calls),
            ),
            failures: format!("{hourly_failures:.0}"),
            failures_spark: draw_sparkline(
                &overview.failures_per_minute,
                "failures",
                &hour_title(text.failures_hour, hourly_failures),
            ),
            latency: rounded(overview.p50_ms),
            latency_note: fill(text.latency_note, rounded(overview.p95_ms)),
            tokens: count(overview.tokens.input.saturating_add(overview.tokens.output)),
            tokens_note: fill(&tokens_note, count(overview.tokens.output)),
            cost: overview.cost.map(|cost| format!("{cost:.2}")),
            runs: count(overview.runs.active),
            runs_note: if waiting == 0 { text.no_waiting.to_owned() } else { fill(text.waiting, waiting) },
            is_waiting: waiting > 0,
            chart: (hourly_calls > 0.0).then(|| chart(overview, text)),
            chart_rows: chart_rows(overview, text),
        }
    }
}

/// The numbers of the chart in sums of ten minutes, oldest first.
fn chart_rows(overview: &OverviewView, text: &OverviewText) -> Vec<ChartRow> {
    let (calls, failures) = (&overview.calls_per_minute, &overview.failures_per_minute);
    let chunk_count = calls.len().div_ceil(TABLE_MINUTES);
    let sum = |values: &[f64], chunk: usize| {
        let sum: f64 = values.iter().skip(chunk * TABLE_MINUTES).take(TABLE_MINUTES).sum();
        format!("{sum:.0}")
    };
    let row = |chunk: usize| {
        let start = calls.len().saturating_sub(chunk * TABLE_MINUTES);
        let period = fill(text.minutes_ago, start);
        ChartRow {
            period: fill(&period, start.saturating_sub(TABLE_MINUTES)),
            calls: sum(calls, chunk),
            failures: sum(failures, chunk),
        }
    };
    (0..chunk_count.min(MAX_TABLE_ROWS)).map(row).collect()
}

fn chart(overview: &OverviewView, text: &OverviewText) -> String {
    let (calls, failures) = (&overview.calls_per_minute, &overview.failures_per_minute);
    let at = |values: &[f64], index: usize| values.get(index).copied().unwrap_or_default();
    let point_title = |index: usize| {
        let calls_text = fill(text.chart_point, format_args!("{:.0}", at(calls, index)));
        if at(calls, index) > 0.0 {
            fill(&calls_text, format_args!("{:.0}", at(failures, index)))
        } else {
            String::new()
        }
    };
    draw_time_series(&TimeSeries {
        title: text.chart,
        series: &[
            Series { name: text.legend_calls, class: "calls", values: calls },
            Series { name: text.legend_failures, class: "failures", values: failures },
        ],
        time_labels: &[text.hour_ago, text.half_hour_ago, text.now],
        point_title: &point_title,
    })
}

/// A latency, with a digit after the point if it is short.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
fn format_milliseconds(milliseconds: f64) -> String {
    if milliseconds < 10.0 { format!("{milliseconds:.1} ms") } else { duration(milliseconds.round() as u64) }
}
