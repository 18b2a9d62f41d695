//! One connection: its requests, one after the other, each answered in the connection's own task.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::{
    super::{
        McpServer, ServedEras,
        line::{Hears, Line},
        room::Room,
        session::{Seat, open_session},
        speaker::Speaker,
    },
    HttpConfig, PageRequest, Pages,
    body::{Answer, Beat, Events},
    guard::{check_access, check_place},
    legacy_sse::LegacyStreams,
    pulse::Pulse,
    respond,
};

/// Where a load balancer asks whether to send more.
const HEALTH: &str = "/healthz";

static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// What all connections share.
#[derive(Debug)]
pub(super) struct HttpServer {
    pub(super) server: Arc<McpServer>,
    pub(super) config: HttpConfig,
    pub(super) principal: [u8; 32],
    pub(super) legacy: Arc<LegacyStreams>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) http: Arc<HttpServer>,
    /// The address that the client reached.
    local: Option<IpAddr>,
    pub(super) pulse: Arc<Pulse>,
    /// The session that was opened last: most connections have only one.
    session: Mutex<Option<OpenedSession>>,
}

/// A session id, the door it was opened at, and whose it is.
type OpenedSession = (HeaderValue, Arc<Room>, Arc<Speaker>);

/// What forms of answer a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Connection {
    pub(super) fn new(http: Arc<HttpServer>, local: Option<IpAddr>) -> Self {
        Self { http, local, pulse: Arc::default(), session: Mutex::default() }
    }

    /// Answers one request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        let _under_way = self.pulse.request();
        // Nobody learns anything by it, and whoever asks has no token and many names for this machine.
        if request.uri().path() == HEALTH && matches!(*request.method(), Method::GET | Method::HEAD) {
            return respond::health(self.http.server.stopped().is_now());
        }
        let (config, headers) = (&self.http.config, request.headers());
        let authority = request.uri().authority().map(http::uri::Authority::as_str);
        if let Err(refused) = check_place(config, headers, authority, self.local) {
            tracing::debug!(?refused, "somebody is not let in");
            return respond::not_let_in(refused);
        }
        let origin = headers.get(header::ORIGIN).cloned();
        let mut response = if request.method() == Method::OPTIONS {
            respond::preflight(headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS))
        } else {
            match check_access(&config.access, headers) {
                Ok(()) => self.route(request).await,
                Err(refused) => respond::not_let_in(refused),
            }
        };
        if let Some(origin) = origin {
            respond::let_page_read(&mut response, origin);
        }
        response
    }

    async fn route(&self, request: Request<Incoming>) -> Response<Answer> {
        if let Some(pages) = self.http.config.pages.as_ref().filter(|pages| pages.has(request.uri().path())) {
            return self.page(&**pages, request).await;
        }
        let (path, method) = (request.uri().path(), request.method());
        let place = Place::of(path, self.http.config.legacy_sse);
        let Some((kind, room)) =
            place.and_then(|(kind, profile)| Some((kind, Arc::clone(self.http.server.room(profile)?))))
        else {
            return respond::refusal(StatusCode::NOT_FOUND, -32000, "nothing is here; the endpoint is /mcp");
        };
        let has_legacy = self.http.server.config.eras != ServedEras::Modern;
        match (kind, method) {
            (Place::Endpoint, &Method::POST) => self.post(request, &room).await,
            (Place::Endpoint, &Method::GET) if has_legacy => self.open_stream(request.headers(), &room),
            (Place::Endpoint, &Method::DELETE) if has_legacy => self.end_session(request.headers(), &room),
            (Place::Endpoint, _) if has_legacy => respond::not_allowed("GET, POST, DELETE, OPTIONS"),
            (Place::Endpoint, _) => respond::not_allowed("POST, OPTIONS"),
            (Place::LegacyStream, &Method::GET) => self.open_legacy_stream(&room),
            (Place::LegacyStream, _) => respond::not_allowed("GET, OPTIONS"),
            (Place::LegacyMessages, &Method::POST) => self.legacy_message(request, &room).await,
            (Place::LegacyMessages, _) => respond::not_allowed("POST, OPTIONS"),
        }
    }

    /// Answers a request for another address.
    async fn page(&self, pages: &dyn Pages, mut request: Request<Incoming>) -> Response<Answer> {
        let headers = std::mem::take(request.headers_mut());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let body = match self.read_text(request).await {
            Ok(body) => body,
            Err(response) => return response,
        };
        let query = uri.query().unwrap_or_default().to_owned();
        let request = PageRequest { method, path: uri.path().to_owned(), query, headers, body };
        let answer = pages.answer(request).await;
        let mut stopped = self.http.server.stopped();
        answer.respond(Beat::new(self.http.config.stream_beat), async move { stopped.wait().await })
    }

    /// Opens the stream on which a client of the legacy era hears what changes.
    fn open_stream(&self, headers: &HeaderMap, room: &Arc<Room>) -> Response<Answer> {
        if !accepts(headers).events {
            let text = "a stream is opened with Accept: text/event-stream";
            return respond::refusal(StatusCode::NOT_ACCEPTABLE, -32000, text);
        }
        let speaker = match self.session(headers, room) {
            Session::Known(speaker) => speaker,
            Session::None => {
                return respond::refusal(
                    StatusCode::BAD_REQUEST,
                    -32000,
                    "the header Mcp-Session-Id is missing",
                );
            }
            Session::Unknown => return unknown_session(),
        };
        let conversation = speaker.conversation;
        let server = &self.http.server;
        let line = Line::new(speaker, Arc::clone(&server.questions), Hears::default());
        let work = server.stand_by(room, line);
        server.clients.open_stream(conversation, &work.line, server.config.limits.remembered);
        let events = Events {
            server: Arc::clone(server),
            room: Arc::clone(room),
            principal: self.http.principal,
            id: None,
            work: Some(work),
            // Some clients wait for a first byte before they take the stream for open.
            first: Some(bytes::Bytes::from_static(b":\n\n")),
            beat: Beat::new(self.http.config.stream_beat),
        };
        respond::stream(Answer::Events(Box::new(events)))
    }

    fn end_session(&self, headers: &HeaderMap, room: &Arc<Room>) -> Response<Answer> {
        let speaker = match self.session(headers, room) {
            Session::Known(speaker) => speaker,
            Session::None => {
                return respond::refusal(
                    StatusCode::BAD_REQUEST,
                    -32000,
                    "the header Mcp-Session-Id is missing",
                );
            }
            Session::Unknown => return unknown_session(),
        };
        let server = &self.http.server;
        let subscribed = server.clients.end(speaker.conversation, server.config.limits.remembered);
        server.forget_subscriptions(room, subscribed);
        respond::status(StatusCode::NO_CONTENT)
    }

    fn open_legacy_stream(&self, room: &Arc<Room>) -> Response<Answer> {
        let http = &self.http;
        match http.legacy.begin(&http.server, room, http.principal, &http.config) {
            Some(events) => respond::stream(Answer::Legacy(Box::new(events))),
            None => respond::status(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    async fn legacy_message(&self, request: Request<Incoming>, room: &Arc<Room>) -> Response<Answer> {
        let query = request.uri().query().unwrap_or_default();
        let name = query.split('&').find_map(|pair| pair.strip_prefix("sessionId=")).unwrap_or_default();
        let Some(duplex) = self.http.legacy.find(name, room) else { return unknown_session() };
        match self.read_text(request).await {
            Ok(text) => {
                duplex.hear(text).await;
                respond::status(StatusCode::ACCEPTED)
            }
            Err(response) => response,
        }
    }

    /// The session that a request belongs to.
    pub(super) fn session(&self, headers: &HeaderMap, room: &Arc<Room>) -> Session {
        let Some(id) = headers.get(&respond::SESSION) else { return Session::None };
        let server = &self.http.server;
        let mut last = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match &*last {
            Some((known, at, speaker)) if known == id && Arc::ptr_eq(at, room) => Some(Arc::clone(speaker)),
            _ => {
                let seat = Seat { profile: &room.profile, principal: &self.http.principal };
                let opened = id.to_str().ok().and_then(|id| open_session(&server.config.sessions, &seat, id));
                let speaker = opened.map(Arc::new);
                if let Some(speaker) = &speaker {
                    // Whoever prints a connection does not print its session.
                    let mut id = id.clone();
                    id.set_sensitive(true);
                    *last = Some((id, Arc::clone(room), Arc::clone(speaker)));
                }
                speaker
            }
        };
        match known {
            Some(speaker) if !server.clients.has_ended(speaker.conversation) => Session::Known(speaker),
            _ => Session::Unknown,
        }
    }

    /// The body of a request as text, within its limits of size and time.
    pub(super) async fn read_text(&self, request: Request<Incoming>) -> Result<String, Response<Answer>> {
        let limit = self.http.server.config.limits.message_bytes;
        let collected = tokio::time::timeout(
            self.http.config.body_time,
            Limited::new(request.into_body(), limit).collect(),
        );
        let bytes = match collected.await {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let text = format!("the body is longer than {limit} bytes");
                return Err(respond::refusal(StatusCode::PAYLOAD_TOO_LARGE, -32600, &text));
            }
            Ok(Err(_)) => return Err(respond::status(StatusCode::BAD_REQUEST)),
            Err(_) => {
                let mut response = respond::status(StatusCode::REQUEST_TIMEOUT);
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                return Err(response);
            }
        };
        String::from_utf8(bytes.into())
            .map_err(|_| respond::refusal(StatusCode::BAD_REQUEST, -32700, "the body is not UTF-8"))
    }

    /// The version in the header, if there is one; nothing that anybody speaks if there are two.
    pub(super) fn version(headers: &HeaderMap) -> Option<&str> {
        let mut all = headers.get_all(&VERSION).iter();
        let first = all.next()?.to_str().ok().filter(|_| all.next().is_none());
        Some(first.unwrap_or("unreadable").trim())
    }
}

/// The session that a request belongs to.
#[derive(Debug)]
pub(super) enum Session {
    None,
    Known(Arc<Speaker>),
    /// Not one of ours, not for this client or this door, or over.
    Unknown,
}

/// The answer that makes clients introduce themselves again.
pub(super) fn unknown_session() -> Response<Answer> {
    let text = "this session is not known here: introduce yourself again with initialize";
    respond::refusal(StatusCode::NOT_FOUND, -32001, text)
}

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Endpoint,
    LegacyStream,
    LegacyMessages,
}

