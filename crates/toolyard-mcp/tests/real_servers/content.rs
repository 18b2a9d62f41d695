//! What real servers offer besides tools, as one: listed without starting anything, asked for by anyone.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use toolyard_core::{Caller, ProtocolEra, RawJson};
use toolyard_mcp::{
    bridge::{AskTheCaller, LocalSkills, Upstreams},
    cache::ServerCache,
    config::McpServerConfig,
    server::{ContentKind, ContentRequest, ContentService},
    wire::RpcError,
};

use crate::{
    house::House,
    person::Person,
    place::Place,
    row::{Kind, Row, Wire, forced, row},
};

/// All servers of a house as a door has them.
pub(crate) struct Door {
    pub(crate) house: House,
    pub(crate) upstreams: Upstreams,
}

impl Door {
    pub(crate) async fn open(configs: Vec<McpServerConfig>, folder: &Path, memory: ServerCache) -> Self {
        let house = House::of(configs, folder, Arc::new(AskTheCaller), memory).await;
        let upstreams = Upstreams::new(Arc::clone(&house.manager), |_| true);
        Self { house, upstreams }
    }

    /// One server that is seen for the first time.
    pub(crate) async fn of(row: Row) -> (Self, Place) {
        let place = Place::open(row).await;
        let door = Self::open(vec![place.config()], place.path(), ServerCache::in_memory()).await;
        toolyard_mcp::server::Readiness::settled(&door.upstreams).await;
        (door, place)
    }

    pub(crate) async fn list(&self, kind: ContentKind, key: &str) -> Vec<String> {
        let entries = self.upstreams.list(kind).await;
        entries.iter().map(|entry| entry.to_value()[key].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        self.ask_as(&Person::new(1).shared(), method, params).await
    }

    async fn ask_as(&self, person: &Arc<Person>, method: &str, params: Value) -> Result<Value, RpcError> {
        let params = RawJson::from(params);
        let caller = Some(Arc::clone(person) as Arc<dyn Caller>);
        let answer = self.upstreams.request(ContentRequest { method, params: &params, caller }).await;
        answer.unwrap_or_else(|| panic!("nobody knows {method} {params:?}")).map(|raw| raw.to_value())
    }
}

/// A server that speaks both eras, in each of them, over each transport.
pub(crate) fn both_eras() -> Vec<Row> {
    let mut rows = Vec::new();
    for wire in [Wire::Stdio, Wire::Http] {
        rows.extend([row(Kind::BothEras, wire), forced(Kind::BothEras, wire, ProtocolEra::Legacy)]);
    }
    rows
}

#[tokio::test]
async fn everything_of_the_official_server_is_offered() {
    for wire in [Wire::Stdio, Wire::Http] {
        let (door, _place) = Door::of(row(Kind::Everything, wire)).await;
        let prompts = door.list(ContentKind::Prompts, "name").await;
        assert_eq!(prompts, ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"]);
        let got =
            door.ask("prompts/get", json!({"name": "args-prompt", "arguments": {"city": "Bern"}})).await;
        assert!(got.unwrap()["messages"][0]["content"]["text"].as_str().unwrap().contains("Bern"));
        let resources = door.list(ContentKind::Resources, "uri").await;
        let read = door.ask("resources/read", json!({"uri": resources[0]})).await.unwrap();
        assert_eq!(read["contents"][0]["uri"], resources[0].as_str());
        let templates = door.list(ContentKind::ResourceTemplates, "uriTemplate").await;
        assert_eq!(templates[0], "demo://resource/dynamic/text/{resourceId}");
        let uri = "demo://resource/dynamic/text/3";
        let read = door.ask("resources/read", json!({ "uri": uri })).await.unwrap();
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("Resource 3"), "{read}");
        let completed = door.ask(
            "completion/complete",
            json!({
                "ref": {"type": "ref/prompt", "name": "completable-prompt"},
                "argument": {"name": "department", "value": "E"},
            }),
        );
        assert_eq!(completed.await.unwrap()["completion"]["values"][0], "Engineering");
        let refused = door.ask("prompts/get", json!({"name": "args-prompt"})).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{refused}");
        let kinds = door.upstreams.kinds();
        assert!(
            kinds.prompts && kinds.resources && kinds.completions && kinds.logging && kinds.subscriptions
        );
        door.house.manager.close().await;
    }
}

#[tokio::test]
async fn a_server_offers_the_same_in_both_eras() {
    for row in both_eras() {
        let (door, _place) = Door::of(row).await;
        assert_eq!(door.house.session().await.era(), row.era);
        assert_eq!(door.list(ContentKind::Prompts, "name").await, ["hello"]);
        let got = door.ask("prompts/get", json!({"name": "hello", "arguments": {"name": "Ada"}})).await;
        assert_eq!(got.unwrap()["messages"][0]["content"]["text"], "Say hello to Ada.");
        let read = door.ask("resources/read", json!({"uri": "note://numbered/7"})).await.unwrap();
        assert_eq!(read["contents"][0]["text"], "note number 7");
        let completed = door.ask(
            "completion/complete",
            json!({
                "ref": {"type": "ref/resource", "uri": "note://numbered/{number}"},
                "argument": {"name": "number", "value": "1"},
            }),
        );
        assert_eq!(completed.await.unwrap()["completion"]["values"], json!(["1-number"]));
        let missing = door.ask("resources/read", json!({"uri": "note://nowhere"})).await.unwrap_err();
        assert!(matches!(missing.code, -32002 | -32602), "{missing}");
        // The official Python SDK does not tell of its extensions in the legacy era.
        if row.era == ProtocolEra::Legacy {
            door.house.manager.close().await;
            continue;
        }
        assert_eq!(door.list(ContentKind::Skills, "uri").await, ["skill://juggling/SKILL.md"]);
        let got = door.ask("skills/get", json!({"uri": "skill://juggling/SKILL.md"})).await.unwrap();
        assert_eq!(got["skill"]["frontmatter"]["name"], "juggling");
        let read = door.ask("resources/read", json!({"uri": "skill://juggling/SKILL.md"})).await.unwrap();
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("Throw, throw, catch."));
        door.house.manager.close().await;
    }
}

