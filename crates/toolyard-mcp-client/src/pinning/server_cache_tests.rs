//! Tool lists and approvals that one process caches for the next.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::config::{HeldTools, TransportConfig};

fn config(command: &str) -> McpServerConfig {
    let transport = TransportConfig::Stdio {
        command: command.to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        inherit: Vec::new(),
        cwd: None,
    };
    McpServerConfig::new("files", transport)
}

fn tools(descriptions: &[(&str, &str)]) -> Vec<RawJson> {
    let tool = |(name, description): &(&str, &str)| {
        RawJson::from_value(&json!({
            "name": name, "description": description, "inputSchema": {"type": "object"},
        }))
    };
    descriptions.iter().map(tool).collect()
}

fn no_users(_tool: &str) -> Option<NameUser> {
    None
}

fn approved_names(decision: &PinDecision) -> Vec<&str> {
    decision.approved.iter().map(|tool| tool.spec.name.as_ref()).collect()
}

#[tokio::test]
async fn a_cached_list_keeps_its_decision() {
    let cache = ServerCache::in_memory();
    let server = config("files-server");
    assert!(cache.pins(&server.pinned_source()).await.unwrap().is_none());
    let list = tools(&[("read", "Reads"), ("write", "Writes")]);
    let first = cache
        .update_tools(&server.pinned_source(), Some(RevisionFamily::Legacy), list.clone(), &no_users, 1)
        .await
        .unwrap();
    assert_eq!(first.newly_approved, ["read", "write"]);
    let found = cache.pins(&server.pinned_source()).await.unwrap().unwrap();
    assert_eq!(
        (approved_names(&found.decision), found.record.revision_family),
        (vec!["read", "write"], Some(RevisionFamily::Legacy))
    );
    assert_eq!(found.record.cached_tools, list);
    assert!(found.decision.newly_approved.is_empty(), "new tools are reported once");
}

#[tokio::test]
async fn a_changed_tool_is_quarantined_in_every_process_until_it_is_approved() {
    let cache = ServerCache::in_memory();
    let server = config("files-server");
    cache
        .update_tools(
            &server.pinned_source(),
            None,
            tools(&[("read", "Reads"), ("write", "Writes")]),
            &no_users,
            1,
        )
        .await
        .unwrap();
    let list = tools(&[("read", "Reads and sends"), ("write", "Writes all")]);
    assert_eq!(
        approved_names(&cache.update_tools(&server.pinned_source(), None, list, &no_users, 2).await.unwrap()),
        [""; 0]
    );
    assert_eq!(
        approved_names(&cache.pins(&server.pinned_source()).await.unwrap().unwrap().decision),
        [""; 0]
    );
    let quarantined_tools = cache.pins(&server.pinned_source()).await.unwrap().unwrap().decision.quarantined;
    let pin = quarantined_tools
        .iter()
        .find(|quarantined| &*quarantined.tool.spec.name == "read")
        .unwrap()
        .tool
        .hash;
    let unknown =
        cache.approve(&server.pinned_source(), Some(&[("delete".to_owned(), pin)]), &no_users, 3).await;
    assert!(matches!(unknown, Err(CacheError::NotQuarantined(_))));
    let other = ContentHash::of("what was shown before");
    let changed =
        cache.approve(&server.pinned_source(), Some(&[("read".to_owned(), other)]), &no_users, 3).await;
    assert!(matches!(changed, Err(CacheError::DefinitionChanged(_))), "only what was shown is approved");
    let after = cache
        .approve(&server.pinned_source(), Some(&[("read".to_owned(), pin)]), &no_users, 3)
        .await
        .unwrap();
    assert_eq!((approved_names(&after.decision), after.decision.quarantined.len()), (vec!["read"], 1));
    let after = cache.approve(&server.pinned_source(), None, &no_users, 3).await.unwrap();
    assert_eq!(approved_names(&after.decision), ["read", "write"]);
    let history = cache.definitions(&server.pinned_source()).await.unwrap();
    let stored: Vec<_> = history
        .iter()
        .map(|definition| (definition.tool.as_str(), definition.first_seen_at, definition.approved))
        .collect();
    assert_eq!(stored, [("read", 1, true), ("read", 2, true), ("write", 1, true), ("write", 2, true)]);
}

#[tokio::test]
async fn a_server_with_another_transport_is_new() {
    let cache = ServerCache::in_memory();
    cache
        .update_tools(&config("one").pinned_source(), None, tools(&[("read", "Reads")]), &no_users, 1)
        .await
        .unwrap();
    let other = config("other");
    assert!(cache.pins(&other.pinned_source()).await.unwrap().is_none());
    assert!(matches!(
        cache.approve(&other.pinned_source(), None, &no_users, 2).await,
        Err(CacheError::UnknownServer(_))
    ));
    let strict = McpServerConfig { hold_new_tools: HeldTools::All, ..other };
    let decision = cache
        .update_tools(&strict.pinned_source(), None, tools(&[("read", "Reads")]), &no_users, 2)
        .await
        .unwrap();
    assert_eq!(approved_names(&decision), [""; 0], "the approval was for the other transport");
    let first = cache
        .update_tools(
            &config("one").pinned_source(),
            None,
            tools(&[("read", "Reads and sends")]),
            &no_users,
            3,
        )
        .await
        .unwrap();
    assert_eq!(approved_names(&first), [""; 0], "another server of the same name undoes no pin");
}

