//! Agents that are changed while processes run.

use super::*;

pub(crate) async fn agents_are_added_replaced_and_removed(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (store, other) = (test_store.open().await, test_store.open().await);
    let config = |text: &str| json(serde_json::json!({ "description": text }));
    assert_eq!(store.replace_agent("clerk", &config("none yet"), "ada").await, Ok(false));
    assert_eq!(store.add_agent("clerk", &config("first"), "ada").await, Ok(true));
    assert_eq!(other.add_agent("clerk", &config("second"), "bob").await, Ok(false));
    assert_eq!(other.replace_agent("clerk", &config("third"), "bob").await, Ok(true));
    assert_eq!(store.add_agent("auditor", &config("x"), "ada").await, Ok(true));
    let agents = store.stored_agents().await.unwrap();
    assert_eq!(agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), ["auditor", "clerk"]);
    assert_eq!(agents[1].config, config("third"));
    assert_eq!(store.remove_agent("clerk", "ada").await, Ok(true));
    assert_eq!(store.remove_agent("clerk", "ada").await, Ok(false));
    let audit = store.query_audit(&AuditQuery { limit: 10, ..AuditQuery::default() }).await.unwrap();
    let audit: Vec<_> =
        audit.iter().map(|entry| (entry.record.caller.as_str(), entry.record.outcome.as_str())).collect();
    let expected = [
        ("ada", "decided: add agent clerk"),
        ("bob", "decided: replace agent clerk"),
        ("ada", "decided: add agent auditor"),
        ("ada", "decided: remove agent clerk"),
    ];
    assert_eq!(audit, expected);
}
