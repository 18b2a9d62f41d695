//! The overview: the state of the gateway at a glance.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use crate::{
    api::{CallStatistics, OverviewView, RunList, RunSummary, ServerList, StatisticsList},
    format::{count, duration, percent, rfc3339, shorten, time, url_encode},
    page::{Page, Section, render, render_failure},
    pages::{run::run_state, servers::ServerRow, tools::tool_path},
    request_context::Visitor,
    router::ConsoleState,
    svg::charts::{Series, TimeSeries, draw_sparkline, draw_time_series},
    text::{OverviewText, RunsText, ServersText, fill},
};

const MAX_TOP_TOOLS: usize = 8;
const MAX_RECENT_RUNS: usize = 6;
const MAX_SERVERS: usize = 40;
const MAX_QUESTION_CHARS: usize = 120;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    page: Page,
    text: &'static OverviewText,
    /// None if the gateway does not count.
    activity: Option<Activity>,
    servers: Vec<ServerRow>,
    top_tools: Vec<TopTool>,
    /// None if the gateway has no agents.
    runs: Option<Vec<RunRow>>,
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
    chart: String,
}

struct TopTool {
    name: String,
    source: String,
    path: String,
    calls: String,
    success: String,
    median: String,
}

struct RunRow {
    path: String,
    question: String,
    state: &'static str,
    state_class: &'static str,
    datetime: String,
    created: String,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/", get(show))
}

async fn show(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let (role, language) = (visitor.role(), visitor.language());
    let text = OverviewText::of(language);
    let servers: ServerList = match state.api.get(role, "/servers").await {
        Ok(servers) => servers,
        Err(failure) => return render_failure(&visitor, Section::Overview, &failure),
    };
    let overview = state.api.get_if_offered::<OverviewView>(role, "/overview").await.ok().flatten();
    let statistics: StatisticsList = state.api.get(role, "/statistics").await.unwrap_or_default();
    let runs_path = format!("/runs?limit={MAX_RECENT_RUNS}");
    let runs = state.api.get_if_offered::<RunList>(role, &runs_path).await.ok().flatten();
    let servers_text = ServersText::of(language);
    let servers = servers.servers.into_iter().take(MAX_SERVERS);
    render(&OverviewPage {
        page: Page::new(&visitor, Section::Overview, text.title),
        text,
        activity: overview.map(|overview| Activity::of(&overview, text)),
        servers: servers.map(|server| ServerRow::of(server, servers_text)).collect(),
        top_tools: top_tools(statistics.statistics, text),
        runs: runs.map(|runs| run_rows(runs, text, RunsText::of(language))),
    })
}

fn top_tools(mut statistics: Vec<CallStatistics>, text: &OverviewText) -> Vec<TopTool> {
    statistics.retain(|entry| entry.calls >= 0.5);
    statistics.sort_by(|one, other| other.calls.total_cmp(&one.calls));
    let row = |entry: CallStatistics| TopTool {
        path: tool_path(&entry.tool, &entry.source),
        calls: fill(text.tool_calls, format_args!("{:.0}", entry.calls)),
        success: percent(entry.success_rate),
        median: duration(entry.p50_ms),
        name: entry.tool,
        source: entry.source,
    };
    statistics.into_iter().take(MAX_TOP_TOOLS).map(row).collect()
}

fn run_rows(runs: RunList, text: &OverviewText, runs_text: &'static RunsText) -> Vec<RunRow> {
    let row = |run: RunSummary| {
        let (state_class, state) = run_state(&run.state, runs_text);
        RunRow {
            path: format!("/console/runs/{}", url_encode(&run.run)),
            question: shorten(run.question.as_deref().unwrap_or(text.no_question), MAX_QUESTION_CHARS)
                .into_owned(),
            state,
            state_class,
            datetime: rfc3339(run.created_at),
            created: time(run.created_at),
        }
    };
    runs.runs.into_iter().map(row).collect()
}

impl Activity {
    fn of(overview: &OverviewView, text: &OverviewText) -> Self {
        let latest = overview.calls_per_minute.last().copied().unwrap_or_default();
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
            calls_spark: draw_sparkline(&overview.calls_per_minute, "calls", text.calls),
            failures: format!("{hourly_failures:.0}"),
            failures_spark: draw_sparkline(&overview.failures_per_minute, "failures", text.failures),
            latency: rounded(overview.p50_ms),
            latency_note: fill(text.latency_note, rounded(overview.p95_ms)),
            tokens: count(overview.tokens.input.saturating_add(overview.tokens.output)),
            tokens_note: fill(&tokens_note, count(overview.tokens.output)),
            cost: overview.cost.map(|cost| format!("{cost:.2}")),
            runs: count(overview.runs.active),
            runs_note: if waiting == 0 { text.no_waiting.to_owned() } else { fill(text.waiting, waiting) },
            is_waiting: waiting > 0,
            chart: chart(overview, text),
        }
    }
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
