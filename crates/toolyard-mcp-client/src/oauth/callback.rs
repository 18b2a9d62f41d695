//! The loopback redirect: accepts one valid authorization response and rejects all other requests.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::form_urlencoded;

use crate::SecretText;
use crate::sanitize::sanitize_line;

const CALLBACK_PATH: &str = "/callback";
/// Large, because browsers send the cookies of all servers on 127.0.0.1.
const MAX_HEAD_BYTES: usize = 32 * 1024;
const MAX_VALUE_BYTES: usize = 8 * 1024;
const MAX_CONNECTIONS: usize = 16;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Why there is no authorization response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum CallbackError {
    /// The port for the response of the browser is in use or not permitted.
    ///
    /// Remedy: end the other program, or set `oauth.callback_port` of `[servers.NAME]` to a free port that is
    /// registered for the client.
    #[error("failed to listen on port {port} ({reason}): free it or set another `oauth.callback_port`")]
    Listen {
        /// The port; 0 for any.
        port: u16,
        reason: std::io::ErrorKind,
    },
    /// The person declined on the page, or the authorization server does not accept the client; the text is its answer.
    ///
    /// Remedy: sign in again (`toolyard servers login NAME`) and agree; check `oauth.client_id` and `oauth.scopes` of
    /// `[servers.NAME]`.
    #[error("the authorization server refused: {0}")]
    Refused(String),
    /// Nobody completed the sign-in in the browser.
    ///
    /// Remedy: repeat `toolyard servers login NAME`, and sign in on the page that opens.
    #[error("the login was not completed within {0:?}")]
    TimedOut(Duration),
}

/// Listens on 127.0.0.1 for the redirect.
#[derive(Debug)]
pub struct LoopbackCallback {
    listener: TcpListener,
    port: u16,
}

/// The authorization response.
pub struct AuthorizationResponse {
    /// The authorization code.
    pub code: SecretText,
    /// The `iss` parameter (RFC 9207).
    pub issuer: Option<String>,
}

impl fmt::Debug for AuthorizationResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuthorizationResponse").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// What an authorization server sends to the redirect URI in the query, with a state that is not compared yet.
pub struct AuthorizationQuery {
    /// Identifies the login.
    pub state: SecretText,
    /// The authorization response, or why the authorization server refused, sanitized.
    pub outcome: Result<AuthorizationResponse, String>,
}

impl AuthorizationQuery {
    /// Reads a query; `None` if parameters are missing, repeated or too long.
    pub fn parse(query: &str) -> Option<Self> {
        let find = |parameter: &str| -> Result<Option<String>, ()> {
            let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == parameter);
            match (values.next(), values.next()) {
                (Some((_, value)), None) if value.len() <= MAX_VALUE_BYTES => Ok(Some(value.into_owned())),
                (None, _) => Ok(None),
                // A duplicate or oversized parameter.
                _ => Err(()),
            }
        };
        let (Ok(Some(state)), Ok(code), Ok(error), Ok(issuer)) =
            (find("state"), find("code"), find("error"), find("iss"))
        else {
            return None;
        };
        let outcome = match (code.filter(|code| !code.is_empty()), error) {
            (Some(code), None) => Ok(AuthorizationResponse { code: SecretText::new(code), issuer }),
            (None, Some(error)) => {
                let description = find("error_description").ok().flatten().unwrap_or_default();
                Err(sanitize_line(&format!("{error} {description}")))
            }
            _ => return None,
        };
        Some(Self { state: SecretText::new(state), outcome })
    }
}

impl fmt::Debug for AuthorizationQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuthorizationQuery").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum CallbackRequest {
    Code(AuthorizationResponse),
    Denied(String),
    /// Any other request, with the HTTP status to return.
    Unrelated(&'static str),
}

