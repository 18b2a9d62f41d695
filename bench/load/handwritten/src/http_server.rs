//! HTTP servers: a POST of a tool call passes the checks of host, origin, token, method, content type, size and time, and
//! gets a JSON response.
//!
//! `ours` enters our HTTP layer through [`HttpRoutes`], so that it and the libraries call the same handler. `ours-mcp` is
//! the whole server with sessions, revisions and cancellation, which the libraries do not have.

use std::{convert::Infallible, io::Read as _, sync::Arc, time::Duration};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::{
    Router,
    extract::{DefaultBodyLimit, FromRequest as _, Request},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
    routing::post,
    serve::ListenerExt as _,
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot};
use toolyard_core::{
    BoxFuture, Catalogue, ClientInfo, ListedTool, RawJson, ServiceCall, ToolError, ToolOutput, ToolService,
};
use toolyard_mcp::{Message, WireLimits};
use toolyard_mcp_server::{
    Access, AccessToken, Endpoint, HttpConfig, HttpRoutes, McpServer, RouteRequest, RouteResponse,
    ServerConfig, SessionKeys, serve_http,
};
use tower_http::{limit::RequestBodyLimitLayer, timeout::RequestBodyTimeoutLayer};

use crate::Outcome;

/// The servers. `hyper` checks nothing and is the floor of all of them.
pub(crate) const WAYS: [&str; 5] = ["ours", "axum", "axum-tower-http", "hyper", "ours-mcp"];
pub(crate) const TOKEN: &str = "e5cd2b1c58d14a0f9f7a3a1f0c2d4b6e";
/// The path of every server but `ours-mcp`, whose path is `/mcp`.
pub(crate) const PATH: &str = "/call";

const MAX_BODY_BYTES: usize = 4 << 20;
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until stdin ends. Prints the address first.
pub(crate) async fn run(way: &str) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let (stop_sender, stopped) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = stop_sender.send(());
    });
    let stop = async move { drop(stopped.await) };
    match way {
        "ours" | "ours-mcp" => serve_ours(listener, stop).await,
        "axum" => {
            let app = Router::new().route(PATH, post(checked_handler));
            serve_axum(listener, app.layer(DefaultBodyLimit::max(MAX_BODY_BYTES)), stop).await
        }
        "axum-tower-http" => {
            let app = Router::new()
                .route(PATH, post(handler))
                .layer(DefaultBodyLimit::disable())
                .layer(RequestBodyLimitLayer::new(MAX_BODY_BYTES))
                .layer(RequestBodyTimeoutLayer::new(BODY_TIMEOUT))
                .layer(from_fn(check_middleware));
            serve_axum(listener, app, stop).await
        }
        "hyper" => serve_hyper(listener, stop).await,
        other => Err(format!("unknown server {other}").into()),
    }
}

/// The handler of all servers but `ours-mcp`: reads a message and responds with the result of a tool.
fn respond(text: String) -> Option<Bytes> {
    let message = Message::read(text, &WireLimits::default()).ok()?.pop()?;
    let Message::Request { id, method, params: Some(_) } = message else { return None };
    if method != "tools/call" {
        return None;
    }
    let result = r#"{"content":[{"type":"text","text":"hello"}],"isError":false}"#;
    Some(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.0.get()).into())
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

#[derive(Debug)]
struct CallRoute;

impl HttpRoutes for CallRoute {
    fn matches(&self, path: &str) -> bool {
        path == PATH
    }

    fn handle(&self, request: RouteRequest) -> BoxFuture<'_, RouteResponse> {
        Box::pin(async move {
            let error = |status| RouteResponse::json(status, "{}");
            if request.method != Method::POST {
                return error(StatusCode::METHOD_NOT_ALLOWED);
            }
            if !is_json(&request.headers) {
                return error(StatusCode::UNSUPPORTED_MEDIA_TYPE);
            }
            match respond(request.body) {
                Some(body) => RouteResponse::json(StatusCode::OK, body),
                None => error(StatusCode::BAD_REQUEST),
            }
        })
    }
}

