//! One HTTP request and its answer: redirects, challenges and error statuses, before anything of a body is believed.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use percent_encoding::percent_decode;
use reqwest::{
    Client, Method, StatusCode,
    header::{
        ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
        WWW_AUTHENTICATE,
    },
    redirect::Policy,
};
use tokio::sync::Semaphore;
use url::Url;

use super::{
    HttpTarget, SecretHeader, TransportError,
    http::lock,
    http_answer::HttpAnswer,
    http_plain::PlainPool,
    http_target::{DPOP, DPOP_NONCE, harmless, shown, without_tags},
};
use crate::wire::{Message, RpcError, WireError, WireLimits};

pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// Node and uvicorn drop a connection that was idle for 5 s; one that is dropped while we write to it costs a call.
pub(super) const IDLE_LIMIT: Duration = Duration::from_secs(4);
const MOST_REDIRECTS: usize = 3;
/// Answers longer than this are read one after the other. However many a server sends at once, they take the memory of one.
pub(super) const LONG: usize = 32 << 10;
/// How long the body of an error status is waited for: the status itself says enough.
const ERROR_BODY_LIMIT: Duration = Duration::from_secs(2);

/// A client fit for [`super::StreamableHttp`] and [`super::LegacySse`]: it follows no redirect by itself, unpacks nothing and
/// takes no proxy from the environment. One is enough for all servers.
pub fn http_client() -> Result<Client, TransportError> {
    Client::builder()
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT_LIMIT)
        .pool_idle_timeout(IDLE_LIMIT)
        .build()
        .map_err(|error| TransportError::Unreachable(cause(error)))
}

/// Makes requests to one server.
#[derive(Debug)]
pub(super) struct HttpCaller {
    client: Client,
    /// For a server without encryption.
    plain: Option<Arc<PlainPool>>,
    pub(super) target: HttpTarget,
    pub(super) limits: WireLimits,
    /// The last token that was sent, so that no message of ours repeats it.
    token: Mutex<Option<HeaderValue>>,
    /// Whose turn it is to read an answer longer than [`LONG`].
    pub(super) turns: Arc<Semaphore>,
}

/// One request, which may have to be sent more than once.
struct HttpRequest {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Bytes>,
}

/// What kind of body an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Json,
    Events,
}

impl HttpCaller {
    pub(super) fn new(client: Client, target: HttpTarget, limits: WireLimits) -> Self {
        let plain = (target.url.scheme() == "http").then(Arc::default);
        let turns = Arc::new(Semaphore::new(1));
        Self { client, plain, target, limits, token: Mutex::default(), turns }
    }

    /// Sends a request with the headers of the target under those given. Gives the answer if its status is a success.
    pub(super) async fn call(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<HttpAnswer, TransportError> {
        let response = self.send(self.request(method, url, headers, body)).await?;
        if !response.status().is_success() {
            return Err(self.status_error(response).await);
        }
        let encoding = response.headers().get(CONTENT_ENCODING).map(|value| text(Some(value)));
        match encoding {
            Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
                Err(TransportError::NotTheProtocol(format!("{encoding} compression")))
            }
            _ => Ok(response),
        }
    }

    fn request(&self, method: Method, url: &Url, own: HeaderMap, body: Option<Vec<u8>>) -> HttpRequest {
        let mut headers = own;
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for name in self.target.headers.keys() {
            // What we say ourselves stands instead of what the target says under the same name.
            if !headers.contains_key(name) {
                for value in self.target.headers.get_all(name) {
                    headers.append(name, value.clone());
                }
            }
        }
        if let (Some(login), false) = (login(url), headers.contains_key(AUTHORIZATION)) {
            headers.insert(AUTHORIZATION, login);
        }
        HttpRequest { method, url: url.clone(), headers, body: body.map(Bytes::from) }
    }

