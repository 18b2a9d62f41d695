//! Servers that answer the first question in ways that are neither yes nor no.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::client::{
    InputRequest, NobodyToAsk,
    http_test_server::{Reply, Seen, TestServer},
};

const PATIENCE: Duration = Duration::from_secs(5);

fn options(era: Option<ProtocolEra>, input: Arc<dyn InputHandler>) -> ConnectOptions {
    ConnectOptions {
        server: "odd".into(),
        era,
        startup_timeout: PATIENCE,
        limits: WireLimits::default(),
        input,
        client: None,
    }
}

async fn connected(server: &TestServer, input: Arc<dyn InputHandler>) -> Result<Session, ConnectError> {
    let target = HttpTarget::new(&server.url, []).unwrap();
    connect(Link::Http(target, HttpKind::Streamable), &options(None, input)).await
}

fn methods(server: &TestServer) -> Vec<String> {
    let method = |seen: &Seen| seen.json()["method"].as_str().unwrap_or("GET").to_owned();
    server.seen().iter().map(method).collect()
}

fn refusal(seen: &Seen) -> String {
    let data = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
    let error = json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
    json!({"jsonrpc": "2.0", "id": seen.id(), "error": error}).to_string()
}

/// Refuses the revision that it says it speaks, this often.
async fn hesitant(refusals: usize) -> TestServer {
    let asked = Arc::new(AtomicUsize::new(0));
    TestServer::start(move |seen: Seen, mut reply: Reply| {
        let count = asked.fetch_add(1, Ordering::Relaxed);
        async move {
            if count < refusals {
                reply.full(400, &[("Content-Type", "application/json")], refusal(&seen)).await;
            } else {
                let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
                reply.json(seen.answer(&result)).await;
            }
            Some(reply)
        }
    })
    .await
}

#[tokio::test]
async fn who_refuses_the_revision_it_speaks_is_asked_once_more_and_never_initialized() {
    let server = hesitant(1).await;
    let session = connected(&server, Arc::new(NobodyToAsk)).await.unwrap();
    assert_eq!(session.era(), ProtocolEra::Modern);
    assert_eq!(methods(&server), ["server/discover", "server/discover"]);
    let server = hesitant(usize::MAX).await;
    let error = connected(&server, Arc::new(NobodyToAsk)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused(RpcError { code: -32022, .. })), "{error}");
    assert_eq!(methods(&server), ["server/discover", "server/discover"]);
}

/// Answers what it does not know with an empty result, and takes a while to open the stream on which it asks.
async fn legacy(opening: Duration) -> TestServer {
    TestServer::start(move |seen: Seen, mut reply: Reply| async move {
        if seen.method == "GET" {
            sleep(opening).await;
            reply.events().await;
            reply.raw(": open\n\n").await;
            reply.hung_up().await;
            return None;
        }
        let body = seen.json();
        match body["method"].as_str() {
            Some("initialize") => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}});
                reply.json(seen.answer(&result)).await;
            }
            _ if body["id"] == Value::Null => reply.full(202, &[], "").await,
            _ => reply.json(seen.answer(&json!({}))).await,
        }
        Some(reply)
    })
    .await
}

/// Somebody who can be asked.
#[derive(Debug)]
struct Somebody;

impl InputHandler for Somebody {
    fn capabilities(&self) -> RawJson {
        RawJson::from_value(&json!({"elicitation": {}}))
    }

    fn answer<'a>(
        &'a self,
        request: InputRequest<'a>,
    ) -> toolyard_core::BoxFuture<'a, Result<RawJson, RpcError>> {
        NobodyToAsk.answer(request)
    }
}

#[tokio::test]
async fn an_empty_answer_is_not_of_the_modern_era() {
    let server = legacy(Duration::ZERO).await;
    let session = connected(&server, Arc::new(NobodyToAsk)).await.unwrap();
    assert_eq!((session.era(), session.version()), (ProtocolEra::Legacy, "2025-11-25"));
}

#[tokio::test]
async fn whoever_can_be_asked_listens_before_the_first_call_but_not_for_ever() {
    let delay = Duration::from_millis(300);
    for (opening, input, range) in [
        (delay, Arc::new(Somebody) as Arc<dyn InputHandler>, delay..LISTEN_PATIENCE),
        (Duration::from_secs(60), Arc::new(Somebody), LISTEN_PATIENCE..PATIENCE),
        (Duration::from_secs(60), Arc::new(NobodyToAsk), Duration::ZERO..LISTEN_PATIENCE),
    ] {
        let server = legacy(opening).await;
        let begun = Instant::now();
        let session = connected(&server, input).await.unwrap();
        assert!(range.contains(&begun.elapsed()), "{range:?} {:?}", begun.elapsed());
        session.close().await;
    }
}

/// A server that knows nothing of the legacy era.
async fn modern() -> TestServer {
    TestServer::start(|seen: Seen, mut reply: Reply| async move {
        if seen.json()["method"] == "server/discover" {
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
            reply.json(seen.answer(&about)).await;
        } else {
            let data = json!({"supported": ["2026-07-28"]});
            let error = json!({"code": -32022, "message": "unsupported version", "data": data});
            let body = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error}).to_string();
            reply.full(400, &[("Content-Type", "application/json")], body).await;
        }
        Some(reply)
    })
    .await
}

#[tokio::test]
async fn a_server_at_an_address_may_leave_the_legacy_era() {
    let server = modern().await;
    for era in [None, Some(ProtocolEra::Modern), Some(ProtocolEra::Legacy)] {
        let target = HttpTarget::new(&server.url, []).unwrap();
        let session =
            connect(Link::Http(target, HttpKind::Auto), &options(era, Arc::new(NobodyToAsk))).await.unwrap();
        assert_eq!((session.era(), session.version()), (ProtocolEra::Modern, "2026-07-28"));
        session.close().await;
    }
}