#[derive(Debug)]
struct Greeter(Arc<Catalogue>);

impl ToolService for Greeter {
    fn catalogue(&self, _client: &ClientInfo) -> Arc<Catalogue> {
        Arc::clone(&self.0)
    }

    fn changed(&self, _version: u64) -> BoxFuture<'_, u64> {
        Box::pin(std::future::pending())
    }

    fn describe(&self, _name: &str, _client: &ClientInfo) -> Option<RawJson> {
        None
    }

    fn call<'a>(&'a self, _call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text("hello")) })
    }
}

async fn serve_ours(listener: TcpListener, stop: impl Future<Output = ()> + Send) -> Outcome {
    let definition = RawJson::from(json!({"name": "greet", "inputSchema": {"type": "object"}}));
    let tools = vec![ListedTool { name: "greet".into(), definition }];
    let service = Arc::new(Greeter(Arc::new(Catalogue { version: 1, tools })));
    let config = ServerConfig::new("greeter", "1.0.0", SessionKeys::random()?);
    let server = Arc::new(McpServer::new(config, Endpoint::new(service)));
    let mut http = HttpConfig::new(Access::Token(AccessToken::new(TOKEN)));
    http.routes = Some(Arc::new(CallRoute));
    Ok(serve_http(server, listener, http, stop).await?)
}

/// Host, origin and token, in the simplest way that refuses what ours refuses for a server on this machine.
fn check_access(headers: &HeaderMap) -> Result<(), StatusCode> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(StatusCode::FORBIDDEN) };
    if !host.to_str().is_ok_and(is_loopback) {
        return Err(StatusCode::FORBIDDEN);
    }
    let is_allowed = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(is_loopback)
    };
    if !headers.get_all(ORIGIN).iter().all(is_allowed) {
        return Err(StatusCode::FORBIDDEN);
    }
    let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let token = token.ok_or(StatusCode::UNAUTHORIZED)?;
    verify_slices_are_equal(token.as_bytes(), TOKEN.as_bytes()).map_err(|_| StatusCode::UNAUTHORIZED)
}

/// Whether a host, with or without port, is this machine.
fn is_loopback(host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && !host.ends_with(']') => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

async fn check_middleware(request: Request, next: Next) -> Response {
    match check_access(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(status) => status.into_response(),
    }
}

/// All checks in one function, without layers.
async fn checked_handler(request: Request) -> Response {
    if let Err(status) = check_access(request.headers()) {
        return status.into_response();
    }
    if !is_json(request.headers()) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let text = String::from_request(request, &());
    match tokio::time::timeout(BODY_TIMEOUT, text).await {
        Ok(Ok(text)) => json_response(text),
        Ok(Err(rejection)) => rejection.into_response(),
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

async fn handler(headers: HeaderMap, text: String) -> Response {
    if is_json(&headers) { json_response(text) } else { StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response() }
}

fn json_response(text: String) -> Response {
    match respond(text) {
        Some(body) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response(),
        None => StatusCode::BAD_REQUEST.into_response(),
    }
}

async fn serve_axum(
    listener: TcpListener,
    app: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Outcome {
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, app).with_graceful_shutdown(stop).await?)
}

/// hyper alone: no check, no limit, no graceful shutdown.
async fn serve_hyper(listener: TcpListener, stop: impl Future<Output = ()>) -> Outcome {
    tokio::select! {
        ended = accept_for_hyper(&listener) => ended,
        () = stop => Ok(()),
    }
}

async fn accept_for_hyper(listener: &TcpListener) -> Outcome {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(|request: hyper::Request<Incoming>| async move {
            let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let body = String::from_utf8(body.into()).ok().and_then(respond).unwrap_or_default();
            let mut response = hyper::Response::new(Full::new(body));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok::<_, Infallible>(response)
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
