//! The page of a run: question, answer, plan as a graph, steps, timeline, events, and what a visitor may do about it.

mod actions;
mod event_rows;
mod run_model;
mod step_model;

use askama::Template;
use axum::{
    Router,
    extract::{Path, Query, State},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderName, Method, header};
use serde::Deserialize;

use event_rows::{EVENTS_PER_PAGE, EventRow};
pub(super) use run_model::{GraphModel, RunModel, run_state};
use run_model::{RunPart, StepPage, page_query, page_start, timeline_of};

use crate::{
    api::{ApiFailure, EventLog, RunDetails},
    format::{shorten, url_encode},
    page::{Page, Section, render, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::RunsText,
};

/// What the API says about the type and the buffering of an event stream.
const PASSED_ON_HEADERS: [HeaderName; 3] =
    [header::CONTENT_TYPE, header::CACHE_CONTROL, HeaderName::from_static("x-accel-buffering")];
/// Width for which the graph is laid out.
const GRAPH_WIDTH: i32 = 1_080;

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new()
        .route("/console/runs/{run}", get(show))
        .route("/console/runs/{run}/fragment", get(show_fragment))
        .route("/console/runs/{run}/events", get(pass_on_events))
        .route("/console/runs/{run}/approve", post(actions::decide))
        .route("/console/runs/{run}/resolve", post(actions::resolve))
        .route("/console/runs/{run}/cancel", post(actions::cancel))
        .route("/console/runs/{run}/resume", post(actions::resume))
}

/// What a visitor wants to see of a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct RunQuery {
    view: String,
    from: usize,
    step: Option<String>,
    after: Option<i64>,
}

/// The parts of the page that change while a run is under way.
struct RunContent {
    run: RunModel,
    part: RunPart,
    graph: Option<GraphModel>,
    timeline: Option<String>,
    events: Option<Vec<EventRow>>,
    /// The number after which the next page of events starts.
    next_events: Option<i64>,
    steps: StepPage,
    /// The query of this page, for its fragment.
    query: String,
    /// Where forms lead back to.
    origin: &'static str,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    page: Page,
    text: &'static RunsText,
    content: RunContent,
}

#[derive(Template)]
#[template(path = "run_fragment.html")]
struct RunFragment {
    page: Page,
    text: &'static RunsText,
    content: RunContent,
}

async fn show(
    visitor: Visitor,
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    Query(query): Query<RunQuery>,
) -> Response {
    match load(&console, &visitor, &run, query).await {
        Ok(content) => {
            let text = RunsText::of(visitor.language());
            let title = format!("{} {}", text.run, shorten(&content.run.question, 60));
            render(&RunPage { page: Page::new(&visitor, Section::Runs, title), text, content })
        }
        Err(failure) => render_failure(&visitor, Section::Runs, &failure),
    }
}

async fn show_fragment(
    visitor: Visitor,
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    Query(query): Query<RunQuery>,
) -> Response {
    match load(&console, &visitor, &run, query).await {
        Ok(content) => {
            let text = RunsText::of(visitor.language());
            render(&RunFragment { page: Page::new(&visitor, Section::Runs, text.run), text, content })
        }
        Err(failure) => failure.status.into_response(),
    }
}

async fn load(
    console: &ConsoleState,
    visitor: &Visitor,
    run: &str,
    query: RunQuery,
) -> Result<RunContent, ApiFailure> {
    let language = visitor.language();
    let path = format!("/runs/{}", url_encode(run));
    let details: RunDetails = console.api.get(visitor.role(), &path).await?;
    let run = RunModel::new(details, RunsText::of(language));
    let part = RunPart::parse(&query.view);
    // A step that is opened decides which page of the list is shown.
    let opened = query.step.as_ref().and_then(|id| run.steps.iter().position(|step| step.id == *id));
    let from = opened.unwrap_or(query.from.min(run.steps.len().saturating_sub(1)));
    let from = page_start(from, run.steps.len());
    let (mut graph, mut timeline, mut events, mut next_events) = (None, None, None, None);
    match part {
        RunPart::Plan => {
            let page_of = |position| page_query(position, from, run.steps.len());
            graph = GraphModel::of_steps(&run.steps, GRAPH_WIDTH, language, &page_of);
        }
        RunPart::Timeline => timeline = timeline_of(&run.steps, toolyard_core::unix_millis(), language),
        RunPart::Events => {
            let path = match query.after {
                Some(after) => format!("{path}/log?after={after}"),
                None => format!("{path}/log"),
            };
            if let Some(log) = console.api.get_if_offered::<EventLog>(visitor.role(), &path).await? {
                let rows: Vec<EventRow> =
                    log.events.iter().take(EVENTS_PER_PAGE).map(EventRow::of_event).collect();
                let has_more = log.events.len() > EVENTS_PER_PAGE;
                next_events = rows.last().and_then(|row| row.number).filter(|_| has_more);
                events = Some(rows);
            }
        }
    }
    let drawn_bytes = graph.as_ref().map_or(0, |graph| graph.svg.len())
        + timeline.as_ref().map_or(0, String::len)
        + events.as_ref().map_or(0, |rows| rows.len() * 400)
        + run.answer.as_ref().map_or(0, String::len)
        + run.approvals.iter().map(|approval| approval.text.len() + 1_200).sum::<usize>();
    let steps = StepPage::new(&run.steps, from, query.step, drawn_bytes, language);
    let query = visitor.context.query.clone();
    Ok(RunContent { run, part, graph, timeline, events, next_events, steps, query, origin: "run" })
}

/// The event stream of the API, unchanged.
async fn pass_on_events(
    visitor: Visitor,
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    Query(query): Query<RunQuery>,
    headers: HeaderMap,
) -> Response {
    let mut forwarded = HeaderMap::new();
    if let Some(last) = headers.get("last-event-id") {
        forwarded.insert("last-event-id", last.clone());
    }
    let mut path = format!("/runs/{}/events", url_encode(&run));
    // A browser that reconnects says where to continue.
    if let Some(after) = query.after.filter(|_| forwarded.is_empty()) {
        path.push_str("?after=");
        path.push_str(&after.to_string());
    }
    match console.api.respond(visitor.role(), Method::GET, &path, forwarded, None).await {
        Ok(response) => {
            let (parts, body) = response.into_parts();
            let mut answer = Response::new(body);
            *answer.status_mut() = parts.status;
            // The gateway marks streams by an extension; without it, the body would be collected before it is sent.
            *answer.extensions_mut() = parts.extensions;
            for name in PASSED_ON_HEADERS {
                if let Some(value) = parts.headers.get(&name) {
                    answer.headers_mut().insert(name, value.clone());
                }
            }
            answer
        }
        Err(failure) => failure.status.into_response(),
    }
}
