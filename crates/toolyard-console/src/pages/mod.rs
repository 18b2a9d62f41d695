//! The pages: one file per page, each with its routes and its template in `templates/`.

mod agents;
mod approval_card;
mod approvals;
mod audit;
mod chat;
mod cluster;
mod import_rows;
mod overview;
mod run;
mod runs;
mod servers;
mod settings;
mod sign_in;
mod tool;
mod tools;

use axum::{
    Router,
    response::{Redirect, Response},
    routing::get,
};
use http::StatusCode;

use crate::{
    api::ApiFailure,
    assets,
    page::{Section, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::CommonText,
};

/// The routes of all pages.
pub(crate) fn routes() -> Router<ConsoleState> {
    Router::new()
        .merge(assets::routes())
        .merge(agents::routes())
        .merge(approvals::routes())
        .merge(audit::routes())
        .merge(chat::routes())
        .merge(cluster::routes())
        .merge(overview::routes())
        .merge(run::routes())
        .merge(runs::routes())
        .merge(servers::routes())
        .merge(settings::routes())
        .merge(sign_in::routes())
        .merge(tool::routes())
        .merge(tools::routes())
        .route("/console", get(async || Redirect::permanent("/")))
        .route("/console/", get(async || Redirect::permanent("/")))
        .fallback(unknown_page)
        .method_not_allowed_fallback(unknown_method)
}

async fn unknown_page(visitor: Visitor) -> Response {
    let text = CommonText::of(visitor.language());
    let failure = ApiFailure::translated(StatusCode::NOT_FOUND, text.not_found, Some(text.not_found_hint));
    render_failure(&visitor, Section::Other, &failure)
}

async fn unknown_method(visitor: Visitor) -> Response {
    let text = CommonText::of(visitor.language());
    let hint = Some(text.not_found_hint);
    let failure = ApiFailure::translated(StatusCode::METHOD_NOT_ALLOWED, text.method_not_allowed, hint);
    render_failure(&visitor, Section::Other, &failure)
}
