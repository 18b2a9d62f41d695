//! Messages over the NATS limit: through the object store of a real NATS server, and in frames without JetStream.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use aws_lc_rs::digest::{SHA256, digest};
use futures_util::{FutureExt as _, StreamExt as _, future::join_all};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use toolyard_core::{BoxFuture, ErrorKind, Exchange, PeerError, PeerService, Peers};
use toolyard_nats::{NatsConnection, NatsPeers, NatsSettings};

use crate::{
    support::NatsServer,
    worker_support::{Behaviour, TestWorker, call, free_port, until, worker_tool},
};

const SECOND: Duration = Duration::from_secs(1);
const MIB: usize = 1 << 20;
/// A chunk of an object.
const CHUNK: usize = 128 << 10;

async fn client(nats: &NatsServer) -> async_nats::Client {
    async_nats::connect(format!("nats://127.0.0.1:{}", nats.port())).await.unwrap()
}

/// What JetStream says about a bucket.
async fn bucket_info(client: &async_nats::Client, bucket: &str) -> Value {
    let info = client.request(format!("$JS.API.STREAM.INFO.OBJ_{bucket}"), "".into()).await.unwrap();
    serde_json::from_slice(&info.payload).unwrap()
}

/// The state of a bucket: messages that are in it, all that ever were, and consumers.
async fn bucket_state(client: &async_nats::Client, bucket: &str) -> (u64, u64, u64) {
    let state = bucket_info(client, bucket).await["state"].take();
    let number = |field: &str| state[field].as_u64().unwrap();
    (number("messages"), number("last_seq"), number("consumer_count"))
}

