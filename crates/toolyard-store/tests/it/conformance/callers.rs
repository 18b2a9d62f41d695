//! Callers with API keys.

use super::*;

fn stored_key(id: &str) -> StoredKey {
    StoredKey { id: id.to_owned(), secret_hash: [7; 32], expires_at: Some(5_000) }
}

fn stored_caller(name: &str, key_id: &str) -> StoredCaller {
    StoredCaller {
        name: name.to_owned(),
        key: stored_key(key_id),
        allowed_profiles: Some(vec![String::new(), "office".to_owned()]),
        allowed_agents: Some(Vec::new()),
        created_at: 1_000,
        revoked_at: None,
    }
}

pub(crate) async fn callers_are_added_get_other_keys_and_are_revoked_for_ever(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (store, other) = (test_store.open().await, test_store.open().await);
    let ci = stored_caller("ci", "1111");
    assert_eq!(store.revoke_caller("ci", "ada").await, Ok(false));
    assert_eq!(store.add_caller(&ci, "ada").await, Ok(true));
    assert_eq!(other.add_caller(&stored_caller("ci", "2222"), "bob").await, Ok(false), "a name is unique");
    assert_eq!(other.add_caller(&stored_caller("eve", "1111"), "bob").await, Ok(false), "a key is unique");
    let unlimited = StoredCaller {
        key: StoredKey { expires_at: None, ..stored_key("3333") },
        allowed_profiles: None,
        allowed_agents: None,
        ..stored_caller("bot", "")
    };
    assert_eq!(other.add_caller(&unlimited, "bob").await, Ok(true));
    assert_eq!(store.callers().await.unwrap(), [unlimited.clone(), ci.clone()]);
    assert_eq!(store.replace_caller_key("ci", &stored_key("4444"), "ada").await, Ok(true));
    assert_eq!(other.callers().await.unwrap()[1], StoredCaller { key: stored_key("4444"), ..ci.clone() });
    assert_eq!(store.revoke_caller("ci", "ada").await, Ok(true));
    let revoked = other.callers().await.unwrap().remove(1);
    assert!(revoked.revoked_at.is_some() && !revoked.is_valid_at(0));
    assert_eq!(store.revoke_caller("ci", "ada").await, Ok(false));
    assert_eq!(store.replace_caller_key("ci", &stored_key("5555"), "ada").await, Ok(false));
    assert_eq!(store.add_caller(&ci, "ada").await, Ok(false), "the name is not given again");
    let audit = store.query_audit(&AuditQuery { limit: 10, ..AuditQuery::default() }).await.unwrap();
    let audit: Vec<_> =
        audit.iter().map(|entry| (entry.record.caller.as_str(), entry.record.outcome.as_str())).collect();
    let expected = [
        ("ada", "decided: add caller ci with API key 1111"),
        ("bob", "decided: add caller bot with API key 3333"),
        ("ada", "decided: replace API key of caller ci by 4444"),
        ("ada", "decided: revoke caller ci"),
    ];
    assert_eq!(audit, expected);
}

pub(crate) async fn callers_survive_export_and_import(engine: Engine) {
    let (test_store, copy_store) = (TestStore::new(engine).await, TestStore::new(engine).await);
    let (store, copy) = (test_store.open().await, copy_store.open().await);
    store.add_caller(&stored_caller("ci", "1111"), "ada").await.unwrap();
    let mut export = Vec::new();
    store.export(&mut export).await.unwrap();
    copy.import(&mut Cursor::new(&export)).await.unwrap();
    assert_eq!(copy.callers().await.unwrap(), [stored_caller("ci", "1111")]);
}
