//! The pages of a sign-in. Nothing that identifies one is logged: neither tickets, states and codes nor what was entered.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    response::{IntoResponse as _, Response},
    routing::get,
};
use http::{HeaderMap, StatusCode};
use toolyard_core::{CallerIdentity, sanitize};
use toolyard_mcp_client::oauth::{AuthorizationQuery, OAuthError};

use super::{
    browser::{is_browser, is_own_form, secret, set_cookie},
    page::Page,
    pending::{ContinuedSignIn, Identification, SecretHash, SignInSubject, StepError, hash, random_hex},
    person::{Proof, is_key_of, is_same_caller},
    service::SignIns,
};
use crate::api::AuthenticatedCaller;

/// Where authorization servers of upstream servers redirect to.
const CALLBACK_PATH: &str = "/oauth/callback";
/// Where the issuer of the callers' access tokens redirects to.
const PERSON_CALLBACK_PATH: &str = "/sign-in/callback";
const MAX_FORM_BYTES: usize = 4_096;

const REPEAT: &str = "Repeat the call in your client to get a new link.";

/// Whether a path is one of these pages.
pub fn is_sign_in_path(path: &str) -> bool {
    path.starts_with("/sign-in/") || path == CALLBACK_PATH
}

impl SignIns {
    /// The pages. They authenticate their visitors themselves.
    pub fn router(self: &Arc<Self>) -> Router {
        router(Arc::clone(self))
    }
}

fn router(sign_ins: Arc<SignIns>) -> Router {
    Router::new()
        .route("/sign-in/{ticket}", get(show).post(submit))
        .route(PERSON_CALLBACK_PATH, get(identified))
        .route(CALLBACK_PATH, get(authorized))
        .fallback(|| async { invalid_link() })
        .method_not_allowed_fallback(|| async {
            refusal(StatusCode::METHOD_NOT_ALLOWED, "This is not possible here.")
        })
        .with_state(sign_ins)
}

/// Shows for whom and what the sign-in is.
async fn show(
    State(sign_ins): State<Arc<SignIns>>,
    Path(ticket): Path<String>,
    headers: HeaderMap,
) -> Response {
    let offered = sign_ins.pending().offered(&ticket);
    let Some((id, subject)) = offered else { return invalid_link() };
    let proof = Proof::of(subject.caller.as_deref(), sign_ins.access.authenticator());
    let mut page = Page::new(StatusCode::OK, "Sign in").facts(&facts(&subject));
    page = match &proof {
        Proof::Link => page.form(false, "Sign in"),
        Proof::ApiKey(_) => page
            .text("Enter your API key of this gateway, so that nobody else can connect an account in your name.")
            .form(true, "Continue"),
        Proof::Proxy => page.form(false, "Continue"),
        Proof::Issuer(person_sign_in) => page
            .text(&format!("First sign in at {}, so that the gateway knows that it is you.", person_sign_in.issuer()))
            .form(false, "Continue"),
        Proof::Unavailable(setting) => return unavailable(&subject, setting),
    };
    let cookie = match secret(&headers, &sign_ins.public_url, &id) {
        Some(_) => None,
        None => random_hex::<32>().and_then(|secret| set_cookie(&sign_ins.public_url, &id, &secret)),
    };
    page.with_cookie(cookie).into_response()
}

