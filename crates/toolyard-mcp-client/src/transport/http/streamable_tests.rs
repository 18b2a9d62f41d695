//! Streamable HTTP with correct servers: responses, sessions, resumption, challenges.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use serde_json::json;
use tokio::time::timeout;

use super::*;
use crate::{
    Authorizer, ChallengeError, SecretHeader,
    transport::{http::test_server::*, requests::pending::ServerMessage},
};
use toolyard_mcp::{
    RpcError,
    error_code::{PARSE_ERROR, SERVER_ERROR, UNSUPPORTED_VERSION},
};

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test]
async fn a_response_may_be_json() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.json(request.response(&json!({"tools": []}))).await;
        Some(reply)
    })
    .await;
    let client = TestClient::new(&server.url);
    client.transport.set_protocol_version(Some("2026-07-28"));
    let mut pending = client.requests.register().unwrap();
    let mut message = request(pending.id, "tools/list");
    message.headers = vec![("Mcp-Method".to_owned(), "tools/list".to_owned())];
    let answer = pending.response_to(client.transport.send(message)).await;
    assert_eq!(answer.unwrap().unwrap().get(), r#"{"tools":[]}"#);
    let received = &server.received()[0];
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/mcp"));
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("accept-encoding", "identity"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ] {
        assert_eq!(received.header(name), Some(value), "{name}");
    }
    assert_eq!(received.header("mcp-session-id"), None);
}

#[tokio::test]
async fn a_response_may_come_as_an_event_after_other_messages() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.events().await;
        reply.raw(": hello\n\n").await;
        reply.event(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#).await;
        reply.event(r#"{"jsonrpc":"2.0","id":"s-1","method":"elicitation/create","params":{}}"#).await;
        reply.event(request.response(&json!("done"))).await;
        None
    })
    .await;
    let mut client = TestClient::new(&server.url);
    assert_eq!(client.result("tools/call").await, json!("done"));
    let message = client.messages.recv().await.unwrap();
    assert!(
        matches!(&message, ServerMessage::Notification { method, .. } if method == "notifications/progress"),
        "{message:?}"
    );
    let server_request = client.messages.recv().await.unwrap();
    assert!(
        matches!(&server_request, ServerMessage::Request { id, .. } if id.0.get() == "\"s-1\""),
        "{server_request:?}"
    );
}

