//! Approvals, servers, results, conversations, statistics, audit records and session keys.

use super::*;

const OPERATOR: DataOwner = DataOwner::Operator;

pub(crate) async fn approvals_are_decided_once(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let detail = json(serde_json::json!({"caller": "editor"}));
    let run = store.create_run("test", &detail).await.unwrap();
    let id = store.request_approval(&run, Some("write"), ApprovalKind::ToolCall, "write B12?").await.unwrap();
    let stop = store.request_approval(&run, None, ApprovalKind::Cancellation, "stop?").await.unwrap();
    assert_eq!(store.pending_approvals().await.unwrap().len(), 2);
    let decisions = futures_util::future::join_all((0..8).map(|n| {
        let store = store.clone();
        async move {
            store
                .decide(
                    id,
                    if n % 2 == 0 { ApprovalOutcome::Approved } else { ApprovalOutcome::Denied },
                    "ada",
                )
                .await
                .unwrap()
        }
    }));
    assert_eq!(
        decisions.await.into_iter().filter(|is_first| *is_first).count(),
        1,
        "only the first decision counts"
    );
    let approval = test_store.open().await.approval(id).await.unwrap().unwrap();
    assert!(approval.outcome.is_some() && approval.decided_by.as_deref() == Some("ada"));
    let by_ada = AuditQuery { caller: Some("ada".to_owned()), limit: 10, ..AuditQuery::default() };
    let audited = store.query_audit(&by_ada).await.unwrap();
    assert_eq!(audited.len(), 1, "one decision, one record: {audited:?}");
    let entry = &audited[0];
    let label = if approval.outcome == Some(ApprovalOutcome::Approved) { "approve" } else { "deny" };
    assert_eq!(entry.record.tool, label);
    assert_eq!(entry.record.outcome, format!("decided: tool_call of run {run} of editor, step write"));
    assert!(matches!(store.verify_audit(None).await.unwrap(), AuditVerification::Intact { .. }));
    assert_eq!(store.pending_approvals().await.unwrap()[0].id, stop);
    assert_eq!(store.approval(ApprovalId(stop.0 + 100)).await.unwrap(), None);
}