impl LoopbackCallback {
    /// Listens on a port, or on any free port.
    pub async fn listen(port: Option<u16>) -> Result<Self, CallbackError> {
        let port = port.unwrap_or(0);
        let failed = |error: std::io::Error| CallbackError::Listen { port, reason: error.kind() };
        let listener =
            TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    /// The redirect URI to register.
    pub fn redirect_uri(&self) -> String {
        redirect_uri(self.port)
    }

    /// Waits for the request that carries `state`. All others are answered with an error.
    pub async fn wait(
        self,
        state: &SecretText,
        limit: Duration,
    ) -> Result<AuthorizationResponse, CallbackError> {
        match timeout(limit, self.accept_response(state)).await {
            Ok(response) => response,
            Err(_) => Err(CallbackError::TimedOut(limit)),
        }
    }

    async fn accept_response(&self, state: &SecretText) -> Result<AuthorizationResponse, CallbackError> {
        // Browsers open connections early and leave them idle, so connections are served concurrently.
        let mut requests = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if requests.len() < MAX_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        requests.push(timeout(REQUEST_TIMEOUT, serve_connection(stream, self.port, state)));
                    }
                }
                Some(request) = requests.next() => match request {
                    Ok(CallbackRequest::Code(response)) => return Ok(response),
                    Ok(CallbackRequest::Denied(reason)) => return Err(CallbackError::Refused(reason)),
                    Ok(CallbackRequest::Unrelated(_)) | Err(_) => {}
                },
            }
        }
    }
}

/// The redirect URI that this module serves.
pub(super) fn redirect_uri(port: u16) -> String {
    format!("http://127.0.0.1:{port}{CALLBACK_PATH}")
}

/// The port of a URI made by [`redirect_uri`].
pub(super) fn redirect_port(uri: &str) -> Option<u16> {
    uri.strip_prefix("http://127.0.0.1:")?.strip_suffix(CALLBACK_PATH)?.parse().ok()
}

async fn serve_connection(mut stream: TcpStream, port: u16, state: &SecretText) -> CallbackRequest {
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => head.extend(buffer.iter().take(count)),
        }
    }
    let request = parse_request(&head, port, state);
    let (status, text) = match &request {
        CallbackRequest::Code(_) => ("200 OK", "Login complete. You can close this page."),
        CallbackRequest::Denied(_) => ("200 OK", "Access was denied. You can close this page."),
        CallbackRequest::Unrelated(status) => (*status, "Not found."),
    };
    // The response counts even if the browser does not read the page.
    let _ = stream.write_all(page(status, text).as_bytes()).await;
    let _ = stream.shutdown().await;
    request
}

/// A static page that contains nothing from the request.
fn page(status: &str, text: &str) -> String {
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Toolyard</title><p>{text}</p></html>\n"
    );
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\
         content-security-policy: default-src 'none'; frame-ancestors 'none'\r\n\r\n{body}",
        body.len()
    )
}

/// Classifies a request head of arbitrary bytes.
fn parse_request(head: &[u8], port: u16, state: &SecretText) -> CallbackRequest {
    const BAD_REQUEST: CallbackRequest = CallbackRequest::Unrelated("400 Bad Request");
    let Ok(head) = std::str::from_utf8(head) else { return BAD_REQUEST };
    let Some((head, _)) = head.split_once("\r\n\r\n") else { return BAD_REQUEST };
    let mut lines = head.split("\r\n");
    let Some([method, target, version]) = lines
        .next()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .and_then(|parts| <[&str; 3]>::try_from(parts).ok())
    else {
        return BAD_REQUEST;
    };
    if !version.starts_with("HTTP/1.") || !has_local_host(lines, port) {
        return BAD_REQUEST;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match (method, path) {
        ("GET", CALLBACK_PATH) => parse_query(query, state),
        (_, CALLBACK_PATH) => CallbackRequest::Unrelated("405 Method Not Allowed"),
        _ => CallbackRequest::Unrelated("404 Not Found"),
    }
}

/// Whether the `Host` header is local, which protects against DNS rebinding.
fn has_local_host<'a>(headers: impl Iterator<Item = &'a str>, port: u16) -> bool {
    let mut hosts = headers
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim());
    let host = hosts.next();
    hosts.next().is_none()
        && host.is_some_and(|host| host == format!("127.0.0.1:{port}") || host == format!("localhost:{port}"))
}

fn parse_query(query: &str, state: &SecretText) -> CallbackRequest {
    const BAD_REQUEST: CallbackRequest = CallbackRequest::Unrelated("400 Bad Request");
    let Some(received) = AuthorizationQuery::parse(query) else { return BAD_REQUEST };
    let (received_state, expected) = (received.state.expose().as_bytes(), state.expose().as_bytes());
    if verify_slices_are_equal(received_state, expected).is_err() {
        return BAD_REQUEST;
    }
    match received.outcome {
        Ok(response) => CallbackRequest::Code(response),
        Err(reason) => CallbackRequest::Denied(reason),
    }
}

#[cfg(test)]
#[path = "callback_tests.rs"]
mod tests;
