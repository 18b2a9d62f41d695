//! The chat: a conversation with an agent, its plan drawn beside it, and approvals in place.

use std::collections::HashSet;

use askama::Template;
use axum::{
    Router,
    extract::State,
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    approval_card::ReturnTo,
    run::{GraphModel, RunModel, RunState, page_start},
};
use crate::{
    api::{AgentDefinition, AgentList, ApiFailure, ListedRun, RunDetails, RunList},
    form_fields::{FormFields, SignedForm},
    format::{shorten, url_encode},
    page::{Page, Section, fragment_response, page_response, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::{ApprovalsText, ChatText, RunsText, fill},
};

/// Latest runs, among which the earlier conversations are found.
const MAX_SCANNED_RUNS: usize = 40;
/// Conversations in the list of earlier ones.
const MAX_LISTED_CONVERSATIONS: usize = 20;
/// Latest runs of a conversation, which are shown with their answers.
const MAX_SHOWN_RUNS: usize = 20;
/// Width for which the graph is laid out.
const GRAPH_WIDTH: usize = 520;
/// Agent that is chosen first.
const DEFAULT_AGENT: &str = "assistant";

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new()
        .route("/console/chat", get(show).post(ask))
        .route("/console/chat/fragment", get(show_fragment))
}

/// An earlier conversation, or a run that belongs to none.
struct ConversationEntry {
    path: String,
    question: String,
    state: RunState,
    created_at: i64,
    is_current: bool,
}

/// The parts of the page that change while a run is under way.
struct ChatContent {
    /// The runs of the conversation, oldest first.
    runs: Vec<RunModel>,
    /// Says that the conversation has older runs.
    older: Option<String>,
    graph: Option<GraphModel>,
    conversation: String,
}

impl ChatContent {
    fn latest(&self) -> Option<&RunModel> {
        self.runs.last()
    }

    fn encoded_conversation(&self) -> String {
        url_encode(&self.conversation)
    }

    fn is_active(&self) -> bool {
        self.latest().is_some_and(|run| run.is_active)
    }

    /// Whether a page without JavaScript is loaded again to show progress.
    fn needs_reload(&self) -> bool {
        self.latest().is_some_and(|run| run.is_active && !run.is_suspended)
    }
}

/// The agents, and what is there of earlier conversations.
struct ChatOffer {
    agents: Vec<AgentDefinition>,
    agent: String,
    conversations: Vec<ConversationEntry>,
    content: ChatContent,
}

#[derive(Template)]
#[template(path = "chat.html")]
struct ChatPage {
    page: Page,
    text: &'static ChatText,
    run_text: &'static RunsText,
    approvals_text: &'static ApprovalsText,
    /// `None` if the gateway cannot run agents.
    offer: Option<ChatOffer>,
}

#[derive(Template)]
#[template(path = "chat_fragment.html")]
struct ChatFragment {
    page: Page,
    text: &'static ChatText,
    run_text: &'static RunsText,
    approvals_text: &'static ApprovalsText,
    content: ChatContent,
}

async fn show(visitor: Visitor, State(console): State<ConsoleState>) -> Response {
    let language = visitor.language();
    let text = ChatText::of(language);
    let loaded = load_offer(&console, &visitor).await.map(|offer| ChatPage {
        page: Page::new(&visitor, Section::Chat, text.title),
        text,
        run_text: RunsText::of(language),
        approvals_text: ApprovalsText::of(language),
        offer,
    });
    page_response(&visitor, Section::Chat, loaded)
}

async fn show_fragment(visitor: Visitor, State(console): State<ConsoleState>) -> Response {
    let language = visitor.language();
    let text = ChatText::of(language);
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let loaded = load_content(&console, &visitor, query.get("conversation")).await;
    fragment_response(loaded.map(|content| ChatFragment {
        page: Page::new(&visitor, Section::Chat, text.title),
        text,
        run_text: RunsText::of(language),
        approvals_text: ApprovalsText::of(language),
        content,
    }))
}

/// Agents, earlier conversations and the current one; `None` if the gateway cannot run agents. `/agents` tells nothing about
/// that, because it lists agents without a model, too.
async fn load_offer(console: &ConsoleState, visitor: &Visitor) -> Result<Option<ChatOffer>, ApiFailure> {
    let role = visitor.role();
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let path = format!("/runs?limit={MAX_SCANNED_RUNS}");
    let Some(recent) = console.api.get_if_offered::<RunList>(role, &path).await? else { return Ok(None) };
    let Some(agents) = console.api.get_if_offered::<AgentList>(role, "/agents").await? else {
        return Ok(None);
    };
    let content = load_content(console, visitor, query.get("conversation")).await?;
    let used = content.latest().and_then(|run| run.details.agent.as_deref());
    let agent = Some(query.get("agent")).filter(|agent| !agent.is_empty()).or(used);
    Ok(Some(ChatOffer {
        agents: agents.agents,
        agent: agent.unwrap_or(DEFAULT_AGENT).to_owned(),
        conversations: conversations_of(recent.runs, &content.conversation),
        content,
    }))
}

