//! The chat: a conversation with an agent, its plan drawn beside it, and approvals in place.

use std::collections::HashSet;

use askama::Template;
use axum::{
    Router,
    extract::{Query, State},
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::run::{GraphModel, RunModel, run_state};
use crate::{
    api::{AgentList, AgentView, ApiFailure, RunDetails, RunList, StartedRun},
    form_fields::SignedForm,
    format::{shorten, url_encode},
    page::{Page, Section, render, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::{ChatText, RunsText},
};

/// Runs among which the conversations are found.
const MAX_SCANNED_RUNS: usize = 40;
/// Conversations in the list of earlier ones.
const MAX_LISTED_CONVERSATIONS: usize = 20;
/// Width for which the graph is laid out.
const GRAPH_WIDTH: i32 = 520;
/// Agent that is chosen first.
const DEFAULT_AGENT: &str = "assistant";

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new()
        .route("/console/chat", get(show).post(ask))
        .route("/console/chat/fragment", get(show_fragment))
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ChatQuery {
    conversation: String,
    agent: String,
}

/// An earlier conversation, or a run that belongs to none.
struct ConversationEntry {
    path: String,
    question: String,
    state_class: &'static str,
    state_label: &'static str,
    created_at: i64,
    is_current: bool,
}

/// The parts of the page that change while a run is under way.
struct ChatContent {
    /// The runs of the conversation, oldest first.
    runs: Vec<RunModel>,
    graph: Option<GraphModel>,
    conversations: Vec<ConversationEntry>,
    conversation: String,
    /// Where forms lead back to.
    origin: &'static str,
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
}

#[derive(Template)]
#[template(path = "chat.html")]
struct ChatPage {
    page: Page,
    text: &'static ChatText,
    run_text: &'static RunsText,
    /// Empty if the gateway has no agents.
    agents: Vec<AgentView>,
    agent: String,
    content: ChatContent,
}

#[derive(Template)]
#[template(path = "chat_fragment.html")]
struct ChatFragment {
    page: Page,
    text: &'static ChatText,
    run_text: &'static RunsText,
    content: ChatContent,
}

async fn show(
    visitor: Visitor,
    State(console): State<ConsoleState>,
    Query(query): Query<ChatQuery>,
) -> Response {
    let agents = match console.api.get_if_offered::<AgentList>(visitor.role(), "/agents").await {
        Ok(list) => list.unwrap_or_default().agents,
        Err(failure) => return render_failure(&visitor, Section::Chat, &failure),
    };
    let content = match load(&console, &visitor, &query.conversation).await {
        Ok(content) => content,
        Err(failure) => return render_failure(&visitor, Section::Chat, &failure),
    };
    let text = ChatText::of(visitor.language());
    let used = content.latest().and_then(|run| run.agent.clone());
    let agent = Some(query.agent).filter(|agent| !agent.is_empty()).or(used);
    render(&ChatPage {
        page: Page::new(&visitor, Section::Chat, text.title),
        text,
        run_text: RunsText::of(visitor.language()),
        agents,
        agent: agent.unwrap_or_else(|| DEFAULT_AGENT.to_owned()),
        content,
    })
}

async fn show_fragment(
    visitor: Visitor,
    State(console): State<ConsoleState>,
    Query(query): Query<ChatQuery>,
) -> Response {
    match load(&console, &visitor, &query.conversation).await {
        Ok(content) => {
            let text = ChatText::of(visitor.language());
            let page = Page::new(&visitor, Section::Chat, text.title);
            render(&ChatFragment { page, text, run_text: RunsText::of(visitor.language()), content })
        }
        Err(failure) => failure.status.into_response(),
    }
}

/// Reads the latest runs, and from them the conversation and the earlier ones.
async fn load(
    console: &ConsoleState,
    visitor: &Visitor,
    conversation: &str,
) -> Result<ChatContent, ApiFailure> {
    let (role, language) = (visitor.role(), visitor.language());
    // The name comes from the address of the page.
    let conversation = &*toolyard_core::sanitize(conversation).0;
    let run_text = RunsText::of(language);
    let path = format!("/runs?limit={MAX_SCANNED_RUNS}");
    let list: RunList = console.api.get_if_offered(role, &path).await?.unwrap_or_default();
    let (mut runs, mut conversations) = (Vec::new(), Vec::new());
    let mut known = HashSet::new();
    for listed in list.runs.into_iter().take(MAX_SCANNED_RUNS) {
        // The list does not say to which conversation a run belongs.
        let path = format!("/runs/{}", url_encode(&listed.run));
        let Ok(details) = console.api.get::<RunDetails>(role, &path).await else { continue };
        let name = details.conversation.clone();
        if name.as_ref().is_none_or(|name| known.insert(name.clone())) {
            let (state_class, state_label) = run_state(&listed.state, run_text);
            conversations.push(ConversationEntry {
                path: match &name {
                    Some(name) => format!("/console/chat?conversation={}", url_encode(name)),
                    None => format!("/console{path}"),
                },
                question: shorten(details.question.as_deref().unwrap_or_default().trim(), 90).into_owned(),
                state_class,
                state_label,
                created_at: listed.created_at,
                is_current: name.as_deref() == Some(conversation),
            });
        }
        if !conversation.is_empty() && name.as_deref() == Some(conversation) {
            runs.push(RunModel::new(details, run_text));
        }
    }
    conversations.truncate(MAX_LISTED_CONVERSATIONS);
    runs.reverse();
    let graph = runs.last().and_then(|run: &RunModel| {
        let run_path = run.path.clone();
        GraphModel::of_steps(&run.steps, GRAPH_WIDTH, language, &|_| run_path.clone())
    });
    Ok(ChatContent { runs, graph, conversations, conversation: conversation.to_owned(), origin: "chat" })
}

/// Starts a run, then shows the conversation.
async fn ask(State(console): State<ConsoleState>, form: SignedForm) -> Response {
    let text = ChatText::of(form.visitor.language());
    let question = form.fields.get("question").trim();
    if question.is_empty() {
        let failure = ApiFailure {
            hint: Some(text.empty_question_hint.to_owned()),
            ..ApiFailure::of_status(StatusCode::BAD_REQUEST, text.empty_question)
        };
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
    match console.api.post::<StartedRun>(form.visitor.role(), "/runs", &body).await {
        Ok(_) => {
            Redirect::to(&format!("/console/chat?conversation={}", url_encode(&conversation))).into_response()
        }
        Err(failure) => render_failure(&form.visitor, Section::Chat, &failure),
    }
}

/// A name that no other conversation has.
fn new_conversation_name() -> Result<String, ApiFailure> {
    let number =
        getrandom::u64().map_err(|error| ApiFailure::internal(format!("no random numbers: {error}")))?;
    Ok(format!("console-{number:016x}"))
}
