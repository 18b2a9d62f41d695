//! The upstream MCP servers, and one of them with what the operator decides on.

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    cluster,
    import_rows::{ImportRow, import_rows},
};
use crate::{
    api::{ApiFailure, ClusterReport, HeldTool, ImportReport, ServerDetails, ServerList, ServerView},
    form_fields::{FormFields, SignedForm},
    format::{shorten, url_encode},
    page::{Notice, Page, Pager, PartFailures, Section, render_failure, render_with},
    request_context::Visitor,
    router::ConsoleState,
    session::Role,
    text::{ClusterText, ServersText, fill},
};

const MAX_LOG_CHARS: usize = 40_000;
const MAX_PROBLEM_CHARS: usize = 300;
/// The urgency of a server without problems; lower is more urgent.
const NOT_URGENT: u8 = 3;
/// Bytes of definitions and differences on one page. Those beyond it are counted, and cannot be approved here.
const MAX_DEFINITION_BYTES: usize = 40_000;
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
    /// Servers of other clients, if the operator asks for them or there are no others.
    importable: Option<Vec<ImportRow>>,
    has_servers: bool,
}

#[derive(Template)]
#[template(path = "server.html")]
struct ServerPage {
    page: Page,
    text: &'static ServersText,
    row: ServerRow,
    notice: Option<Notice>,
    /// None for callers, who manage no servers.
    details: Option<DetailsView>,
    /// The page at which the operator signs in to the server.
    sign_in_url: Option<String>,
}

/// What the operator sees of a server and decides on.
struct DetailsView {
    endpoint: String,
    /// As many as a person can read.
    held: Vec<HeldToolView>,
    /// Says how many are not shown.
    held_more: Option<String>,
    rejected: Vec<String>,
    log: String,
}

/// A tool that awaits approval.
struct HeldToolView {
    name: String,
    /// Whether the tool is new or changed, in the language of the page.
    kind: &'static str,
    /// In English.
    reason: String,
    difference: String,
    /// The definition as JSON, all of it, because all of it is approved.
    whole: String,
    /// The value of the field `tool`: the hash of the definition that is shown, and the name.
    value: String,
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
    /// Whether the problem is in English, whatever the language of the page.
    pub(super) is_english_problem: bool,
}

impl ServerRow {
    pub(super) fn of(server: ServerView, text: &ServersText) -> Self {
        let only_held_tools = has_only_held_tools(&server);
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
            problem: match &server.problem {
                Some(_) if only_held_tools => Some(fill(text.held_count, server.awaiting_approval)),
                Some(problem) => Some(shorten(problem, MAX_PROBLEM_CHARS).into_owned()),
                None => None,
            },
            is_english_problem: !only_held_tools,
            server,
        }
    }
}

impl ServerRow {
    /// Whether there is something to stop.
    fn is_running(&self) -> bool {
        ["ready", "degraded", "starting"].contains(&self.server.state.as_str())
    }
}

/// Whether the only problem of a server is that tools await approval, which can be translated.
fn has_only_held_tools(server: &ServerView) -> bool {
    let text = match server.awaiting_approval {
        1 => "1 tool awaits approval".to_owned(),
        count => format!("{count} tools await approval"),
    };
    server.problem.as_deref() == Some(text.as_str())
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new()
        .route("/console/servers", get(list).post(add))
        .route("/console/import-servers", get(redirect_to_import).post(import))
        .route("/console/servers/{name}", get(show).post(run_action))
        .route("/console/servers/{name}/approve", get(redirect_to_server).post(approve))
        .route("/console/servers/{name}/sign-in", get(redirect_to_server).post(sign_in))
}

async fn list(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = ServersText::of(visitor.language());
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let added = query.find("added").map(|_| text.saved.to_owned());
    let imported = query.find("imported").map(|names| fill(text.imported, names));
    render_list(&state, &visitor, text, (StatusCode::OK, added.or(imported).map(Notice::success))).await
}

