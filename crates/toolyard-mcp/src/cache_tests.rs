//! What a later process finds of an earlier one.

use serde_json::json;

use super::*;

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

fn serving(decision: &PinDecision) -> Vec<&str> {
    decision.in_service.iter().map(|tool| tool.spec.name.as_ref()).collect()
}

#[tokio::test]
async fn a_list_is_found_again_as_it_was_decided_on() {
    let cache = ServerCache::in_memory();
    let server = config("files-server");
    assert!(cache.recall(&server).await.unwrap().is_none());
    let list = tools(&[("read", "Reads"), ("write", "Writes")]);
    let first = cache.take_in(&server, Some(ProtocolEra::Legacy), list.clone(), 1).await.unwrap();
    assert_eq!(first.first_seen, ["read", "write"]);
    let found = cache.recall(&server).await.unwrap().unwrap();
    assert_eq!(
        (serving(&found.decision), found.record.era),
        (vec!["read", "write"], Some(ProtocolEra::Legacy))
    );
    assert_eq!(found.record.cached_tools, list);
    assert!(found.decision.first_seen.is_empty(), "the notice is given once");
}

#[tokio::test]
async fn a_changed_tool_is_blocked_in_every_process_until_it_is_approved() {
    let cache = ServerCache::in_memory();
    let server = config("files-server");
    cache.take_in(&server, None, tools(&[("read", "Reads"), ("write", "Writes")]), 1).await.unwrap();
    let list = tools(&[("read", "Reads and sends"), ("write", "Writes all")]);
    assert_eq!(serving(&cache.take_in(&server, None, list, 2).await.unwrap()), [""; 0]);
    assert_eq!(serving(&cache.recall(&server).await.unwrap().unwrap().decision), [""; 0]);
    let waiting = cache.recall(&server).await.unwrap().unwrap().decision.blocked;
    let pin = waiting.iter().find(|blocked| &*blocked.tool.spec.name == "read").unwrap().tool.hash;
    let unknown = cache.approve(&server, Some(&[("delete".to_owned(), pin)]), 3).await;
    assert!(matches!(unknown, Err(CacheError::NotBlocked(_))));
    let other = ContentHash::of("what was shown before");
    let changed = cache.approve(&server, Some(&[("read".to_owned(), other)]), 3).await;
    assert!(matches!(changed, Err(CacheError::ChangedAgain(_))), "only what was shown is approved");
    let after = cache.approve(&server, Some(&[("read".to_owned(), pin)]), 3).await.unwrap();
    assert_eq!((serving(&after.decision), after.decision.blocked.len()), (vec!["read"], 1));
    let after = cache.approve(&server, None, 3).await.unwrap();
    assert_eq!(serving(&after.decision), ["read", "write"]);
    let history = cache.definitions(&server).await.unwrap();
    let dates: Vec<_> =
        history.iter().map(|one| (one.tool.as_str(), one.first_seen_at, one.approved)).collect();
    assert_eq!(dates, [("read", 1, true), ("read", 2, true), ("write", 1, true), ("write", 2, true)]);
}

#[tokio::test]
async fn a_server_that_is_reached_in_another_way_was_never_seen() {
    let cache = ServerCache::in_memory();
    cache.take_in(&config("one"), None, tools(&[("read", "Reads")]), 1).await.unwrap();
    let other = config("other");
    assert!(cache.recall(&other).await.unwrap().is_none());
    assert!(matches!(cache.approve(&other, None, 2).await, Err(CacheError::NeverSeen(_))));
    let strict = McpServerConfig { strict: true, ..other };
    let decision = cache.take_in(&strict, None, tools(&[("read", "Reads")]), 2).await.unwrap();
    assert_eq!(serving(&decision), [""; 0], "the approval was for the other one");
    let first = cache.take_in(&config("one"), None, tools(&[("read", "Reads and sends")]), 3).await.unwrap();
    assert_eq!(serving(&first), [""; 0], "another server of the same name undoes no pin");
}

#[tokio::test]
async fn only_servers_of_these_configurations_are_recalled() {
    let cache = ServerCache::in_memory();
    for id in ["a", "b", "c"] {
        let server = McpServerConfig { id: id.into(), ..config(id) };
        cache.take_in(&server, None, tools(&[(id, "T")]), 1).await.unwrap();
    }
    let configs = ["a", "b", "z"].map(|id| McpServerConfig { id: id.into(), ..config(id) });
    let all = cache.shelves(&configs).await.unwrap();
    let mut names: Vec<&str> = all.keys().map(SourceId::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
    assert!(cache.forget(&"a".into()).await.unwrap());
    assert!(cache.definitions(&configs[0]).await.unwrap().is_empty());
    assert!(!cache.definitions(&configs[1]).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_kept_is_what_judging_anew_would_give() {
    let cache = ServerCache::in_memory();
    let server = config("files-server");
    cache.take_in(&server, None, tools(&[("moved", "Moves"), ("same", "Stays")]), 1).await.unwrap();
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
    cache.take_in(&server, None, list, 2).await.unwrap();
    let judged = Shelf::of(cache.recall(&server).await.unwrap().unwrap().decision);
    let Kept { shelf: kept, .. } =
        cache.shelves(std::slice::from_ref(&server)).await.unwrap().remove(&server.id).unwrap();
    assert_eq!(kept, judged);
    assert_eq!((kept.in_service.len(), kept.out_of_service.len(), kept.quarantined.len()), (5, 1, 2));
    let after = cache.approve(&server, None, 3).await.unwrap();
    let Kept { shelf: kept, .. } =
        cache.shelves(std::slice::from_ref(&server)).await.unwrap().remove(&server.id).unwrap();
    assert_eq!(kept, Shelf::of(after.decision));
    assert_eq!(kept.in_service.len(), 6);
}

#[tokio::test]
async fn what_a_server_offers_besides_tools_outlives_a_change_of_its_tools() {
    let cache = ServerCache::in_memory();
    let server = config("files-server");
    let content = RawJson::parse(r#"{"prompts":[{"name":"p","x":1.50}]}"#.to_owned()).unwrap();
    cache.keep_content(&server, content.clone()).await.unwrap();
    assert!(cache.recall(&server).await.unwrap().is_none(), "nothing is kept of a server never seen");
    cache.take_in(&server, None, tools(&[("read", "Reads")]), 1).await.unwrap();
    cache.keep_content(&server, content.clone()).await.unwrap();
    cache.take_in(&server, None, tools(&[("write", "Writes")]), 2).await.unwrap();
    let kept = cache.shelves(std::slice::from_ref(&server)).await.unwrap().remove(&server.id).unwrap();
    assert_eq!(kept.content, Some(content));
}
