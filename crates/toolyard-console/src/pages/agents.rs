//! Agents: the list, and forms to add, change and remove those in the store.

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use toolyard_core::{AgentOrigin, escape_unsafe};

use crate::{
    api::{AgentDefinition, AgentList, ApiFailure},
    form_fields::{FormFields, SignedForm},
    format::{pretty_json, url_encode},
    forms::{AgentForm, LimitField},
    page::{Notice, Page, Section, render, render_failure, render_failure_notice, render_with},
    request_context::Visitor,
    router::ConsoleState,
    text::{AgentsText, fill},
};

const LIST_PATH: &str = "/console/agents";
const ADD_PATH: &str = "/console/add-agent";

#[derive(Template)]
#[template(path = "agents.html")]
struct AgentsPage {
    page: Page,
    text: &'static AgentsText,
    notice: Option<Notice>,
    /// None if the gateway has no agents.
    rows: Option<Vec<AgentRow>>,
}

struct AgentRow {
    agent: AgentDefinition,
    path: String,
    tools: String,
    origin: &'static str,
}

#[derive(Template)]
#[template(path = "agent.html")]
struct AgentPage {
    page: Page,
    text: &'static AgentsText,
    notice: Option<Notice>,
    form: AgentForm,
    is_new: bool,
    /// Whether the agent is in the store, so that it can be changed.
    is_stored: bool,
    /// Path to which the form is submitted.
    path: String,
    config: String,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new()
        .route(LIST_PATH, get(list))
        .route(ADD_PATH, get(show_new).post(add))
        .route("/console/agents/{name}", get(show).post(replace))
        .route("/console/agents/{name}/remove", post(remove).get(redirect_to_agent))
}

async fn list(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = AgentsText::of(visitor.language());
    let agents = match state.api.get_if_offered::<AgentList>(visitor.role(), "/agents").await {
        Ok(agents) => agents,
        Err(failure) => return render_failure(&visitor, Section::Agents, &failure),
    };
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let saved = query.find("saved").map(|name| fill(text.saved, name));
    let removed = query.find("removed").map(|name| fill(text.removed, name));
    let rows =
        agents.map(|agents| agents.agents.into_iter().map(|agent| AgentRow::of(agent, text)).collect());
    let notice = saved.or(removed).map(Notice::success);
    render(&AgentsPage { page: Page::new(&visitor, Section::Agents, text.title), text, notice, rows })
}

impl AgentRow {
    fn of(agent: AgentDefinition, text: &AgentsText) -> Self {
        let tools =
            agent.config.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let names: Vec<&str> = tools.iter().filter_map(Value::as_str).take(6).collect();
        let more = if tools.len() > names.len() { ", …" } else { "" };
        Self {
            path: format!("{LIST_PATH}/{}", url_encode(&agent.name)),
            tools: if tools.is_empty() { text.all_tools.to_owned() } else { names.join(", ") + more },
            origin: text.origin_name(agent.origin),
            agent,
        }
    }
}

async fn show_new(visitor: Visitor) -> Response {
    render_form(&visitor, StatusCode::OK, AgentForm::of("", &Value::Null), None, None)
}

async fn show(State(state): State<ConsoleState>, visitor: Visitor, Path(name): Path<String>) -> Response {
    match read_agent(&state, &visitor, &name).await {
        Ok(agent) => {
            let form = AgentForm::of(&agent.name, &agent.config);
            render_form(&visitor, StatusCode::OK, form, Some(&agent), None)
        }
        Err(failure) => render_failure(&visitor, Section::Agents, &failure),
    }
}

/// The agent for display: hidden characters are visible.
async fn read_agent(
    state: &ConsoleState,
    visitor: &Visitor,
    name: &str,
) -> Result<AgentDefinition, ApiFailure> {
    state.api.get(visitor.role(), &format!("/agents/{}", url_encode(name))).await
}

