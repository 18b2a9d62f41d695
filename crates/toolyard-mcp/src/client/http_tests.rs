use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use serde_json::json;
use tokio::time::timeout;

use super::*;
use crate::{
    client::{Heard, http_test_server::*},
    wire::RpcError,
};

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test]
async fn an_answer_may_be_json() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.json(seen.answer(&json!({"tools": []}))).await;
        Some(reply)
    })
    .await;
    let peer = Peer::new(&server.url);
    peer.transport.set_protocol_version(Some("2026-07-28"));
    let mut waiting = peer.exchange.wait().unwrap();
    let mut message = request(waiting.id, "tools/list");
    message.headers = vec![("Mcp-Method".to_owned(), "tools/list".to_owned())];
    let answer = waiting.answer_to(peer.transport.send(message)).await;
    assert_eq!(answer.unwrap().unwrap().get(), r#"{"tools":[]}"#);
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/mcp"));
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("accept-encoding", "identity"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!(seen.header("mcp-session-id"), None);
}

#[tokio::test]
async fn an_answer_may_come_as_events_after_other_things() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.events().await;
        reply.raw(": hello\n\n").await;
        reply.event(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#).await;
        reply.event(r#"{"jsonrpc":"2.0","id":"s-1","method":"elicitation/create","params":{}}"#).await;
        reply.event(seen.answer(&json!("done"))).await;
        None
    })
    .await;
    let mut peer = Peer::new(&server.url);
    assert_eq!(peer.result("tools/call").await, json!("done"));
    let told = peer.heard.recv().await.unwrap();
    assert!(
        matches!(&told, Heard::Notification { method, .. } if method == "notifications/progress"),
        "{told:?}"
    );
    let asked = peer.heard.recv().await.unwrap();
    assert!(matches!(&asked, Heard::Request { id, .. } if id.0.get() == "\"s-1\""), "{asked:?}");
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_stream_that_ended() {
    let server = TestServer::start(|seen, mut reply| async move {
        let event = format!("data: {}\n\n", seen.answer(&json!(1)));
        reply.head(200, &[("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]).await;
        reply.raw(format!("{:x}\r\n{event}\r\n", event.len())).await;
        // The end of the stream comes a moment after the answer.
        tokio::time::sleep(Duration::from_millis(30)).await;
        reply.raw("0\r\n\r\n").await;
        reply.again();
        Some(reply)
    })
    .await;
    let peer = Peer::new(&server.url);
    for _ in 0..5 {
        peer.result("tools/call").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!((server.seen().len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn what_is_told_is_taken_with_202() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.full(202, &[], "").await;
        Some(reply)
    })
    .await;
    let peer = Peer::new(&server.url);
    peer.transport.send(notification("notifications/initialized")).await.unwrap();
    assert_eq!(
        server.seen()[0].json()["method"],
        "notifications/initialized",
        "it arrived before send came back"
    );
    // The same for a request would be an answer that never comes.
    assert!(matches!(peer.error("tools/list").await, TransportError::NotTheProtocol(_)));
}

/// A server of the legacy era that knows the sessions in `known`.
async fn with_sessions(unknown: (u16, &'static str), known: Arc<Mutex<Option<&'static str>>>) -> TestServer {
    TestServer::start(move |seen, mut reply| {
        let known = *lock(&known);
        async move {
            if seen.method == "DELETE" {
                reply.full(200, &[], "").await;
            } else if seen.json()["method"] == "initialize" {
                let session = ("Mcp-Session-Id", known.unwrap_or("none"));
                reply.full(200, &[JSON, session], seen.answer(&json!({}))).await;
            } else if seen.header("mcp-session-id") == known {
                reply.json(seen.answer(&json!("known"))).await;
            } else {
                reply.full(unknown.0, &[JSON], unknown.1).await;
            }
            Some(reply)
        }
    })
    .await
}

#[tokio::test]
async fn a_session_is_kept_lost_and_begun_anew() {
    let words =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID"}}"#;
    for unknown in [(404, "Not Found"), (400, words)] {
        let known = Arc::new(Mutex::new(Some("first")));
        let server = with_sessions(unknown, Arc::clone(&known)).await;
        let peer = Peer::new(&server.url);
        peer.result("initialize").await;
        peer.transport.set_protocol_version(Some("2025-06-18"));
        assert_eq!(peer.result("tools/list").await, json!("known"));
        *lock(&known) = Some("second");
        let error = peer.error("tools/list").await;
        assert_eq!(error, TransportError::SessionGone);
        assert!(error.had_no_effect());
        assert!(!peer.transport.has_session());
        peer.result("initialize").await;
        assert_eq!(peer.result("tools/list").await, json!("known"));
        let all = server.seen();
        let initializes = all.iter().filter(|seen| seen.json()["method"] == "initialize");
        assert!(initializes.clone().all(|seen| seen.header("mcp-session-id").is_none()));
        assert_eq!(initializes.count(), 2);
        // Closing says goodbye to the session, and to no other.
        peer.transport.close().await;
        let last = server.seen().pop().unwrap();
        assert_eq!((last.method.as_str(), last.header("mcp-session-id")), ("DELETE", Some("second")));
        assert_eq!(peer.transport.send(request(99, "ping")).await, Err(TransportError::Closed));
    }
}

#[tokio::test]
async fn without_a_session_404_is_only_a_status() {
    let server =
        with_sessions((404, "<html>nothing\u{1b}here</html>"), Arc::new(Mutex::new(Some("x")))).await;
    let peer = Peer::new(&server.url);
    let error = peer.error("server/discover").await;
    let TransportError::Status { status: 404, error: None, excerpt: Some(excerpt), .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(excerpt, "nothing here");
}

#[tokio::test]
async fn an_error_status_says_what_its_body_says() {
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"unsupported","data":{"supported":["2025-11-25"]}}}"#;
    let server = TestServer::start(move |_, mut reply| async move {
        reply.full(500, &[JSON, ("WWW-Authenticate", "Bearer realm=\"x\"")], body).await;
        Some(reply)
    })
    .await;
    let error = Peer::new(&server.url).error("server/discover").await;
    assert_eq!(error.to_string(), "it answered with HTTP status 500: unsupported (code -32022)");
    let TransportError::Status { status: 500, error: Some(error), challenge, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!((error.code, error.message.as_str()), (-32022, "unsupported"));
    assert_eq!(error.data.unwrap().get(), r#"{"supported":["2025-11-25"]}"#);
    assert_eq!(challenge.as_deref(), Some("Bearer realm=\"x\""));
}

#[tokio::test]
async fn an_error_without_an_id_answers_the_request_it_came_for() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#).await;
        Some(reply)
    })
    .await;
    assert_eq!(Peer::new(&server.url).ask("tools/list").await.unwrap().unwrap_err().code, -32700);
}

#[tokio::test]
async fn an_answer_that_is_fetched_later_arrives() {
    let polls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&polls);
    let server = TestServer::start(move |seen, mut reply| {
        let count = Arc::clone(&count);
        async move {
            reply.events().await;
            if seen.method == "POST" {
                reply.raw("id: e-1\nretry: 300\ndata: \n\n").await;
            } else if count.fetch_add(1, Ordering::SeqCst) == 0 {
                assert_eq!(seen.header("last-event-id"), Some("e-1"));
                reply.raw("id: e-2\ndata: \n\n").await;
            } else {
                assert_eq!(seen.header("last-event-id"), Some("e-2"));
                reply.event(r#"{"jsonrpc":"2.0","id":1,"result":"late"}"#).await;
            }
            None
        }
    })
    .await;
    let peer = Peer::new(&server.url);
    peer.transport.set_protocol_version(Some("2025-11-25"));
    let start = Instant::now();
    assert_eq!(peer.result("tools/call").await, json!("late"));
    assert!(start.elapsed() >= Duration::from_millis(600), "it came back too early: {:?}", start.elapsed());
    assert_eq!(server.seen()[1].header("mcp-protocol-version"), Some("2025-11-25"));
    // The modern era knows nothing of the kind.
    peer.transport.set_protocol_version(Some("2026-07-28"));
    assert!(matches!(peer.error("tools/call").await, TransportError::Broken(_)));
    assert_eq!(polls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn closing_ends_every_wait() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.hung_up().await;
        None
    })
    .await;
    let peer = Arc::new(Peer::new(&server.url));
    let asking = {
        let peer = Arc::clone(&peer);
        tokio::spawn(async move { peer.ask("tools/call").await })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    timeout(Duration::from_secs(1), peer.transport.close()).await.unwrap();
    assert_eq!(asking.await.unwrap(), Err(TransportError::Closed));
}

#[tokio::test]
async fn a_slow_goodbye_is_not_waited_for() {
    let server = TestServer::start(|seen, mut reply| async move {
        if seen.method == "DELETE" {
            reply.hung_up().await;
        }
        reply.full(200, &[JSON, ("Mcp-Session-Id", "s")], seen.answer(&json!({}))).await;
        Some(reply)
    })
    .await;
    let peer = Peer::new(&server.url);
    peer.result("initialize").await;
    let start = Instant::now();
    peer.transport.close().await;
    assert!(start.elapsed() < Duration::from_millis(1_500));
}

#[tokio::test]
async fn what_a_server_tells_unasked_is_heard_again_after_a_break() {
    let server = TestServer::start(|seen, mut reply| async move {
        if seen.method == "POST" {
            reply.full(200, &[JSON, ("Mcp-Session-Id", "s")], seen.answer(&json!({}))).await;
            return Some(reply);
        }
        assert_eq!(seen.header("mcp-session-id"), Some("s"));
        reply.events().await;
        reply.raw("retry: 10\nid: 5\n\n").await;
        // An answer on this stream is made up.
        reply.event(r#"{"jsonrpc":"2.0","id":2,"result":"made up"}"#).await;
        reply.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
        None
    })
    .await;
    let mut peer = Peer::new(&server.url);
    peer.result("initialize").await;
    let waiting = peer.exchange.wait().unwrap();
    peer.transport.open_listen_stream().await;
    for _ in 0..2 {
        let told = timeout(Duration::from_secs(5), peer.heard.recv()).await.unwrap().unwrap();
        assert!(matches!(told, Heard::Notification { .. }));
    }
    assert!(peer.exchange.awaits(waiting.id));
    assert_eq!(server.seen()[2].header("last-event-id"), Some("5"));
    timeout(Duration::from_secs(2), peer.transport.close()).await.unwrap();
    let after = server.seen().len();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.seen().len(), after, "nobody listens after the end");
}

#[tokio::test]
async fn a_server_without_such_a_stream_is_asked_once() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.full(405, &[], "").await;
        Some(reply)
    })
    .await;
    let peer = Peer::new(&server.url);
    peer.transport.open_listen_stream().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.seen().len(), 1);
    assert_eq!(peer.exchange.closed(), None);
}

