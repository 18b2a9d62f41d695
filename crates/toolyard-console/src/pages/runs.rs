//! The list of runs, with filters.

use askama::Template;
use axum::{
    Router,
    extract::{Query, State},
    response::Response,
    routing::get,
};
use serde::Deserialize;

use super::run::run_state;
use crate::{
    api::{AgentList, RunList, RunSummary},
    format::{shorten, url_encode},
    page::{Page, Section, render, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::{RunsText, fill},
};

/// Runs on one page.
const RUNS_PER_PAGE: usize = 50;
/// The states that can be chosen.
const STATES: [&str; 8] =
    ["running", "suspended", "answered", "partial", "planned", "failed", "cancelled", "limit_reached"];

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/runs", get(show))
}

/// The filter and the page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct RunsQuery {
    state: String,
    agent: String,
    after: String,
}

impl RunsQuery {
    /// The query without empty parameters.
    fn with(state: &str, agent: &str, after: &str) -> String {
        let parameters = [("state", state), ("agent", agent), ("after", after)];
        let mut query = String::new();
        for (name, value) in parameters.into_iter().filter(|(_, value)| !value.is_empty()) {
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(name);
            query.push('=');
            query.push_str(&url_encode(value));
        }
        query
    }
}

struct StateFilter {
    label: &'static str,
    query: String,
    is_current: bool,
}

struct RunRow {
    path: String,
    question: String,
    state_class: &'static str,
    state_label: &'static str,
    agent: String,
    created_at: i64,
    pending: Option<String>,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    page: Page,
    text: &'static RunsText,
    /// `None` if the gateway has no agents.
    runs: Option<Vec<RunRow>>,
    is_filtered: bool,
    states: Vec<StateFilter>,
    agents: Vec<String>,
    query: RunsQuery,
    next: Option<String>,
}

async fn show(
    visitor: Visitor,
    State(console): State<ConsoleState>,
    Query(mut query): Query<RunsQuery>,
) -> Response {
    let text = RunsText::of(visitor.language());
    if !STATES.contains(&query.state.as_str()) {
        query.state.clear();
    }
    let parameters = RunsQuery::with(&query.state, &query.agent, &query.after);
    let separator = if parameters.is_empty() { '?' } else { '&' };
    let path = format!("/runs{parameters}{separator}limit={RUNS_PER_PAGE}");
    let list = match console.api.get_if_offered::<RunList>(visitor.role(), &path).await {
        Ok(list) => list,
        Err(failure) => return render_failure(&visitor, Section::Runs, &failure),
    };
    let agents: Option<AgentList> = console.api.get(visitor.role(), "/agents").await.ok();
    let filter = |state: &'static str, label| StateFilter {
        label,
        query: format!("/console/runs{}", RunsQuery::with(state, &query.agent, "")),
        is_current: query.state == state,
    };
    let mut states = vec![filter("", text.all_states)];
    states.extend(STATES.map(|state| filter(state, run_state(state, text).1)));
    let next = list.as_ref().and_then(|list| list.next.as_deref());
    let next = next.map(|next| format!("/console/runs{}", RunsQuery::with(&query.state, &query.agent, next)));
    render(&RunsPage {
        page: Page::new(&visitor, Section::Runs, text.title),
        text,
        is_filtered: !query.state.is_empty() || !query.agent.is_empty() || !query.after.is_empty(),
        runs: list.map(|list| list.runs.into_iter().map(|run| row_of(run, text)).collect()),
        states,
        agents: agents.unwrap_or_default().agents.into_iter().map(|agent| agent.name).collect(),
        query,
        next,
    })
}

fn row_of(run: RunSummary, text: &'static RunsText) -> RunRow {
    let (state_class, state_label) = run_state(&run.state, text);
    let question = run.question.unwrap_or_default();
    RunRow {
        path: format!("/console/runs/{}", url_encode(&run.run)),
        question: match shorten(question.trim(), 180).into_owned() {
            question if question.is_empty() => run.run,
            question => question,
        },
        state_class,
        state_label,
        agent: run.agent.unwrap_or_default(),
        created_at: run.created_at,
        pending: (run.pending_approvals > 0).then(|| fill(text.pending_approvals, run.pending_approvals)),
    }
}