#[tokio::test]
async fn a_connection_is_reused_after_a_stream_that_ended() {
    let server = TestServer::start(|request, mut reply| async move {
        let event = format!("data: {}\n\n", request.response(&json!(1)));
        reply.head(200, &[("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]).await;
        reply.raw(format!("{:x}\r\n{event}\r\n", event.len())).await;
        // The end of the stream comes a moment after the answer.
        tokio::time::sleep(Duration::from_millis(30)).await;
        reply.raw("0\r\n\r\n").await;
        reply.keep_alive();
        Some(reply)
    })
    .await;
    let client = TestClient::new(&server.url);
    for _ in 0..5 {
        client.result("tools/call").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!((server.received().len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn notifications_are_accepted_with_202() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.full(202, &[], "").await;
        Some(reply)
    })
    .await;
    let client = TestClient::new(&server.url);
    client.transport.send(notification("notifications/initialized")).await.unwrap();
    assert_eq!(
        server.received()[0].json()["method"],
        "notifications/initialized",
        "sent before send() returned"
    );
    // For a request, 202 would mean that no response ever comes.
    assert!(matches!(client.error("tools/list").await, TransportError::UnexpectedResponse(_)));
}

/// A legacy server that knows the session in `known` and responds to others with the status and body in `unknown`.
async fn session_server(unknown: (u16, &'static str), known: Arc<Mutex<Option<&'static str>>>) -> TestServer {
    TestServer::start(move |request, mut reply| {
        let known = *known.lock();
        async move {
            if request.method == "DELETE" {
                reply.full(200, &[], "").await;
            } else if request.json()["method"] == "initialize" {
                let session = ("Mcp-Session-Id", known.unwrap_or("none"));
                reply.full(200, &[JSON, session], request.response(&json!({}))).await;
            } else if request.header("mcp-session-id") == known {
                reply.json(request.response(&json!("known"))).await;
            } else {
                reply.full(unknown.0, &[JSON], unknown.1).await;
            }
            Some(reply)
        }
    })
    .await
}

#[tokio::test]
async fn a_session_is_kept_expires_and_is_started_again() {
    let message_text =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID"}}"#;
    for unknown in [(404, "Not Found"), (400, message_text)] {
        let known = Arc::new(Mutex::new(Some("first")));
        let server = session_server(unknown, Arc::clone(&known)).await;
        let client = TestClient::new(&server.url);
        client.result("initialize").await;
        client.transport.set_protocol_version(Some("2025-06-18"));
        assert_eq!(client.result("tools/list").await, json!("known"));
        *known.lock() = Some("second");
        let error = client.error("tools/list").await;
        assert_eq!(error, TransportError::SessionExpired);
        assert!(error.had_no_effect());
        assert!(!client.transport.has_session() && client.transport.has_state());
        client.result("initialize").await;
        assert_eq!(client.result("tools/list").await, json!("known"));
        let all = server.received();
        let initializes = all.iter().filter(|request| request.json()["method"] == "initialize");
        assert!(initializes.clone().all(|request| request.header("mcp-session-id").is_none()));
        assert_eq!(initializes.count(), 2);
        // Closing deletes this session.
        client.transport.close().await;
        let last = server.received().pop().unwrap();
        assert_eq!((last.method.as_str(), last.header("mcp-session-id")), ("DELETE", Some("second")));
        assert_eq!(client.transport.send(request(99, "ping")).await, Err(TransportError::Closed));
    }
}

#[tokio::test]
async fn a_session_without_an_id_has_no_state() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.json(request.response(&json!({}))).await;
        Some(reply)
    })
    .await;
    let client = TestClient::new(&server.url);
    client.result("initialize").await;
    assert!(!client.transport.has_state());
}

#[tokio::test]
async fn without_a_session_404_is_only_a_status() {
    let server =
        session_server((404, "<html>nothing\u{1b}here</html>"), Arc::new(Mutex::new(Some("x")))).await;
    let client = TestClient::new(&server.url);
    let error = client.error("server/discover").await;
    let TransportError::Status { status: 404, error: None, excerpt: Some(excerpt), .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(&*excerpt, "nothing here");
}

#[tokio::test]
async fn an_error_status_reports_its_body() {
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"unsupported","data":{"supported":["2025-11-25"]}}}"#;
    let server = TestServer::start(move |_, mut reply| async move {
        reply.full(500, &[JSON, ("WWW-Authenticate", "Bearer realm=\"x\"")], body).await;
        Some(reply)
    })
    .await;
    let error = TestClient::new(&server.url).error("server/discover").await;
    assert_eq!(error.to_string(), "the server responded with HTTP status 500: unsupported (code -32022)");
    let TransportError::Status { status: 500, error: Some(error), challenge, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!((error.code, error.message.as_str()), (UNSUPPORTED_VERSION, "unsupported"));
    assert_eq!(error.data.unwrap().get(), r#"{"supported":["2025-11-25"]}"#);
    assert_eq!(challenge.as_deref(), Some("Bearer realm=\"x\""));
}

#[tokio::test]
async fn an_error_without_an_id_belongs_to_the_request() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#).await;
        Some(reply)
    })
    .await;
    assert_eq!(
        TestClient::new(&server.url).request("tools/list").await.unwrap().unwrap_err().code,
        PARSE_ERROR
    );
}

