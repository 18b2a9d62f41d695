//! [`Connection`]: routes the requests of one connection and handles them in its task.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use parking_lot::Mutex;
use toolyard_core::{AuthenticationError, BoxFuture, CallerIdentity};
use toolyard_mcp::error_code;

use crate::{
    config::ServedRevisions,
    dispatch::served_endpoint::ServedEndpoint,
    http::{
        access_check::{AccessError, authenticate, bearer_token, check_host_and_origin, check_token},
        activity_stream::ConnectionActivity,
        body::{ResponseBody, TaskEventStream},
        config::{HttpConfig, anonymous},
        event_stream::{EventStream, KeepAlive},
        health::{self, LIVENESS_PATH, READINESS_PATH},
        legacy_sse::LegacySseSessions,
        request_body::read_body,
        response,
        routes::{HttpRoutes, RouteBody, RouteRequest},
    },
    interaction::request_channel::{NotificationPreferences, RequestChannel},
    server::McpServer,
    session::{
        peer::Peer,
        session_id::{SessionScope, open_session_id},
    },
};

static REVISION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// State that all connections share.
#[derive(Debug)]
pub(crate) struct HttpServer {
    pub(crate) server: Arc<McpServer>,
    pub(crate) config: HttpConfig,
    pub(crate) legacy_sse_sessions: Arc<LegacySseSessions>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) http: Arc<HttpServer>,
    local_address: Option<IpAddr>,
    client_address: IpAddr,
    pub(crate) activity: Arc<ConnectionActivity>,
    /// The last opened session: most connections have one.
    session: Mutex<Option<CachedSession>>,
}

