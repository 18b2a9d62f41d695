//! The redirect back to this machine: one valid answer to one question, whatever else knocks.

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

use super::HiddenText;
use crate::client::http_target::harmless;

const PATH: &str = "/callback";
/// Browsers send the cookies of everything else on this machine along.
const MOST_HEAD_BYTES: usize = 32 * 1024;
const MOST_VALUE_BYTES: usize = 8 * 1024;
const MOST_VISITORS: usize = 16;
const VISIT_LIMIT: Duration = Duration::from_secs(5);

/// Why the redirect did not come.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallbackError {
    /// The port is taken, or nothing may listen.
    #[error(
        "nothing can listen on port {port} of this machine ({reason}): free it or set another `oauth.callback_port`"
    )]
    Listen {
        /// The port; 0 for any.
        port: u16,
        /// What the system says.
        reason: std::io::ErrorKind,
    },
    /// The authorization server sent a refusal.
    #[error("the authorization server refused: {0}")]
    Refused(String),
    /// Nobody came back in time.
    #[error("nobody came back from the browser within {0:?}")]
    TimedOut(Duration),
}

/// Listens on 127.0.0.1 for the browser that comes back.
#[derive(Debug)]
pub struct LoopbackCallback {
    listener: TcpListener,
    port: u16,
}

/// What the browser brought.
pub struct Redirected {
    /// Exchanged for a token, once.
    pub code: HiddenText,
    /// Who says it issued the code (RFC 9207).
    pub issuer: Option<String>,
}

impl fmt::Debug for Redirected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redirected").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// What one visit was.
#[derive(Debug)]
enum Visit {
    /// The answer.
    Answer(Redirected),
    /// The answer is no.
    Refusal(String),
    /// None of our business; the status says why.
    Other(&'static str),
}

impl LoopbackCallback {
    /// Listens on a port, or on any free one.
    pub async fn listen(port: Option<u16>) -> Result<Self, CallbackError> {
        let port = port.unwrap_or(0);
        let failed = |error: std::io::Error| CallbackError::Listen { port, reason: error.kind() };
        let listener =
            TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    /// Where the authorization server must send the browser.
    pub fn redirect_uri(&self) -> String {
        redirect_uri(self.port)
    }

    /// Waits for the one visit that carries `state`. All others are answered and forgotten.
    pub async fn wait(self, state: &HiddenText, limit: Duration) -> Result<Redirected, CallbackError> {
        match timeout(limit, self.answer(state)).await {
            Ok(answer) => answer,
            Err(_) => Err(CallbackError::TimedOut(limit)),
        }
    }

    async fn answer(&self, state: &HiddenText) -> Result<Redirected, CallbackError> {
        // Browsers open connections ahead and leave them idle, so one visitor must not keep the others waiting.
        let mut visits = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if visits.len() < MOST_VISITORS => {
                    if let Ok((stream, _)) = accepted {
                        visits.push(timeout(VISIT_LIMIT, receive(stream, self.port, state)));
                    }
                }
                Some(visit) = visits.next() => match visit {
                    Ok(Visit::Answer(redirected)) => return Ok(redirected),
                    Ok(Visit::Refusal(reason)) => return Err(CallbackError::Refused(reason)),
                    Ok(Visit::Other(_)) | Err(_) => {}
                },
            }
        }
    }
}

/// Where the browser comes back to.
pub(super) fn redirect_uri(port: u16) -> String {
    format!("http://127.0.0.1:{port}{PATH}")
}

/// The port in an address made by [`redirect_uri`].
pub(super) fn redirect_port(uri: &str) -> Option<u16> {
    uri.strip_prefix("http://127.0.0.1:")?.strip_suffix(PATH)?.parse().ok()
}

/// Reads one request, says what it was, and answers it.
async fn receive(mut stream: TcpStream, port: u16, state: &HiddenText) -> Visit {
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") && head.len() < MOST_HEAD_BYTES {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => head.extend(buffer.iter().take(count)),
        }
    }
    let visit = judge(&head, port, state);
    let (status, text) = match &visit {
        Visit::Answer(_) => ("200 OK", "Toolyard has your answer. You can close this page."),
        Visit::Refusal(_) => ("200 OK", "Toolyard was told that access is refused. You can close this page."),
        Visit::Other(status) => (*status, "Nothing to see here."),
    };
    // Whoever does not wait for the page has still answered.
    let _ = stream.write_all(page(status, text).as_bytes()).await;
    let _ = stream.shutdown().await;
    visit
}

/// A page without anything of the request in it.
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

/// What a request is, whatever its bytes are.
fn judge(head: &[u8], port: u16, state: &HiddenText) -> Visit {
    const BAD: Visit = Visit::Other("400 Bad Request");
    let Ok(head) = std::str::from_utf8(head) else { return BAD };
    let Some((head, _)) = head.split_once("\r\n\r\n") else { return BAD };
    let mut lines = head.split("\r\n");
    let Some([method, target, version]) = lines
        .next()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .and_then(|parts| <[&str; 3]>::try_from(parts).ok())
    else {
        return BAD;
    };
    if !version.starts_with("HTTP/1.") || !is_for_us(lines, port) {
        return BAD;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match (method, path) {
        ("GET", PATH) => answer(query, state),
        (_, PATH) => Visit::Other("405 Method Not Allowed"),
        _ => Visit::Other("404 Not Found"),
    }
}

/// Whether the request names this machine: a page elsewhere whose name was bent to 127.0.0.1 does not.
fn is_for_us<'a>(headers: impl Iterator<Item = &'a str>, port: u16) -> bool {
    let mut hosts = headers
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim());
    let host = hosts.next();
    hosts.next().is_none()
        && host.is_some_and(|host| host == format!("127.0.0.1:{port}") || host == format!("localhost:{port}"))
}

/// What the query says, if it is the answer to our question.
fn answer(query: &str, state: &HiddenText) -> Visit {
    const BAD: Visit = Visit::Other("400 Bad Request");
    let find = |wanted: &str| -> Result<Option<String>, ()> {
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == wanted);
        match (values.next(), values.next()) {
            (Some((_, value)), None) if value.len() <= MOST_VALUE_BYTES => Ok(Some(value.into_owned())),
            (None, _) => Ok(None),
            // Said twice, or too long to mean anything.
            _ => Err(()),
        }
    };
    let (Ok(Some(said)), Ok(code), Ok(error), Ok(issuer)) =
        (find("state"), find("code"), find("error"), find("iss"))
    else {
        return BAD;
    };
    if verify_slices_are_equal(said.as_bytes(), state.reveal().as_bytes()).is_err() {
        return BAD;
    }
    match (code.filter(|code| !code.is_empty()), error) {
        (Some(code), None) => Visit::Answer(Redirected { code: HiddenText::new(code), issuer }),
        (None, Some(error)) => {
            let description = find("error_description").ok().flatten().unwrap_or_default();
            Visit::Refusal(harmless(&format!("{error} {description}")))
        }
        _ => BAD,
    }
}

#[cfg(test)]
#[path = "callback_tests.rs"]
mod tests;