    /// Sends it, to where same-origin redirects point, and once more after each kind of challenge that was met: whoever was
    /// not let in has done nothing yet.
    async fn send(&self, mut request: HttpRequest) -> Result<HttpAnswer, TransportError> {
        let (mut redirects, mut challenges, mut proved_again) = (0, Vec::new(), false);
        loop {
            let sent = match &self.target.authorizer {
                Some(authorizer) => authorizer.token().await,
                None => None,
            };
            if let Some(header) = sent.clone() {
                *lock(&self.token) = Some(header.value.clone());
                request.headers.insert(header.name, header.value);
            }
            self.prove(&mut request, sent.as_ref());
            let response = self.attempt(&request).await?;
            let (status, has_nonce) = (response.status(), self.new_nonce(&response));
            if status.is_redirection() {
                redirects += 1;
                request.url = next_url(&request.url, &response, redirects)?;
            } else if wants_nonce(&response) {
                // Neither the token nor who asks is in doubt: the same once more, with a proof that has the nonce in it.
                if !has_nonce || std::mem::replace(&mut proved_again, true) {
                    return Ok(response);
                }
            } else if is_challenge(&response) && !challenges.contains(&status) {
                challenges.push(status);
                if !self.challenged(sent.as_ref(), &response).await? {
                    return Ok(response);
                }
            } else {
                return Ok(response);
            }
        }
    }

    async fn attempt(&self, request: &HttpRequest) -> Result<HttpAnswer, TransportError> {
        let HttpRequest { method, url, headers, body } = request;
        if let Some(plain) = &self.plain {
            let answer = plain.send(method, url, headers, body.as_deref()).await?;
            return Ok(HttpAnswer::plain(url.clone(), answer));
        }
        let mut attempt = self.client.request(method.clone(), url.clone()).headers(headers.clone());
        if let Some(body) = body {
            attempt = attempt.body(body.clone());
        }
        let request = attempt.build().map_err(failed)?;
        self.client.execute(request).await.map_err(failed).map(HttpAnswer::reqwest)
    }

    /// Adds the proof that goes with the token, made anew for every attempt.
    fn prove(&self, request: &mut HttpRequest, token: Option<&SecretHeader>) {
        let Some((authorizer, token)) = self.target.authorizer.as_ref().zip(token) else { return };
        let proof = authorizer.proof(token, request.method.as_str(), &request.url);
        request.headers.remove(DPOP);
        if let Some(proof) = proof {
            request.headers.insert(proof.name, proof.value);
        }
    }