#[tokio::test]
async fn what_was_seen_once_is_listed_without_starting_anything() {
    let place = Place::open(row(Kind::BothEras, Wire::Stdio)).await;
    let memory = ServerCache::in_memory();
    let first = House::furnished(place.config(), place.path(), Arc::new(AskTheCaller), memory.clone()).await;
    first.session().await;
    first.manager.close().await;
    let door = Door::open(vec![place.config()], place.path(), memory).await;
    toolyard_mcp::server::Readiness::settled(&door.upstreams).await;
    assert_eq!(door.list(ContentKind::Prompts, "name").await, ["hello"]);
    assert_eq!(door.list(ContentKind::ResourceTemplates, "name").await, ["numbered"]);
    assert_eq!(door.list(ContentKind::Skills, "uri").await.len(), 1);
    assert!(
        door.upstreams.kinds().skills && toolyard_mcp::server::Readiness::notes(&door.upstreams).is_empty()
    );
    assert_eq!(place.processes(), Vec::<u32>::new());
    door.ask("prompts/get", json!({"name": "hello", "arguments": {"name": "Ada"}})).await.unwrap();
    assert_eq!(place.processes().len(), 1);
    door.house.manager.close().await;
}

#[tokio::test]
async fn servers_with_the_same_things_do_not_get_in_each_others_way() {
    let place = Place::open(row(Kind::BothEras, Wire::Stdio)).await;
    let named = |name: &str| {
        let mut config = place.config();
        config.id = name.into();
        config
    };
    let local = tempfile::tempdir().unwrap();
    let folder = local.path().join("juggling");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("SKILL.md"), "---\nname: juggling\ndescription: Our own\n---\n").unwrap();
    let local = Arc::new(LocalSkills::new(vec![local.path().to_owned()]));
    let mut door = Door::open(vec![named("one"), named("two")], place.path(), ServerCache::in_memory()).await;
    door.upstreams = Upstreams::new(Arc::clone(&door.house.manager), |_| true).beside(local);
    toolyard_mcp::server::Readiness::settled(&door.upstreams).await;
    assert_eq!(door.list(ContentKind::Prompts, "name").await, ["one.hello", "two.hello"]);
    let got = door.ask("prompts/get", json!({"name": "two.hello", "arguments": {"name": "Ada"}})).await;
    assert_eq!(got.unwrap()["messages"][0]["content"]["text"], "Say hello to Ada.");
    assert_eq!(door.list(ContentKind::Resources, "uri").await, ["note://first"]);
    let skills = ["skill://one/juggling/SKILL.md", "skill://two/juggling/SKILL.md"];
    assert_eq!(door.list(ContentKind::Skills, "uri").await, skills);
    let read = door.ask("resources/read", json!({"uri": skills[1]})).await.unwrap();
    assert_eq!(read["contents"][0]["uri"], skills[1]);
    let got = door.ask("skills/get", json!({"uri": skills[0]})).await.unwrap();
    assert_eq!(got["skill"]["resources"][0]["uri"], skills[0]);
    let warnings = door.upstreams.warnings();
    assert!(warnings.iter().any(|line| line == "note://first of two is not offered: one has that address"));
    assert!(
        warnings.iter().any(|line| line.starts_with("a skill of one is offered at skill://one/juggling/"))
    );
    door.house.manager.close().await;
}
