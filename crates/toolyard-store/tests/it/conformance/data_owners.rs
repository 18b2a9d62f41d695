//! Results, past requests and shapes of results belong to a caller.

use toolyard_core::CallerIdentity;

use super::*;

const OPERATOR: DataOwner = DataOwner::Operator;

fn callers() -> [DataOwner; 2] {
    ["ada", "eve"].map(|name| DataOwner::of(Some(&CallerIdentity::principal("https://issuer", name))))
}

pub(crate) async fn results_are_read_by_their_owner_and_the_operator_only(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (store, [ada, eve]) = (test_store.open().await, callers());
    let of_ada = store.store("the same text", ada).await.unwrap();
    let of_eve = store.store("the same text", eve).await.unwrap();
    let of_operator = store.store("the same text", OPERATOR).await.unwrap();
    assert_eq!(HashSet::from([&of_ada, &of_eve, &of_operator]).len(), 3, "owners share no reference");
    assert_eq!(store.store("the same text", ada).await.unwrap(), of_ada);
    let other = test_store.open().await;
    for (reader, reference, is_readable) in [
        (ada, &of_ada, true),
        (OPERATOR, &of_ada, true),
        (eve, &of_ada, false),
        (ada, &of_eve, false),
        (ada, &of_operator, false),
        (OPERATOR, &of_operator, true),
    ] {
        let read = other.read(reference, reader, 0, 99).await;
        assert_eq!(read.is_ok(), is_readable, "{reader:?} {read:?}");
        if let Err(error) = read {
            assert_eq!(error, ResultsError::NotFound(reference.clone()), "as one that does not exist");
        }
    }
}

pub(crate) async fn past_requests_and_shapes_are_kept_by_owner(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (store, [ada, eve]) = (test_store.open().await, callers());
    let requests = StoredPastRequests::with_clock(&store, Arc::new(|| 5)).await.unwrap();
    for owner in [ada, eve, OPERATOR] {
        requests.record(PastRequest::new(owner, "t", "s".into(), "the same request").unwrap());
    }
    // One owner with many requests evicts none of another.
    for number in 0..2 * PastRequest::MAX_PER_TOOL {
        requests.record(PastRequest::new(eve, "t", "s".into(), &format!("request number {number}")).unwrap());
    }
    requests.flush().await.unwrap();
    let again = StoredPastRequests::with_clock(&test_store.open().await, Arc::new(|| 5)).await.unwrap();
    let of = |owner: DataOwner| {
        let all = again.recent(usize::MAX).into_iter().filter(move |past| past.owner == owner);
        all.map(|past| past.request).collect::<Vec<_>>()
    };
    assert_eq!(of(ada), ["the same request"]);
    assert_eq!(of(OPERATOR), ["the same request"]);
    assert_eq!(of(eve).len(), PastRequest::MAX_PER_TOOL);

    let shape = |owner: DataOwner, json: &str| ResultShape {
        owner,
        tool: "t".to_owned(),
        source: "s".into(),
        shape: json.to_owned(),
    };
    store.record(&shape(ada, r#"{"salary_of_ada":1}"#)).await;
    store.record(&shape(OPERATOR, r#"{"plain":1}"#)).await;
    assert_eq!(store.recent(ada, 9).await, [shape(ada, r#"{"salary_of_ada":1}"#)]);
    assert_eq!(store.recent(OPERATOR, 9).await, [shape(OPERATOR, r#"{"plain":1}"#)]);
    assert_eq!(store.recent(eve, 9).await, []);
}

/// Starts from a store whose tables have no owners yet.
pub(crate) async fn data_of_earlier_versions_is_the_operators(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let pool = migrate_until(&test_store, engine, 11).await;
    let reference = ResultRef::new("r_old");
    for sql in [
        "INSERT INTO results (reference, bytes, created_at) VALUES ('r_old', 0, 5)",
        "INSERT INTO past_requests (source, tool, request, uses, last_used_at) VALUES ('s', 't', 'asked before', 2, 5)",
        "INSERT INTO result_shapes (source, tool, shape, learned_at) VALUES ('s', 't', '{\"a\":1}', 5)",
    ] {
        sqlx::query(sql).execute(&pool).await.unwrap();
    }
    pool.close().await;

    let (store, [ada, _]) = (test_store.open().await, callers());
    assert!(store.read(&reference, OPERATOR, 0, 9).await.is_ok());
    assert!(store.read(&reference, ada, 0, 9).await.is_err());
    let requests = StoredPastRequests::with_clock(&store, Arc::new(|| 9)).await.unwrap();
    let recent = requests.recent(9);
    assert_eq!((recent[0].owner, recent[0].request.as_str(), recent.len()), (OPERATOR, "asked before", 1));
    assert_eq!(store.recent(OPERATOR, 9).await.len(), 1);
    assert_eq!(store.recent(ada, 9).await.len(), 0);
}
