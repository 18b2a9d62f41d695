//! Stored policies.

use super::*;

pub(crate) async fn policies_are_set_replaced_removed_and_audited(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (store, other) = (test_store.open().await, test_store.open().await);
    assert_eq!(store.remove_policy("team", "ada").await, Ok(false));
    store.set_policy("team", "permit (principal, action, resource);", "ada").await.unwrap();
    other.set_policy("night", "forbid (principal, action, resource);", "bob").await.unwrap();
    store.set_policy("team", "// nothing", "ada").await.unwrap();
    let texts = async || {
        let policies = other.stored_policies().await.unwrap();
        policies.into_iter().map(|policy| (policy.name, policy.text)).collect::<Vec<_>>()
    };
    let night = ("night".to_owned(), "forbid (principal, action, resource);".to_owned());
    assert_eq!(texts().await, [night.clone(), ("team".to_owned(), "// nothing".to_owned())]);
    assert_eq!(other.remove_policy("team", "bob").await, Ok(true));
    assert_eq!(texts().await, [night]);
    let audit = store.query_audit(&AuditQuery { limit: 10, ..AuditQuery::default() }).await.unwrap();
    let audit: Vec<_> = audit
        .iter()
        .map(|entry| {
            (entry.record.caller.as_str(), entry.record.tool.as_str(), entry.record.outcome.as_str())
        })
        .collect();
    let expected = [
        ("ada", "change policy", "decided: set policy team"),
        ("bob", "change policy", "decided: set policy night"),
        ("ada", "change policy", "decided: set policy team"),
        ("bob", "change policy", "decided: remove policy team"),
    ];
    assert_eq!(audit, expected);
}
