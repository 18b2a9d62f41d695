//! Signing in and out, and one-time codes for `toolyard open`.

use askama::Template;
use axum::{
    Router,
    extract::State,
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::json;

use crate::{
    OPERATOR_HEADER, SIGN_IN_CODE_PATH, SIGN_IN_PATH,
    form_fields::{FormFields, SignedForm, is_same_origin},
    page::{Notice, Page, render_with},
    request_context::{RequestContext, session_cookie},
    router::ConsoleState,
    session::Role,
    text::SignInText,
};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    page: Page,
    text: &'static SignInText,
    notice: Option<Notice>,
    next: String,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new()
        .route(SIGN_IN_PATH, get(show).post(sign_in_with_token))
        .route("/console/sign-out", post(sign_out).get(async || Redirect::to("/")))
        .route(SIGN_IN_CODE_PATH, post(create_code))
}

/// The sign-in page, or signing in with a one-time code.
async fn show(State(state): State<ConsoleState>, context: RequestContext, method: Method) -> Response {
    let query = FormFields::parse(context.query.as_bytes());
    let text = SignInText::of(context.language);
    let next = console_path_or_root(query.get("next")).to_owned();
    let Some(code) = query.find("code") else {
        let notice = query.find("signed-out").map(|_| Notice::success(text.signed_out));
        return page(&context, StatusCode::OK, notice, next);
    };
    // HEAD is a preview of the link, not its use.
    if method == Method::GET && state.codes.consume(code) {
        return sign_in(&state, &context, Role::Operator, &next);
    }
    let notice = Notice::error(text.expired_code).with_hint(Some(text.expired_code_hint));
    page(&context, StatusCode::FORBIDDEN, Some(notice), next)
}

fn page(context: &RequestContext, status: StatusCode, notice: Option<Notice>, next: String) -> Response {
    let text = SignInText::of(context.language);
    render_with(status, &SignInPage { page: Page::signed_out(context, text.title), text, notice, next })
}

async fn sign_in_with_token(
    State(state): State<ConsoleState>,
    context: RequestContext,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fields = FormFields::parse(&body);
    let next = console_path_or_root(fields.get("next")).to_owned();
    // Another site could sign a visitor in to a gateway of its own.
    if is_same_origin(&headers) && state.access.accepts_token(fields.get("token").trim()) {
        return sign_in(&state, &context, Role::Caller, &next);
    }
    let text = SignInText::of(context.language);
    let notice = Notice::error(text.wrong_token).with_hint(Some(text.wrong_token_hint));
    page(&context, StatusCode::FORBIDDEN, Some(notice), next)
}

fn sign_in(state: &ConsoleState, context: &RequestContext, role: Role, next: &str) -> Response {
    if let Some(session) = &context.session {
        state.sessions.revoke(session);
    }
    let Ok((_, value)) = state.sessions.create(&state.access.credential_hash(), role) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = Redirect::to(next).into_response();
    if let Some(cookie) = session_cookie(&value, context.is_https) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

async fn sign_out(State(state): State<ConsoleState>, form: SignedForm) -> Response {
    state.sessions.revoke(&form.visitor.session);
    let mut response = Redirect::to("/console/sign-in?signed-out").into_response();
    if let Some(cookie) = session_cookie("", form.visitor.context.is_https) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// A one-time code for whoever knows the operator's secret, which is in a private file of the gateway's user.
async fn create_code(State(state): State<ConsoleState>, headers: HeaderMap) -> Response {
    let presented = headers.get(OPERATOR_HEADER).map(http::HeaderValue::as_bytes).unwrap_or_default();
    let is_operator = state.operator_secret.as_ref().is_some_and(|secret| {
        // Hashes are compared in constant time.
        !secret.is_empty() && blake3::hash(secret.as_bytes()) == blake3::hash(presented)
    });
    if !is_operator {
        return StatusCode::FORBIDDEN.into_response();
    }
    match state.codes.create() {
        Ok(code) => {
            let headers = [(header::CONTENT_TYPE, "application/json")];
            (headers, json!({ "code": code }).to_string()).into_response()
        }
        Err(error) => {
            tracing::warn!(%error, "failed to create a sign-in code of the console");
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

/// A path of the console to continue with; `/` if the given one is another.
fn console_path_or_root(path: &str) -> &str {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if path.starts_with("/console/") && is_plain { path } else { "/" }
}
