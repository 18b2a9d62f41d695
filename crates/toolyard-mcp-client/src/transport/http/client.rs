//! One HTTP request and its response: redirects, challenges and error statuses.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use percent_encoding::percent_decode;
use reqwest::{
    Client, Method, StatusCode,
    header::{
        ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
        RETRY_AFTER, WWW_AUTHENTICATE,
    },
    redirect::Policy,
};
use tokio::sync::Semaphore;
use toolyard_mcp::{Message, RpcError, WireError, WireLimits};
use url::Url;

use crate::{
    sanitize::{sanitize_line, strip_html_tags},
    transport::{
        error::TransportError,
        http::{
            event_stream::LARGE_BODY_BYTES,
            pool::{CONNECT_TIMEOUT, ConnectionPool, IDLE_TIMEOUT},
            response::{HttpResponse, request_failed, root_cause},
            target::{ChallengeError, HttpTarget, SecretHeader, display_url},
        },
    },
};

const MAX_REDIRECTS: usize = 3;
/// Longer delays in the header `Retry-After` are shortened to this.
const MAX_RETRY_AFTER_SECONDS: u32 = 24 * 60 * 60;
/// How long the body of an error status is awaited.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(2);

/// A client for all servers: it follows no redirects, decompresses nothing and uses no proxy from the environment.
pub(crate) fn http_client() -> Result<Client, TransportError> {
    Client::builder()
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build()
        .map_err(|error| TransportError::Unreachable(root_cause(error)))
}

#[derive(Debug)]
pub(crate) struct HttpClient {
    client: Client,
    /// For URLs without TLS.
    pool: Option<Arc<ConnectionPool>>,
    pub(crate) target: HttpTarget,
    pub(crate) limits: WireLimits,
    /// The last token that was sent, to redact it in error messages.
    token: Mutex<Option<HeaderValue>>,
    /// One permit for bodies above [`LARGE_BODY_BYTES`].
    pub(super) large_body_permits: Arc<Semaphore>,
}

/// A request that may have to be sent more than once.
struct HttpRequest {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Json,
    Events,
}

impl HttpClient {
    pub(crate) fn new(client: Client, target: HttpTarget, limits: WireLimits) -> Self {
        let pool = (target.url.scheme() == "http").then(Arc::default);
        let large_body_permits = Arc::new(Semaphore::new(1));
        Self { client, pool, target, limits, token: Mutex::default(), large_body_permits }
    }

    /// Sends a request with the given headers and those of the target. Any status but success is an error.
    pub(crate) async fn call(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<HttpResponse, TransportError> {
        let response = self.send(self.request(method, url, headers, body)).await?;
        if !response.status().is_success() {
            return Err(self.status_error(response).await);
        }
        let encoding = response.headers().get(CONTENT_ENCODING).map(header_text);
        match encoding {
            Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
                Err(TransportError::UnexpectedResponse(format!("{encoding} compression")))
            }
            _ => Ok(response),
        }
    }

    fn request(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> HttpRequest {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for name in self.target.headers.keys() {
            // Headers of the protocol win over configured ones.
            if !headers.contains_key(name) {
                for value in self.target.headers.get_all(name) {
                    headers.append(name, value.clone());
                }
            }
        }
        if let (Some(credentials), false) = (basic_authorization(url), headers.contains_key(AUTHORIZATION)) {
            headers.insert(AUTHORIZATION, credentials);
        }
        HttpRequest { method, url: url.clone(), headers, body: body.map(Bytes::from) }
    }

    /// Sends a request, follows same-origin redirects, and sends it again once for each kind of challenge (401, 403)
    /// that the authorizer could meet: a request that was not authorized has had no effect.
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let (mut redirects, mut handled_statuses) = (0, Vec::new());
        loop {
            let token = match &self.target.authorizer {
                Some(authorizer) => authorizer.token().await,
                None => None,
            };
            if let Some(header) = token.clone() {
                *self.token.lock() = Some(header.value.clone());
                request.headers.insert(header.name, header.value);
            }
            let is_first = redirects == 0 && handled_statuses.is_empty();
            let response = match self.send_once(&request).await {
                // The server has received the request before, although it did not accept it.
                Err(TransportError::Unreachable(reason)) if !is_first => {
                    return Err(TransportError::ConnectionLost(reason));
                }
                outcome => outcome?,
            };
            let status = response.status();
            if status.is_redirection() {
                redirects += 1;
                request.url = redirect_url(&request.url, &response, redirects)?;
            } else if is_challenge(&response) && !handled_statuses.contains(&status) {
                handled_statuses.push(status);
                if !self.handle_challenge(token.as_ref(), &response).await? {
                    return Ok(response);
                }
            } else {
                return Ok(response);
            }
        }
    }