#[tokio::test]
async fn only_servers_with_these_configurations_are_loaded() {
    let cache = ServerCache::in_memory();
    for id in ["a", "b", "c"] {
        let server = McpServerConfig { id: id.into(), ..config(id) };
        cache.update_tools(&server.pinned_source(), None, tools(&[(id, "T")]), &no_users, 1).await.unwrap();
    }
    let configs = ["a", "b", "z"].map(|id| McpServerConfig { id: id.into(), ..config(id) });
    let all = cache.load(&configs.each_ref().map(McpServerConfig::pinned_source)).await.unwrap();
    let mut names: Vec<&str> = all.keys().map(SourceId::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
    assert!(cache.remove(&"a".into()).await.unwrap());
    assert!(cache.definitions(&configs[0].pinned_source()).await.unwrap().is_empty());
    assert!(!cache.definitions(&configs[1].pinned_source()).await.unwrap().is_empty());
}

#[tokio::test]
async fn stored_approvals_equal_a_new_validation() {
    let cache = ServerCache::in_memory();
    let server = McpServerConfig { hold_new_tools: HeldTools::None, ..config("files-server") };
    cache
        .update_tools(
            &server.pinned_source(),
            None,
            tools(&[("moved", "Moves"), ("same", "Stays")]),
            &no_users,
            1,
        )
        .await
        .unwrap();
    let mut list = tools(&[("moved", "Moves elsewhere"), ("same", "Stays"), ("new", "Comes")]);
    for text in [
        r#"{"name":"hidden","description":"zero\u200bwidth","inputSchema":{"type":"object"}}"#,
        r#"{"name":"bare","title":7,"annotations":{"title":"Bare","readOnlyHint":true,"idempotentHint":"yes"}}"#,
        r#"{"name":"bad","inputSchema":true}"#,
        r#"{"name":"twice","inputSchema":{"type":"object"}}"#,
        r#"{"name":"twice","inputSchema":{"type":"object","required":["a"]}}"#,
        r#"{"name":"out","outputSchema":[1],"inputSchema":{"type":"object","properties":{"b":{},"a":{}}},"x":1.50}"#,
    ] {
        list.push(RawJson::parse(text.to_owned()).unwrap());
    }
    cache.update_tools(&server.pinned_source(), None, list, &no_users, 2).await.unwrap();
    let validated =
        ToolApprovals::from_decision(cache.pins(&server.pinned_source()).await.unwrap().unwrap().decision);
    let CachedServer { approvals: cached, .. } =
        cache.load(&[server.pinned_source()]).await.unwrap().remove(&server.id).unwrap();
    assert_eq!(cached, validated);
    assert_eq!((cached.approved().len(), cached.quarantined.len(), cached.rejected.len()), (5, 1, 2));
    let after = cache.approve(&server.pinned_source(), None, &no_users, 3).await.unwrap();
    let CachedServer { approvals: cached, .. } =
        cache.load(&[server.pinned_source()]).await.unwrap().remove(&server.id).unwrap();
    assert_eq!(cached, ToolApprovals::from_decision(after.decision));
    assert_eq!(cached.approved().len(), 6);
}

#[tokio::test]
async fn cached_content_survives_a_change_of_tools() {
    let cache = ServerCache::in_memory();
    let server = config("files-server");
    let content = RawJson::parse(r#"{"prompts":[{"name":"p","x":1.50}]}"#.to_owned()).unwrap();
    cache.update_content(&server.pinned_source(), content.clone()).await.unwrap();
    assert!(
        cache.pins(&server.pinned_source()).await.unwrap().is_none(),
        "nothing is cached for an unknown server"
    );
    cache
        .update_tools(&server.pinned_source(), None, tools(&[("read", "Reads")]), &no_users, 1)
        .await
        .unwrap();
    cache.update_content(&server.pinned_source(), content.clone()).await.unwrap();
    cache
        .update_tools(&server.pinned_source(), None, tools(&[("write", "Writes")]), &no_users, 2)
        .await
        .unwrap();
    let cached = cache.load(&[server.pinned_source()]).await.unwrap().remove(&server.id).unwrap();
    let prompt = RawJson::parse(r#"{"name":"p","x":1.50}"#.to_owned()).unwrap();
    assert_eq!(cached.content, ServerContent { prompts: vec![prompt], ..ServerContent::default() });
}

fn yields_to(decision: &PinDecision, tool: &str) -> Option<String> {
    decision.names.get(tool).unwrap().yields_to.as_ref().map(ToString::to_string)
}

#[tokio::test]
async fn the_owner_of_a_name_is_stored() {
    let store: Arc<MemoryServerStore> = Arc::default();
    let server = |id: &str| McpServerConfig { id: id.into(), hold_new_tools: HeldTools::None, ..config(id) };
    let configs = [server("aweather"), server("bank")];
    let process = || async {
        let cache = ServerCache::new(Arc::clone(&store) as _);
        cache.load(&configs.each_ref().map(McpServerConfig::pinned_source)).await.unwrap();
        cache
    };
    let cache = process().await;
    cache
        .update_tools(&configs[0].pinned_source(), None, tools(&[("forecast", "F")]), &no_users, 1)
        .await
        .unwrap();
    let bank = cache
        .update_tools(&configs[1].pinned_source(), None, tools(&[("pay", "P")]), &no_users, 2)
        .await
        .unwrap();
    assert_eq!(yields_to(&bank, "pay"), None);
    // The owner does not list the tool for a while, and the process restarts.
    cache
        .update_tools(&configs[1].pinned_source(), None, tools(&[("balance", "B")]), &no_users, 3)
        .await
        .unwrap();
    let cache = process().await;
    let both = tools(&[("forecast", "F"), ("pay", "Weather")]);
    let weather = cache.update_tools(&configs[0].pinned_source(), None, both, &no_users, 4).await.unwrap();
    assert_eq!(yields_to(&weather, "pay").as_deref(), Some("bank"));
    let loaded = process().await.load(&configs.each_ref().map(McpServerConfig::pinned_source)).await.unwrap();
    let claim = |id: &str| {
        loaded[&SourceId::from(id)].approvals.names().find(|(name, _)| &**name == "pay").unwrap().1.clone()
    };
    assert_eq!((claim("aweather").yields_to, claim("bank").yields_to), (Some("bank".into()), None));
    // The operator decides.
    let cache = process().await;
    let changed = cache
        .give_names(
            &configs.each_ref().map(McpServerConfig::pinned_source),
            &"aweather".into(),
            &["pay".to_owned()],
        )
        .await
        .unwrap();
    assert_eq!(changed.len(), 2);
    let bank = process()
        .await
        .update_tools(&configs[1].pinned_source(), None, tools(&[("pay", "P")]), &no_users, 5)
        .await
        .unwrap();
    assert_eq!(yields_to(&bank, "pay").as_deref(), Some("aweather"));
    let unknown = cache
        .give_names(
            &configs.each_ref().map(McpServerConfig::pinned_source),
            &"aweather".into(),
            &["nothing".to_owned()],
        )
        .await;
    assert!(matches!(unknown, Err(CacheError::UnknownTool { .. })));
}

#[tokio::test]
async fn a_server_yields_to_native_tools_unless_servers_come_first() {
    let cache = ServerCache::in_memory();
    for (id, precedes_servers, expected) in [("a", true, Some("native")), ("b", false, None)] {
        let server = McpServerConfig { id: id.into(), ..config(id) };
        let native = |_: &str| Some(NameUser { source: "native".into(), precedes_servers });
        let decision =
            cache.update_tools(&server.pinned_source(), None, tools(&[(id, "T")]), &native, 1).await.unwrap();
        assert_eq!(yields_to(&decision, id).as_deref(), expected);
    }
}

#[tokio::test]
async fn tools_that_a_server_adds_are_held() {
    let cache = ServerCache::in_memory();
    let (held, free) = (
        config("held"),
        McpServerConfig { id: "free".into(), hold_new_tools: HeldTools::None, ..config("free") },
    );
    for (server, expected) in [(held, 1), (free, 2)] {
        cache.update_tools(&server.pinned_source(), None, tools(&[("a", "A")]), &no_users, 1).await.unwrap();
        let later = cache
            .update_tools(&server.pinned_source(), None, tools(&[("a", "A"), ("b", "B")]), &no_users, 2)
            .await
            .unwrap();
        assert_eq!(later.approved.len(), expected);
    }
}

#[tokio::test]
async fn a_source_that_is_no_server_is_pinned_the_same_way() {
    let cache = ServerCache::in_memory();
    let group = PinnedSource::new("worker:office", ContentHash::of("office"), false);
    cache.update_tools(&group, None, tools(&[("read", "Reads")]), &no_users, 1).await.unwrap();
    let changed =
        cache.update_tools(&group, None, tools(&[("read", "Reads all")]), &no_users, 2).await.unwrap();
    assert_eq!((changed.approved.len(), changed.quarantined.len()), (0, 1));
    cache.approve(&group, None, &no_users, 3).await.unwrap();
    let approvals = cache.approvals(std::slice::from_ref(&group)).await.unwrap().remove(&group.id).unwrap();
    assert_eq!(approvals.approved()[0].spec.description, "Reads all");
    cache.update_tools(&config("files").pinned_source(), None, Vec::new(), &no_users, 4).await.unwrap();
    let names = cache.sources_with_prefix("worker:").await.unwrap();
    assert_eq!(names, BTreeSet::from(["worker:office".into()]));
}