#[tokio::test]
async fn a_response_is_resumed_on_later_streams() {
    let polls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&polls);
    let server = TestServer::start(move |request, mut reply| {
        let count = Arc::clone(&count);
        async move {
            reply.events().await;
            if request.method == "POST" {
                reply.raw("id: e-1\nretry: 300\ndata: \n\n").await;
            } else if count.fetch_add(1, Ordering::SeqCst) == 0 {
                assert_eq!(request.header("last-event-id"), Some("e-1"));
                reply.raw("id: e-2\ndata: \n\n").await;
            } else {
                assert_eq!(request.header("last-event-id"), Some("e-2"));
                reply.event(r#"{"jsonrpc":"2.0","id":1,"result":"late"}"#).await;
            }
            None
        }
    })
    .await;
    let client = TestClient::new(&server.url);
    client.transport.set_protocol_version(Some("2025-11-25"));
    let start = Instant::now();
    assert_eq!(client.result("tools/call").await, json!("late"));
    assert!(start.elapsed() >= Duration::from_millis(600), "resumed too early: {:?}", start.elapsed());
    assert_eq!(server.received()[1].header("mcp-protocol-version"), Some("2025-11-25"));
    // Modern revisions have no resumption.
    client.transport.set_protocol_version(Some("2026-07-28"));
    assert!(matches!(client.error("tools/call").await, TransportError::ConnectionLost(_)));
    assert_eq!(polls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn closing_ends_all_pending_requests() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.disconnected().await;
        None
    })
    .await;
    let client = Arc::new(TestClient::new(&server.url));
    let request = {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.request("tools/call").await })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    timeout(Duration::from_secs(1), client.transport.close()).await.unwrap();
    assert_eq!(request.await.unwrap(), Err(TransportError::Closed));
}

#[tokio::test]
async fn a_slow_session_delete_is_not_awaited() {
    let server = TestServer::start(|request, mut reply| async move {
        if request.method == "DELETE" {
            reply.disconnected().await;
        }
        reply.full(200, &[JSON, ("Mcp-Session-Id", "s")], request.response(&json!({}))).await;
        Some(reply)
    })
    .await;
    let client = TestClient::new(&server.url);
    client.result("initialize").await;
    let start = Instant::now();
    client.transport.close().await;
    assert!(start.elapsed() < Duration::from_millis(1_500));
}

#[tokio::test]
async fn unsolicited_messages_are_received_again_after_a_break() {
    let server = TestServer::start(|request, mut reply| async move {
        if request.method == "POST" {
            reply.full(200, &[JSON, ("Mcp-Session-Id", "s")], request.response(&json!({}))).await;
            return Some(reply);
        }
        assert_eq!(request.header("mcp-session-id"), Some("s"));
        reply.events().await;
        reply.raw("retry: 10\nid: 5\n\n").await;
        // Responses do not belong on this stream.
        reply.event(r#"{"jsonrpc":"2.0","id":2,"result":"made up"}"#).await;
        reply.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
        None
    })
    .await;
    let mut client = TestClient::new(&server.url);
    client.result("initialize").await;
    let pending = client.requests.register().unwrap();
    client.transport.open_listen_stream().await;
    for _ in 0..2 {
        let message = timeout(Duration::from_secs(5), client.messages.recv()).await.unwrap().unwrap();
        assert!(matches!(message, ServerMessage::Notification { .. }));
    }
    assert!(client.requests.contains(pending.id));
    assert_eq!(server.received()[2].header("last-event-id"), Some("5"));
    timeout(Duration::from_secs(2), client.transport.close()).await.unwrap();
    let after = server.received().len();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.received().len(), after, "no request after close");
}

#[tokio::test]
async fn a_server_without_a_listen_stream_is_asked_once() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.full(405, &[], "").await;
        Some(reply)
    })
    .await;
    let client = TestClient::new(&server.url);
    client.transport.open_listen_stream().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.received().len(), 1);
    assert_eq!(client.requests.closed(), None);
}

/// Gets another token after each challenge.
#[derive(Debug, Default)]
struct FakeAuthorizer {
    challenges: Mutex<Vec<(u16, Option<String>)>>,
    fails: bool,
}