async fn until_empty(client: &async_nats::Client, bucket: &str) {
    let start = Instant::now();
    loop {
        let (messages, _, consumers) = bucket_state(client, bucket).await;
        if messages == 0 && consumers == 0 {
            return;
        }
        if start.elapsed() > 10 * SECOND {
            let subject = format!("$JS.API.STREAM.INFO.OBJ_{bucket}");
            let info = client.request(subject, r#"{"subjects_filter":">"}"#.into()).await.unwrap();
            panic!("{messages} messages and {consumers} consumers stay: {:?}", info.payload);
        }
        tokio::time::sleep(SECOND / 50).await;
    }
}

async fn delete_bucket(client: &async_nats::Client, bucket: &str) {
    client.request(format!("$JS.API.STREAM.DELETE.OBJ_{bucket}"), "".into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_argument_and_a_long_result_pass_through_the_bucket_and_leave_nothing() {
    let nats = NatsServer::with_jetstream();
    let gateway = Arc::new(nats.join(1).await);
    let worker = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    assert!(gateway.uses_object_store(Some("office")).await);
    let tool = worker_tool(&gateway, "office", "A");
    let long = "x".repeat(20 * MIB);
    assert!(call(&tool, Behaviour::Echo(long.clone()), 60 * SECOND).await.unwrap() == long);
    assert_eq!(worker.calls.load(Ordering::SeqCst), 1);
    let client = client(&nats).await;
    until_empty(&client, "toolyard_worker_office").await;
    let (_, stored, _) = bucket_state(&client, "toolyard_worker_office").await;
    let chunks = u64::try_from(2 * 20 * MIB / CHUNK).unwrap();
    assert!(stored > chunks, "{stored} messages were stored");
    // A call that its caller gives up.
    let (argument, holding) = ("y".repeat(5 * MIB), Arc::clone(&tool));
    let held = tokio::spawn(async move { call(&holding, Behaviour::Hold(argument), 60 * SECOND).await });
    until("the call begins", || worker.running.load(Ordering::SeqCst) == 1).await;
    held.abort();
    until("the call is cancelled", || worker.running.load(Ordering::SeqCst) == 0).await;
    until_empty(&client, "toolyard_worker_office").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_jetstream_long_messages_are_sent_in_frames() {
    let nats = NatsServer::start();
    let gateway = Arc::new(nats.join(1).await);
    let _worker = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    let start = Instant::now();
    assert!(!gateway.uses_object_store(Some("office")).await && !gateway.uses_object_store(None).await);
    assert!(start.elapsed() < SECOND, "it is known at once");
    let tool = worker_tool(&gateway, "office", "A");
    let long = "x".repeat(20 * MIB);
    assert!(call(&tool, Behaviour::Echo(long.clone()), 60 * SECOND).await.unwrap() == long);
}

/// Answers with the request.
struct Echo;

impl PeerService for Echo {
    fn serve(self: Arc<Self>, request: Vec<u8>, mut exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move { exchange.send_last(request).await.unwrap() })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_have_a_bucket_of_their_own() {
    let nats = NatsServer::with_jetstream();
    let (one, two) = (nats.join(1).await, nats.join(2).await);
    two.register("echo", Arc::new(Echo));
    assert!(one.uses_object_store(None).await && two.uses_object_store(None).await);
    let client = client(&nats).await;
    for length in [MIB - 4, 20 * MIB, 64 * MIB] {
        let (_, before, _) = bucket_state(&client, "toolyard_gateways").await;
        let mut message = (0..251).collect::<Vec<u8>>().repeat(length / 251 + 1);
        message.truncate(length);
        let mut exchange = one.open(2, "echo", message.clone()).await.unwrap();
        // Safe to drop while it waits.
        let _ =
            tokio::time::timeout(SECOND / 100, exchange.receive()).await.map(|early| assert!(early.is_ok()));
        if exchange.receive().await != Ok(None) {
            assert_eq!(exchange.receive().await, Ok(None), "one answer");
        }
        drop(exchange);
        until_empty(&client, "toolyard_gateways").await;
        let (_, after, _) = bucket_state(&client, "toolyard_gateways").await;
        assert_eq!(after - before, 2 * u64::try_from(length.div_ceil(CHUNK) + 1).unwrap(), "{length} bytes");
        let mut exchange = one.open(2, "echo", message.clone()).await.unwrap();
        assert!(exchange.receive().await == Ok(Some(message)), "{length} bytes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_vanishes_costs_no_message_and_comes_back_with_the_server() {
    let mut nats = NatsServer::with_jetstream();
    let gateway = Arc::new(nats.join(1).await);
    let _worker = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    assert!(gateway.uses_object_store(Some("office")).await);
    delete_bucket(&client(&nats).await, "toolyard_worker_office").await;
    let tool = worker_tool(&gateway, "office", "A");
    let long = "x".repeat(3 * MIB);
    let start = Instant::now();
    for _ in 0..3 {
        assert!(call(&tool, Behaviour::Echo(long.clone()), 20 * SECOND).await.unwrap() == long);
    }
    assert!(!gateway.uses_object_store(Some("office")).await);
    assert!(start.elapsed() < 10 * SECOND, "{:?}", start.elapsed());
    nats.kill();
    until("the outage is noticed", || !gateway.connection().is_connected()).await;
    nats.restart();
    until("the connection is back", || gateway.connection().is_connected()).await;
    assert!(gateway.uses_object_store(Some("office")).await, "checked again on the new connection");
    let start = Instant::now();
    while call(&tool, Behaviour::Echo(long.clone()), 20 * SECOND).await.is_err() {
        assert!(start.elapsed() < 15 * SECOND);
    }
}

/// A process that answers every request with a reference to an object. `stored` is what it puts into the bucket.
async fn answer_with_object(client: &async_nats::Client, stored: &'static [u8], length: u64, hash: [u8; 32]) {
    let mut requests = client.subscribe("toolyard.process.0000000000000063.echo").await.unwrap();
    // The server has processed the subscription when it answers.
    client.request("$JS.API.INFO", "".into()).await.unwrap();
    let client = client.clone();
    tokio::spawn(async move {
        let request = requests.next().await.unwrap();
        let name = "6e".repeat(16);
        if !stored.is_empty() {
            let chunks = format!("$O.toolyard_gateways.C.{name}");
            client.request(chunks, stored.into()).await.unwrap();
        }
        let reference = [&[0x6e; 16][..], &length.to_be_bytes(), &hash].concat();
        let frame = [&[10, 0, 0, 0, 0][..], &reference].concat();
        client.publish(request.reply.unwrap(), frame.into()).await.unwrap();
        client.flush().await.unwrap();
    });
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_not_what_was_announced_is_refused_and_deleted() {
    let nats = NatsServer::with_jetstream();
    let gateway = nats.join(1).await;
    assert!(gateway.uses_object_store(None).await);
    let client = client(&nats).await;
    let cases: [(&'static [u8], u64, [u8; 32], &str); 5] = [
        (b"genuine", 7, sha256(b"genuine"), ""),
        (b"forged!", 7, sha256(b"genuine"), "another length or digest"),
        (b"genuine", 6, sha256(b"genuin"), "another length or digest"),
        (b"", 7, sha256(b"genuine"), "not in bucket"),
        (b"genuine", u64::MAX, sha256(b"genuine"), "longer than 64 MiB"),
    ];
    for (stored, length, hash, problem) in cases {
        answer_with_object(&client, stored, length, hash).await;
        let start = Instant::now();
        let mut exchange = gateway.open(99, "echo", b"a".to_vec()).await.unwrap();
        match exchange.receive().await {
            Ok(message) => assert!(problem.is_empty() && message.as_deref() == Some(stored), "{problem}"),
            Err(PeerError::Lost(reason)) => {
                assert!(!problem.is_empty() && reason.contains(problem), "{reason}");
            }
            Err(other) => panic!("{other}"),
        }
        assert!(start.elapsed() < 2 * SECOND, "{problem}: {:?}", start.elapsed());
        until_empty(&client, "toolyard_gateways").await;
    }
}

/// On one thread, so that the exchange is dropped before the task that reads the object runs for the first time.
#[tokio::test]
async fn an_object_is_deleted_if_its_reader_stops_before_it_begins() {
    let nats = NatsServer::with_jetstream();
    let gateway = nats.join(1).await;
    assert!(gateway.uses_object_store(None).await);
    let client = client(&nats).await;
    until_empty(&client, "toolyard_gateways").await;
    answer_with_object(&client, b"genuine", 7, sha256(b"genuine")).await;
    let mut exchange = gateway.open(99, "echo", b"a".to_vec()).await.unwrap();
    // The reference to the object arrives a moment after the object is stored.
    while bucket_state(&client, "toolyard_gateways").await.0 != 1 {
        tokio::time::sleep(SECOND / 20).await;
    }
    tokio::time::sleep(SECOND).await;
    assert_eq!(exchange.receive().now_or_never(), None);
    drop(exchange);
    until_empty(&client, "toolyard_gateways").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_object_is_missing_is_refused_before_anything_is_done() {
    let nats = NatsServer::with_jetstream();
    let gateway = nats.join(1).await;
    gateway.register("echo", Arc::new(Echo));
    assert!(gateway.uses_object_store(None).await);
    let client = client(&nats).await;
    let mut frames = client.subscribe("raw").await.unwrap();
    let open = vec![8, 0, 0, 0, 0];
    client.publish_with_reply("toolyard.process.0000000000000001.echo", "raw", open.into()).await.unwrap();
    let greeting = frames.next().await.unwrap();
    assert_eq!(greeting.payload[..], [5, 0, 0, 0, 0, 1], "a heartbeat of a process that reads objects");
    let object = [&[9, 0, 0, 0, 0][..], &[0x6e; 16], &7_u64.to_be_bytes(), &[0; 32]].concat();
    client.publish_with_reply(greeting.reply.unwrap(), "raw", object.into()).await.unwrap();
    let refusal = loop {
        let frame = tokio::time::timeout(5 * SECOND, frames.next()).await.unwrap().unwrap();
        if frame.payload[0] != 5 {
            break frame.payload;
        }
    };
    let reason = String::from_utf8_lossy(&refusal[5..]);
    assert!(
        refusal[0] == 6 && reason.contains("did not arrive") && reason.contains("not in bucket"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_store_that_goes_away_in_the_middle_is_an_unknown_outcome_and_no_hang() {
    let nats = NatsServer::with_jetstream();
    let gateway = nats.join(1).await;
    assert!(gateway.uses_object_store(None).await);
    let client = client(&nats).await;
    // The second chunk never comes.
    answer_with_object(&client, b"genuine", 14, sha256(b"genuinegenuine")).await;
    let mut exchange = gateway.open(99, "echo", b"a".to_vec()).await.unwrap();
    let early = tokio::time::timeout(SECOND, exchange.receive()).await;
    assert!(early.is_err(), "it waits for the rest: {early:?}");
    delete_bucket(&client, "toolyard_gateways").await;
    let start = Instant::now();
    let lost = exchange.receive().await;
    assert!(matches!(&lost, Err(PeerError::Lost(reason)) if reason.contains("stopped after 7")), "{lost:?}");
    assert!(start.elapsed() < 12 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_that_dies_under_long_messages_ends_their_calls() {
    let mut nats = NatsServer::with_jetstream();
    let gateway = Arc::new(nats.join(1).await);
    let worker = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    assert!(gateway.uses_object_store(Some("office")).await);
    let tool = worker_tool(&gateway, "office", "A");
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let tool = Arc::clone(&tool);
            tokio::spawn(async move { call(&tool, Behaviour::Generate(10 * MIB), 120 * SECOND).await })
        })
        .collect();
    until("a call begins", || worker.calls.load(Ordering::SeqCst) > 0).await;
    nats.kill();
    let start = Instant::now();
    for ended in join_all(calls).await {
        let error = ended.unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ResponseLost | ErrorKind::Unavailable), "{error:?}");
    }
    assert!(start.elapsed() < 25 * SECOND, "{:?}", start.elapsed());
}

/// Passes bytes of the server on at a limited rate. Returns its port, and counts connections.
async fn slow_network(port: u16, bytes_per_second: u64) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own_port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let (mut from_client, mut to_client) = near.into_split();
            let far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (mut from_server, mut to_server) = far.into_split();
            tokio::spawn(async move { drop(tokio::io::copy(&mut from_client, &mut to_server).await) });
            tokio::spawn(async move {
                let (start, mut passed, mut buffer) = (Instant::now(), 0_u64, vec![0; 32 << 10]);
                while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
                    passed += u64::try_from(count).unwrap();
                    let due = start + Duration::from_millis(passed * 1_000 / bytes_per_second);
                    tokio::time::sleep_until(due.into()).await;
                    if to_client.write_all(&buffer[..count]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (own_port, connections)
}

/// Answers with a long message.
struct Generate;

impl PeerService for Generate {
    fn serve(self: Arc<Self>, _: Vec<u8>, mut exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move { exchange.send_last(vec![7; 6 * MIB]).await.unwrap() })
    }
}

/// Twelve long results at once for a gateway behind a slow network: which arrive, and how often the gateway connects.
async fn results_at_slow_reader(nats: &NatsServer) -> (Vec<Result<usize, PeerError>>, usize) {
    let (port, connections) = slow_network(nats.port(), 8 << 20).await;
    let settings = NatsSettings::new([format!("nats://127.0.0.1:{port}")]);
    let connection = NatsConnection::connect(&settings, "slow").await.unwrap();
    let slow = NatsPeers::join(connection, 1).await.unwrap();
    let fast = nats.join(2).await;
    fast.register("generate", Arc::new(Generate));
    assert!(slow.uses_object_store(None).await && fast.uses_object_store(None).await);
    let results = (0..12).map(async |_| {
        let mut exchange = slow.open(2, "generate", Vec::new()).await?;
        Ok(exchange.receive().await?.map_or(0, |message| message.len()))
    });
    (join_all(results).await, connections.load(Ordering::SeqCst))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_long_results_do_not_cut_the_connection_of_a_slow_reader() {
    // The server cuts a connection for which more than this waits.
    let nats = NatsServer::with_configuration("max_pending: 8MB");
    let (results, connections) = results_at_slow_reader(&nats).await;
    assert!(results.iter().all(|result| *result == Ok(6 * MIB)), "{results:?}");
    assert_eq!(connections, 1, "the connection was never cut");
    let client = client(&nats).await;
    until_empty(&client, "toolyard_gateways").await;
    let (_, stored, _) = bucket_state(&client, "toolyard_gateways").await;
    let chunks = u64::try_from(12 * 6 * MIB / CHUNK).unwrap();
    assert!(stored > chunks, "all results passed through the object store: {stored} messages were stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_of_the_operator_is_used_as_it_is() {
    let nats = NatsServer::with_jetstream();
    let client = client(&nats).await;
    let bucket = r#"{"name":"OBJ_toolyard_worker_office","storage":"file","max_bytes":2000000,"discard":"new",
        "subjects":["$O.toolyard_worker_office.C.>","$O.toolyard_worker_office.M.>"]}"#;
    client.request("$JS.API.STREAM.CREATE.OBJ_toolyard_worker_office", bucket.into()).await.unwrap();
    let configuration = bucket_info(&client, "toolyard_worker_office").await["config"].clone();
    assert_eq!(configuration["max_bytes"], 2_000_000);
    let gateway = Arc::new(nats.join(1).await);
    let _worker = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    assert!(gateway.uses_object_store(Some("office")).await);
    let tool = worker_tool(&gateway, "office", "A");
    // Fits into the bucket, and does not.
    for length in [3 * MIB / 2, 3 * MIB] {
        let answer = call(&tool, Behaviour::Generate(length), 20 * SECOND).await.unwrap();
        assert_eq!(answer.len(), length);
    }
    let (_, stored, _) = bucket_state(&client, "toolyard_worker_office").await;
    assert!(stored > 12, "{stored} messages were stored");
    assert_eq!(bucket_info(&client, "toolyard_worker_office").await["config"], configuration);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_messages_cross_the_nodes_of_a_jetstream_cluster() {
    let routes = [free_port(), free_port(), free_port()];
    let addresses = routes.map(|port| format!("\"nats://127.0.0.1:{port}\"")).join(", ");
    let node = |index: usize| {
        NatsServer::with_configuration(&format!(
            "server_name: n{index}\ncluster: {{ name: c, listen: \"127.0.0.1:{}\", routes: [{addresses}] }}",
            routes[index]
        ))
    };
    let nodes = [node(0), node(1), node(2)];
    let admin = client(&nodes[2]).await;
    let start = Instant::now();
    // The nodes must have elected a leader.
    loop {
        let probe = r#"{"name":"probe","subjects":["probe"]}"#;
        let created = admin.request("$JS.API.STREAM.CREATE.probe", probe.into()).await;
        if created.is_ok_and(|created| !created.payload.windows(7).any(|part| part == b"\"error\"")) {
            break;
        }
        assert!(start.elapsed() < 30 * SECOND, "the cluster has no leader");
        tokio::time::sleep(SECOND / 5).await;
    }
    let gateway = Arc::new(nodes[0].join(1).await);
    let _worker = TestWorker::start(&nodes[1].settings(), "office", 2, 8, &["A"]).await;
    assert!(gateway.uses_object_store(Some("office")).await);
    let tool = worker_tool(&gateway, "office", "A");
    let long = "x".repeat(3 * MIB);
    for _ in 0..3 {
        assert!(call(&tool, Behaviour::Echo(long.clone()), 20 * SECOND).await.unwrap() == long);
    }
    until_empty(&admin, "toolyard_worker_office").await;
    let (_, stored, _) = bucket_state(&admin, "toolyard_worker_office").await;
    assert!(stored >= 6 * 25, "{stored} messages were stored");
}