    /// Hands over what the server wants to see in the next proof. Whether it said so.
    fn new_nonce(&self, response: &HttpAnswer) -> bool {
        let nonce = response.headers().get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok());
        let told = self.target.authorizer.as_ref().zip(nonce);
        if let Some((authorizer, nonce)) = told {
            authorizer.nonce(nonce);
        }
        told.is_some()
    }

    async fn challenged(
        &self,
        sent: Option<&SecretHeader>,
        response: &HttpAnswer,
    ) -> Result<bool, TransportError> {
        let Some(authorizer) = &self.target.authorizer else { return Ok(false) };
        let (status, challenge) = (response.status().as_u16(), challenge(response.headers()));
        let reason = match authorizer.challenged(sent, status, challenge.as_deref()).await {
            Ok(again) => return Ok(again),
            Err(reason) => harmless(&reason),
        };
        Err(TransportError::Status { status, error: None, excerpt: Some(reason), challenge })
    }

    /// What an error status and the beginning of its body say.
    async fn status_error(&self, mut response: HttpAnswer) -> TransportError {
        let status = response.status().as_u16();
        let challenge = challenge(response.headers());
        let mut body = Vec::new();
        if !response.headers().contains_key(CONTENT_ENCODING) {
            // Whatever came in time is enough.
            let _ = tokio::time::timeout(ERROR_BODY_LIMIT, async {
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
        let token = lock(&self.token).clone();
        let body = self.target.without_secrets(token.as_ref(), String::from_utf8_lossy(&body).into_owned());
        let page = without_tags(&body);
        let error = rpc_error(body, &self.limits);
        let excerpt = harmless(&error.as_ref().map_or(page, ToString::to_string));
        TransportError::Status {
            status,
            error,
            excerpt: Some(excerpt).filter(|text| !text.is_empty()),
            challenge,
        }
    }

    /// Reads a whole body, never more of it than a message may have.
    pub(super) async fn body(&self, mut response: HttpAnswer) -> Result<String, TransportError> {
        let limit = self.limits.message_bytes;
        let too_long = || TransportError::Wire(WireError::TooLong { what: "an answer", limit });
        let announced = response.announced().map_or(Ok(0), usize::try_from).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(too_long());
        }
        let mut body = Vec::with_capacity(announced);
        let mut turn = None;
        while let Some(chunk) = response.chunk().await? {
            if body.len().saturating_add(chunk.len()) > limit {
                return Err(too_long());
            }
            body.extend_from_slice(chunk);
            if turn.is_none() && body.len() > LONG {
                turn = self.turns.acquire().await.ok();
                // Growing step by step would leave as much behind again; what is not written to costs nothing.
                if announced == 0 {
                    body.reserve_exact(limit.saturating_sub(body.len()));
                }
            }
        }
        body.shrink_to_fit();
        String::from_utf8(body).map_err(|_| WireError::NotText.into())
    }
}

/// What kind of body it is; anything but JSON and events is not the protocol.
pub(super) fn body_kind(headers: &HeaderMap) -> Result<BodyKind, TransportError> {
    let said = headers.get(CONTENT_TYPE);
    // What nearly all say needs no cleaning.
    match said.map(HeaderValue::as_bytes) {
        Some(b"application/json") => return Ok(BodyKind::Json),
        Some(b"text/event-stream") => return Ok(BodyKind::Events),
        _ => {}
    }
    let full = text(said);
    match full.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => Ok(BodyKind::Json),
        "text/event-stream" => Ok(BodyKind::Events),
        "" => Err(TransportError::NotTheProtocol("a body of no type".to_owned())),
        other => Err(TransportError::NotTheProtocol(other.to_owned())),
    }
}

/// A request that did not get its answer: never reached anyone, or broke later.
pub(super) fn failed(error: reqwest::Error) -> TransportError {
    if error.is_connect() || error.is_builder() {
        TransportError::Unreachable(cause(error))
    } else {
        TransportError::Broken(cause(error))
    }
}

/// A body that broke off.
pub(super) fn broken(error: reqwest::Error) -> TransportError {
    TransportError::Broken(cause(error))
}

/// The innermost cause, without the address, which may hold a password.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let innermost =
        std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source()).last();
    harmless(&innermost.map_or_else(|| error.to_string(), ToString::to_string))
}

/// The name and password of an address, as the header that brings them.
fn login(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let (name, word) = (url.username().as_bytes(), url.password().unwrap_or_default().as_bytes());
    let words: Vec<u8> = percent_decode(name).chain([b':']).chain(percent_decode(word)).collect();
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(words))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn wants_nonce(response: &HttpAnswer) -> bool {
    response.status() == StatusCode::UNAUTHORIZED
        && challenge(response.headers()).is_some_and(|text| text.contains("use_dpop_nonce"))
}

fn is_challenge(response: &HttpAnswer) -> bool {
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

/// Where a redirect goes, if it keeps the method and stays with the same origin.
fn next_url(from: &Url, response: &HttpAnswer, redirects: usize) -> Result<Url, TransportError> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(mut next) = location.and_then(|location| from.join(location).ok()) else {
        return Err(TransportError::Redirect("nowhere".to_owned()));
    };
    let keeps_method =
        matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if !keeps_method || next.origin() != from.origin() {
        return Err(TransportError::Redirect(shown(&next)));
    }
    if redirects > MOST_REDIRECTS {
        return Err(TransportError::Redirect(format!("{} (after {MOST_REDIRECTS} others)", shown(&next))));
    }
    // What it says about users is not ours to send. Neither call fails for an address with a host.
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

fn text(value: Option<&HeaderValue>) -> String {
    value.map(|value| harmless(&String::from_utf8_lossy(value.as_bytes()))).unwrap_or_default()
}