/// Lets in whoever brings the second token.
#[derive(Debug, Default)]
struct Doorman {
    challenges: Mutex<Vec<(u16, Option<String>)>>,
    refuses: bool,
}

impl crate::client::Authorizer for Doorman {
    fn token(&self) -> BoxFuture<'_, Option<crate::client::SecretHeader>> {
        let met = lock(&self.challenges).len();
        Box::pin(
            async move { (met > 0).then(|| crate::client::SecretHeader::bearer(&format!("token-{met}")))? },
        )
    }

    fn challenged<'a>(
        &'a self,
        _: Option<&'a crate::client::SecretHeader>,
        status: u16,
        text: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, String>> {
        lock(&self.challenges).push((status, text.map(str::to_owned)));
        let answer = if self.refuses { Err("nobody signed in".to_owned()) } else { Ok(true) };
        Box::pin(async move { answer })
    }
}

#[tokio::test]
async fn a_challenge_is_met_once_of_each_kind() {
    let server = TestServer::start(|seen, mut reply| async move {
        match seen.header("authorization") {
            None => reply.full(401, &[("WWW-Authenticate", "Bearer resource_metadata=\"m\"")], "").await,
            Some("Bearer token-1") => {
                reply.full(403, &[("WWW-Authenticate", "Bearer error=\"insufficient_scope\"")], "").await;
            }
            Some("Bearer token-2") => reply.json(seen.answer(&json!("in"))).await,
            Some(other) => reply.full(401, &[], format!("{other} is not known")).await,
        }
        Some(reply)
    })
    .await;
    let doorman = Arc::new(Doorman::default());
    let target = HttpTarget::new(&server.url, []).unwrap().with_authorizer(Arc::<Doorman>::clone(&doorman));
    let peer = Peer::with(target, WireLimits::default());
    assert_eq!(peer.result("tools/call").await, json!("in"));
    let met = lock(&doorman.challenges).clone();
    assert_eq!(met[0], (401, Some("Bearer resource_metadata=\"m\"".to_owned())));
    assert_eq!((met[1].0, met.len()), (403, 2));
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
    assert!(bodies.windows(2).all(|two| two[0] == two[1]), "the same message each time");
    // From now on the token is never right: one more try, and that is the end.
    lock(&doorman.challenges).push((0, None));
    let error = peer.error("tools/call").await;
    assert_eq!(error.to_string(), "it answered with HTTP status 401: … is not known");
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test]
async fn a_challenge_nobody_meets_is_an_error_that_says_why() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.full(401, &[], "").await;
        Some(reply)
    })
    .await;
    let doorman = Arc::new(Doorman { refuses: true, ..Doorman::default() });
    let target = HttpTarget::new(&server.url, []).unwrap().with_authorizer(doorman);
    let error = Peer::with(target, WireLimits::default()).error("tools/call").await;
    assert!(error.had_no_effect() && error.to_string().contains("nobody signed in"), "{error}");
    assert_eq!(server.seen().len(), 1);
    // Without anyone to ask, the status is the answer.
    let error = Peer::new(&server.url).error("tools/call").await;
    assert!(matches!(error, TransportError::Status { status: 401, .. }));
}