fn render_form(
    visitor: &Visitor,
    status: StatusCode,
    form: AgentForm,
    agent: Option<&AgentDefinition>,
    notice: Option<Notice>,
) -> Response {
    let text = AgentsText::of(visitor.language());
    let title = agent.map_or_else(|| text.add.to_owned(), |agent| escape_unsafe(&agent.name).into_owned());
    let path =
        agent.map_or_else(|| ADD_PATH.to_owned(), |agent| format!("{LIST_PATH}/{}", url_encode(&agent.name)));
    render_with(
        status,
        &AgentPage {
            page: Page::new(visitor, Section::Agents, title),
            text,
            notice,
            form,
            is_new: agent.is_none(),
            is_stored: agent.is_none_or(|agent| agent.origin == AgentOrigin::Store),
            path,
            config: agent
                .map(|agent| escape_unsafe(&pretty_json(&agent.config)).into_owned())
                .unwrap_or_default(),
        },
    )
}

async fn add(State(state): State<ConsoleState>, form: SignedForm) -> Response {
    let name = form.fields.get("name").trim().to_owned();
    save(&state, &form, &name, None).await
}

async fn replace(State(state): State<ConsoleState>, Path(name): Path<String>, form: SignedForm) -> Response {
    let path = format!("/agents/{}", url_encode(&name));
    // What the person did not touch is written back as it is.
    match state.api.get_verbatim::<AgentDefinition>(form.visitor.role(), &path).await {
        Ok(agent) => save(&state, &form, &name, Some(&agent)).await,
        Err(failure) => render_failure(&form.visitor, Section::Agents, &failure),
    }
}

/// Adds or replaces an agent; on failure, shows the form again with what was entered.
async fn save(
    state: &ConsoleState,
    form: &SignedForm,
    name: &str,
    agent: Option<&AgentDefinition>,
) -> Response {
    let visitor = &form.visitor;
    let entered = AgentForm::read(name, &form.fields);
    let config = match entered.config(agent.map_or(&Value::Null, |agent| &agent.config)) {
        Ok(config) => config,
        Err(limit) => {
            let text = AgentsText::of(visitor.language());
            let text = fill(text.invalid_number, limit_label(text, limit));
            return render_form(visitor, StatusCode::BAD_REQUEST, entered, agent, Some(Notice::error(text)));
        }
    };
    let (method, path, body) = match agent {
        None => (Method::POST, "/agents".to_owned(), json!({ "name": name, "config": config })),
        Some(_) => (Method::PUT, format!("/agents/{}", url_encode(name)), json!({ "config": config })),
    };
    match state.api.send::<Value>(visitor.role(), method, &path, Some(&body)).await {
        Ok(_) => Redirect::to(&format!("{LIST_PATH}?saved={}", url_encode(name))).into_response(),
        Err(failure) => {
            let notice = change_failure(visitor, &failure);
            render_form(visitor, failure.status, entered, agent, Some(notice))
        }
    }
}

/// The language links of a failure page lead here.
async fn redirect_to_agent(Path(name): Path<String>) -> Redirect {
    Redirect::to(&format!("{LIST_PATH}/{}", url_encode(&name)))
}

async fn remove(State(state): State<ConsoleState>, Path(name): Path<String>, form: SignedForm) -> Response {
    let visitor = form.visitor;
    let path = format!("/agents/{}", url_encode(&name));
    match state.api.send::<Value>(visitor.role(), Method::DELETE, &path, None).await {
        Ok(_) => Redirect::to(&format!("{LIST_PATH}?removed={}", url_encode(&name))).into_response(),
        Err(failure) => {
            let notice = change_failure(&visitor, &failure);
            render_failure_notice(&visitor, Section::Agents, failure.status, notice)
        }
    }
}

/// Why an agent was not changed, with the way to get the permission.
fn change_failure(visitor: &Visitor, failure: &ApiFailure) -> Notice {
    let text = AgentsText::of(visitor.language());
    let notice = Notice::failure(failure, visitor.language());
    if failure.status == StatusCode::FORBIDDEN { notice.with_hint(Some(text.not_permitted)) } else { notice }
}

fn limit_label(text: &AgentsText, key: &str) -> &'static str {
    text.named("limit_", key).unwrap_or_default()
}

impl AgentPage {
    fn limit_label(&self, field: &LimitField) -> &'static str {
        limit_label(self.text, field.key)
    }
}
