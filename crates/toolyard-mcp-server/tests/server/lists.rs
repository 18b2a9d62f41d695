//! Lists: pages, cursors, cache hints, and sources that are not ready.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use toolyard_core::BoxFuture;
use toolyard_mcp_server::{Readiness, ServedRevisions};

use crate::{
    client::Client,
    test_server::{ServerBuilder, TestServer},
    tools::definitions,
};

/// A source that never becomes ready.
#[derive(Debug)]
struct NeverReady;

impl Readiness for NeverReady {
    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn missing_sources(&self) -> Vec<String> {
        vec!["jira: does not answer".to_owned()]
    }
}

#[tokio::test]
async fn pages_are_the_same_in_all_revisions() {
    let server = TestServer::new().await;
    server.tools.offer(definitions(2_500));
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let (mut names, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let legacy = client.request_legacy(1, "tools/list", params.clone()).await;
        let modern = client.request_modern(1, "tools/list", params, json!({})).await;
        assert_eq!(legacy.result()["tools"], modern.result()["tools"]);
        assert_eq!(legacy.result().get("ttlMs"), None);
        assert_eq!(
            (&modern.result()["ttlMs"], &modern.result()["cacheScope"]),
            (&json!(60_000), &json!("private"))
        );
        let tools = modern.result()["tools"].as_array().unwrap();
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        pages += 1;
        cursor = modern.result()["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((pages, names.len()), (3, 2_500));
    assert!(names.is_sorted());
    assert_eq!(client.request_legacy(2, "tools/list", json!({"cursor": "bm9uZQ"})).await.code(), -32602);
    server.close().await;
}

#[tokio::test]
async fn a_list_names_sources_that_are_not_ready_in_time() {
    let mut builder = ServerBuilder::default();
    builder.config.list_timeout = Duration::from_millis(100);
    builder.readiness = Some(Arc::new(NeverReady));
    let server = builder.build().await;
    let client = Client::new(&server.address);
    let started = Instant::now();
    let answer = client.request_modern(1, "tools/list", json!({}), json!({})).await;
    assert!((100..5_000).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    assert_eq!(answer.result()["tools"].as_array().unwrap().len(), 3);
    assert_eq!(answer.result()["_meta"]["toolyard/notes"], json!(["jira: does not answer"]));
    server.close().await;
}

#[tokio::test]
async fn prompts_and_resources_are_listed_and_read_in_all_revisions() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let prompts = client.request_legacy(1, "prompts/list", json!({})).await;
    assert_eq!(prompts.result()["prompts"].as_array().unwrap().len(), 3);
    let read = client.request_modern(2, "resources/read", json!({"uri": "test://one"}), json!({})).await;
    assert_eq!(read.result()["contents"][0]["text"], "one");
    assert_eq!((&read.result()["resultType"], &read.result()["ttlMs"]), (&json!("complete"), &json!(0)));
    let missing = client.request_modern(3, "resources/read", json!({"uri": "test://no"}), json!({})).await;
    assert_eq!((missing.code(), &missing.last()["error"]["data"]["uri"]), (-32602, &json!("test://no")));
    assert_eq!(client.request_legacy(4, "resources/read", json!({"uri": "test://no"})).await.code(), -32002);
    assert_eq!(client.request_legacy(5, "prompts/get", json!({"name": "x"})).await.code(), -32602);
    server.close().await;
}

#[tokio::test]
async fn prompts_are_paged() {
    let mut builder = ServerBuilder::default();
    builder.config.limits.page_entries = 2;
    let server = builder.build().await;
    let client = Client::new(&server.address);
    let first = client.request_modern(1, "prompts/list", json!({}), json!({})).await;
    assert_eq!(first.result()["prompts"], json!([{"name": "a"}, {"name": "b"}]));
    let cursor = &first.result()["nextCursor"];
    let second = client.request_modern(2, "prompts/list", json!({"cursor": cursor}), json!({})).await;
    assert_eq!(second.result()["prompts"], json!([{"name": "c"}]));
    assert_eq!(second.result().get("nextCursor"), None);
    assert_eq!(
        client.request_modern(3, "prompts/list", json!({"cursor": "x"}), json!({})).await.code(),
        -32602
    );
    server.close().await;
}

#[tokio::test]
async fn only_existing_capabilities_are_declared() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let discovery = client.request_modern(1, "server/discover", json!({}), json!({})).await;
    let capabilities = &discovery.result()["capabilities"];
    assert_eq!(capabilities["tools"], json!({"listChanged": true}));
    assert_eq!(capabilities["resources"], json!({"subscribe": true, "listChanged": true}));
    assert_eq!(capabilities.get("completions"), None);
    assert_eq!(capabilities["extensions"], json!({"toolyard/describe": {}}));
    assert_eq!(discovery.result()["supportedVersions"][0], "2026-07-28");
    assert_eq!(discovery.result()["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "yard");
    let other = client.at_profile("other").request_modern(2, "server/discover", json!({}), json!({})).await;
    assert_eq!(other.result()["capabilities"].get("prompts"), None);
    server.close().await;
}

#[tokio::test]
async fn a_server_of_one_family_rejects_the_other() {
    let mut builder = ServerBuilder::default();
    builder.config.revisions = ServedRevisions::Legacy;
    let server = builder.build().await;
    let client = Client::new(&server.address);
    let refused = client.request_modern(1, "server/discover", json!({}), json!({})).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (400, -32000));
    client.initialize("2025-11-25", json!({})).await.request_legacy(1, "ping", json!({})).await.result();
    server.close().await;

    let mut builder = ServerBuilder::default();
    builder.config.revisions = ServedRevisions::Modern;
    let server = builder.build().await;
    let client = Client::new(&server.address);
    let refused = client.request_legacy(1, "initialize", json!({"protocolVersion": "2025-11-25"})).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (400, -32022));
    assert_eq!(refused.last()["error"]["data"]["supported"], json!(["2026-07-28"]));
    assert_eq!(client.request(reqwest::Method::GET).send().await.unwrap().status(), 405);
    server.close().await;
}

#[tokio::test]
async fn clients_get_the_instructions_of_the_server_and_of_its_tools() {
    for own in [None, Some("Be brief.")] {
        let mut builder = ServerBuilder::default();
        builder.config.instructions = own.map(str::to_owned);
        let server = builder.build().await;
        let client = Client::new(&server.address);
        let shown = async || {
            let client_info = json!({"name": "tester", "version": "1"});
            let params =
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info});
            let legacy = client.request_legacy(1, "initialize", params).await;
            let modern = client.request_modern(2, "server/discover", json!({}), json!({})).await;
            assert_eq!(modern.result()["instructions"], legacy.result()["instructions"]);
            legacy.result()["instructions"].clone()
        };
        let of_tools = |client: &str| Some((client.to_owned(), "Save first.".to_owned()));
        assert_eq!(shown().await, json!(own));
        *server.tools.instructions.lock() = of_tools("tester");
        let expected = own.into_iter().chain(["Save first."]).collect::<Vec<_>>().join("\n\n");
        assert_eq!(shown().await, json!(expected));
        *server.tools.instructions.lock() = of_tools("another");
        assert_eq!(shown().await, json!(own));
        server.close().await;
    }
}
