//! Session, language and theme of each request, and the layer that adds cookies and security headers to each response.

use axum::{
    extract::{FromRequestParts, Request, State},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};

use crate::{
    SIGN_IN_PATH,
    api::Overview,
    format::url_encode,
    router::ConsoleState,
    security_headers,
    session::{Role, SESSION_COOKIE, Session},
    text::Language,
};

const LANGUAGE_COOKIE: &str = "toolyard_lang";
const THEME_COOKIE: &str = "toolyard_theme";
const ASSETS_PATH: &str = "/console/assets/";
const PREFERENCE_MAX_AGE_SECONDS: u64 = 365 * 86_400;

/// Light or dark colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Theme {
    /// As the system prefers.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::System, Self::Light, Self::Dark].into_iter().find(|theme| theme.name() == name)
    }
}

/// Session, language, theme and address of a request: an extension that the layer adds before the handler runs.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) session: Option<Session>,
    pub(crate) language: Language,
    pub(crate) theme: Theme,
    pub(crate) path: String,
    pub(crate) query: String,
    /// Whether the browser uses HTTPS, as a proxy says.
    pub(crate) is_https: bool,
}

/// A visitor who is signed in. Others are sent to the sign-in page.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) session: Session,
    pub(crate) csrf: String,
    pub(crate) context: RequestContext,
    pub(crate) version: &'static str,
    /// Approvals that wait for a decision; `None` if the page does not need the number or it cannot be read.
    pub(crate) pending_approvals: Option<u64>,
}

impl Visitor {
    pub(crate) fn role(&self) -> Role {
        self.session.role
    }

    pub(crate) fn language(&self) -> Language {
        self.context.language
    }
}

impl FromRequestParts<ConsoleState> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &ConsoleState) -> Result<Self, Response> {
        let Some(context) = parts.extensions.get::<RequestContext>() else {
            return Err(StatusCode::INTERNAL_SERVER_ERROR.into_response());
        };
        let Some(session) = context.session.clone() else {
            let target = match (parts.method == http::Method::GET, context.path.as_str()) {
                (true, path) if path != "/" => {
                    let separator = if context.query.is_empty() { "" } else { "?" };
                    let next = format!("{path}{separator}{}", context.query);
                    format!("{SIGN_IN_PATH}?next={}", url_encode(&next))
                }
                _ => SIGN_IN_PATH.to_owned(),
            };
            return Err(Redirect::to(&target).into_response());
        };
        let csrf = state.sessions.csrf_token(&state.access.credential_hash(), &session);
        let context = context.clone();
        let pending_approvals = if parts.method == http::Method::GET && has_navigation(&context.path) {
            pending_approvals(state, session.role).await
        } else {
            None
        };
        Ok(Self { session, csrf, context, version: state.version, pending_approvals })
    }
}

/// Whether the response has the navigation, and the handler does not read the number of approvals itself.
fn has_navigation(path: &str) -> bool {
    let other_ends = ["/fragment", "/events", "/badge"];
    path != "/" && !other_ends.iter().any(|end| path.ends_with(end))
}

/// The number of approvals that wait for a decision. `/approvals` would read the logs of their runs.
pub(crate) async fn pending_approvals(state: &ConsoleState, role: Role) -> Option<u64> {
    let overview: Overview = state.api.get(role, "/overview").await.ok()?;
    overview.runs.pending_approvals
}

/// The context of a request, whether or not somebody is signed in.
impl FromRequestParts<ConsoleState> for RequestContext {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &ConsoleState) -> Result<Self, Response> {
        let context = parts.extensions.get::<Self>().cloned();
        context.ok_or_else(|| StatusCode::INTERNAL_SERVER_ERROR.into_response())
    }
}

/// The layer around all pages.
pub(crate) async fn prepare(State(state): State<ConsoleState>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let is_https = headers.get("x-forwarded-proto").is_some_and(|value| value == "https");
    let mut cookies = Vec::new();
    let language = preference(&query, "lang", headers, LANGUAGE_COOKIE, Language::parse);
    let theme = preference(&query, "theme", headers, THEME_COOKIE, Theme::parse);
    if let Some((language, true)) = language {
        cookies.push(preference_cookie(LANGUAGE_COOKIE, language.code()));
    }
    if let Some((theme, true)) = theme {
        cookies.push(preference_cookie(THEME_COOKIE, theme.name()));
    }
    let credential = state.access.credential_hash();
    let mut session =
        cookie(headers, SESSION_COOKIE).and_then(|value| state.sessions.open(&credential, value));
    // Assets are cached by browsers and proxies, which must not keep a session with them.
    let is_asset = request.uri().path().starts_with(ASSETS_PATH);
    if session.is_none()
        && !is_asset
        && state.access.is_open()
        && let Ok((opened, value)) = state.sessions.create(&credential, Role::Caller)
    {
        cookies.extend(session_cookie(&value, is_https));
        session = Some(opened);
    }
    let context = RequestContext {
        session,
        language: language.map_or_else(|| Language::of_header(headers), |(language, _)| language),
        theme: theme.map(|(theme, _)| theme).unwrap_or_default(),
        path: request.uri().path().to_owned(),
        query,
        is_https,
    };
    request.extensions_mut().insert(context);
    let mut response = next.run(request).await;
    // A handler that signs in or out has the last word about the session.
    let has_session_cookie = response.headers().contains_key(header::SET_COOKIE);
    for cookie in cookies {
        let is_session = cookie.as_bytes().starts_with(SESSION_COOKIE.as_bytes());
        if !(is_session && has_session_cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    security_headers::add(response.headers_mut());
    response
}

/// A choice in the query, or else in a cookie; and whether it is new.
fn preference<T>(
    query: &str,
    parameter: &str,
    headers: &HeaderMap,
    cookie_name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<(T, bool)> {
    let chosen = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == parameter);
    let chosen = chosen.and_then(|(_, value)| parse(&value)).map(|value| (value, true));
    chosen.or_else(|| cookie(headers, cookie_name).and_then(parse).map(|value| (value, false)))
}

/// The value of a cookie.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(found, value)| (found == name).then_some(value))
}

fn preference_cookie(name: &str, value: &'static str) -> HeaderValue {
    let text =
        format!("{name}={value}; Path=/; Max-Age={PREFERENCE_MAX_AGE_SECONDS}; HttpOnly; SameSite=Strict");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

/// The cookie of a session; an empty value ends it.
///
/// `Lax`, because a link in a web mail or a web chat must find the session. No `GET` changes anything but the one-time link,
/// which needs a valid code; every `POST` needs the CSRF token and the same origin.
pub(crate) fn session_cookie(value: &str, is_https: bool) -> Option<HeaderValue> {
    let max_age = if value.is_empty() { 0 } else { crate::session::SESSION_SECONDS };
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{SESSION_COOKIE}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}");
    let mut cookie = HeaderValue::from_str(&text).ok()?;
    cookie.set_sensitive(true);
    Some(cookie)
}
