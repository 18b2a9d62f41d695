//! Tool calls that wait for approval, and decisions on them.

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::{get, post},
};
use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    api::{ApprovalList, PendingApproval},
    form_fields::SignedForm,
    format::{rfc3339, shorten, time, url_encode},
    page::{Notice, Page, Section, render_failure, render_with},
    request_context::Visitor,
    router::ConsoleState,
    text::{ApprovalsText, fill},
};

/// Longer arguments cannot be approved here, because nobody would see all of them.
const MAX_TEXT_BYTES: usize = 20_000;
/// The texts of all approvals on the page; the others follow once these are decided.
const MAX_PAGE_TEXT_BYTES: usize = 40_000;
const MAX_SHOWN_APPROVALS: usize = 40;

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    page: Page,
    text: &'static ApprovalsText,
    notice: Option<Notice>,
    /// None if the gateway has no agents.
    rows: Option<Vec<ApprovalRow>>,
    /// How many there are besides.
    more: Option<String>,
}

struct ApprovalRow {
    approval: PendingApproval,
    run_path: String,
    shown_text: String,
    is_too_long: bool,
    datetime: String,
    requested: String,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/approvals", get(list)).route("/console/approvals/{approval}", post(decide))
}

async fn list(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    render_list(&state, &visitor, StatusCode::OK, None).await
}

async fn render_list(
    state: &ConsoleState,
    visitor: &Visitor,
    status: StatusCode,
    notice: Option<Notice>,
) -> Response {
    let text = ApprovalsText::of(visitor.language());
    let pending = state.api.get_if_offered::<ApprovalList>(visitor.role(), "/approvals").await;
    let pending = match pending {
        Ok(pending) => pending,
        Err(failure) => return render_failure(visitor, Section::Approvals, &failure),
    };
    let (rows, more) = match pending {
        Some(pending) => {
            let count = pending.approvals.len();
            let rows = shown_rows(pending.approvals);
            let more = count.saturating_sub(rows.len());
            (Some(rows), (more > 0).then(|| fill(text.more, more)))
        }
        None => (None, None),
    };
    let page = Page::new(visitor, Section::Approvals, text.title);
    render_with(status, &ApprovalsPage { page, text, notice, rows, more })
}

/// The oldest approvals, as many as fit on a page.
fn shown_rows(approvals: Vec<PendingApproval>) -> Vec<ApprovalRow> {
    let mut text_bytes = 0;
    let fits = |approval: &PendingApproval| {
        let is_first = text_bytes == 0;
        text_bytes += approval.text.len().min(MAX_TEXT_BYTES);
        is_first || text_bytes <= MAX_PAGE_TEXT_BYTES
    };
    approvals.into_iter().take(MAX_SHOWN_APPROVALS).take_while(fits).map(ApprovalRow::of).collect()
}

impl ApprovalRow {
    fn of(approval: PendingApproval) -> Self {
        Self {
            run_path: format!("/console/runs/{}", url_encode(&approval.run)),
            shown_text: match approval.text.len() > MAX_TEXT_BYTES {
                true => shorten(&approval.text, MAX_TEXT_BYTES / 4).into_owned(),
                false => approval.text.clone(),
            },
            is_too_long: approval.text.len() > MAX_TEXT_BYTES,
            datetime: rfc3339(approval.requested_at),
            requested: time(approval.requested_at),
            approval,
        }
    }
}

async fn decide(State(state): State<ConsoleState>, Path(approval): Path<i64>, form: SignedForm) -> Response {
    let SignedForm { visitor, fields } = form;
    let text = ApprovalsText::of(visitor.language());
    let (body, done) = match fields.get("decision") {
        "allow" => (json!({ "allow": true }), text.allowed),
        "allow-run" => (json!({ "allow": true, "scope": "run" }), text.allowed_run),
        // Everything else is a denial.
        _ => (json!({ "allow": false }), text.denied),
    };
    let path = format!("/approvals/{approval}");
    match state.api.post::<Value>(visitor.role(), &path, &body).await {
        Ok(_) => render_list(&state, &visitor, StatusCode::OK, Some(Notice::success(done))).await,
        Err(failure) => render_list(&state, &visitor, failure.status, Some(Notice::failure(&failure))).await,
    }
}