    async fn send_once(&self, request: &HttpRequest) -> Result<HttpResponse, TransportError> {
        let HttpRequest { method, url, headers, body } = request;
        if let Some(pool) = &self.pool {
            let response = pool.send(method, url, headers, body.as_deref()).await?;
            return Ok(HttpResponse::pooled(url.clone(), response));
        }
        let mut request = self.client.request(method.clone(), url.clone()).headers(headers.clone());
        if let Some(body) = body {
            request = request.body(body.clone());
        }
        let request = request.build().map_err(request_failed)?;
        self.client.execute(request).await.map_err(request_failed).map(HttpResponse::reqwest)
    }

    /// Lets the authorizer meet a challenge. Returns whether the request may be sent again.
    async fn handle_challenge(
        &self,
        token: Option<&SecretHeader>,
        response: &HttpResponse,
    ) -> Result<bool, TransportError> {
        let Some(authorizer) = &self.target.authorizer else { return Ok(false) };
        let (status, challenge) = (response.status().as_u16(), challenge(response.headers()));
        let outcome = authorizer.handle_challenge(token, status, challenge.as_deref()).await;
        outcome.map_err(|error| {
            let reason = sanitize_line(&error.to_string());
            match error {
                ChallengeError::SignInRequired(_) => TransportError::SignInRequired { reason, challenge },
                ChallengeError::Failed(_) => TransportError::Status {
                    status,
                    error: None,
                    excerpt: Some(reason.into()),
                    challenge,
                    retry_after_seconds: None,
                },
            }
        })
    }

    /// The error for a status, with the beginning of its body.
    async fn status_error(&self, mut response: HttpResponse) -> TransportError {
        let status = response.status().as_u16();
        let challenge = challenge(response.headers());
        let retry_after_seconds = retry_after_seconds(response.headers(), Timestamp::now());
        let mut body = Vec::new();
        if !response.headers().contains_key(CONTENT_ENCODING) {
            // What arrives in time is enough.
            let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, async {
                while let Ok(Some(chunk)) = response.chunk().await {
                    let room = self.limits.noise_bytes.saturating_sub(body.len());
                    body.extend(chunk.iter().take(room));
                    if chunk.len() >= room {
                        break;
                    }
                }
            })
            .await;
        }
        let token = self.token.lock().clone();
        let body = self.target.redact_secrets(token.as_ref(), String::from_utf8_lossy(&body).into_owned());
        let page = strip_html_tags(&body);
        let error = rpc_error(body, &self.limits);
        let excerpt = sanitize_line(&error.as_ref().map_or(page, ToString::to_string));
        let excerpt = Some(excerpt).filter(|text| !text.is_empty()).map(String::into_boxed_str);
        TransportError::Status { status, error, excerpt, challenge, retry_after_seconds }
    }

    /// Reads a whole body, up to the limit of a message.
    pub(super) async fn read_body(&self, mut response: HttpResponse) -> Result<String, TransportError> {
        let limit = self.limits.message_bytes;
        let too_long = || TransportError::Wire(WireError::TooLong { what: "a response", limit });
        let announced = response.content_length().map_or(Ok(0), usize::try_from).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(too_long());
        }
        let mut body = Vec::with_capacity(announced);
        let mut permit = None;
        while let Some(chunk) = response.chunk().await? {
            if body.len().saturating_add(chunk.len()) > limit {
                return Err(too_long());
            }
            body.extend_from_slice(chunk);
            if permit.is_none() && body.len() > LARGE_BODY_BYTES {
                permit = self.large_body_permits.acquire().await.ok();
                // Growing step by step would need twice the memory; reserved pages that are not written cost nothing.
                if announced == 0 {
                    body.reserve_exact(limit.saturating_sub(body.len()));
                }
            }
        }
        body.shrink_to_fit();
        String::from_utf8(body).map_err(|_| WireError::NotUtf8.into())
    }
}