/// The person claims to be the caller.
async fn submit(
    State(sign_ins): State<Arc<SignIns>>,
    Path(ticket): Path<String>,
    AuthenticatedCaller(identity): AuthenticatedCaller,
    headers: HeaderMap,
    body: String,
) -> Response {
    let offered = sign_ins.pending().offered(&ticket);
    let Some((id, subject)) = offered else { return invalid_link() };
    let browser = secret(&headers, &sign_ins.public_url, &id).map(hash);
    let Some(browser) = browser.filter(|_| is_own_form(&headers, &sign_ins.public_url)) else {
        return refusal(
            StatusCode::FORBIDDEN,
            "The form was not sent from the page of this link, or the browser refuses its cookie.",
        );
    };
    if !sign_ins.pending().count_attempt(&id) {
        sign_ins.end(&id, false);
        return refusal(StatusCode::FORBIDDEN, "There were too many attempts with this link.");
    }
    let proof = Proof::of(subject.caller.as_deref(), sign_ins.access.authenticator());
    let is_caller = match (&proof, subject.caller.as_deref()) {
        (Proof::Link, _) => true,
        (Proof::ApiKey(authenticator), Some(caller)) => {
            match is_key_of(&**authenticator, &form_value(&body, "key"), caller).await {
                Ok(is_caller) => is_caller,
                Err(error) => return refusal(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
            }
        }
        (Proof::Proxy, Some(caller)) => is_same_caller(&identity, caller),
        (Proof::Issuer(person_sign_in), _) => {
            return begin_identification(&sign_ins, &ticket, browser, Arc::clone(person_sign_in)).await;
        }
        (Proof::Unavailable(setting), _) => return unavailable(&subject, setting),
        _ => false,
    };
    if !is_caller {
        return other_person(&subject, matches!(proof, Proof::ApiKey(_)));
    }
    let redeemed = sign_ins.pending().redeem_ticket(&ticket);
    match redeemed {
        Some(continued) => begin_authorization(&sign_ins, continued, browser).await,
        None => invalid_link(),
    }
}

/// Sends the person to the issuer of the callers' access tokens.
async fn begin_identification(
    sign_ins: &SignIns,
    ticket: &str,
    browser: SecretHash,
    person_sign_in: Arc<dyn toolyard_core::PersonSignIn>,
) -> Response {
    let redeemed = sign_ins.pending().redeem_ticket(ticket);
    let Some(continued) = redeemed else { return invalid_link() };
    let redirect_uri = sign_ins.public_url.at(PERSON_CALLBACK_PATH);
    match person_sign_in.begin(&redirect_uri).await {
        Ok(login) => {
            let url = login.url.clone();
            let page = Page::new(StatusCode::OK, "Sign in")
                .text(&format!("Continue at {}.", person_sign_in.issuer()))
                .leading_to(&url);
            let identification = Identification { person_sign_in, login, browser };
            sign_ins.pending().identify(&continued.id, identification);
            page.into_response()
        }
        Err(error) => fail(sign_ins, &continued.id, &error.to_string()),
    }
}

/// The issuer of the callers' access tokens says who the person is.
async fn identified(
    State(sign_ins): State<Arc<SignIns>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(query) = query.as_deref().and_then(AuthorizationQuery::parse) else { return invalid_link() };
    let is_browser =
        |id: &str, expected: &SecretHash| is_browser(&headers, &sign_ins.public_url, id, expected);
    let taken = sign_ins.pending().take_identification(query.state.expose(), is_browser);
    let (continued, identification) = match taken {
        Ok(taken) => taken,
        Err(error) => return step_refusal(error),
    };
    let response = match query.outcome {
        Ok(response) => response,
        Err(reason) => return fail(&sign_ins, &continued.id, &format!("The issuer refused: {reason}")),
    };
    let Identification { person_sign_in, login, browser } = identification;
    let person = person_sign_in.finish(login, response.code.expose(), response.issuer.as_deref()).await;
    match person {
        Ok(person) if is_caller(&continued.subject, &person) => {
            begin_authorization(&sign_ins, continued, browser).await
        }
        Ok(_) => {
            sign_ins.pending().remove(&continued.id);
            sign_ins.end(&continued.id, false);
            other_person(&continued.subject, false)
        }
        Err(error) => fail(&sign_ins, &continued.id, &error.to_string()),
    }
}

fn is_caller(subject: &SignInSubject, person: &CallerIdentity) -> bool {
    subject.caller.as_ref().is_some_and(|caller| is_same_caller(person, caller))
}

/// Sends the person, who is the caller, to the authorization server of the upstream server.
async fn begin_authorization(
    sign_ins: &SignIns,
    continued: ContinuedSignIn,
    browser: SecretHash,
) -> Response {
    let ContinuedSignIn { id, subject, challenge } = continued;
    let redirect_uri = sign_ins.public_url.at(CALLBACK_PATH);
    match subject.authorizer.begin_web_login(&redirect_uri, challenge.as_deref()).await {
        Ok(login) => {
            let page = Page::new(StatusCode::OK, "Sign in")
                .facts(&facts(&subject))
                .text(&format!("Continue at {}.", login.origin()))
                .leading_to(login.url());
            sign_ins.pending().authorize(&id, login, browser);
            page.into_response()
        }
        Err(error) => fail(sign_ins, &id, &public_reason(&error)),
    }
}

/// Why a sign-in failed, for the person. Problems of the token store name files of the gateway, which only its log may.
fn public_reason(error: &OAuthError) -> String {
    match error {
        OAuthError::Store(error) => {
            tracing::error!(%error, "the tokens of a sign-in cannot be stored");
            "The gateway cannot store the tokens. Tell its operator.".to_owned()
        }
        other => other.to_string(),
    }
}

/// The authorization server of the upstream server sends the person back.
async fn authorized(
    State(sign_ins): State<Arc<SignIns>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(query) = query.as_deref().and_then(AuthorizationQuery::parse) else { return invalid_link() };
    let is_browser =
        |id: &str, expected: &SecretHash| is_browser(&headers, &sign_ins.public_url, id, expected);
    let taken = sign_ins.pending().take_login(query.state.expose(), is_browser);
    let (id, subject, login) = match taken {
        Ok(taken) => taken,
        Err(error) => return step_refusal(error),
    };
    let outcome = match query.outcome {
        Ok(response) => login.finish(response).await.map_err(|error| public_reason(&error)),
        Err(reason) => Err(format!("The authorization server refused: {reason}")),
    };
    sign_ins.end(&id, outcome.is_ok());
    let caller = subject.caller.as_ref().map(|caller| caller.audit_name());
    match outcome {
        Ok(()) => {
            tracing::info!(server = subject.server, caller = caller.as_deref(), "signed in");
            Page::new(StatusCode::OK, "Done")
                .facts(&facts(&subject))
                .text("You are signed in. Close this page and return to your client; it can repeat the call now.")
                .into_response()
        }
        Err(reason) => {
            tracing::warn!(server = subject.server, caller = caller.as_deref(), reason, "sign-in failed");
            refusal(StatusCode::BAD_GATEWAY, &reason)
        }
    }
}

fn facts(subject: &SignInSubject) -> Vec<(&'static str, &str)> {
    let caller = subject.caller.as_ref().map_or("the operator of this gateway", |caller| &*caller.name);
    vec![("Server", &*subject.server), ("For", caller)]
}

/// One page for unknown, used and expired links, so that nobody learns which it is.
fn invalid_link() -> Response {
    let page = Page::new(StatusCode::NOT_FOUND, "This link is not valid");
    page.error("It was used already, is older than ten minutes, or never existed.")
        .text(REPEAT)
        .into_response()
}

fn step_refusal(error: StepError) -> Response {
    match error {
        StepError::Unknown => invalid_link(),
        StepError::OtherBrowser => refusal(
            StatusCode::FORBIDDEN,
            "This sign-in was begun in another browser. If somebody sent you here, do not go on: they would get your access.",
        ),
    }
}

fn refusal(status: StatusCode, reason: &str) -> Response {
    let page = Page::new(status, "The sign-in failed");
    page.error(&sanitize(reason).0).text(REPEAT).into_response()
}

/// Ends a sign-in that cannot go on.
fn fail(sign_ins: &SignIns, id: &str, reason: &str) -> Response {
    sign_ins.pending().remove(id);
    sign_ins.end(id, false);
    refusal(StatusCode::BAD_GATEWAY, reason)
}

fn unavailable(subject: &SignInSubject, setting: &str) -> Response {
    let reason =
        format!("The gateway cannot check who you are. Its operator must change the settings: {setting}.");
    let page = Page::new(StatusCode::NOT_IMPLEMENTED, "The sign-in is not possible");
    page.facts(&facts(subject)).error(&reason).into_response()
}

fn other_person(subject: &SignInSubject, by_key: bool) -> Response {
    let page = Page::new(StatusCode::FORBIDDEN, "This link is for somebody else").facts(&facts(subject));
    let reason = "Only this caller may use the link. If somebody sent it to you, do not go on: they would get your access.";
    if by_key {
        return page
            .error("This is not the API key of this caller.")
            .text(reason)
            .form(true, "Continue")
            .into_response();
    }
    page.error(reason).into_response()
}

/// A value of a submitted form; empty if it is missing.
fn form_value(body: &str, name: &str) -> String {
    let body = if body.len() > MAX_FORM_BYTES { "" } else { body };
    let mut fields = form_urlencoded::parse(body.as_bytes());
    fields.find(|(key, _)| key == name).map_or_else(String::new, |(_, value)| value.into_owned())
}
