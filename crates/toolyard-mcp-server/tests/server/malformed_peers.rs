//! Peers that send malformed messages: exchanges end with an error, and nothing panics.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;
use toolyard_core::{BoxFuture, Exchange, PeerError, PeerService};

use crate::{
    client::{Client, next, stream},
    cluster::{FIRST, accept, close, forms, legacy_client, repeat, request_state, start_two},
    memory_cluster::MemoryCluster,
    test_server::ServerBuilder,
};

/// Replies to each request with the same messages, and then ends the exchange.
struct BrokenPeer {
    replies: Vec<Vec<u8>>,
    requests: Mutex<Vec<Vec<u8>>>,
}

impl PeerService for BrokenPeer {
    fn serve(self: Arc<Self>, request: Vec<u8>, mut exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.requests.lock().push(request);
            for reply in &self.replies {
                let _ = exchange.send(reply.clone()).await;
            }
        })
    }
}

#[tokio::test]
async fn malformed_replies_of_a_peer_end_the_call_with_an_error() {
    let (cluster, first, second) = start_two().await;
    let client = legacy_client(&first).await;
    let elsewhere = Client::new(&second.address);
    let mut messages = stream(client.send_legacy(1, "tools/call", json!({"name": "ask"})).await);
    let id = next(&mut messages).await["id"].clone();
    let outcome = |status: u32| {
        format!(r#"{{"outcome":{{"status":{status},"is_error":true,"is_tool_error":false,"body":{{}}}}}}"#)
    };
    for (reply, code) in [
        (b"".to_vec(), -32603),
        (b"\xff\xfe".to_vec(), -32603),
        (b"\"accepted\"".to_vec(), -32603),
        (b"\"rejected\"".to_vec(), -32603),
        (b"{\"message\":{\"a\":1},\"message\":2}".to_vec(), -32603),
        (outcome(7).into_bytes(), -32603),
        (b"\"unknown\"".to_vec(), -32602),
    ] {
        let state = request_state(&Client::new(&first.address).call(1, "ask", forms()).await);
        let broken = Arc::new(BrokenPeer { replies: vec![reply.clone()], requests: Mutex::default() });
        cluster.register(FIRST, Arc::clone(&broken) as _);
        let failed = repeat(&elsewhere, "ask", &state, json!({"name": accept("Ann")})).await;
        assert_eq!(failed.code(), code, "{}", String::from_utf8_lossy(&reply));
        let taken = reply == b"\"accepted\"";
        let status = client.at_address(&second.address).reply(&id, accept("Ann")).await;
        assert_eq!(status, if taken { 202 } else { 400 }, "{}", String::from_utf8_lossy(&reply));
        assert_eq!(broken.requests.lock().len(), 2);
    }
    // A line break in a message must not end its event.
    let replies = vec![b"{\"message\":{\"method\":\"m\",\n\"a\":\n1}}".to_vec(), outcome(400).into_bytes()];
    cluster.register(FIRST, Arc::new(BrokenPeer { replies, requests: Mutex::default() }));
    let state = request_state(&Client::new(&first.address).call(1, "ask", forms()).await);
    let sent = repeat(&elsewhere, "ask", &state, json!({})).await;
    assert_eq!(sent.messages[0], json!({"method": "m", "a": 1}));
    drop(messages);
    close([first, second]).await;
}

/// Records what a service replies.
struct RecordingExchange(Arc<Mutex<Vec<Vec<u8>>>>);

impl Exchange for RecordingExchange {
    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        self.0.lock().push(message);
        Box::pin(std::future::ready(Ok(())))
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, PeerError>> {
        Box::pin(std::future::pending())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn malformed_requests_of_a_peer_are_rejected(
        text in "\\PC{0,60}",
        responses in prop::sample::select(vec![json!(null), json!([]), json!({})]),
        token in prop::sample::select(vec![json!(null), json!({}), json!(1), json!(true)]),
        level in prop::sample::select(vec![json!(null), json!("info"), json!("loud")]),
    ) {
        let hash = vec![0; 32];
        let call = json!({"profile": "", "owner_hash": hash, "request_hash": hash, "request_state": text,
            "input_responses": responses, "progress_token": token, "log_level": level});
        let is_valid = !responses.is_array() && !token.is_object() && !token.is_boolean() && level != "loud";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let replies = runtime.block_on(async {
            let mut builder = ServerBuilder::default();
            builder.config.peers = Some(Arc::<MemoryCluster>::default().peers(FIRST));
            let (server, ..) = builder.build_server();
            let service = server.peer_service();
            let replies = Arc::<Mutex<Vec<Vec<u8>>>>::default();
            service.notified(text.as_bytes());
            for request in [json!({"resume": call}).to_string().into_bytes(), text.clone().into_bytes()] {
                Arc::clone(&service).serve(request, Box::new(RecordingExchange(Arc::clone(&replies)))).await;
            }
            drop(server);
            Arc::clone(&service).serve(Vec::new(), Box::new(RecordingExchange(Arc::clone(&replies)))).await;
            replies.lock().clone()
        });
        let first: &[u8] = if is_valid { b"\"unknown\"" } else { b"\"rejected\"" };
        prop_assert_eq!(replies, [first, b"\"rejected\""]);
    }
}
