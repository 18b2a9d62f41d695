//! What a visitor does about a run: approve, deny, resolve, cancel, resume.

use axum::{
    extract::{Path, State},
    response::{IntoResponse as _, Redirect, Response},
};
use serde_json::{Value, json};

use crate::{
    api::{ApiFailure, RunDetails},
    form_fields::SignedForm,
    format::url_encode,
    page::{Section, render_failure},
    router::ConsoleState,
};

/// Decides on a call that waits for approval.
pub(super) async fn decide(
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    form: SignedForm,
) -> Response {
    let body = match form.fields.get("decision") {
        "once" => json!({"allow": true, "scope": "once"}),
        "run" => json!({"allow": true, "scope": "run"}),
        // Anything else must not allow a call.
        _ => json!({"allow": false}),
    };
    let approval: i64 = form.fields.get("approval").parse().unwrap_or_default();
    act(&console, &form, &run, &format!("/approvals/{approval}"), &body).await
}

/// Records whether a step with an unknown outcome took effect.
pub(super) async fn resolve(
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    form: SignedForm,
) -> Response {
    let outcome = if form.fields.get("outcome") == "not_done" { "not_done" } else { "done" };
    let body = json!({"step": form.fields.get("step"), "outcome": outcome});
    act(&console, &form, &run, &format!("/runs/{}/resolve", url_encode(&run)), &body).await
}

pub(super) async fn cancel(
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    form: SignedForm,
) -> Response {
    act(&console, &form, &run, &format!("/runs/{}/cancel", url_encode(&run)), &json!({})).await
}

pub(super) async fn resume(
    State(console): State<ConsoleState>,
    Path(run): Path<String>,
    form: SignedForm,
) -> Response {
    act(&console, &form, &run, &format!("/runs/{}/resume", url_encode(&run)), &json!({})).await
}

/// Sends a request to the API, then leads back to the page of the form.
async fn act(console: &ConsoleState, form: &SignedForm, run: &str, path: &str, body: &Value) -> Response {
    let role = form.visitor.role();
    let done: Result<Value, ApiFailure> = console.api.post(role, path, body).await;
    if let Err(failure) = done {
        return render_failure(&form.visitor, Section::Runs, &failure);
    }
    let run_path = format!("/runs/{}", url_encode(run));
    if form.fields.get("origin") == "chat"
        && let Ok(RunDetails { conversation: Some(conversation), .. }) =
            console.api.get(role, &run_path).await
    {
        let target = format!("/console/chat?conversation={}", url_encode(&conversation));
        return Redirect::to(&target).into_response();
    }
    Redirect::to(&format!("/console{run_path}")).into_response()
}