/// The conversations of the latest runs, each with its latest question. Runs that belong to none are entries of their own.
fn conversations_of(runs: Vec<ListedRun>, current: &str) -> Vec<ConversationEntry> {
    let mut known = HashSet::new();
    let is_latest = |run: &ListedRun| match &run.conversation {
        Some(name) => known.insert(name.clone()),
        None => true,
    };
    let entry = |run: ListedRun| ConversationEntry {
        path: match &run.conversation {
            Some(name) => format!("/console/chat?conversation={}", url_encode(name)),
            None => format!("/console/runs/{}", url_encode(&run.run)),
        },
        question: shorten(run.question.as_deref().unwrap_or_default().trim(), 90).into_owned(),
        state: RunState::of_api(&run.state),
        created_at: run.created_at,
        is_current: run.conversation.as_deref() == Some(current),
    };
    runs.into_iter().filter(is_latest).map(entry).take(MAX_LISTED_CONVERSATIONS).collect()
}

/// Reads the latest runs of a conversation.
async fn load_content(
    console: &ConsoleState,
    visitor: &Visitor,
    conversation: &str,
) -> Result<ChatContent, ApiFailure> {
    let (role, language) = (visitor.role(), visitor.language());
    // The name comes from the address of the page.
    let conversation = toolyard_core::sanitize(conversation).0.into_owned();
    let mut content = ChatContent { runs: Vec::new(), older: None, graph: None, conversation };
    if content.conversation.is_empty() {
        return Ok(content);
    }
    let path = format!("/runs?conversation={}&limit={MAX_SHOWN_RUNS}", content.encoded_conversation());
    let list: RunList = console.api.get(role, &path).await?;
    if list.next.is_some() && list.runs.len() >= MAX_SHOWN_RUNS {
        content.older = Some(fill(ChatText::of(language).older, MAX_SHOWN_RUNS));
    }
    for listed in list.runs.into_iter().take(MAX_SHOWN_RUNS).rev() {
        let path = format!("/runs/{}", url_encode(&listed.run));
        let details: RunDetails = console.api.get(role, &path).await?;
        content.runs.push(RunModel::new(details, language, ReturnTo::Chat));
    }
    content.graph = content.latest().and_then(|run| {
        let page_of =
            |position| format!("{}?from={}", run.path, page_start(position, run.details.steps.len()));
        GraphModel::of_steps(&run.details.steps, GRAPH_WIDTH, language, &page_of)
    });
    Ok(content)
}

/// Starts a run, then shows the conversation.
async fn ask(State(console): State<ConsoleState>, form: SignedForm) -> Response {
    let text = ChatText::of(form.visitor.language());
    let question = form.fields.get("question").trim();
    if question.is_empty() {
        let hint = Some(text.empty_question_hint);
        let failure = ApiFailure::translated(StatusCode::BAD_REQUEST, text.empty_question, hint);
        return render_failure(&form.visitor, Section::Chat, &failure);
    }
    let conversation = match form.fields.get("conversation") {
        "" => match new_conversation_name() {
            Ok(name) => name,
            Err(failure) => return render_failure(&form.visitor, Section::Chat, &failure),
        },
        name => name.to_owned(),
    };
    let mut body = json!({"question": question, "conversation": conversation});
    if let Some(fields) = body.as_object_mut() {
        let agent = form.fields.get("agent");
        if !agent.is_empty() {
            fields.insert("agent".to_owned(), json!(agent));
        }
        for option in ["plan_only", "dry_run"] {
            if form.fields.find(option).is_some() {
                fields.insert(option.to_owned(), json!(true));
            }
        }
    }
    match console.api.post::<Value>(form.visitor.role(), "/runs", &body).await {
        Ok(_) => {
            Redirect::to(&format!("/console/chat?conversation={}", url_encode(&conversation))).into_response()
        }
        Err(failure) => render_failure(&form.visitor, Section::Chat, &failure),
    }
}

/// A name that no other conversation has.
fn new_conversation_name() -> Result<String, ApiFailure> {
    let number = getrandom::u64().map_err(|error| {
        let message = format!("the system has no random numbers: {error}");
        ApiFailure::of_console(StatusCode::INTERNAL_SERVER_ERROR, "no_random_numbers", message)
    })?;
    Ok(format!("console-{number:016x}"))
}