impl Authorizer for FakeAuthorizer {
    fn token(&self) -> BoxFuture<'_, Option<SecretHeader>> {
        let count = self.challenges.lock().len();
        Box::pin(async move { (count > 0).then(|| SecretHeader::bearer(&format!("token-{count}")))? })
    }

    fn handle_challenge<'a>(
        &'a self,
        _: Option<&'a SecretHeader>,
        status: u16,
        text: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, ChallengeError>> {
        self.challenges.lock().push((status, text.map(str::to_owned)));
        let outcome =
            if self.fails { Err(ChallengeError::Failed("nobody signed in".to_owned())) } else { Ok(true) };
        Box::pin(async move { outcome })
    }
}

#[tokio::test]
async fn each_kind_of_challenge_is_handled_once() {
    let server = TestServer::start(|request, mut reply| async move {
        match request.header("authorization") {
            None => reply.full(401, &[("WWW-Authenticate", "Bearer resource_metadata=\"m\"")], "").await,
            Some("Bearer token-1") => {
                reply.full(403, &[("WWW-Authenticate", "Bearer error=\"insufficient_scope\"")], "").await;
            }
            Some("Bearer token-2") => reply.json(request.response(&json!("in"))).await,
            Some(other) => reply.full(401, &[], format!("{other} is not known")).await,
        }
        Some(reply)
    })
    .await;
    let authorizer = Arc::new(FakeAuthorizer::default());
    let target =
        HttpTarget::new(&server.url, []).unwrap().with_authorizer(Arc::<FakeAuthorizer>::clone(&authorizer));
    let client = TestClient::with(target, WireLimits::default());
    assert_eq!(client.result("tools/call").await, json!("in"));
    let challenges = authorizer.challenges.lock().clone();
    assert_eq!(challenges[0], (401, Some("Bearer resource_metadata=\"m\"".to_owned())));
    assert_eq!((challenges[1].0, challenges.len()), (403, 2));
    let bodies: Vec<_> = server.received().into_iter().map(|request| request.body).collect();
    assert!(bodies.windows(2).all(|two| two[0] == two[1]), "the same message each time");
    // From now on no token is valid: there is one retry.
    authorizer.challenges.lock().push((0, None));
    let error = client.error("tools/call").await;
    assert_eq!(error.to_string(), "the server responded with HTTP status 401: … is not known");
    assert_eq!(server.received().len(), 5);
}

#[tokio::test]
async fn an_unmet_challenge_is_an_error_with_the_reason() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.full(401, &[], "").await;
        Some(reply)
    })
    .await;
    let authorizer = Arc::new(FakeAuthorizer { fails: true, ..FakeAuthorizer::default() });
    let target = HttpTarget::new(&server.url, []).unwrap().with_authorizer(authorizer);
    let error = TestClient::with(target, WireLimits::default()).error("tools/call").await;
    assert!(error.had_no_effect() && error.to_string().contains("nobody signed in"), "{error}");
    assert_eq!(server.received().len(), 1);
    // Without an authorizer the status is the error.
    let error = TestClient::new(&server.url).error("tools/call").await;
    assert!(matches!(error, TransportError::Status { status: 401, .. }));
}

/// A call is sent again only if it was certainly not processed.
#[test]
fn only_errors_about_our_session_expire_it() {
    let status = |status, message_text: &str| TransportError::Status {
        status,
        error: Some(RpcError { code: SERVER_ERROR, message: message_text.to_owned(), data: None }),
        excerpt: None,
        challenge: None,
        retry_after_seconds: None,
    };
    for message_text in ["Bad Request: No valid session ID provided", "Bad Request: Server not initialized"] {
        assert!(is_unknown_session(&status(400, message_text)), "{message_text}");
    }
    for message_text in ["could not save session", "session limit of the database reached", "no"] {
        assert!(!is_unknown_session(&status(400, message_text)), "{message_text}");
    }
    assert!(is_unknown_session(&status(404, "no")));
    assert!(!is_unknown_session(&status(500, "No valid session ID provided")));
}
