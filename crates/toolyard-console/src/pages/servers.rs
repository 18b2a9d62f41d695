//! The upstream MCP servers, and one of them with its log.

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use http::StatusCode;
use serde_json::{Value, json};

use super::cluster;
use crate::{
    api::{ClusterView, ServerList, ServerView},
    form_fields::{FormFields, SignedForm},
    format::{shorten, url_encode},
    page::{Notice, Page, Pager, PartFailures, Section, render, render_failure, render_with},
    request_context::Visitor,
    router::ConsoleState,
    text::{ClusterText, ServersText},
};

const MAX_LOG_CHARS: usize = 40_000;
const MAX_PROBLEM_CHARS: usize = 300;
const SERVERS_PER_PAGE: usize = 80;

#[derive(Template)]
#[template(path = "servers.html")]
struct ServersPage {
    page: Page,
    text: &'static ServersText,
    rows: Vec<ServerRow>,
    pager: Pager,
    notice: Option<Notice>,
    /// The name of the page of the cluster and a summary; none if the gateway is in no cluster.
    cluster: Option<(&'static str, String)>,
}

#[derive(Template)]
#[template(path = "server.html")]
struct ServerPage {
    page: Page,
    text: &'static ServersText,
    row: ServerRow,
    notice: Option<Notice>,
    /// None if the gateway does not show logs.
    log: Option<String>,
    /// The page at which the operator signs in to the server.
    sign_in_url: Option<String>,
}

/// A server as pages show it.
pub(super) struct ServerRow {
    pub(super) server: ServerView,
    pub(super) path: String,
    tools_path: String,
    pub(super) state: String,
    /// The class that colours the state.
    pub(super) state_class: &'static str,
    pub(super) problem: Option<String>,
}

impl ServerRow {
    pub(super) fn of(server: ServerView, text: &ServersText) -> Self {
        Self {
            path: format!("/console/servers/{}", url_encode(&server.name)),
            tools_path: format!("/console/tools?source={}", url_encode(&server.name)),
            state: text.state(&server.state),
            state_class: match server.state.as_str() {
                "ready" => "state-ready",
                "starting" => "state-starting",
                "degraded" => "state-degraded",
                "down" => "state-down",
                _ => "state-idle",
            },
            problem: server.problem.as_ref().map(|problem| shorten(problem, MAX_PROBLEM_CHARS).into_owned()),
            server,
        }
    }
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new()
        .route("/console/servers", get(list))
        .route("/console/servers/{name}", get(show).post(restart))
        .route("/console/servers/{name}/sign-in", get(leave_sign_in).post(sign_in))
}

async fn list(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = ServersText::of(visitor.language());
    let servers: ServerList = match state.api.get(visitor.role(), "/servers").await {
        Ok(servers) => servers,
        Err(failure) => return render_failure(&visitor, Section::Servers, &failure),
    };
    let mut failures = PartFailures::default();
    let cluster = failures.keep(state.api.get_if_offered(visitor.role(), "/cluster?sessions=false").await);
    let cluster_text = ClusterText::of(visitor.language());
    let cluster =
        cluster.map(|cluster: ClusterView| (cluster_text.title, cluster::summary(&cluster, cluster_text)));
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let start: usize = query.get("from").parse().unwrap_or_default();
    let end = start.saturating_add(SERVERS_PER_PAGE);
    let page = Page::new(&visitor, Section::Servers, text.title);
    let next = (end < servers.servers.len()).then(|| end.to_string());
    let pager = Pager::new(&page, "from", next.as_deref());
    let shown = servers.servers.into_iter().skip(start).take(SERVERS_PER_PAGE);
    let rows = shown.map(|server| ServerRow::of(server, text)).collect();
    let notice = failures.notice(visitor.language());
    render(&ServersPage { page, text, rows, pager, notice, cluster })
}

async fn show(State(state): State<ConsoleState>, visitor: Visitor, Path(name): Path<String>) -> Response {
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let text = ServersText::of(visitor.language());
    let notice = query.find("restarted").map(|_| Notice::success(text.restarted));
    render_server(&state, &visitor, &name, StatusCode::OK, notice, None).await
}

async fn render_server(
    state: &ConsoleState,
    visitor: &Visitor,
    name: &str,
    status: StatusCode,
    notice: Option<Notice>,
    sign_in_url: Option<String>,
) -> Response {
    let text = ServersText::of(visitor.language());
    let path = format!("/servers/{}", url_encode(name));
    let server: ServerView = match state.api.get(visitor.role(), &path).await {
        Ok(server) => server,
        Err(failure) => return render_failure(visitor, Section::Servers, &failure),
    };
    let mut failures = PartFailures::default();
    let log = failures.keep(state.api.get_if_offered(visitor.role(), &format!("{path}/log")).await);
    let log = log.map(|log: Value| log_text(&log));
    let notice = notice.or_else(|| failures.notice(visitor.language()));
    let page = Page::new(visitor, Section::Servers, server.name.clone());
    render_with(
        status,
        &ServerPage { page, text, row: ServerRow::of(server, text), notice, log, sign_in_url },
    )
}

/// The end of a log, which is a text or a list of lines.
fn log_text(log: &Value) -> String {
    let line = |line: &Value| line.as_str().map_or_else(|| line.to_string(), str::to_owned);
    let text = match log.get("lines").or_else(|| log.get("log")).or_else(|| log.get("text")) {
        Some(Value::Array(lines)) => lines.iter().map(line).collect::<Vec<_>>().join("\n"),
        Some(other) => line(other),
        None => String::new(),
    };
    let skipped = text.chars().count().saturating_sub(MAX_LOG_CHARS);
    text.chars().skip(skipped).collect()
}

async fn restart(State(state): State<ConsoleState>, Path(name): Path<String>, form: SignedForm) -> Response {
    let visitor = form.visitor;
    let path = format!("/servers/{}/restart", url_encode(&name));
    match state.api.post::<Value>(visitor.role(), &path, &json!({})).await {
        Ok(_) => {
            let path = format!("/console/servers/{}?restarted", url_encode(&name));
            Redirect::to(&path).into_response()
        }
        Err(failure) => {
            let notice = Notice::failure(&failure, visitor.language());
            render_server(&state, &visitor, &name, failure.status, Some(notice), None).await
        }
    }
}

/// The page after the form has no address of its own.
async fn leave_sign_in(Path(name): Path<String>) -> Redirect {
    Redirect::to(&format!("/console/servers/{}", url_encode(&name)))
}

/// Begins a sign-in of the operator at a server, and shows the link to its page: the page may be at another address of the gateway, to
/// which a form cannot lead.
async fn sign_in(State(state): State<ConsoleState>, Path(name): Path<String>, form: SignedForm) -> Response {
    let visitor = form.visitor;
    let path = format!("/servers/{}/sign-in", url_encode(&name));
    match state.api.post::<Value>(visitor.role(), &path, &json!({})).await {
        Ok(page) => {
            let url = page.get("url").and_then(Value::as_str);
            let url = url
                .filter(|url| url.starts_with("https://") || url.starts_with("http://"))
                .map(str::to_owned);
            render_server(&state, &visitor, &name, StatusCode::OK, None, url).await
        }
        Err(failure) => {
            let notice = Notice::failure(&failure, visitor.language());
            render_server(&state, &visitor, &name, failure.status, Some(notice), None).await
        }
    }
}
