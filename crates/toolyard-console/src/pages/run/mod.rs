//! The page of a run: question, answer, plan as a graph, steps, timeline, events, and forms to decide, cancel and resume.

mod actions;
mod event_rows;
mod run_model;
mod run_state;
mod step_model;

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderName, Method, header};

use event_rows::{EVENTS_PER_PAGE, EventRow};
pub(super) use run_model::{GraphModel, RunModel, page_start};
use run_model::{RunPart, StepPage, TimelineModel, timeline_of};
pub(super) use run_state::RunState;

use crate::{
    api::{ApiFailure, EventLog, RunDetails},
    form_fields::FormFields,
    format::{shorten, url_encode},
    page::{Page, Section, fragment_response, page_response},
    pages::approval_card::{ApprovalCard, ReturnTo},
    request_context::Visitor,
    router::ConsoleState,
    text::{ApprovalsText, RunsText},
};

/// Headers of an event stream that tell its type and that it must not be buffered.
const FORWARDED_HEADERS: [HeaderName; 3] =
    [header::CONTENT_TYPE, header::CACHE_CONTROL, HeaderName::from_static("x-accel-buffering")];
/// Width for which the graph is laid out.
const GRAPH_WIDTH: usize = 1_080;

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new()
        .route("/console/runs/{run}", get(show))
        .route("/console/runs/{run}/fragment", get(show_fragment))
        .route("/console/runs/{run}/events", get(forward_events))
        .route("/console/runs/{run}/approve", post(actions::decide).get(redirect_to_run))
        .route("/console/runs/{run}/resolve", post(actions::resolve).get(redirect_to_run))
        .route("/console/runs/{run}/cancel", post(actions::cancel).get(redirect_to_run))
        .route("/console/runs/{run}/resume", post(actions::resume).get(redirect_to_run))
}

/// The language links of a failure page lead here.
async fn redirect_to_run(Path(run): Path<String>) -> Redirect {
    Redirect::to(&format!("/console/runs/{}", url_encode(&run)))
}

/// The parts of a run that a visitor looks at.
#[derive(Debug, Clone, Default)]
struct RunQuery {
    part: RunPart,
    /// Position of the first step in the list.
    from: usize,
    /// The step that is shown with all of its details.
    step: Option<String>,
    /// Number of the event after which the list of events starts.
    after: Option<i64>,
}

impl RunQuery {
    /// Values that cannot be read are ignored.
    fn parse(query: &str) -> Self {
        let fields = FormFields::parse(query.as_bytes());
        Self {
            part: RunPart::parse(fields.get("view")),
            from: fields.get("from").parse().unwrap_or_default(),
            step: fields.find("step").map(str::to_owned),
            after: fields.get("after").parse().ok(),
        }
    }
}

/// The parts of the page that change while a run is under way.
struct RunContent {
    run: RunModel,
    part: RunPart,
    graph: Option<GraphModel>,
    timeline: Option<TimelineModel>,
    events: Option<Vec<EventRow>>,
    /// The number after which the next page of events starts.
    next_events: Option<i64>,
    steps: StepPage,
    /// The query of this page, for its fragment.
    query: String,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    page: Page,
    text: &'static RunsText,
    approvals_text: &'static ApprovalsText,
    content: RunContent,
}

#[derive(Template)]
#[template(path = "run_fragment.html")]
struct RunFragment {
    page: Page,
    text: &'static RunsText,
    approvals_text: &'static ApprovalsText,
    content: RunContent,
}

async fn show(visitor: Visitor, State(console): State<ConsoleState>, Path(run): Path<String>) -> Response {
    let text = RunsText::of(visitor.language());
    let loaded = load(&console, &visitor, &run).await.map(|content| {
        let title = format!("{} {}", text.run, shorten(&content.run.heading, 60));
        let page = Page::new(&visitor, Section::Runs, title);
        RunPage { page, text, approvals_text: ApprovalsText::of(visitor.language()), content }
    });
    page_response(&visitor, Section::Runs, loaded)
}

async fn show_fragment(
    visitor: Visitor,
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
) -> Response {
    let text = RunsText::of(visitor.language());
    let loaded = load(&console, &visitor, &run).await.map(|content| {
        let page = Page::new(&visitor, Section::Runs, text.run);
        RunFragment { page, text, approvals_text: ApprovalsText::of(visitor.language()), content }
    });
    fragment_response(loaded)
}

async fn load(console: &ConsoleState, visitor: &Visitor, run: &str) -> Result<RunContent, ApiFailure> {
    let language = visitor.language();
    let query = RunQuery::parse(&visitor.context.query);
    let path = format!("/runs/{}", url_encode(run));
    let details: RunDetails = console.api.get(visitor.role(), &path).await?;
    let run = RunModel::new(details, language, ReturnTo::Run);
    let part = query.part;
    // A step that is opened decides which page of the list is shown.
    let opened = query.step.as_ref().and_then(|id| run.details.steps.iter().position(|step| step.id == *id));
    let from = opened.unwrap_or(query.from.min(run.details.steps.len().saturating_sub(1)));
    let from = page_start(from, run.details.steps.len());
    let page_of = |position| part.page_query(position, from, run.details.steps.len());
    let (mut graph, mut timeline, mut events, mut next_events) = (None, None, None, None);
    match part {
        RunPart::Plan => {
            graph = GraphModel::of_steps(&run.details.steps, GRAPH_WIDTH, language, &page_of);
        }
        RunPart::Timeline => {
            timeline = timeline_of(&run.details.steps, toolyard_core::unix_millis(), language, &page_of);
        }
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
        + timeline.as_ref().map_or(0, |timeline| timeline.svg.len())
        + events.as_ref().map_or(0, |rows| rows.len() * 400)
        + run.answer.as_ref().map_or(0, String::len)
        + run.approvals.iter().map(ApprovalCard::byte_count).sum::<usize>();
    let steps = StepPage::new(&run.details.steps, part, from, query.step, drawn_bytes, language);
    let query = visitor.context.query.clone();
    Ok(RunContent { run, part, graph, timeline, events, next_events, steps, query })
}

/// The event stream of the API, unchanged.
async fn forward_events(
    visitor: Visitor,
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Response {
    let query = RunQuery::parse(&visitor.context.query);
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
    match console.api.send_raw(visitor.role(), Method::GET, &path, forwarded, None).await {
        Ok(response) => {
            let (parts, body) = response.into_parts();
            let mut answer = Response::new(body);
            *answer.status_mut() = parts.status;
            // The gateway marks streams by an extension; without it, the body would be collected before it is sent.
            *answer.extensions_mut() = parts.extensions;
            for name in FORWARDED_HEADERS {
                if let Some(value) = parts.headers.get(&name) {
                    answer.headers_mut().insert(name, value.clone());
                }
            }
            answer
        }
        Err(failure) => failure.status.into_response(),
    }
}