/// The kind of a body; anything but JSON and events is an error.
pub(crate) fn body_kind(headers: &HeaderMap) -> Result<BodyKind, TransportError> {
    let content_type = headers.get(CONTENT_TYPE);
    // The usual values need no parsing.
    match content_type.map(HeaderValue::as_bytes) {
        Some(b"application/json") => return Ok(BodyKind::Json),
        Some(b"text/event-stream") => return Ok(BodyKind::Events),
        _ => {}
    }
    let text = content_type.map(header_text).unwrap_or_default();
    match text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => Ok(BodyKind::Json),
        "text/event-stream" => Ok(BodyKind::Events),
        "" => Err(TransportError::UnexpectedResponse("a body without content type".to_owned())),
        other => Err(TransportError::UnexpectedResponse(other.to_owned())),
    }
}

/// The user and password of a URL as a header.
fn basic_authorization(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let (user, password) = (url.username().as_bytes(), url.password().unwrap_or_default().as_bytes());
    let credentials: Vec<u8> = percent_decode(user).chain([b':']).chain(percent_decode(password)).collect();
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(credentials))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn is_challenge(response: &HttpResponse) -> bool {
    match response.status() {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::FORBIDDEN => {
            challenge(response.headers()).is_some_and(|text| text.contains("insufficient_scope"))
        }
        _ => false,
    }
}

fn challenge(headers: &HeaderMap) -> Option<String> {
    let all: Vec<_> =
        headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The delay that the header `Retry-After` asks for, in seconds or as a date. An invalid value asks for none.
fn retry_after_seconds(headers: &HeaderMap, now: Timestamp) -> Option<u32> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
            // A date in the past asks for no delay. A part of a second is rounded up.
            let delay = Duration::try_from(now.until(date).ok()?).unwrap_or_default();
            delay.as_secs() + u64::from(delay.subsec_nanos() > 0)
        }
    };
    Some(u32::try_from(seconds).unwrap_or(u32::MAX).min(MAX_RETRY_AFTER_SECONDS))
}

/// The target of a redirect, if it keeps the method and the origin.
fn redirect_url(from: &Url, response: &HttpResponse, redirects: usize) -> Result<Url, TransportError> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(mut next) = location.and_then(|location| from.join(location).ok()) else {
        return Err(TransportError::Redirect("an invalid URL".to_owned()));
    };
    let keeps_method =
        matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if !keeps_method || next.origin() != from.origin() {
        return Err(TransportError::Redirect(display_url(&next)));
    }
    if redirects > MAX_REDIRECTS {
        let text = format!("{} (after {MAX_REDIRECTS} other redirects)", display_url(&next));
        return Err(TransportError::Redirect(text));
    }
    // Credentials in a redirect are the server's choice and are not sent. Neither call fails for a URL with a host.
    let _ = next.set_username("");
    let _ = next.set_password(None);
    Ok(next)
}

fn rpc_error(body: String, limits: &WireLimits) -> Option<RpcError> {
    Message::read(body, limits).ok()?.into_iter().find_map(|message| match message {
        Message::Response { outcome: Err(error), .. } => Some(error),
        _ => None,
    })
}

fn header_text(value: &HeaderValue) -> String {
    sanitize_line(&String::from_utf8_lossy(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Option<u32> {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(text).ok()?)]);
        let now: Timestamp = "2026-07-28T11:59:59.5Z".parse().unwrap();
        retry_after_seconds(&headers, now)
    }

    #[test]
    fn retry_after_holds_seconds_or_a_date() {
        assert_eq!(parsed("7"), Some(7));
        assert_eq!(parsed("Tue, 28 Jul 2026 12:00:30 GMT"), Some(31));
        assert_eq!(parsed("Tue, 28 Jul 2026 11:00:00 GMT"), Some(0));
        assert_eq!(parsed("18446744073709551615"), Some(MAX_RETRY_AFTER_SECONDS));
        for invalid in ["", "-1", "soon", "1e9", "99999999999999999999999"] {
            assert_eq!(parsed(invalid), None, "{invalid}");
        }
    }

    proptest! {
        #[test]
        fn any_retry_after_is_bounded(text in prop_oneof![".*", "[0-9]{1,20}"]) {
            prop_assert!(parsed(&text).is_none_or(|delay| delay <= MAX_RETRY_AFTER_SECONDS));
        }
    }
}
