//! Routes besides MCP: access, requests and event streams.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{Method, StatusCode};
use toolyard_core::{BoxFuture, CallerIdentity};
use toolyard_mcp_server::{Endpoint, HttpRoutes, RouteBody, RouteRequest, RouteResponse};

use crate::{
    test_server::{ServerBuilder, TestServer},
    tools::TestTools,
};

/// Echoes requests, and opens a stream without events at `/events`.
#[derive(Debug)]
struct Echo;

impl HttpRoutes for Echo {
    fn matches(&self, path: &str) -> bool {
        path.starts_with("/echo") || path == "/events"
    }

    fn is_public(&self, path: &str) -> bool {
        path == "/echo/public"
    }

    fn ticket_holder(&self, method: &Method, path: &str, query: &str) -> Option<Arc<CallerIdentity>> {
        let is_valid = *method == Method::GET && path == "/echo/ticket" && query == "ticket=valid";
        is_valid.then(|| Arc::new(CallerIdentity::principal("https://id.example", "ada")))
    }

    fn handle(&self, request: RouteRequest) -> BoxFuture<'_, RouteResponse> {
        Box::pin(async move {
            if request.path == "/echo/ticket" {
                return RouteResponse::json(StatusCode::OK, request.identity.subject.to_string());
            }
            if request.path == "/events" {
                let stream = Box::pin(stream::pending());
                let body = RouteBody::Events { stream, ends_on_shutdown: true };
                return RouteResponse { status: StatusCode::OK, headers: Vec::new(), body };
            }
            let echoed =
                format!("{:?}", (request.method.as_str(), request.path, request.query, request.body));
            RouteResponse::json(StatusCode::ACCEPTED, echoed)
        })
    }

    fn error_body(&self, status: StatusCode, message: &str) -> Bytes {
        Bytes::from(format!("{status}: {message}"))
    }
}

async fn server(token: Option<&str>) -> TestServer {
    let mut builder = match token {
        Some(token) => ServerBuilder::default().with_token(token),
        None => ServerBuilder::default(),
    };
    builder.http.routes = Some(Arc::new(Echo));
    builder.http.keep_alive_interval = Duration::from_millis(50);
    builder.config.limits.message_bytes = 1_000;
    builder.build().await
}

#[tokio::test]
async fn requests_arrive_complete() {
    let server = server(None).await;
    let url = format!("http://{}/echo/a?b=c", server.address);
    let answer = reqwest::Client::new().put(&url).body("hello").send().await.unwrap();
    assert_eq!(answer.status(), 202);
    assert_eq!(answer.text().await.unwrap(), r#"("PUT", "/echo/a", "b=c", "hello")"#);
    let long = reqwest::Client::new().post(&url).body("x".repeat(1_001)).send().await.unwrap();
    assert_eq!(long.status(), 413);
    assert_eq!(
        long.text().await.unwrap(),
        "413 Payload Too Large: the body is longer than 1000 bytes",
        "in the form of the route"
    );
    let elsewhere = reqwest::get(format!("http://{}/elsewhere", server.address)).await.unwrap();
    assert_eq!(elsewhere.status(), 404);
    server.close().await;
}

#[tokio::test]
async fn routes_need_authentication() {
    let server = server(Some("s3cret")).await;
    let url = format!("http://{}/echo", server.address);
    let request = || reqwest::Client::new().get(&url);
    assert_eq!(request().send().await.unwrap().status(), 401);
    assert_eq!(request().bearer_auth("s3cret").send().await.unwrap().status(), 202);
    let public = reqwest::get(format!("{url}/public")).await.unwrap();
    assert_eq!(public.status(), 202);
    let foreign = reqwest::Client::new().get(format!("{url}/public")).header("Host", "evil.example");
    assert_eq!(foreign.send().await.unwrap().status(), 403, "public is not for every host");
    let with_foreign_host = request().bearer_auth("s3cret").header("Host", "evil.example");
    assert_eq!(with_foreign_host.send().await.unwrap().status(), 403);
    let with_foreign_origin = request().bearer_auth("s3cret").header("Origin", "https://evil.example");
    assert_eq!(with_foreign_origin.send().await.unwrap().status(), 403);
    server.close().await;
}

#[tokio::test]
async fn the_endpoint_of_a_removed_profile_says_that_the_profile_does_not_exist() {
    let server = server(None).await;
    let url = format!("http://{}/mcp/cursor", server.address);
    server.server.set_endpoint("cursor", Endpoint::new(Arc::new(TestTools::default())));
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 400, "a GET without a session");
    server.server.remove_endpoint("cursor");
    let answer = reqwest::get(&url).await.unwrap();
    assert_eq!(answer.status(), 404);
    let text = answer.text().await.unwrap();
    assert!(text.contains("there is no profile `cursor`; the main endpoint is /mcp"), "{text}");
    server.close().await;
}

#[tokio::test]
async fn a_ticket_replaces_missing_credentials_only() {
    let server = server(Some("s3cret")).await;
    let client = reqwest::Client::new();
    let get = |path: &str| client.get(format!("http://{}{path}", server.address));
    let with_ticket = get("/echo/ticket?ticket=valid").send().await.unwrap();
    assert_eq!((with_ticket.status().as_u16(), with_ticket.text().await.unwrap()), (200, "ada".to_owned()));
    let post = client.post(format!("http://{}/echo/ticket?ticket=valid", server.address));
    for (request, status) in [
        (get("/echo/ticket"), 401),
        (get("/echo/ticket?ticket=guessed"), 401),
        (get("/echo/other?ticket=valid"), 401),
        (get("/mcp?ticket=valid"), 401),
        (post, 401),
        (get("/echo/ticket?ticket=valid").bearer_auth("wrong"), 401),
        (get("/echo/ticket?ticket=valid").header("Host", "evil.example"), 403),
        (get("/echo/ticket?ticket=valid").header("Origin", "https://evil.example"), 403),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{}", answer.url());
    }
    server.close().await;
}

#[tokio::test]
async fn a_stream_sends_keep_alives_and_ends_on_shutdown() {
    let server = server(None).await;
    let mut events = reqwest::get(format!("http://{}/events", server.address)).await.unwrap();
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    assert_eq!(events.chunk().await.unwrap().unwrap(), ":\n\n");
    let closing = tokio::spawn(server.close());
    while events.chunk().await.unwrap().is_some() {}
    closing.await.unwrap();
}
