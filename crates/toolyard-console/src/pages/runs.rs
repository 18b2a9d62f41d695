//! The list of runs, with filters.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use super::run::RunState;
use crate::{
    api::{AgentList, ListedRun, RunList},
    form_fields::FormFields,
    format::{shorten, url_encode, with_query},
    page::{Notice, Page, Pager, PartFailures, Section, render, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::{RunsText, fill},
};

/// Runs on one page.
const RUNS_PER_PAGE: usize = 50;
/// Characters of a question in a row.
const MAX_QUESTION_CHARS: usize = 180;

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/runs", get(show))
}

/// The filter and the page.
#[derive(Debug, Clone, Default)]
struct RunsQuery {
    state: String,
    agent: String,
    after: String,
}

impl RunsQuery {
    fn parse(query: &str) -> Self {
        let fields = FormFields::parse(query.as_bytes());
        let [state, agent, after] = ["state", "agent", "after"].map(|name| fields.get(name).to_owned());
        Self { state: RunState::of_api(&state).name().to_owned(), agent, after }
    }
}

struct StateFilter {
    label: &'static str,
    query: String,
    is_current: bool,
}

/// A run in a table.
pub(super) struct RunRow {
    pub(super) path: String,
    /// The question, or the id of the run without one.
    pub(super) question: String,
    pub(super) state_class: &'static str,
    pub(super) state_label: &'static str,
    agent: String,
    pub(super) created_at: i64,
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
    pager: Pager,
    notice: Option<Notice>,
}

async fn show(visitor: Visitor, State(console): State<ConsoleState>) -> Response {
    let text = RunsText::of(visitor.language());
    let query = RunsQuery::parse(&visitor.context.query);
    let path = with_query(
        &format!("/runs?limit={RUNS_PER_PAGE}"),
        [("state", query.state.as_str()), ("agent", &query.agent), ("after", &query.after)],
    );
    let list = match console.api.get_if_offered::<RunList>(visitor.role(), &path).await {
        Ok(list) => list,
        Err(failure) => return render_failure(&visitor, Section::Runs, &failure),
    };
    let mut failures = PartFailures::default();
    let agents: AgentList = failures.keep(console.api.get(visitor.role(), "/agents").await);
    let filter = |state: &'static str, label| StateFilter {
        label,
        query: with_query("/console/runs", [("state", state), ("agent", &query.agent)]),
        is_current: query.state == state,
    };
    let mut states = vec![filter("", text.all_states)];
    states.extend(RunState::ALL.map(|state| filter(state.name(), state.label(text))));
    let next = list.as_ref().and_then(|list| list.next.as_deref());
    let page = Page::new(&visitor, Section::Runs, text.title);
    render(&RunsPage {
        pager: Pager::new(&page, "after", next),
        page,
        text,
        notice: failures.notice(visitor.language()),
        is_filtered: !query.state.is_empty() || !query.agent.is_empty() || !query.after.is_empty(),
        runs: list.map(|list| list.runs.into_iter().map(|run| RunRow::of(run, text)).collect()),
        states,
        agents: agents.agents.into_iter().map(|agent| agent.name).collect(),
        query,
    })
}

impl RunRow {
    pub(super) fn of(run: ListedRun, text: &RunsText) -> Self {
        let state = RunState::of_api(&run.state);
        let question = run.question.unwrap_or_default();
        Self {
            path: format!("/console/runs/{}", url_encode(&run.run)),
            question: match shorten(question.trim(), MAX_QUESTION_CHARS).into_owned() {
                question if question.is_empty() => run.run,
                question => question,
            },
            state_class: state.class(),
            state_label: state.label(text),
            agent: run.agent.unwrap_or_default(),
            created_at: run.created_at,
            pending: (run.pending_approvals > 0).then(|| fill(text.pending_approvals, run.pending_approvals)),
        }
    }
}