async fn render_list(
    state: &ConsoleState,
    visitor: &Visitor,
    text: &'static ServersText,
    (status, notice): (StatusCode, Option<Notice>),
) -> Response {
    let servers: ServerList = match state.api.get(visitor.role(), "/servers").await {
        Ok(servers) => servers,
        Err(failure) => return render_failure(visitor, Section::Servers, &failure),
    };
    let mut failures = PartFailures::default();
    let cluster = failures.keep(state.api.get_if_offered(visitor.role(), "/cluster?sessions=false").await);
    let cluster_text = ClusterText::of(visitor.language());
    let cluster =
        cluster.map(|cluster: ClusterReport| (cluster_text.title, cluster::summary(&cluster, cluster_text)));
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let has_servers = !servers.servers.is_empty();
    let importable = match visitor.role() {
        Role::Operator if !has_servers || query.find("import").is_some() => {
            failures.keep(state.api.get_if_offered(visitor.role(), "/import").await)
        }
        _ => None,
    };
    let importable = importable.map(|report: ImportReport| import_rows(report, text));
    let start: usize = query.get("from").parse().unwrap_or_default();
    let end = start.saturating_add(SERVERS_PER_PAGE);
    let page = Page::new(visitor, Section::Servers, text.title);
    let next = (end < servers.servers.len()).then(|| end.to_string());
    let pager = Pager::new(&page, "from", next.as_deref());
    let shown = sort_by_urgency(servers.servers).into_iter().skip(start).take(SERVERS_PER_PAGE);
    let rows = shown.map(|server| ServerRow::of(server, text)).collect();
    let notice = notice.or_else(|| failures.notice(visitor.language()));
    render_with(status, &ServersPage { page, text, rows, pager, notice, cluster, importable, has_servers })
}

/// Sorts by urgency, then by name.
pub(super) fn sort_by_urgency(mut servers: Vec<ServerView>) -> Vec<ServerView> {
    servers.sort_by_key(|server| (urgency(server), server.name.clone()));
    servers
}

/// Whether a server has a problem, or tools that await approval.
pub(super) fn needs_attention(server: &ServerView) -> bool {
    urgency(server) < NOT_URGENT
}

fn urgency(server: &ServerView) -> u8 {
    match server.state.as_str() {
        "down" => 0,
        "degraded" => 1,
        _ if server.awaiting_approval > 0 || server.problem.is_some() => 2,
        _ => NOT_URGENT,
    }
}

async fn show(State(state): State<ConsoleState>, visitor: Visitor, Path(name): Path<String>) -> Response {
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let text = ServersText::of(visitor.language());
    let done = query.find("done").and_then(|done| text.done(done));
    render_server(&state, &visitor, &name, (StatusCode::OK, done.map(Notice::success)), None).await
}

async fn render_server(
    state: &ConsoleState,
    visitor: &Visitor,
    name: &str,
    (status, notice): (StatusCode, Option<Notice>),
    sign_in_url: Option<String>,
) -> Response {
    let text = ServersText::of(visitor.language());
    let path = format!("/servers/{}", url_encode(name));
    let server: ServerView = match state.api.get(visitor.role(), &path).await {
        Ok(server) => server,
        Err(failure) => return render_failure(visitor, Section::Servers, &failure),
    };
    let mut failures = PartFailures::default();
    let details = match visitor.role() {
        Role::Operator => {
            let details = state.api.get_if_offered(visitor.role(), &format!("{path}/details")).await;
            failures.keep(details).map(|details| DetailsView::of(details, text))
        }
        Role::Caller => None,
    };
    let notice = notice.or_else(|| failures.notice(visitor.language()));
    let page = Page::new(visitor, Section::Servers, server.name.clone());
    render_with(
        status,
        &ServerPage { page, text, row: ServerRow::of(server, text), notice, details, sign_in_url },
    )
}

impl DetailsView {
    fn of(details: ServerDetails, text: &ServersText) -> Self {
        let log = details.log.join("\n");
        let skipped = log.chars().count().saturating_sub(MAX_LOG_CHARS);
        let mut bytes = 0;
        let count = details.awaiting_approval.len();
        let mut held: Vec<HeldToolView> =
            details.awaiting_approval.into_iter().map(|tool| HeldToolView::of(tool, text)).collect();
        // One that nobody can read here does not hide the others.
        held.retain(|tool| {
            let size = tool.difference.len() + tool.whole.len();
            let fits = !tool.whole.is_empty() && bytes + size <= MAX_DEFINITION_BYTES;
            bytes += if fits { size } else { 0 };
            fits
        });
        let more = count.saturating_sub(held.len());
        Self {
            endpoint: details.endpoint,
            held_more: (more > 0).then(|| fill(text.held_more, more)),
            held,
            rejected: details.rejected,
            log: log.chars().skip(skipped).collect(),
        }
    }
}

impl HeldToolView {
    fn of(tool: HeldTool, text: &ServersText) -> Self {
        Self {
            // The hash has no space.
            value: format!("{} {}", tool.definition, tool.name),
            difference: tool.difference.join("\n"),
            whole: match tool.whole {
                None => String::new(),
                Some(whole) => serde_json::to_string_pretty(&whole).unwrap_or_default(),
            },
            name: tool.name,
            kind: if tool.difference.is_empty() { text.held_new } else { text.held_changed },
            reason: tool.reason,
        }
    }
}

