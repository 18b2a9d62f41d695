//! Prompts, resources and skills of real servers through the bridge.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use toolyard_core::{Caller, RawJson, RevisionFamily};
use toolyard_gateway::{LocalSkills, ServerContentBridge};
use toolyard_mcp::RpcError;
use toolyard_mcp_client::{ServerCache, config::McpServerConfig};
use toolyard_mcp_server::{ContentKind, ContentRequest, ContentService};

use super::test_caller::TestCaller;
use crate::{
    support::case::{ServerCase, ServerKind, Transport, case, case_with_family},
    support::test_manager::TestManager,
    support::test_server::TestServer,
};

/// The content of all servers, as an endpoint serves it.
pub(crate) struct TestEndpoint {
    pub(crate) manager: TestManager,
    pub(crate) bridge: ServerContentBridge,
}

impl TestEndpoint {
    pub(crate) async fn open(configs: Vec<McpServerConfig>, folder: &Path, cache: ServerCache) -> Self {
        let manager = TestManager::with_servers(configs, folder, cache).await;
        let bridge = ServerContentBridge::new(Arc::clone(&manager.manager), |_| true, None);
        Self { manager, bridge }
    }

    /// One server that is not cached.
    pub(crate) async fn with_server(case: ServerCase) -> (Self, TestServer) {
        let test_server = TestServer::open(case).await;
        let endpoint =
            Self::open(vec![test_server.config()], test_server.path(), ServerCache::in_memory()).await;
        toolyard_mcp_server::Readiness::settled(&endpoint.bridge).await;
        (endpoint, test_server)
    }

    pub(crate) async fn list(&self, kind: ContentKind, key: &str) -> Vec<String> {
        let entries = self.bridge.list(kind).await;
        entries.iter().map(|entry| entry.to_value()[key].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        self.request_as(&TestCaller::with_session(1).shared(), method, params).await
    }

    async fn request_as(
        &self,
        caller: &Arc<TestCaller>,
        method: &str,
        params: Value,
    ) -> Result<Value, RpcError> {
        let params = RawJson::from(params);
        let caller = Some(Arc::clone(caller) as Arc<dyn Caller>);
        let response = self.bridge.request(ContentRequest { method, params: &params, caller }).await;
        response.unwrap_or_else(|| panic!("no server handles {method} {params:?}")).map(|raw| raw.to_value())
    }
}

/// The server that supports both revision families, in each of them and over each transport.
pub(crate) fn both_families_cases() -> Vec<ServerCase> {
    let mut cases = Vec::new();
    for transport in [Transport::Stdio, Transport::Http] {
        cases.extend([
            case(ServerKind::BothFamilies, transport),
            case_with_family(ServerKind::BothFamilies, transport, RevisionFamily::Legacy),
        ]);
    }
    cases
}

#[tokio::test]
async fn all_content_of_the_official_server_is_available() {
    for transport in [Transport::Stdio, Transport::Http] {
        let (endpoint, _server) = TestEndpoint::with_server(case(ServerKind::Everything, transport)).await;
        let prompts = endpoint.list(ContentKind::Prompts, "name").await;
        assert_eq!(prompts, ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"]);
        let got = endpoint
            .request("prompts/get", json!({"name": "args-prompt", "arguments": {"city": "Bern"}}))
            .await;
        assert!(got.unwrap()["messages"][0]["content"]["text"].as_str().unwrap().contains("Bern"));
        let resources = endpoint.list(ContentKind::Resources, "uri").await;
        let read = endpoint.request("resources/read", json!({"uri": resources[0]})).await.unwrap();
        assert_eq!(read["contents"][0]["uri"], resources[0].as_str());
        let templates = endpoint.list(ContentKind::ResourceTemplates, "uriTemplate").await;
        assert_eq!(templates[0], "demo://resource/dynamic/text/{resourceId}");
        let uri = "demo://resource/dynamic/text/3";
        let read = endpoint.request("resources/read", json!({ "uri": uri })).await.unwrap();
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("Resource 3"), "{read}");
        let completed = endpoint.request(
            "completion/complete",
            json!({
                "ref": {"type": "ref/prompt", "name": "completable-prompt"},
                "argument": {"name": "department", "value": "E"},
            }),
        );
        assert_eq!(completed.await.unwrap()["completion"]["values"][0], "Engineering");
        let refused = endpoint.request("prompts/get", json!({"name": "args-prompt"})).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{refused}");
        let capabilities = endpoint.bridge.capabilities();
        assert!(
            capabilities.prompts
                && capabilities.resources
                && capabilities.completions
                && capabilities.logging
                && capabilities.subscriptions
        );
        endpoint.manager.manager.close().await;
    }
}

#[tokio::test]
async fn a_server_has_the_same_content_in_both_revision_families() {
    for case in both_families_cases() {
        let (endpoint, _server) = TestEndpoint::with_server(case).await;
        assert_eq!(endpoint.manager.session().await.revision_family(), case.family);
        assert_eq!(endpoint.list(ContentKind::Prompts, "name").await, ["hello"]);
        let got =
            endpoint.request("prompts/get", json!({"name": "hello", "arguments": {"name": "Ada"}})).await;
        assert_eq!(got.unwrap()["messages"][0]["content"]["text"], "Say hello to Ada.");
        let read = endpoint.request("resources/read", json!({"uri": "note://numbered/7"})).await.unwrap();
        assert_eq!(read["contents"][0]["text"], "note number 7");
        let completed = endpoint.request(
            "completion/complete",
            json!({
                "ref": {"type": "ref/resource", "uri": "note://numbered/{number}"},
                "argument": {"name": "number", "value": "1"},
            }),
        );
        assert_eq!(completed.await.unwrap()["completion"]["values"], json!(["1-number"]));
        let missing = endpoint.request("resources/read", json!({"uri": "note://nowhere"})).await.unwrap_err();
        assert!(matches!(missing.code, -32002 | -32602), "{missing}");
        // The official Python SDK announces no extensions in legacy revisions.
        if case.family == RevisionFamily::Legacy {
            endpoint.manager.manager.close().await;
            continue;
        }
        assert_eq!(endpoint.list(ContentKind::Skills, "uri").await, ["skill://juggling/SKILL.md"]);
        let got = endpoint.request("skills/get", json!({"uri": "skill://juggling/SKILL.md"})).await.unwrap();
        assert_eq!(got["skill"]["frontmatter"]["name"], "juggling");
        let read =
            endpoint.request("resources/read", json!({"uri": "skill://juggling/SKILL.md"})).await.unwrap();
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("Throw, throw, catch."));
        endpoint.manager.manager.close().await;
    }
}