/// Proves every request with a count and the nonce it knows, and is never asked for another token.
#[derive(Debug, Default)]
struct Prover {
    nonce: Mutex<String>,
    proofs: AtomicUsize,
}

impl crate::client::Authorizer for Prover {
    fn token(&self) -> BoxFuture<'_, Option<crate::client::SecretHeader>> {
        Box::pin(async { crate::client::SecretHeader::new("authorization", "DPoP token") })
    }

    fn proof(
        &self,
        _: &crate::client::SecretHeader,
        method: &str,
        url: &url::Url,
    ) -> Option<crate::client::SecretHeader> {
        let count = self.proofs.fetch_add(1, Ordering::Relaxed);
        let proof = format!("{method} {} {} {count}", url.path(), lock(&self.nonce));
        crate::client::SecretHeader::new("dpop", &proof)
    }

    fn nonce(&self, nonce: &str) {
        nonce.clone_into(&mut lock(&self.nonce));
    }

    fn challenged<'a>(
        &'a self,
        _: Option<&'a crate::client::SecretHeader>,
        _: u16,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async { Err("the token was good".to_owned()) })
    }
}

#[tokio::test]
async fn a_nonce_costs_one_more_try_and_no_new_token() {
    let wants = ("WWW-Authenticate", "DPoP error=\"use_dpop_nonce\"");
    let server = TestServer::start(move |seen, mut reply| async move {
        match seen.header("dpop").unwrap().split(' ').nth(2) {
            Some("first") => {
                let body = seen.answer(&json!("in"));
                let headers = [("DPoP-Nonce", "second"), ("Content-Type", "application/json")];
                reply.full(200, &headers, body).await;
            }
            Some("second") => reply.full(401, &[wants, ("DPoP-Nonce", "third")], "").await,
            Some("third") => reply.full(401, &[wants], "").await,
            _ => reply.full(401, &[wants, ("DPoP-Nonce", "first")], "").await,
        }
        Some(reply)
    })
    .await;
    let target = HttpTarget::new(&server.url, []).unwrap().with_authorizer(Arc::new(Prover::default()));
    let peer = Peer::with(target, WireLimits::default());
    assert_eq!(peer.result("tools/call").await, json!("in"));
    let proofs: Vec<_> = server.seen().iter().map(|seen| seen.header("dpop").unwrap().to_owned()).collect();
    assert_eq!(proofs, ["POST /mcp  0", "POST /mcp first 1"]);
    // A server that is never content hears each message twice, and nobody is asked for a token.
    let error = peer.error("tools/call").await;
    assert!(matches!(&error, TransportError::Status { status: 401, .. }), "{error}");
    assert!(!error.to_string().contains("the token was good"), "{error}");
    assert_eq!(server.seen().len(), 4);
}

/// A call is sent again only where it is certain that nobody looked at it.
#[test]
fn only_words_on_our_session_deny_it() {
    let status = |status, words: &str| TransportError::Status {
        status,
        error: Some(RpcError { code: -32_000, message: words.to_owned(), data: None }),
        excerpt: None,
        challenge: None,
    };
    for words in ["Bad Request: No valid session ID provided", "Bad Request: Server not initialized"] {
        assert!(denies_session(&status(400, words)), "{words}");
    }
    for words in ["could not save session", "session limit of the database reached", "no"] {
        assert!(!denies_session(&status(400, words)), "{words}");
    }
    assert!(denies_session(&status(404, "no")));
    assert!(!denies_session(&status(500, "No valid session ID provided")));
}