/// A session id, its endpoint, its owner and its client.
type CachedSession = (HeaderValue, Arc<ServedEndpoint>, [u8; 32], Arc<Peer>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AcceptedTypes {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

impl Connection {
    pub(crate) fn new(http: Arc<HttpServer>, local_address: Option<IpAddr>, client_address: IpAddr) -> Self {
        Self { http, local_address, client_address, activity: Arc::default(), session: Mutex::default() }
    }

    pub(crate) async fn respond(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let _in_flight = self.activity.begin_request();
        // Health checks have no token and arbitrary host names, and reveal nothing.
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            match request.uri().path() {
                LIVENESS_PATH => return health::liveness(),
                READINESS_PATH => return self.readiness(request.headers()).await,
                _ => {}
            }
        }
        let rules = self.http.config.access.current();
        let headers = request.headers();
        let authority = request.uri().authority().map(http::uri::Authority::as_str);
        if let Err(denied) = check_host_and_origin(&rules, headers, authority, self.local_address) {
            return self.deny(&denied, request.uri().path(), headers);
        }
        let origin = headers.get(header::ORIGIN).cloned();
        let mut response = if request.method() == Method::OPTIONS {
            response::preflight(headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS))
        } else {
            let path = request.uri().path();
            let local = check_token(&rules.access, headers)
                .or_else(|denied| self.token_holder(path, headers).ok_or(denied));
            let authenticator = rules.authenticator.clone();
            // Held over an await, it would slow down replacing the rules.
            drop(rules);
            if let Some(metadata) = authenticator.as_ref().and_then(|known| known.resource_metadata(path)) {
                response::json(StatusCode::OK, metadata.into())
            } else {
                let is_public = |routes: &Arc<dyn HttpRoutes>| routes.is_public(path);
                let identity = match (local, &authenticator) {
                    (Ok(identity), _) => Ok(identity),
                    (Err(_), Some(known)) => authenticate(&**known, headers, self.client_address, path).await,
                    (Err(denied), None) => Err(denied),
                };
                match identity {
                    Ok(identity) => self.route(request, identity).await,
                    Err(_) if self.routes(path).is_some_and(is_public) => {
                        self.route(request, anonymous()).await
                    }
                    Err(denied) => match self.ticket_holder(&request, &denied) {
                        Some(identity) => self.route(request, identity).await,
                        None => self.deny(&denied, path, headers),
                    },
                }
            }
        };
        if let Some(origin) = origin {
            response::add_cors_headers(&mut response, origin);
        }
        response
    }

    async fn readiness(&self, headers: &HeaderMap) -> Response<ResponseBody> {
        let server = &self.http.server;
        let is_stopping = server.is_draining() || server.shutdown_signal().is_triggered();
        let shows_details = check_token(&self.http.config.access.current().access, headers).is_ok();
        health::readiness(is_stopping, self.http.config.readiness.as_deref(), shows_details).await
    }

    /// Refuses a request and logs who sent it; never what was presented as token.
    fn deny(&self, denied: &AccessError, path: &str, headers: &HeaderMap) -> Response<ResponseBody> {
        tracing::warn!(client = %self.forwarded_address(headers), "access denied: {}", denied.reason());
        let body = self.routes(path).map(|routes| routes.error_body(denied.status(), &denied.message()));
        response::access_denied(denied, body)
    }

    /// The address of the client, which may be behind a trusted proxy.
    fn forwarded_address(&self, headers: &HeaderMap) -> IpAddr {
        let values = headers.get_all("x-forwarded-for").iter();
        let forwarded_for: Vec<&str> = values.map(|value| value.to_str().unwrap_or_default()).collect();
        let rules = self.http.config.access.current();
        rules.authenticator.as_ref().map_or(self.client_address, |authenticator| {
            authenticator.client_address(self.client_address, &forwarded_for.join(","))
        })
    }

    /// Who sent a request by a token that opens this path only.
    fn token_holder(&self, path: &str, headers: &HeaderMap) -> Option<Arc<CallerIdentity>> {
        let token = bearer_token(headers).ok()??;
        self.routes(path)?.token_holder(path, token)
    }

    /// Who sent a request by a ticket in its query. Credentials that are wrong are refused even beside a valid ticket.
    fn ticket_holder(
        &self,
        request: &Request<Incoming>,
        denied: &AccessError,
    ) -> Option<Arc<CallerIdentity>> {
        let has_no_credentials = matches!(
            denied,
            AccessError::MissingToken
                | AccessError::Unauthenticated { error: AuthenticationError::Missing, .. }
        );
        let (path, query) = (request.uri().path(), request.uri().query()?);
        let routes = self.routes(path).filter(|_| has_no_credentials)?;
        routes.ticket_holder(request.method(), path, query)
    }

    /// The routes besides MCP that handle a path.
    fn routes(&self, path: &str) -> Option<&Arc<dyn HttpRoutes>> {
        self.http.config.routes.as_ref().filter(|routes| routes.matches(path))
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        identity: Arc<CallerIdentity>,
    ) -> Response<ResponseBody> {
        if let Some(routes) = self.routes(request.uri().path()) {
            return self.handle_route(&**routes, request, identity).await;
        }
        let (path, method) = (request.uri().path(), request.method());
        let Some((kind, profile)) = Route::parse(path, self.http.config.legacy_sse) else {
            return response::error(
                StatusCode::NOT_FOUND,
                error_code::SERVER_ERROR,
                "not found: the MCP endpoint is /mcp",
            );
        };
        let Some(endpoint) = self.http.server.endpoint(profile) else {
            return response::error(
                StatusCode::NOT_FOUND,
                error_code::SERVER_ERROR,
                &format!("there is no profile `{profile}`; the main endpoint is /mcp"),
            );
        };
        let is_for_others = endpoint.services.local_only && identity.is_distinguished();
        if is_for_others || !identity.may_use_profile(&endpoint.profile) {
            return self.deny(&AccessError::ForbiddenProfile, path, request.headers());
        }
        let serves_legacy = self.http.server.config.revisions != ServedRevisions::Modern;
        match (kind, method) {
            (Route::Mcp, &Method::POST) => self.post(request, &endpoint, &identity).await,
            (Route::Mcp, &Method::GET) if serves_legacy => {
                self.open_change_stream(request.headers(), &endpoint, &identity)
            }
            (Route::Mcp, &Method::DELETE) if serves_legacy => {
                self.end_session(request.headers(), &endpoint, &identity)
            }
            (Route::Mcp, _) if serves_legacy => response::method_not_allowed("GET, POST, DELETE, OPTIONS"),
            (Route::Mcp, _) => response::method_not_allowed("POST, OPTIONS"),
            (Route::LegacySseStream, &Method::GET) => self.open_legacy_sse_stream(&endpoint, &identity),
            (Route::LegacySseStream, _) => response::method_not_allowed("GET, OPTIONS"),
            (Route::LegacySseMessages, &Method::POST) => {
                self.receive_legacy_sse_message(request, &endpoint, &identity).await
            }
            (Route::LegacySseMessages, _) => response::method_not_allowed("POST, OPTIONS"),
        }
    }

    async fn handle_route(
        &self,
        routes: &dyn HttpRoutes,
        mut request: Request<Incoming>,
        identity: Arc<CallerIdentity>,
    ) -> Response<ResponseBody> {
        let headers = std::mem::take(request.headers_mut());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let body = match self.read_text(request).await {
            Ok(body) => body,
            Err(refused) => {
                let status = refused.status();
                let message = match status {
                    StatusCode::PAYLOAD_TOO_LARGE => {
                        let limit = self.http.server.config.limits.message_bytes;
                        format!("the body is longer than {limit} bytes")
                    }
                    _ => "the body cannot be read as UTF-8 text".to_owned(),
                };
                return response::json(status, routes.error_body(status, &message));
            }
        };
        let query = uri.query().unwrap_or_default().to_owned();
        let path = uri.path().to_owned();
        let request = RouteRequest { method, path, query, headers, identity, body };
        let route_response = routes.handle(request).await;
        let mut response = match route_response.body {
            RouteBody::Empty => response::status(route_response.status),
            RouteBody::Json(text) => response::json(route_response.status, text),
            RouteBody::Events { stream: events, ends_on_shutdown } => {
                let mut shutdown = self.http.server.shutdown_signal();
                let stop: BoxFuture<'static, ()> = match ends_on_shutdown {
                    true => Box::pin(async move { shutdown.wait().await }),
                    false => Box::pin(std::future::pending()),
                };
                let keep_alive = KeepAlive::new(self.http.config.keep_alive_interval);
                response::stream(ResponseBody::Events(Box::new(EventStream { events, keep_alive, stop })))
            }
        };
        *response.status_mut() = route_response.status;
        for (name, value) in route_response.headers {
            // Only cookies may repeat: a second Content-Type would be one too many.
            match name {
                header::SET_COOKIE => drop(response.headers_mut().append(name, value)),
                _ => drop(response.headers_mut().insert(name, value)),
            }
        }
        response
    }

    /// Opens the stream of change notifications of a legacy client.
    fn open_change_stream(
        &self,
        headers: &HeaderMap,
        endpoint: &Arc<ServedEndpoint>,
        identity: &CallerIdentity,
    ) -> Response<ResponseBody> {
        if !accepted_types(headers).events {
            let text = "not acceptable: a stream needs Accept: text/event-stream";
            return response::error(StatusCode::NOT_ACCEPTABLE, error_code::SERVER_ERROR, text);
        }
        let peer = match self.require_session(headers, endpoint, identity) {
            Ok(peer) => peer,
            Err(response) => return *response,
        };
        let session_number = peer.session_number;
        let server = &self.http.server;
        let channel =
            RequestChannel::new(peer, Arc::clone(&server.input_requests), NotificationPreferences::default());
        let task = server.notify_legacy_client(endpoint, channel);
        server.clients.replace_change_stream(session_number, &task.channel);
        let events = TaskEventStream {
            server: Arc::clone(server),
            endpoint: Arc::clone(endpoint),
            owner_hash: identity.owner_hash(),
            id: None,
            task: Some(task),
            // Some clients consider a stream open after its first byte.
            first: Some(Bytes::from_static(b":\n\n")),
            keep_alive: KeepAlive::new(self.http.config.keep_alive_interval),
        };
        response::stream(ResponseBody::Task(Box::new(events)))
    }

    fn end_session(
        &self,
        headers: &HeaderMap,
        endpoint: &Arc<ServedEndpoint>,
        identity: &CallerIdentity,
    ) -> Response<ResponseBody> {
        let peer = match self.require_session(headers, endpoint, identity) {
            Ok(peer) => peer,
            Err(response) => return *response,
        };
        let server = &self.http.server;
        server.end_session(endpoint, peer.session_number);
        server.announce_ended_session(&endpoint.profile, peer.session_number);
        response::status(StatusCode::NO_CONTENT)
    }

    fn open_legacy_sse_stream(
        &self,
        endpoint: &Arc<ServedEndpoint>,
        identity: &Arc<CallerIdentity>,
    ) -> Response<ResponseBody> {
        let http = &self.http;
        match http.legacy_sse_sessions.open_stream(&http.server, endpoint, identity, &http.config) {
            Some(events) => response::stream(ResponseBody::Events(Box::new(events))),
            None => response::status(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    async fn receive_legacy_sse_message(
        &self,
        request: Request<Incoming>,
        endpoint: &Arc<ServedEndpoint>,
        identity: &Arc<CallerIdentity>,
    ) -> Response<ResponseBody> {
        let query = request.uri().query().unwrap_or_default();
        let id = query.split('&').find_map(|pair| pair.strip_prefix("sessionId=")).unwrap_or_default();
        let Some(legacy_session) = self.http.legacy_sse_sessions.find(id, endpoint, identity) else {
            return session_not_found();
        };
        match self.read_text(request).await {
            Ok(text) => {
                legacy_session.receive(text, identity).await;
                response::status(StatusCode::ACCEPTED)
            }
            Err(response) => response,
        }
    }

    /// The client of the session of a request, or the error response.
    fn require_session(
        &self,
        headers: &HeaderMap,
        endpoint: &Arc<ServedEndpoint>,
        identity: &CallerIdentity,
    ) -> Result<Arc<Peer>, Box<Response<ResponseBody>>> {
        match self.lookup_session(headers, endpoint, identity) {
            SessionLookup::Found(peer) => Ok(peer),
            SessionLookup::Missing => {
                let text = "missing header Mcp-Session-Id";
                Err(Box::new(response::error(StatusCode::BAD_REQUEST, error_code::SERVER_ERROR, text)))
            }
            SessionLookup::Unknown => Err(Box::new(session_not_found())),
        }
    }

    pub(crate) fn lookup_session(
        &self,
        headers: &HeaderMap,
        endpoint: &Arc<ServedEndpoint>,
        identity: &CallerIdentity,
    ) -> SessionLookup {
        let Some(id) = headers.get(&response::SESSION_HEADER) else { return SessionLookup::Missing };
        let server = &self.http.server;
        let owner_hash = identity.owner_hash();
        let mut cached = self.session.lock();
        let peer = match &*cached {
            Some((cached_id, at, owner, peer))
                if cached_id == id && Arc::ptr_eq(at, endpoint) && *owner == owner_hash =>
            {
                Some(Arc::clone(peer))
            }
            _ => {
                let scope = SessionScope { profile: &endpoint.profile, owner_hash: &owner_hash };
                let opened =
                    id.to_str().ok().and_then(|id| open_session_id(&server.config.session_keys, &scope, id));
                let peer = opened.map(Arc::new);
                // A copy, because the header is a part of the buffer that the request was read into, of 8 kB.
                if let (Some(peer), Ok(mut id)) = (&peer, HeaderValue::from_bytes(id.as_bytes())) {
                    // Keeps the id out of debug output.
                    id.set_sensitive(true);
                    *cached = Some((id, Arc::clone(endpoint), owner_hash, Arc::clone(peer)));
                }
                peer
            }
        };
        match peer {
            Some(peer) if !server.clients.has_ended(peer.session_number) => SessionLookup::Found(peer),
            _ => SessionLookup::Unknown,
        }
    }

    /// Reads the body of a request as text, within its limits of size and time.
    pub(crate) async fn read_text(
        &self,
        request: Request<Incoming>,
    ) -> Result<String, Response<ResponseBody>> {
        let limit = self.http.server.config.limits.message_bytes;
        let read = tokio::time::timeout(self.http.config.body_timeout, read_body(request.into_body(), limit));
        let bytes = match read.await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => {
                let text = format!("the body is longer than {limit} bytes");
                return Err(response::error(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    error_code::INVALID_REQUEST,
                    &text,
                ));
            }
            Ok(Err(_)) => return Err(response::status(StatusCode::BAD_REQUEST)),
            Err(_) => {
                let mut response = response::status(StatusCode::REQUEST_TIMEOUT);
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                return Err(response);
            }
        };
        String::from_utf8(bytes).map_err(|_| {
            response::error(StatusCode::BAD_REQUEST, error_code::PARSE_ERROR, "the body is not UTF-8")
        })
    }

    /// The header `MCP-Protocol-Version`; an invalid revision if it is repeated or unreadable.
    pub(crate) fn revision_header(headers: &HeaderMap) -> Option<&str> {
        let mut all = headers.get_all(&REVISION_HEADER).iter();
        let first = all.next()?.to_str().ok().filter(|_| all.next().is_none());
        Some(first.unwrap_or("unreadable").trim())
    }
}

#[derive(Debug)]
pub(crate) enum SessionLookup {
    /// The request has no session id.
    Missing,
    Found(Arc<Peer>),
    /// Forged, of another caller or endpoint, expired or ended.
    Unknown,
}

/// The response that makes clients initialize again.
pub(crate) fn session_not_found() -> Response<ResponseBody> {
    let text = "unknown session: send initialize to start a new one";
    response::error(StatusCode::NOT_FOUND, error_code::SESSION_NOT_FOUND, text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Mcp,
    LegacySseStream,
    LegacySseMessages,
}

impl Route {
    fn parse(path: &str, legacy_sse: bool) -> Option<(Self, &str)> {
        let routes =
            [("/mcp", Self::Mcp), ("/sse", Self::LegacySseStream), ("/messages", Self::LegacySseMessages)];
        let (rest, route) =
            routes.into_iter().find_map(|(prefix, route)| Some((path.strip_prefix(prefix)?, route)))?;
        let profile = match rest.strip_prefix('/') {
            Some(profile) => profile.strip_suffix('/').unwrap_or(profile),
            None if rest.is_empty() => "",
            None => return None,
        };
        (route == Self::Mcp || legacy_sse).then_some((route, profile))
    }
}

/// Reads the `Accept` header. Without one, a client gets JSON.
pub(crate) fn accepted_types(headers: &HeaderMap) -> AcceptedTypes {
    let mut accepted = AcceptedTypes { json: false, events: false };
    let mut has_header = false;
    for value in headers.get_all(header::ACCEPT) {
        let Ok(value) = value.to_str() else { continue };
        for range in value.split(',') {
            has_header = true;
            let media_type = range.split(';').next().unwrap_or_default().trim();
            let is = |expected: &str| media_type.eq_ignore_ascii_case(expected);
            accepted.json |= is("application/json") || is("application/*") || is("*/*");
            accepted.events |= is("text/event-stream") || is("text/*") || is("*/*");
        }
    }
    if has_header { accepted } else { AcceptedTypes { json: true, events: false } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_select_transport_and_profile() {
        const WITH_SSE: bool = true;
        const WITHOUT_SSE: bool = false;
        assert_eq!(Route::parse("/mcp", WITHOUT_SSE), Some((Route::Mcp, "")));
        assert_eq!(Route::parse("/mcp/", WITHOUT_SSE), Some((Route::Mcp, "")));
        assert_eq!(Route::parse("/mcp/work", WITHOUT_SSE), Some((Route::Mcp, "work")));
        assert_eq!(Route::parse("/sse", WITH_SSE), Some((Route::LegacySseStream, "")));
        for path in ["/", "/mcpx", "/sse", "/messages", ""] {
            assert_eq!(Route::parse(path, WITHOUT_SSE), None, "{path}");
        }
    }

    #[test]
    fn the_accept_header_selects_content_types() {
        let accepted = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, value.parse().unwrap());
            accepted_types(&headers)
        };
        assert_eq!(
            accepted("application/json, text/event-stream"),
            AcceptedTypes { json: true, events: true }
        );
        assert_eq!(accepted("TEXT/event-stream;q=0.5"), AcceptedTypes { json: false, events: true });
        assert_eq!(accepted("*/*"), AcceptedTypes { json: true, events: true });
        assert_eq!(accepted("text/html"), AcceptedTypes { json: false, events: false });
        assert_eq!(accepted_types(&HeaderMap::new()), AcceptedTypes { json: true, events: false });
    }
}
