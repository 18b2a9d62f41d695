//! Workers and gateways over a real NATS server.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use toolyard_cluster::workers::WorkerWatch;
use toolyard_core::ErrorKind;
use toolyard_nats::NatsPeers;

use crate::{
    support::NatsServer,
    worker_support::{
        Behaviour, Recorder, TestCaller, TestWorker, call, call_with, connect, context, free_port, until,
        worker_tool,
    },
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_calls_tools_of_a_worker_that_nats_lists_as_a_service() {
    let nats = NatsServer::start();
    let gateway = Arc::new(nats.join(1).await);
    let worker = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    let tool = worker_tool(&gateway, "office", "A");
    assert_eq!(call(&tool, Behaviour::Answer, SECOND).await.unwrap(), "2");
    // Longer than one NATS message, there and back.
    let long = "x".repeat(3 << 20);
    assert_eq!(call(&tool, Behaviour::Echo(long.clone()), 10 * SECOND).await.unwrap(), long);
    assert_eq!(worker.calls.load(Ordering::SeqCst), 2);
    let client = async_nats::connect(format!("nats://127.0.0.1:{}", nats.port())).await.unwrap();
    let info = client.request("$SRV.INFO.toolyard-worker-office", "".into()).await.unwrap();
    let info: async_nats::service::Info = serde_json::from_slice(&info.payload).unwrap();
    assert_eq!(info.metadata["group"], "office");
    let [endpoint] = info.endpoints.as_slice() else { panic!("{info:?}") };
    assert!(endpoint.subject.starts_with("toolyard.worker.office.call.probe."), "{endpoint:?}");
    assert!(endpoint.subject == endpoint.queue_group && endpoint.metadata["tool"] == "probe", "{endpoint:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_questions_deadlines_and_cancellation_cross() {
    let nats = NatsServer::start();
    let gateway = Arc::new(nats.join(1).await);
    let worker = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    let tool = worker_tool(&gateway, "office", "A");
    let caller = Arc::new(TestCaller::default());
    let context = context(10 * SECOND).with_caller(Some(Arc::clone(&caller) as _));
    let answer = call_with(&tool, Behaviour::Ask, &context).await.unwrap();
    assert_eq!(answer, r#"{"action":"accept"}"#);
    assert_eq!(*caller.told.lock(), ["progress 1", "sure?"]);
    let start = Instant::now();
    let late = call(&tool, Behaviour::Wait(60 * SECOND), SECOND).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{late:?}");
    assert!(start.elapsed() < 2 * SECOND);
    let waiting = tokio::spawn(async move { call(&tool, Behaviour::Wait(60 * SECOND), 60 * SECOND).await });
    until("the call begins", || worker.running.load(Ordering::SeqCst) == 1).await;
    waiting.abort();
    until("the call is cancelled", || worker.running.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_share_the_load_and_pass_on_what_is_too_much() {
    let nats = NatsServer::start();
    let gateway = Arc::new(nats.join(1).await);
    let one = TestWorker::start(&nats.settings(), "office", 2, 2, &["A"]).await;
    let two = TestWorker::start(&nats.settings(), "office", 3, 2, &["A"]).await;
    let tool = worker_tool(&gateway, "office", "A");
    let start = Instant::now();
    let work = (0..8).map(|_| call(&tool, Behaviour::Wait(SECOND / 2), 20 * SECOND));
    assert!(join_all(work).await.iter().all(Result::is_ok));
    let counts = [&one, &two].map(|worker| worker.calls.load(Ordering::SeqCst));
    assert_eq!(counts.iter().sum::<usize>(), 8, "a call that was refused was not begun: {counts:?}");
    assert!(counts.iter().all(|count| *count >= 2), "{counts:?}");
    assert!(start.elapsed() < 3 * SECOND, "{:?}", start.elapsed());
    let block = (0..4).map(|_| call(&tool, Behaviour::Wait(4 * SECOND), 20 * SECOND));
    let refused = async {
        until("both are busy", || {
            [&one, &two].iter().all(|worker| worker.running.load(Ordering::SeqCst) == 2)
        })
        .await;
        call(&tool, Behaviour::Answer, SECOND).await.unwrap_err()
    };
    let (_, refused) = tokio::join!(join_all(block), refused);
    assert!(
        refused.kind() == ErrorKind::Unavailable && refused.had_no_effect() && refused.retryable(),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_worker_of_the_definition_the_call_fails_at_once() {
    let nats = NatsServer::start();
    let gateway = Arc::new(nats.join(1).await);
    let start = Instant::now();
    let error =
        call(&worker_tool(&gateway, "office", "A"), Behaviour::Answer, 10 * SECOND).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.had_no_effect(), "{error:?}");
    let old = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    let new = TestWorker::start(&nats.settings(), "office", 3, 8, &["B"]).await;
    for _ in 0..10 {
        let old_tool = worker_tool(&gateway, "office", "A");
        assert_eq!(call(&old_tool, Behaviour::Answer, SECOND).await.unwrap(), "2");
    }
    assert_eq!((old.calls.load(Ordering::SeqCst), new.calls.load(Ordering::SeqCst)), (10, 0));
    let other =
        call(&worker_tool(&gateway, "office", "C"), Behaviour::Answer, 10 * SECOND).await.unwrap_err();
    assert!(other.had_no_effect(), "{other:?}");
    assert!(start.elapsed() < 3 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_dies_leaves_an_unknown_outcome_and_no_second_call() {
    let nats = NatsServer::start();
    let gateway = Arc::new(nats.join(1).await);
    let dying = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    let tool = worker_tool(&gateway, "office", "A");
    let waiting = tokio::spawn({
        let tool = Arc::clone(&tool);
        async move { call(&tool, Behaviour::Wait(60 * SECOND), 60 * SECOND).await }
    });
    until("the call begins", || dying.running.load(Ordering::SeqCst) == 1).await;
    let other = TestWorker::start(&nats.settings(), "office", 3, 8, &["A"]).await;
    // Ends the connection without leaving, as a kill does.
    dying.transport.connection().close().await;
    let start = Instant::now();
    let lost = waiting.await.unwrap().unwrap_err();
    assert!(lost.kind() == ErrorKind::ResponseLost && !lost.had_no_effect(), "{lost:?}");
    assert!(start.elapsed() < 9 * SECOND, "{:?}", start.elapsed());
    assert_eq!(other.calls.load(Ordering::SeqCst), 0, "not sent twice");
    assert_eq!(call(&tool, Behaviour::Answer, SECOND).await.unwrap(), "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_leaves_finishes_its_calls_while_others_take_the_next() {
    let nats = NatsServer::start();
    let gateway = Arc::new(nats.join(1).await);
    let leaving = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    let tool = worker_tool(&gateway, "office", "A");
    let running = tokio::spawn({
        let tool = Arc::clone(&tool);
        async move { call(&tool, Behaviour::Wait(2 * SECOND), 20 * SECOND).await }
    });
    until("the call begins", || leaving.running.load(Ordering::SeqCst) == 1).await;
    let _staying = TestWorker::start(&nats.settings(), "office", 3, 8, &["A"]).await;
    let draining = async {
        assert_eq!(leaving.worker.drain(10 * SECOND).await, 0);
        leaving.transport.leave().await;
    };
    let calls = async {
        tokio::time::sleep(SECOND / 10).await;
        for _ in 0..20 {
            assert_eq!(call(&tool, Behaviour::Answer, 5 * SECOND).await.unwrap(), "3");
        }
    };
    tokio::join!(draining, calls);
    assert_eq!(running.await.unwrap().unwrap(), "2", "a call that has begun ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_learn_what_workers_serve_from_announcements() {
    let nats = NatsServer::start();
    let before = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    let gateway = Arc::new(nats.join(1).await);
    let watch = Arc::new(WorkerWatch::new(Arc::clone(&gateway) as _, vec!["office".to_owned()]));
    gateway.watch_workers(Arc::clone(&watch) as _).await.unwrap();
    let recorder = Arc::new(Recorder::default());
    let following = tokio::spawn({
        let recorder = Arc::clone(&recorder);
        async move { watch.run(&*recorder).await }
    });
    until("it was there before", || recorder.latest() == Some((1, 1))).await;
    let client = async_nats::connect(format!("nats://127.0.0.1:{}", nats.port())).await.unwrap();
    for nonsense in ["", "{", "{\"process\":7}", "[[[[[[", &"x".repeat(100_000)] {
        client.publish("toolyard.worker-announce.office", nonsense.to_owned().into()).await.unwrap();
        client.publish("toolyard.worker-announce.Of_fice", nonsense.to_owned().into()).await.unwrap();
    }
    // A process that is asked for its tools and answers with nonsense.
    let mut liar = client.subscribe("toolyard.worker.office.process.0000000000000063.*").await.unwrap();
    let lie = format!("{{\"process\":99,\"catalogue\":\"{}\"}}", "00".repeat(32));
    client.publish("toolyard.worker-announce.office", lie.into()).await.unwrap();
    let asked = futures_util::StreamExt::next(&mut liar).await.unwrap();
    let nonsense = [&[3_u8, 0, 0, 0, 0], b"{\"tools\":7}".as_slice()].concat();
    client.publish(asked.reply.unwrap(), nonsense.into()).await.unwrap();
    until("it counts without tools", || recorder.latest() == Some((1, 2))).await;
    before.set(&["A", "B"]).await;
    until("the tools have changed", || recorder.latest() == Some((2, 2))).await;
    before.worker.drain(SECOND).await;
    until("it has left", || recorder.latest() == Some((0, 1))).await;
    following.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_and_a_gateway_may_use_different_nodes_of_nats() {
    let routes = [free_port(), free_port()];
    let node = |index: usize| {
        let (own, other) = (
            format!("nats://127.0.0.1:{}", routes[index]),
            format!("nats://127.0.0.1:{}", routes[1 - index]),
        );
        let name = format!("n{index}");
        NatsServer::with_arguments(&[
            "-n",
            &name,
            "--cluster_name",
            "c",
            "--cluster",
            &own,
            "--routes",
            &other,
        ])
    };
    let (one, two) = (node(0), node(1));
    let gateway = Arc::new(one.join(1).await);
    let worker = TestWorker::start(&two.settings(), "office", 2, 8, &["A"]).await;
    let tool = worker_tool(&gateway, "office", "A");
    let start = Instant::now();
    while call(&tool, Behaviour::Answer, SECOND).await.is_err() {
        assert!(start.elapsed() < 10 * SECOND, "the nodes do not connect");
        tokio::time::sleep(SECOND / 20).await;
    }
    for _ in 0..50 {
        assert_eq!(call(&tool, Behaviour::Answer, SECOND).await.unwrap(), "2");
    }
    let long = "x".repeat(3 << 20);
    assert_eq!(call(&tool, Behaviour::Echo(long.clone()), 10 * SECOND).await.unwrap(), long);
    assert!(worker.calls.load(Ordering::SeqCst) >= 52);
}

/// The permissions that docs/guide/workers.md recommends.
fn permissions(group: &str) -> String {
    format!(
        r#"{{
          publish: ["toolyard.worker-announce.{group}", "$O.toolyard_worker_{group}.>"]
          subscribe: ["toolyard.worker.{group}.>", "toolyard.worker-roll-call", "$SRV.*", "$SRV.*.toolyard-worker-{group}", "$SRV.*.toolyard-worker-{group}.*"]
          allow_responses: {{ max: -1, expires: "-1s" }}
        }}"#
    )
}

const GATEWAY_PERMISSIONS: &str = r#"{
  publish: ["toolyard.>", "$SRV.PING.toolyard-gateway", "_INBOX.>",
            "$O.>", "$JS.ACK.>", "$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.PURGE.*",
            "$JS.API.CONSUMER.CREATE.>", "$JS.API.CONSUMER.DELETE.>"]
  subscribe: ["toolyard.>", "$SRV.>", "_INBOX.>"]
}"#;

const ALL_PERMISSIONS: &str = r#"{ publish: ">", subscribe: ">" }"#;

/// A server with JetStream and these users and permissions.
fn nats_with_users(users: &[(&str, &str)]) -> NatsServer {
    let user = |(name, permissions): &(&str, &str)| {
        format!("{{ user: {name}, password: p, permissions: {permissions} }}")
    };
    let users: Vec<String> = users.iter().map(user).collect();
    NatsServer::with_configuration(&format!("authorization: {{ users: [\n{}\n] }}", users.join(",\n")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_needs_no_permissions_beyond_its_group() {
    let nats = nats_with_users(&[
        ("gateway", GATEWAY_PERMISSIONS),
        ("office", &permissions("office")),
        ("reports", &permissions("reports")),
        ("admin", ALL_PERMISSIONS),
    ]);
    let gateway = NatsPeers::join(connect(&nats, "gateway").await, 1).await.unwrap();
    let gateway = Arc::new(gateway);
    let watch = Arc::new(WorkerWatch::new(Arc::clone(&gateway) as _, vec!["*".to_owned()]));
    gateway.watch_workers(Arc::clone(&watch) as _).await.unwrap();
    let recorder = Arc::new(Recorder::default());
    let following = tokio::spawn({
        let recorder = Arc::clone(&recorder);
        async move { watch.run(&*recorder).await }
    });
    let office = TestWorker::with_connection(connect(&nats, "office").await, "office", 2, 8, &["A"]).await;
    until("the gateway knows its tools", || recorder.latest() == Some((1, 1))).await;
    let tool = worker_tool(&gateway, "office", "A");
    let caller = Arc::new(TestCaller::default());
    let context = context(20 * SECOND).with_caller(Some(Arc::clone(&caller) as _));
    assert_eq!(call_with(&tool, Behaviour::Ask, &context).await.unwrap(), r#"{"action":"accept"}"#);
    assert!(gateway.uses_object_store(Some("office")).await);
    let long = "x".repeat(3 << 20);
    assert_eq!(call_with(&tool, Behaviour::Echo(long.clone()), &context).await.unwrap(), long);
    // Both directions passed through the bucket: 24 chunks and more, and the metadata, each.
    let admin = connect_raw(&nats, "admin").await;
    let info = admin.request("$JS.API.STREAM.INFO.OBJ_toolyard_worker_office", "".into()).await.unwrap();
    let info: serde_json::Value = serde_json::from_slice(&info.payload).unwrap();
    assert!(info["state"]["last_seq"].as_u64().unwrap() >= 52, "{info}");
    // Longer than the silence after which an exchange is lost: heartbeats pass.
    assert_eq!(call_with(&tool, Behaviour::Wait(8 * SECOND), &context).await.unwrap(), "2");

    // A worker of another group gets nothing of this one, and nothing of the gateway.
    let spy = connect_raw(&nats, "reports").await;
    let mut heard = Vec::new();
    for subject in [
        "toolyard.worker.office.>",
        "toolyard.exchange.>",
        "toolyard.process.>",
        "toolyard.worker-announce.*",
        "toolyard.>",
        "_INBOX.>",
        "$O.>",
        "$JS.>",
    ] {
        heard.push(spy.subscribe(subject).await.unwrap());
    }
    let forged = format!("{{\"process\":7,\"catalogue\":\"{}\"}}", "00".repeat(32));
    for subject in
        ["toolyard.worker-announce.office", "toolyard.worker.office.process.0000000000000002.catalogue"]
    {
        spy.publish(subject, forged.clone().into()).await.unwrap();
    }
    spy.flush().await.unwrap();
    assert_no_access_to_bucket(&spy, &admin).await;
    let _intruder =
        TestWorker::with_connection(connect(&nats, "reports").await, "office", 9, 8, &["A"]).await;
    for _ in 0..20 {
        assert_eq!(call_with(&tool, Behaviour::Answer, &context).await.unwrap(), "2");
    }
    tokio::time::sleep(SECOND).await;
    for subscription in &mut heard {
        let message =
            tokio::time::timeout(Duration::from_millis(50), futures_util::StreamExt::next(subscription));
        assert!(!matches!(message.await, Ok(Some(_))), "a subscription was not refused");
    }
    assert_eq!(recorder.latest(), Some((1, 1)), "nobody else announces a process of this group");
    drop(office);
    following.abort();
}

/// Tries to read, list, change and delete objects of the group `office` as a worker of the group `reports`.
async fn assert_no_access_to_bucket(spy: &async_nats::Client, admin: &async_nats::Client) {
    let own = serde_json::json!({"name": "OBJ_toolyard_worker_reports", "subjects": ["$O.toolyard_worker_reports.>"]});
    admin.request("$JS.API.STREAM.CREATE.OBJ_toolyard_worker_reports", own.to_string().into()).await.unwrap();
    let secret = "$O.toolyard_worker_office.C.secret";
    let stored = admin.request(secret, "secret".into()).await.unwrap();
    assert!(
        stored.payload.starts_with(b"{\"stream\":\"OBJ_toolyard_worker_office\""),
        "{:?}",
        stored.payload
    );
    let mut answers = spy.subscribe("toolyard.worker.reports.object.spy").await.unwrap();
    let mut answer = async |subject: &str, body: String| {
        let reply = "toolyard.worker.reports.object.spy";
        spy.publish_with_reply(subject.to_owned(), reply, body.into()).await.unwrap();
        let next = futures_util::StreamExt::next(&mut answers);
        tokio::time::timeout(Duration::from_millis(300), next).await.ok().flatten()
    };
    let own = answer("$O.toolyard_worker_reports.C.a", "own".to_owned()).await;
    assert!(own.is_some_and(|own| own.status.is_none()), "its own bucket accepts objects");
    for group in ["office", "reports"] {
        let stream = format!("OBJ_toolyard_worker_{group}");
        let chunks = format!("$O.toolyard_worker_{group}.C.secret");
        let config = serde_json::json!({
            "deliver_subject": "toolyard.worker.reports.object.spy", "ack_policy": "none", "name": "spy", "filter_subject": chunks
        });
        let consumer = serde_json::json!({"stream_name": stream, "config": config}).to_string();
        for (subject, body) in [
            (format!("$JS.API.STREAM.INFO.{stream}"), "{\"subjects_filter\":\">\"}".to_owned()),
            (format!("$JS.API.STREAM.MSG.GET.{stream}"), "{\"seq\":1}".to_owned()),
            (format!("$JS.API.DIRECT.GET.{stream}.{chunks}"), String::new()),
            (format!("$JS.API.CONSUMER.CREATE.{stream}.spy.{chunks}"), consumer.clone()),
            (format!("$JS.API.CONSUMER.CREATE.{stream}"), consumer),
            (format!("$JS.API.STREAM.PURGE.{stream}"), String::new()),
            (format!("$JS.API.STREAM.DELETE.{stream}"), String::new()),
        ] {
            assert!(answer(&subject, body).await.is_none(), "{subject} was not refused");
        }
    }
    for subject in ["$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.INFO", secret] {
        assert!(answer(subject, String::new()).await.is_none(), "{subject} was not refused");
    }
    let read =
        admin.request(format!("$JS.API.DIRECT.GET.OBJ_toolyard_worker_office.{secret}"), "".into()).await;
    assert_eq!(read.unwrap().payload, "secret", "nothing was overwritten or deleted");
}

/// A worker without the permission for its bucket, and a gateway without those for JetStream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_permissions_for_jetstream_long_messages_are_sent_in_frames() {
    let plain = r#"{ publish: ["toolyard.>", "$SRV.PING.toolyard-gateway", "_INBOX.>"], subscribe: ["toolyard.>", "$SRV.>", "_INBOX.>"] }"#;
    let office = permissions("office").replace(", \"$O.toolyard_worker_office.>\"", "");
    let nats = nats_with_users(&[("plain", plain), ("office", &office), ("gateway", GATEWAY_PERMISSIONS)]);
    let plain = Arc::new(NatsPeers::join(connect(&nats, "plain").await, 1).await.unwrap());
    let gateway = Arc::new(NatsPeers::join(connect(&nats, "gateway").await, 2).await.unwrap());
    let _office = TestWorker::with_connection(connect(&nats, "office").await, "office", 3, 8, &["A"]).await;
    assert!(!plain.uses_object_store(Some("office")).await);
    assert!(gateway.uses_object_store(Some("office")).await);
    let long = "x".repeat(3 << 20);
    for (gateway, first_limit) in [(&plain, 2), (&gateway, 9)] {
        let tool = worker_tool(gateway, "office", "A");
        for limit in [first_limit, 2] {
            let start = Instant::now();
            assert_eq!(call(&tool, Behaviour::Echo(long.clone()), 20 * SECOND).await.unwrap(), long);
            assert!(start.elapsed() < limit * SECOND, "found once for the connection: {:?}", start.elapsed());
        }
    }
}

async fn connect_raw(nats: &NatsServer, user: &str) -> async_nats::Client {
    let options = async_nats::ConnectOptions::with_user_and_password(user.to_owned(), "p".to_owned());
    options.connect(format!("nats://127.0.0.1:{}", nats.port())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_comes_back_after_an_outage_of_nats() {
    let mut nats = NatsServer::start();
    let gateway = Arc::new(nats.join(1).await);
    let _worker = TestWorker::start(&nats.settings(), "office", 2, 8, &["A"]).await;
    let tool = worker_tool(&gateway, "office", "A");
    assert_eq!(call(&tool, Behaviour::Answer, SECOND).await.unwrap(), "2");
    nats.kill();
    until("the outage is noticed", || !gateway.connection().is_connected()).await;
    let error = call(&tool, Behaviour::Answer, SECOND).await.unwrap_err();
    assert!(error.had_no_effect(), "{error:?}");
    nats.restart();
    let start = Instant::now();
    while call(&tool, Behaviour::Answer, SECOND).await.is_err() {
        assert!(start.elapsed() < 15 * SECOND);
        tokio::time::sleep(SECOND / 20).await;
    }
}
