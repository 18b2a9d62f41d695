//! Tool calls that wait for approval, and servers whose tools do. The pages of the runs and servers decide on them.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use super::approval_card::{ApprovalCard, Decision, ReturnTo, approval_cards};
use crate::{
    api::{ApprovalList, ServerList},
    form_fields::FormFields,
    format::url_encode,
    page::{Notice, Page, Section, render, render_failure},
    request_context::{Visitor, pending_approvals},
    router::ConsoleState,
    text::ApprovalsText,
};

const MAX_SERVERS: usize = 40;

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    page: Page,
    text: &'static ApprovalsText,
    notice: Option<Notice>,
    /// None if the gateway has no agents.
    cards: Option<Vec<ApprovalCard>>,
    /// How many there are besides.
    more: Option<String>,
    /// Servers with tools that await approval: name, path and number of tools.
    servers: Vec<(String, String, usize)>,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/approvals", get(list)).route("/console/approvals/badge", get(show_badge))
}

/// The number of waiting approvals in the navigation, which a script keeps up to date.
#[derive(Template)]
#[template(path = "approvals_badge.html")]
struct ApprovalsBadge {
    page: Page,
}

async fn show_badge(State(state): State<ConsoleState>, mut visitor: Visitor) -> Response {
    visitor.pending_approvals = pending_approvals(&state, visitor.role()).await;
    render(&ApprovalsBadge { page: Page::new(&visitor, Section::Approvals, "") })
}

async fn list(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = ApprovalsText::of(visitor.language());
    let pending = match state.api.get_if_offered::<ApprovalList>(visitor.role(), "/approvals").await {
        Ok(pending) => pending,
        Err(failure) => return render_failure(&visitor, Section::Approvals, &failure),
    };
    let (cards, more) = match pending {
        Some(pending) => {
            let (cards, more) = approval_cards(pending.approvals, visitor.language(), ReturnTo::Approvals);
            (Some(cards), more)
        }
        None => (None, None),
    };
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let notice = Decision::of_name(query.get("decided")).map(|decision| match decision {
        Decision::AllowOnce => Notice::success(text.allowed),
        Decision::AllowRun => Notice::success(text.allowed_run),
        Decision::Deny => Notice::success(text.denied),
    });
    let page = Page::new(&visitor, Section::Approvals, text.title);
    let servers = state.api.get::<ServerList>(visitor.role(), "/servers").await.unwrap_or_default();
    let servers = servers.servers.into_iter().filter(|server| server.awaiting_approval > 0);
    let servers = servers.take(MAX_SERVERS).map(|server| {
        let path = format!("/console/servers/{}", url_encode(&server.name));
        (server.name, path, server.awaiting_approval)
    });
    render(&ApprovalsPage { page, text, notice, cards, more, servers: servers.collect() })
}
