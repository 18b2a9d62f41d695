//! The first steps: import servers, make a call, ask a question.

use askama::Template;
use axum::{
    Router,
    extract::State,
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use http::StatusCode;
use serde_json::json;

use crate::{
    api::{AgentList, ImportReport, ImportState, ImportableServer, RunList, ServerList},
    form_fields::{FormFields, SignedForm},
    format::{shorten, url_encode},
    page::{Notice, Page, PartFailures, Section, render_with},
    request_context::Visitor,
    router::ConsoleState,
    session::Role,
    text::{WelcomeText, fill},
};

const MAX_SHOWN_SERVERS: usize = 60;
const MAX_ENDPOINT_CHARS: usize = 160;

#[derive(Template)]
#[template(path = "welcome.html")]
struct WelcomePage {
    page: Page,
    text: &'static WelcomeText,
    notice: Option<Notice>,
    /// Servers that can be imported; `None` if this visitor cannot import.
    importable: Option<Vec<ImportRow>>,
    server_count: usize,
    has_agents: bool,
}

struct ImportRow {
    server: ImportableServer,
    endpoint: String,
    clients: String,
    notes: String,
    is_new: bool,
    state: &'static str,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/welcome", get(show).post(import))
}

async fn show(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let text = WelcomeText::of(visitor.language());
    let imported = query.find("imported").map(|names| Notice::success(fill(text.imported, names)));
    render_steps(&state, &visitor, StatusCode::OK, imported).await
}

async fn render_steps(
    state: &ConsoleState,
    visitor: &Visitor,
    status: StatusCode,
    notice: Option<Notice>,
) -> Response {
    let (role, text) = (visitor.role(), WelcomeText::of(visitor.language()));
    let mut failures = PartFailures::default();
    let report = match role {
        Role::Operator => failures.keep(state.api.get_if_offered::<ImportReport>(role, "/import").await),
        Role::Caller => None,
    };
    let importable = report.map(|report| {
        report.servers.into_iter().take(MAX_SHOWN_SERVERS).map(|found| ImportRow::of(found, text)).collect()
    });
    let servers: ServerList = failures.keep(state.api.get(role, "/servers").await);
    // Runs are there if agents can run, which needs a model.
    let runs = state.api.get_if_offered::<RunList>(role, "/runs?limit=1").await;
    // If they cannot be read, agents may well be there.
    let may_run = !matches!(runs, Ok(None));
    failures.keep(runs);
    let agents: AgentList = failures.keep(state.api.get(role, "/agents").await);
    let page = WelcomePage {
        page: Page::new(visitor, Section::Other, text.title),
        text,
        notice: notice.or_else(|| failures.notice(visitor.language())),
        importable,
        server_count: servers.servers.len(),
        has_agents: may_run && !agents.agents.is_empty(),
    };
    render_with(status, &page)
}

async fn import(State(state): State<ConsoleState>, form: SignedForm) -> Response {
    let SignedForm { visitor, fields } = form;
    let text = WelcomeText::of(visitor.language());
    let names: Vec<&str> = fields.all("server").collect();
    if names.is_empty() {
        let notice = Notice::error(text.select);
        return render_steps(&state, &visitor, StatusCode::BAD_REQUEST, Some(notice)).await;
    }
    let body = json!({ "servers": names });
    match state.api.post::<ImportReport>(visitor.role(), "/import", &body).await {
        Ok(_) => {
            let names = url_encode(&names.join(", "));
            Redirect::to(&format!("/console/welcome?imported={names}")).into_response()
        }
        Err(failure) => {
            let notice = Notice::failure(&failure, visitor.language());
            render_steps(&state, &visitor, failure.status, Some(notice)).await
        }
    }
}

impl ImportRow {
    fn of(server: ImportableServer, text: &WelcomeText) -> Self {
        Self {
            endpoint: shorten(&server.endpoint, MAX_ENDPOINT_CHARS).into_owned(),
            clients: server.clients.join(", "),
            notes: server.notes.join(" "),
            is_new: server.state == ImportState::New,
            state: match server.state {
                ImportState::New => "",
                ImportState::Existing => text.state_existing,
                ImportState::Conflicting => text.state_conflicting,
                ImportState::Skipped => text.state_skipped,
            },
            server,
        }
    }
}