pub(crate) async fn servers_and_definitions_are_stored(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let id = SourceId::from("excel");
    let tool = r#"{"name":"read","inputSchema":{"z":1.50,"a":1}}"#;
    let mut server = ServerRecord {
        id: id.clone(),
        configuration: ContentHash::of("uvx excel"),
        revision_family: Some(RevisionFamily::Legacy),
        cached_tools: vec![RawJson::parse(tool.to_owned()).unwrap()],
        tool_approvals: Some(RawJson::parse(r#"{"approved":[]}"#.to_owned()).unwrap()),
        content: Some(RawJson::parse(r#"{"prompts":[{"name":"hello"}]}"#.to_owned()).unwrap()),
        seen_at: 7,
    };
    store.put_server(&server).await.unwrap();
    (server.revision_family, server.tool_approvals) = (None, None);
    store.put_server(&server).await.unwrap();
    let known = test_store.open().await.servers().await.unwrap();
    assert_eq!(known, [server.clone()]);
    assert_eq!(known[0].cached_tools[0].get(), tool, "byte for byte");
    for id in ["excel#b", "excel#a", "excel2#a", "Excel#a", "exce#a", "excel-2#a", "excel$a"] {
        store.put_server(&ServerRecord { id: id.into(), ..server.clone() }).await.unwrap();
    }
    let named = store.servers_named("excel").await.unwrap();
    let named: Vec<&str> = named.iter().map(|server| server.id.as_str()).collect();
    assert_eq!(named, ["excel#a", "excel#b"], "one name, two fingerprints");

    let definition = |text: &str, approved, at| StoredDefinition {
        tool: "read".to_owned(),
        hash: ContentHash::of(text),
        definition: json(serde_json::json!({ "text": text })),
        approved,
        first_seen_at: at,
    };
    store.put_definition(&id, &definition("one", true, 1)).await.unwrap();
    store.put_definition(&id, &definition("two", false, 2)).await.unwrap();
    store.put_definition(&id, &definition("one", false, 3)).await.unwrap();
    let known = store.definitions(&id).await.unwrap();
    let stored: Vec<_> = known.iter().map(|known| (known.approved, known.first_seen_at)).collect();
    assert_eq!(stored, [(true, 1), (false, 2)], "approval and first date are preserved");
    assert!(store.forget_server(&id).await.unwrap() && !store.forget_server(&id).await.unwrap());
    assert!(store.definitions(&id).await.unwrap().is_empty());
}

fn server_with_tools(id: &str, tools: &[&str]) -> ServerRecord {
    ServerRecord {
        id: id.into(),
        configuration: ContentHash::of(id),
        revision_family: None,
        cached_tools: tools.iter().map(|tool| json(serde_json::json!({ "name": tool }))).collect(),
        tool_approvals: None,
        content: None,
        seen_at: 7,
    }
}

pub(crate) async fn changed_servers_are_found_by_their_revisions(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (store, other) = (test_store.open().await, test_store.open().await);
    assert_eq!(store.latest_server_revision().await.unwrap(), 0);
    store.put_server(&server_with_tools("a", &["read"])).await.unwrap();
    other.put_server(&server_with_tools("b", &["read"])).await.unwrap();
    let seen = store.latest_server_revision().await.unwrap();
    let changed =
        |changed: Vec<(SourceId, i64)>| changed.iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>();
    assert_eq!(changed(store.servers_changed_after(0).await.unwrap()), ["a", "b"]);
    let seen_again = ServerRecord { seen_at: 9, ..server_with_tools("a", &["read"]) };
    other.put_server(&seen_again).await.unwrap();
    assert!(store.servers_changed_after(seen).await.unwrap().is_empty(), "the same tools are no change");
    other.put_server(&server_with_tools("a", &["read", "write"])).await.unwrap();
    let rows = store.servers_changed_after(seen).await.unwrap();
    assert!(rows[0].1 > seen);
    assert_eq!(changed(rows), ["a"]);

    // While two processes write, a reader that continues after the highest revision it saw misses nothing.
    let writing = |store: Store, process: &'static str| {
        tokio::spawn(async move {
            for number in 0..50 {
                let server = server_with_tools(&format!("{process}-{number}"), &["read"]);
                store.put_server(&server).await.unwrap();
            }
        })
    };
    let writers = [writing(store.clone(), "one"), writing(other.clone(), "two")];
    let (mut seen, mut found) = (seen, HashSet::new());
    loop {
        let is_last = writers.iter().all(tokio::task::JoinHandle::is_finished);
        for (id, revision) in store.servers_changed_after(seen).await.unwrap() {
            found.insert(id.to_string());
            seen = seen.max(revision);
        }
        if is_last {
            break;
        }
    }
    assert_eq!(found.iter().filter(|id| id.contains('-')).count(), 100, "no change was missed");
}

pub(crate) async fn trust_and_program_descriptions_are_stored(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let decision = |content: &str| TrustDecision {
        kind: "skill".to_owned(),
        subject: "/home/ada/skill".to_owned(),
        content: ContentHash::of(content),
        decided_at: 1,
    };
    store.put_trust(&decision("before")).await.unwrap();
    store.put_trust(&decision("after")).await.unwrap();
    assert_eq!(test_store.open().await.trust_decisions("skill").await.unwrap(), [decision("after")]);
    assert!(store.trust_decisions("server").await.unwrap().is_empty());
    assert!(store.remove_trust("skill", "/home/ada/skill").await.unwrap());
    assert!(!store.remove_trust("skill", "/home/ada/skill").await.unwrap());

    let (program, tools) = (ContentHash::of("program"), json(serde_json::json!([{"name": "t"}])));
    assert_eq!(store.description(&program).await, None);
    store.put_description(&program, &tools).await;
    assert_eq!(test_store.open().await.description(&program).await, Some(tools));
}

pub(crate) async fn results_are_paged_deduplicated_and_expire(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    // Three bytes per character, so that chunk boundaries fall inside characters.
    let whole: String = (0..300_000).map(|n| char::from_u32(0x4E00 + n % 20_000).unwrap()).collect();
    let reference = store.store(&whole, OPERATOR).await.unwrap();
    assert_eq!(
        store.store(&whole, OPERATOR).await.unwrap(),
        reference,
        "the same content has the same reference"
    );
    let other = test_store.open().await;
    let (mut read, mut offset) = (String::new(), Some(0));
    while let Some(at) = offset {
        let page = other.read(&reference, OPERATOR, at, 100_001).await.unwrap();
        assert_eq!((page.offset, page.total), (at, whole.len()));
        read.push_str(&page.text);
        offset = page.next;
    }
    assert!(read == whole, "the pages make up the whole result");
    let beyond = other.read(&reference, OPERATOR, usize::MAX, 10).await.unwrap();
    assert_eq!((beyond.text.as_str(), beyond.next), ("", None));
    assert_eq!(store.store("", OPERATOR).await.map(|_| ()), Ok(()));
    let usage = store.usage().await.unwrap();
    assert_eq!((usage.stored, usage.stored_bytes), (2, whole.len() as u64));

    let unknown = ResultRef::new("r_nothing");
    assert_eq!(store.read(&unknown, OPERATOR, 0, 1).await, Err(ResultsError::NotFound(unknown.clone())));
    assert_eq!(store.expire_results(ResultRetention::default()).await.unwrap(), 0);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let young = store.store("young", OPERATOR).await.unwrap();
    store.expire_results(ResultRetention { max_bytes: 100, ..ResultRetention::default() }).await.unwrap();
    assert!(store.read(&young, OPERATOR, 0, 9).await.is_ok(), "the newest stay");
    assert!(store.read(&reference, OPERATOR, 0, 9).await.is_err(), "results beyond the size limit expire");
    tokio::time::sleep(Duration::from_millis(5)).await;
    store.expire_results(ResultRetention { max_age_millis: 0, ..ResultRetention::default() }).await.unwrap();
    assert!(store.read(&young, OPERATOR, 0, 9).await.is_err());
}

pub(crate) async fn conversations_are_stored_and_queried(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let id = ConversationId::new("ada", "c1").unwrap();
    let message = |role: &str, text: &str| ConversationMessage::new(role, text);
    store.append_messages(&id, &[message("user", "Hello"), message("assistant", "Hi")]).await.unwrap();
    store.append_messages(&id, &[message("user", "hello again")]).await.unwrap();
    let texts = |messages: Vec<ConversationMessage>| {
        messages.into_iter().map(|message| message.text).collect::<Vec<_>>().join("|")
    };
    assert_eq!(texts(store.messages(&id, 2).await.unwrap()), "Hi|hello again");
    store
        .replace_message(&id, &message("assistant", "Hi"), Some(&message("assistant", "Good day")))
        .await
        .unwrap();
    store.replace_message(&id, &message("user", "Hello"), None).await.unwrap();
    store.replace_message(&id, &message("user", "Good day"), None).await.unwrap();
    assert_eq!(texts(store.messages(&id, 9).await.unwrap()), "Good day|hello again");
    let other_process = test_store.open().await;
    assert_eq!(texts(other_process.messages(&id, 9).await.unwrap()), "Good day|hello again");
    for (owner, name) in [("ada", "c2"), ("bob", "c1"), ("", "c1"), ("c1", "ada")] {
        let other = ConversationId::new(owner, name).unwrap();
        assert_eq!(texts(other_process.messages(&other, 9).await.unwrap()), "", "{owner} {name}");
        other_process.replace_message(&other, &message("assistant", "Good day"), None).await.unwrap();
        other_process.append_messages(&other, &[message("user", "mine")]).await.unwrap();
    }
    assert_eq!(texts(store.messages(&id, 9).await.unwrap()), "Good day|hello again", "owners are apart");
    store.append_messages(&id, &[message("user", "my key is sk-ant-REDACTED")]).await.unwrap();
    assert!(!texts(store.messages(&id, 1).await.unwrap()).contains("abcdefghijklmnopqrstuvwxyz"));
}

pub(crate) async fn messages_of_one_append_stay_together(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let id = ConversationId::new("ada", "busy").unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for process in 0..4 {
        let (store, id) = (test_store.open().await, id.clone());
        tasks.spawn(async move {
            for at in 0..10 {
                let text = format!("{process}-{at}");
                let pair = [ConversationMessage::new("user", &*text), ConversationMessage::new("run", text)];
                store.append_messages(&id, &pair).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let messages = test_store.open().await.messages(&id, usize::MAX).await.unwrap();
    assert_eq!(messages.len(), 80);
    for pair in messages.chunks(2) {
        assert!(pair[0].role == "user" && pair[1].role == "run" && pair[0].text == pair[1].text, "{pair:?}");
    }
}

pub(crate) async fn history_survives_a_restart_and_decays(engine: Engine) {
    const WEEK: i64 = 7 * 24 * 60 * 60 * 1_000;
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let time = Arc::new(AtomicI64::new(1_000_000));
    let clock: toolyard_store::Clock = {
        let time = Arc::clone(&time);
        Arc::new(move || time.load(Ordering::SeqCst))
    };
    let history = StoredHistory::with_clock(&store, Arc::clone(&clock)).await.unwrap();
    let (a, b) = (SourceId::from("a"), SourceId::from("b"));
    let record_call = |source: &SourceId, error| {
        history.record(&CallRecord::new("t", source, error, Duration::from_millis(20)));
    };
    for _ in 0..10 {
        record_call(&a, Some(ErrorKind::Timeout));
    }
    time.fetch_add(52 * WEEK, Ordering::SeqCst);
    record_call(&a, None);
    record_call(&b, None);
    time.fetch_add(1, Ordering::SeqCst);
    record_call(&b, Some(ErrorKind::ResponseLost));
    assert!(history.last_success("t", &a).is_some() && history.last_success("t", &b).is_none());
    history.flush().await.unwrap();

    let again = StoredHistory::with_clock(&test_store.open().await, clock).await.unwrap();
    assert_eq!(again.last_success("t", &a), history.last_success("t", &a), "the same after a restart");
    assert_eq!(again.last_success("t", &b), None);
    let statistics = again.statistics();
    assert_eq!(statistics.len(), 2);
    assert!(statistics[0].success_rate > 0.99, "a year ago has almost no weight: {:?}", statistics[0]);
    assert!((statistics[1].success_rate - 0.5).abs() < 0.01);
    assert_eq!(statistics[1].errors.keys().collect::<Vec<_>>(), ["response_lost"]);
    assert!((statistics[1].median_milliseconds - 20.0).abs() < 1.0, "{:?}", statistics[1]);
}

pub(crate) fn past_request(source: &str, request: &str) -> PastRequest {
    PastRequest::new(OPERATOR, "t", source.into(), request).unwrap()
}

pub(crate) async fn past_requests_survive_a_restart_and_are_bounded(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let clock: toolyard_store::Clock = Arc::new(|| 5);
    let requests = StoredPastRequests::with_clock(&store, Arc::clone(&clock)).await.unwrap();
    // Simulates another process.
    let other = StoredPastRequests::with_clock(&test_store.open().await, Arc::clone(&clock)).await.unwrap();
    requests.record(past_request("a", "what's the weather; DROP TABLE past_requests"));
    requests.record(past_request("b", "天气怎么样"));
    requests.record(past_request("a", "log in with password=hunter2"));
    requests.record(past_request("b", "天气怎么样"));
    requests.flush().await.unwrap();
    other.record(past_request("b", "天气怎么样"));
    other.flush().await.unwrap();

    let again = StoredPastRequests::with_clock(&test_store.open().await, Arc::clone(&clock)).await.unwrap();
    let texts =
        |all: Vec<PastRequest>| all.into_iter().map(|past_request| past_request.request).collect::<Vec<_>>();
    assert_eq!(again.recent(9), requests.recent(9), "the same after a restart");
    let recent = texts(again.recent(9));
    assert_eq!(
        recent,
        [
            "what's the weather; DROP TABLE past_requests",
            "log in with password=[redacted:assignment]",
            "天气怎么样",
        ]
    );
    assert_eq!(texts(again.recent(1)), ["天气怎么样"]);
    let later = StoredPastRequests::open_lazy(&test_store.open().await);
    assert!(later.recent(9).is_empty(), "nothing is read before it is needed");
    later.ready().await;
    assert_eq!(texts(later.recent(9)).len(), 3);
    drop(later);

    for number in 0..40 {
        requests.record(past_request("a", &format!("request {number}")));
        other.record(past_request("a", &format!("other {number}")));
    }
    requests.flush().await.unwrap();
    other.flush().await.unwrap();
    let again = StoredPastRequests::with_clock(&test_store.open().await, clock).await.unwrap();
    let of_a =
        again.recent(usize::MAX).into_iter().filter(|past_request| past_request.source.as_str() == "a");
    assert_eq!(of_a.count(), PastRequest::MAX_PER_TOOL);
    // Those of source `a`, and the one of source `b`.
    let rows = i64::try_from(PastRequest::MAX_PER_TOOL + 1).unwrap();
    assert!(store.check().await.unwrap().rows.contains(&("past_requests", rows)));
}

pub(crate) fn record(number: i64) -> AuditRecord {
    AuditRecord {
        at: 1_700_000_000_000 + number * 60_000,
        caller: "cli".to_owned(),
        call: format!("call_{number}"),
        tool: if number % 2 == 0 { "read" } else { "write" }.to_owned(),
        sources: vec!["excel".into()],
        arguments: ContentHash::of(number.to_le_bytes()),
        result: Some(ContentHash::of("result")),
        outcome: "ok".to_owned(),
        milliseconds: number,
    }
}

pub(crate) async fn result_shapes_are_replaced(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let shape = |tool: &str, json: &str| ResultShape {
        owner: OPERATOR,
        tool: tool.to_owned(),
        source: "excel".into(),
        shape: json.to_owned(),
    };
    store.record(&shape("read", r#"{"old":1}"#)).await;
    store.record(&shape("write", r#"{"done":true}"#)).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    store.record(&shape("read", r#"{"cells":[]}"#)).await;
    let read = shape("read", r#"{"cells":[]}"#);
    assert_eq!(store.recent(OPERATOR, 9).await, [read.clone(), shape("write", r#"{"done":true}"#)]);
    assert_eq!(store.recent(OPERATOR, 1).await, [read]);
}

pub(crate) async fn argument_examples_are_replaced_and_belong_to_their_owner(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let example = |owner: &str, tool: &str, text: &str| {
        let arguments = RawJson::from_value(&serde_json::json!({ "text": text }));
        ArgumentExample::new(owner, tool, "notes".into(), ContentHash::of("definition"), &arguments).unwrap()
    };
    store.record_example(&example("ann", "write", "old")).await;
    store.record_example(&example("bob", "write", "his")).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    store.record_example(&example("ann", "read", "it's")).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    store.record_example(&example("ann", "write", "new")).await;
    let of_ann = [example("ann", "write", "new"), example("ann", "read", "it's")];
    assert_eq!(store.of_owner("ann", 9).await, of_ann);
    assert_eq!(store.of_owner("ann", 1).await, of_ann[..1]);
    assert_eq!(store.of_owner("bob", 9).await, [example("bob", "write", "his")]);
    assert_eq!(store.of_owner("", 9).await, []);
}

pub(crate) async fn the_audit_log_is_chained_and_queried(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let audit = StoredAudit::start(&store, &AuditConfig::default());
    // Over more than two days, so that PostgreSQL needs several partitions.
    for number in 1..=3_500 {
        audit.record(record(number));
    }
    audit.flush().await;
    let AuditVerification::Intact { records, head, lost: 0 } = store.verify_audit(None).await.unwrap() else {
        unreachable!()
    };
    assert_eq!(records, 3_500);
    assert_eq!(
        store.verify_audit(Some((3_500, head))).await.unwrap(),
        AuditVerification::Intact { records, head, lost: 0 }
    );
    assert!(matches!(
        store.verify_audit(Some((3_600, head))).await.unwrap(),
        AuditVerification::Broken { number: 3_501, .. }
    ));

    let query = AuditQuery { tool: Some("write".to_owned()), limit: 3, ..AuditQuery::default() };
    let found: Vec<i64> = store.query_audit(&query).await.unwrap().iter().map(|entry| entry.number).collect();
    assert_eq!(found, [3_495, 3_497, 3_499]);
    let none = AuditQuery { caller: Some("nobody".to_owned()), limit: 3, ..AuditQuery::default() };
    assert!(store.query_audit(&none).await.unwrap().is_empty());

    let numbers = async |query: AuditQuery| {
        let entries = store.query_audit(&query).await.unwrap();
        entries.iter().map(|entry| entry.number).collect::<Vec<i64>>()
    };
    let earliest = AuditQuery { from_earliest: true, limit: 3, ..AuditQuery::default() };
    assert_eq!(numbers(AuditQuery { after: Some(100), ..earliest.clone() }).await, [101, 102, 103]);
    let (since, until) = (Some(record(200).at), Some(record(202).at));
    assert_eq!(numbers(AuditQuery { since, until, ..earliest.clone() }).await, [200, 201]);
    assert_eq!(numbers(AuditQuery { until, limit: 2, ..AuditQuery::default() }).await, [200, 201]);
    assert!(numbers(AuditQuery { after: Some(3_500), ..earliest }).await.is_empty());

    // Several processes write to one chain.
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = test_store.open().await;
        writers.spawn(async move {
            for number in 0..50 {
                store.append_audit(vec![record(number); 5]).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    assert!(matches!(
        store.verify_audit(None).await.unwrap(),
        AuditVerification::Intact { records: 4_500, .. }
    ));
}

pub(crate) async fn all_processes_get_the_session_key_of_the_first(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let mut processes = tokio::task::JoinSet::new();
    for number in 0..6 {
        let store = test_store.open().await;
        processes.spawn(async move { store.session_key([number; 32]).await.unwrap() });
    }
    let keys = processes.join_all().await;
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(test_store.open().await.session_key([9; 32]).await.unwrap(), keys[0]);
}

/// What a failed write did not write is not forgotten.
pub(crate) async fn statistics_of_a_failed_write_are_written_later(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let clock: toolyard_store::Clock = Arc::new(|| 1_700_000_000_000);
    let history = StoredHistory::with_clock(&store, Arc::clone(&clock)).await.unwrap();
    let requests = StoredPastRequests::with_clock(&store, Arc::clone(&clock)).await.unwrap();
    history.record(&CallRecord::new("read", &"excel".into(), None, Duration::from_millis(3)));
    requests.record(PastRequest::new(OPERATOR, "read", "excel".into(), "read the sheet").unwrap());
    let pool = sqlx::AnyPool::connect(&test_store.url()).await.unwrap();
    for table in ["tool_statistics", "past_requests"] {
        pool.execute(sqlx::AssertSqlSafe(format!("ALTER TABLE {table} RENAME TO away_{table}")))
            .await
            .unwrap();
    }
    assert!(history.flush().await.is_err() && requests.flush().await.is_err());
    for table in ["tool_statistics", "past_requests"] {
        pool.execute(sqlx::AssertSqlSafe(format!("ALTER TABLE away_{table} RENAME TO {table}")))
            .await
            .unwrap();
    }
    history.flush().await.unwrap();
    requests.flush().await.unwrap();
    let rows = store.check().await.unwrap().rows;
    assert!(rows.contains(&("tool_statistics", 1)) && rows.contains(&("past_requests", 1)), "{rows:?}");
}

pub(crate) async fn run_events_are_appended_in_order_under_the_lease(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let lease = new_run(&store, "one").await;
    let event = |text: &str| json(serde_json::json!({"event": "message", "text": text}));
    let long = "long ".repeat(10_000);
    store.append(&lease, 0, &event("first")).await.unwrap();
    store.append_all(&lease, 1, &[event("second"), event(&long)]).await.unwrap();
    store.append(&lease, 3, &event("password=hunter2")).await.unwrap();
    let events = test_store.open().await.events(&lease.run, 0).await.unwrap();
    assert_eq!(events.iter().map(|event| event.number).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(events[2].event, event(&long));
    assert!(!events[3].event.get().contains("hunter2"), "secrets are redacted");
    assert!(events.is_sorted_by_key(|event| event.at) && events[0].at > 0);
    assert_eq!(store.events(&lease.run, 2).await.unwrap(), events[2..]);

    let exists = JournalError::EventExists { run: lease.run.clone(), number: 3 };
    assert_eq!(store.append(&lease, 3, &event("again")).await, Err(exists.clone()));
    // All events are written, or none.
    assert_eq!(store.append_all(&lease, 2, &[event("x")]).await.map_err(|_| ()), Err(()));
    let lost = Err(JournalError::LeaseLost(lease.run.clone()));
    expire_lease(&store, &lease).await;
    let next = store.claim(&lease.run, "two", LEASE_DURATION).await.unwrap();
    assert_eq!(store.append(&lease, 4, &event("late")).await, lost);
    store.append(&next, 4, &event("mine")).await.unwrap();
    store.release(&next, RunState::Open).await.unwrap();
    assert_eq!(store.append(&next, 5, &event("released")).await.map_err(|_| ()), Err(()));
    assert_eq!(store.events(&lease.run, 0).await.unwrap().len(), 5);
    assert!(store.events(&RunId::from("none"), 0).await.unwrap().is_empty());
}

pub(crate) async fn one_step_and_the_approvals_of_one_run_are_found(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let (lease, other) = (new_run(&store, "one").await, new_run(&store, "one").await);
    store.begin(&lease, &write_intent("a")).await.unwrap();
    store.finish(&lease, "a", &done_with("found")).await.unwrap();
    let found = store.step(&lease.run, "a").await.unwrap().unwrap();
    assert_eq!(found.outcome.unwrap().get(), r#"{"text":"found"}"#);
    assert_eq!(store.step(&lease.run, "b").await, Ok(None));
    assert_eq!(store.step(&other.run, "a").await, Ok(None));

    let first = store.request_approval(&lease.run, Some("a"), ApprovalKind::ToolCall, "?").await.unwrap();
    store.request_approval(&other.run, None, ApprovalKind::Cancellation, "?").await.unwrap();
    let second = store.request_approval(&lease.run, None, ApprovalKind::Cancellation, "?").await.unwrap();
    store.decide(first, ApprovalOutcome::Approved, "ada").await.unwrap();
    let approvals = store.approvals_of_run(&lease.run).await.unwrap();
    assert_eq!(approvals.iter().map(|approval| approval.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!((approvals[0].outcome, approvals[1].outcome), (Some(ApprovalOutcome::Approved), None));
}