impl Place {
    /// The place and the profile.
    fn of(path: &str, legacy_sse: bool) -> Option<(Self, &str)> {
        let places =
            [("/mcp", Self::Endpoint), ("/sse", Self::LegacyStream), ("/messages", Self::LegacyMessages)];
        let (rest, place) =
            places.into_iter().find_map(|(prefix, place)| Some((path.strip_prefix(prefix)?, place)))?;
        let profile = match rest.strip_prefix('/') {
            Some(profile) => profile.strip_suffix('/').unwrap_or(profile),
            None if rest.is_empty() => "",
            None => return None,
        };
        (place == Self::Endpoint || legacy_sse).then_some((place, profile))
    }
}

/// What forms of answer a client takes. Whoever says nothing takes anything.
pub(super) fn accepts(headers: &HeaderMap) -> Accepts {
    let mut accepts = Accepts { json: false, events: false };
    let mut said = false;
    for value in headers.get_all(header::ACCEPT) {
        let Ok(value) = value.to_str() else { continue };
        for range in value.split(',') {
            said = true;
            let kind = range.split(';').next().unwrap_or_default().trim();
            let is = |wanted: &str| kind.eq_ignore_ascii_case(wanted);
            accepts.json |= is("application/json") || is("application/*") || is("*/*");
            accepts.events |= is("text/event-stream") || is("text/*") || is("*/*");
        }
    }
    if said { accepts } else { Accepts { json: true, events: false } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_have_their_own_doors() {
        assert_eq!(Place::of("/mcp", false), Some((Place::Endpoint, "")));
        assert_eq!(Place::of("/mcp/", false), Some((Place::Endpoint, "")));
        assert_eq!(Place::of("/mcp/work", false), Some((Place::Endpoint, "work")));
        assert_eq!(Place::of("/sse", true), Some((Place::LegacyStream, "")));
        for path in ["/", "/mcpx", "/sse", "/messages", ""] {
            assert_eq!(Place::of(path, false), None, "{path}");
        }
    }

    #[test]
    fn forms_of_answers_are_read_from_accept() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, value.parse().unwrap());
            accepts(&headers)
        };
        assert_eq!(of("application/json, text/event-stream"), Accepts { json: true, events: true });
        assert_eq!(of("TEXT/event-stream;q=0.5"), Accepts { json: false, events: true });
        assert_eq!(of("*/*"), Accepts { json: true, events: true });
        assert_eq!(of("text/html"), Accepts { json: false, events: false });
        assert_eq!(accepts(&HeaderMap::new()), Accepts { json: true, events: false });
    }
}