/// Starts, stops, enables, disables or trusts a server.
async fn run_action(
    State(state): State<ConsoleState>,
    Path(name): Path<String>,
    form: SignedForm,
) -> Response {
    let path = format!("/servers/{}", url_encode(&name));
    let (method, path, body) = match form.fields.get("action") {
        "connect" => (Method::POST, format!("{path}/connect"), json!({})),
        "stop" => (Method::POST, format!("{path}/stop"), json!({})),
        "enable" => (Method::PATCH, path, json!({"enabled": true})),
        "disable" => (Method::PATCH, path, json!({"enabled": false})),
        "trust" => (Method::PATCH, path, json!({"trusted": true})),
        "untrust" => (Method::PATCH, path, json!({"trusted": false})),
        _ => return form.render_invalid(Section::Servers),
    };
    let done = form.fields.get("action").to_owned();
    let sent = state.api.send::<Value>(form.visitor.role(), method, &path, Some(&body)).await;
    after_change(&state, &form.visitor, &name, &done, sent).await
}

/// Approves the definitions that the page showed.
async fn approve(State(state): State<ConsoleState>, Path(name): Path<String>, form: SignedForm) -> Response {
    let seen = |value: &str| {
        value.split_once(' ').map(|(definition, name)| json!({"name": name, "definition": definition}))
    };
    let tools: Vec<Value> = form.fields.all("tool").filter_map(seen).collect();
    let path = format!("/servers/{}/approve", url_encode(&name));
    let sent = state.api.post::<Value>(form.visitor.role(), &path, &json!({ "tools": tools })).await;
    after_change(&state, &form.visitor, &name, "approve", sent).await
}

async fn after_change(
    state: &ConsoleState,
    visitor: &Visitor,
    name: &str,
    done: &str,
    sent: Result<Value, ApiFailure>,
) -> Response {
    match sent {
        Ok(_) => Redirect::to(&format!("/console/servers/{}?done={done}", url_encode(name))).into_response(),
        Err(failure) => {
            let notice = Notice::failure(&failure, visitor.language());
            render_server(state, visitor, name, (failure.status, Some(notice)), None).await
        }
    }
}

/// Adds a server: a program with its arguments, or an address.
async fn add(State(state): State<ConsoleState>, form: SignedForm) -> Response {
    let text = ServersText::of(form.visitor.language());
    let field = |name: &str| Some(form.fields.get(name).trim()).filter(|value| !value.is_empty());
    let args: Vec<&str> =
        form.fields.get("args").lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let body = json!({"name": form.fields.get("name").trim(), "command": field("command"), "args": args, "url": field("url")});
    let sent = state.api.post::<Value>(form.visitor.role(), "/servers", &body).await;
    match sent {
        Ok(_) => Redirect::to("/console/servers?added").into_response(),
        Err(failure) => {
            let notice = Notice::failure(&failure, form.visitor.language());
            render_list(&state, &form.visitor, text, (failure.status, Some(notice))).await
        }
    }
}

/// Imports servers from the files of other clients.
async fn import(State(state): State<ConsoleState>, form: SignedForm) -> Response {
    let SignedForm { visitor, fields } = form;
    let text = ServersText::of(visitor.language());
    let names: Vec<&str> = fields.all("server").collect();
    if names.is_empty() {
        let notice = Notice::error(text.import_select);
        return render_list(&state, &visitor, text, (StatusCode::BAD_REQUEST, Some(notice))).await;
    }
    let body = json!({ "servers": names });
    match state.api.post::<ImportReport>(visitor.role(), "/import", &body).await {
        Ok(_) => {
            let names = url_encode(&names.join(", "));
            Redirect::to(&format!("/console/servers?imported={names}")).into_response()
        }
        Err(failure) => {
            let notice = Notice::failure(&failure, visitor.language());
            render_list(&state, &visitor, text, (failure.status, Some(notice))).await
        }
    }
}

async fn redirect_to_import() -> Redirect {
    Redirect::to("/console/servers?import=1")
}

/// The pages after these forms have no addresses of their own.
async fn redirect_to_server(Path(name): Path<String>) -> Redirect {
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
            render_server(&state, &visitor, &name, (StatusCode::OK, None), url).await
        }
        Err(failure) => {
            let notice = Notice::failure(&failure, visitor.language());
            render_server(&state, &visitor, &name, (failure.status, Some(notice)), None).await
        }
    }
}