#[tokio::test]
async fn cached_content_is_listed_without_starting_a_server() {
    let test_server = TestServer::open(case(ServerKind::BothFamilies, Transport::Stdio)).await;
    let cache = ServerCache::in_memory();
    let first = TestManager::with_cache(test_server.config(), test_server.path(), cache.clone()).await;
    first.session().await;
    first.manager.close().await;
    let endpoint = TestEndpoint::open(vec![test_server.config()], test_server.path(), cache).await;
    toolyard_mcp_server::Readiness::settled(&endpoint.bridge).await;
    assert_eq!(endpoint.list(ContentKind::Prompts, "name").await, ["hello"]);
    assert_eq!(endpoint.list(ContentKind::ResourceTemplates, "name").await, ["numbered"]);
    assert_eq!(endpoint.list(ContentKind::Skills, "uri").await.len(), 1);
    assert!(
        endpoint.bridge.capabilities().skills
            && toolyard_mcp_server::Readiness::missing_sources(&endpoint.bridge).is_empty()
    );
    assert_eq!(test_server.processes(), Vec::<u32>::new());
    endpoint.request("prompts/get", json!({"name": "hello", "arguments": {"name": "Ada"}})).await.unwrap();
    assert_eq!(test_server.processes().len(), 1);
    endpoint.manager.manager.close().await;
}

#[tokio::test]
async fn prompts_and_skills_of_equal_names_are_renamed_and_equal_resources_listed_once() {
    let test_server = TestServer::open(case(ServerKind::BothFamilies, Transport::Stdio)).await;
    let config_with_id = |name: &str| {
        let mut config = test_server.config();
        config.id = name.into();
        config
    };
    let local = tempfile::tempdir().unwrap();
    let folder = local.path().join("juggling");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("SKILL.md"), "---\nname: juggling\ndescription: Our own\n---\n").unwrap();
    let local = Arc::new(LocalSkills::new(vec![local.path().to_owned()]));
    let mut endpoint = TestEndpoint::open(
        vec![config_with_id("one"), config_with_id("two")],
        test_server.path(),
        ServerCache::in_memory(),
    )
    .await;
    endpoint.bridge = ServerContentBridge::new(Arc::clone(&endpoint.manager.manager), |_| true, Some(local));
    toolyard_mcp_server::Readiness::settled(&endpoint.bridge).await;
    assert_eq!(endpoint.list(ContentKind::Prompts, "name").await, ["one.hello", "two.hello"]);
    let got =
        endpoint.request("prompts/get", json!({"name": "two.hello", "arguments": {"name": "Ada"}})).await;
    assert_eq!(got.unwrap()["messages"][0]["content"]["text"], "Say hello to Ada.");
    assert_eq!(endpoint.list(ContentKind::Resources, "uri").await, ["note://first"]);
    let skills = ["skill://one/juggling/SKILL.md", "skill://two/juggling/SKILL.md"];
    assert_eq!(endpoint.list(ContentKind::Skills, "uri").await, skills);
    let read = endpoint.request("resources/read", json!({"uri": skills[1]})).await.unwrap();
    assert_eq!(read["contents"][0]["uri"], skills[1]);
    let got = endpoint.request("skills/get", json!({"uri": skills[0]})).await.unwrap();
    assert_eq!(got["skill"]["resources"][0]["uri"], skills[0]);
    let warnings = endpoint.bridge.warnings();
    assert!(
        warnings
            .iter()
            .any(|line| line == "resource note://first of server `two` is not listed: `one` has this URI")
    );
    assert!(warnings.iter().any(|line| {
        line.starts_with("skill skill://juggling/ of server `one` is listed as skill://one/juggling/")
    }));
    endpoint.manager.manager.close().await;
}
