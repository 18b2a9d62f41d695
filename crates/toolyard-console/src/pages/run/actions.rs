//! Changes that a visitor makes to a run: approve, deny, resolve, cancel, resume.

use axum::{
    extract::{Path, State},
    response::{IntoResponse as _, Redirect, Response},
};
use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    api::{ApiFailure, RunDetails},
    form_fields::SignedForm,
    format::url_encode,
    page::{Section, render_failure},
    pages::approval_card::{Decision, ReturnTo, is_too_long},
    router::ConsoleState,
    text::ApprovalsText,
};

/// Decides on a call that waits for approval.
pub(super) async fn decide(
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    form: SignedForm,
) -> Response {
    let (Some(decision), Ok(approval)) =
        (Decision::parse(&form.fields), form.fields.get("approval").parse::<i64>())
    else {
        return form.render_invalid(Section::Approvals);
    };
    if decision.is_allowed()
        && let Err(failure) = check_whole_call_is_shown(&console, &form, &run, approval).await
    {
        return render_failure(&form.visitor, Section::Approvals, &failure);
    }
    let path = format!("/approvals/{approval}");
    if let Err(failure) = console.api.post::<Value>(form.visitor.role(), &path, &decision.body()).await {
        return render_failure(&form.visitor, Section::Approvals, &failure);
    }
    match ReturnTo::parse(&form.fields) {
        ReturnTo::Approvals => {
            Redirect::to(&format!("/console/approvals?decided={}", decision.name())).into_response()
        }
        ReturnTo::Run | ReturnTo::Chat => lead_back(&console, &form, &run).await,
    }
}

/// Fails unless the page of the run shows the whole call. The page has no button to allow another one, but a client may send the
/// form without the button.
async fn check_whole_call_is_shown(
    console: &ConsoleState,
    form: &SignedForm,
    run: &str,
    approval: i64,
) -> Result<(), ApiFailure> {
    let path = format!("/runs/{}", url_encode(run));
    let details: RunDetails = console.api.get(form.visitor.role(), &path).await?;
    match details.pending_approvals.iter().find(|pending| pending.approval == approval) {
        Some(pending) if is_too_long(pending) => {
            let text = ApprovalsText::of(form.visitor.language());
            Err(ApiFailure::translated(StatusCode::FORBIDDEN, text.too_long, None))
        }
        Some(_) => Ok(()),
        None => Err(ApiFailure::of_console(
            StatusCode::NOT_FOUND,
            "approval_not_found",
            format!("the run has no pending approval with the id {approval}"),
        )),
    }
}

/// Records whether a step with an unknown outcome took effect.
pub(super) async fn resolve(
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    form: SignedForm,
) -> Response {
    let outcome = form.fields.get("outcome");
    if !["done", "not_done"].contains(&outcome) {
        return form.render_invalid(Section::Runs);
    }
    let body = json!({"run": run, "step": form.fields.get("step"), "outcome": outcome});
    post_and_redirect(&console, &form, &run, "/unknown-steps", &body).await
}

pub(super) async fn cancel(
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    form: SignedForm,
) -> Response {
    let path = format!("/runs/{}/cancel", url_encode(&run));
    post_and_redirect(&console, &form, &run, &path, &json!({})).await
}

pub(super) async fn resume(
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    form: SignedForm,
) -> Response {
    let path = format!("/runs/{}/resume", url_encode(&run));
    post_and_redirect(&console, &form, &run, &path, &json!({})).await
}

/// Sends a request to the API, then leads back to the page of the form.
async fn post_and_redirect(
    console: &ConsoleState,
    form: &SignedForm,
    run: &str,
    path: &str,
    body: &Value,
) -> Response {
    let done: Result<Value, ApiFailure> = console.api.post(form.visitor.role(), path, body).await;
    match done {
        Ok(_) => lead_back(console, form, run).await,
        Err(failure) => render_failure(&form.visitor, Section::Runs, &failure),
    }
}

/// A redirect to the page of the run, or to the chat with its conversation.
async fn lead_back(console: &ConsoleState, form: &SignedForm, run: &str) -> Response {
    let run_path = format!("/runs/{}", url_encode(run));
    if ReturnTo::parse(&form.fields) == ReturnTo::Chat
        && let Ok(RunDetails { conversation: Some(conversation), .. }) =
            console.api.get(form.visitor.role(), &run_path).await
    {
        let target = format!("/console/chat?conversation={}", url_encode(&conversation));
        return Redirect::to(&target).into_response();
    }
    Redirect::to(&format!("/console{run_path}")).into_response()
}
