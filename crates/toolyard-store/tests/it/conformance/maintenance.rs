//! Export, import, migration, checks and backups.

use super::*;

pub(crate) async fn export_and_import_preserve_everything(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let lease = new_run(&store, "one").await;
    store.begin(&lease, &write_intent("a")).await.unwrap();
    store.finish(&lease, "a", &done_with("kept")).await.unwrap();
    store.request_approval(&lease.run, None, ApprovalKind::ToolCall, "?").await.unwrap();
    store.append(&lease, 0, &json(serde_json::json!({"event": "message"}))).await.unwrap();
    store.append_audit((1..=1_200).map(record).collect()).await.unwrap();
    let reference = store.store(&"long ".repeat(100_000), DataOwner::Operator).await.unwrap();
    let history = StoredHistory::with_clock(&store, Arc::new(|| 1)).await.unwrap();
    history.record(&CallRecord::new("t", &"s".into(), None, Duration::from_millis(3)));
    history.flush().await.unwrap();
    let requests = StoredPastRequests::with_clock(&store, Arc::new(|| 1)).await.unwrap();
    requests.record(past_request("s", "a request"));
    requests.flush().await.unwrap();
    let mut export = Vec::new();
    let rows = store.export(&mut export).await.unwrap();

    // Into the other engine.
    let other = match engine {
        Engine::Sqlite => Engine::Postgres,
        Engine::Postgres => Engine::Sqlite,
    };
    let copy_store = TestStore::new(other).await;
    let copy = copy_store.open().await;
    assert_eq!(copy.import(&mut Cursor::new(&export)).await.unwrap(), rows);
    assert_eq!(copy.steps(&lease.run).await.unwrap(), store.steps(&lease.run).await.unwrap());
    assert_eq!(copy.events(&lease.run, 0).await.unwrap(), store.events(&lease.run, 0).await.unwrap());
    assert_eq!(copy.verify_audit(None).await.unwrap(), store.verify_audit(None).await.unwrap());
    assert_eq!(
        copy.read(&reference, DataOwner::Operator, 300_000, 20).await,
        store.read(&reference, DataOwner::Operator, 300_000, 20).await
    );
    let copied = StoredPastRequests::with_clock(&copy, Arc::new(|| 1)).await.unwrap();
    assert_eq!(copied.recent(9), requests.recent(9));
    copy.append_audit(vec![record(1)]).await.unwrap();
    assert!(copy.request_approval(&lease.run, None, ApprovalKind::ToolCall, "?").await.unwrap().0 > 1);
    assert!(copy.import(&mut Cursor::new(&export)).await.is_err(), "only into an empty store");
    let fresh_store = TestStore::new(engine).await;
    let fresh = fresh_store.open().await;
    let broken =
        String::from_utf8(export).unwrap().replacen("\"table\":\"runs\"", "\"table\":\"pg_user\"", 1);
    assert!(fresh.import(&mut Cursor::new(&broken)).await.unwrap_err().to_string().contains("is invalid"));
}

pub(crate) async fn processes_that_open_a_new_store_at_once_all_succeed(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let opening = (0..6).map(|_| tokio::spawn(Store::open(test_store.location.clone())));
    for opened in opening.collect::<Vec<_>>() {
        let store = opened.await.unwrap().unwrap();
        store.create_run("test", &RawJson::empty_object()).await.unwrap();
    }
}

pub(crate) async fn reopening_changes_nothing_and_a_newer_schema_is_rejected(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let run = test_store.open().await.create_run("test", &RawJson::empty_object()).await.unwrap();
    assert!(test_store.open().await.run(&run).await.is_ok());
    let address = match &test_store.location {
        Location::Sqlite(path) => format!("sqlite://{}", path.display()),
        Location::Postgres(address) => address.clone(),
    };
    let pool = sqlx::AnyPool::connect(&address).await.unwrap();
    let newer = match engine {
        Engine::Sqlite => {
            "INSERT INTO _sqlx_migrations VALUES (9999, 'later', CURRENT_TIMESTAMP, 1, x'00', 1);
             PRAGMA user_version = 9999"
        }
        Engine::Postgres => "INSERT INTO _sqlx_migrations VALUES (9999, 'later', now(), true, '\\x00', 1)",
    };
    pool.execute(sqlx::raw_sql(newer)).await.unwrap();
    let refused = Store::open(test_store.location.clone()).await.unwrap_err();
    assert!(matches!(refused, StoreError::NewerSchema { migration: 9_999, .. }), "{refused}");
    assert!(refused.hint().is_some());
}

pub(crate) async fn a_store_is_checked_vacuumed_and_backed_up(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    store.store("something", DataOwner::Operator).await.unwrap();
    let health = store.check().await.unwrap();
    assert!(health.is_healthy(), "{health:?}");
    assert!(health.rows.contains(&("results", 1)));
    store.vacuum(&Retention::default(), "test").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    match engine {
        Engine::Sqlite => {
            store.backup(&copy).await.unwrap();
            let copy = Store::open(Location::Sqlite(copy)).await.unwrap();
            assert!(copy.check().await.unwrap().rows.contains(&("results", 1)));
        }
        Engine::Postgres => assert!(store.backup(&copy).await.unwrap_err().to_string().contains("pg_dump")),
    }
}

/// A store with the migrations up to this number, as an earlier version left it.
pub(crate) async fn migrate_until(test_store: &TestStore, engine: Engine, last: u32) -> sqlx::AnyPool {
    let folder = tempfile::tempdir().unwrap();
    let engine_folder = if engine == Engine::Sqlite { "sqlite" } else { "postgres" };
    let migrations = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(engine_folder);
    for entry in std::fs::read_dir(migrations).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let number: u32 = name.to_str().unwrap().split('_').next().unwrap().parse().unwrap();
        if number <= last {
            std::fs::copy(path, folder.path().join(name)).unwrap();
        }
    }
    sqlx::any::install_default_drivers();
    let address = match &test_store.location {
        Location::Sqlite(path) => format!("sqlite://{}?mode=rwc", path.display()),
        Location::Postgres(address) => address.clone(),
    };
    let pool = sqlx::AnyPool::connect(&address).await.unwrap();
    sqlx::migrate::Migrator::new(folder.path()).await.unwrap().run(&pool).await.unwrap();
    pool
}

/// Starts from a store with only the first migration and one server.
pub(crate) async fn an_older_store_is_migrated(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let pool = migrate_until(&test_store, engine, 1).await;
    let sql = "INSERT INTO servers (id, configuration, cached_tools, seen_at) VALUES ('old', $1, $2, 5)";
    let tool = r#"{"name":"read"}"#;
    let insert = sqlx::query(sql).bind(ContentHash::of("how").to_string()).bind(format!("[{tool}]"));
    insert.execute(&pool).await.unwrap();
    pool.close().await;

    let servers = test_store.open().await.servers().await.unwrap();
    assert_eq!(servers.len(), 1);
    let server = &servers[0];
    assert_eq!(
        (server.id.as_str(), server.cached_tools[0].get(), &server.tool_approvals),
        ("old", tool, &None)
    );
    assert_eq!(server.content, None);
}

/// Without its policies, calls that were denied would be allowed.
pub(crate) async fn stored_policies_are_never_dropped_silently(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let pool = migrate_until(&test_store, engine, 19).await;
    pool.execute("INSERT INTO policies VALUES ('base', 'forbid (principal, action, resource);', 5)")
        .await
        .unwrap();
    let refused = Store::open(test_store.location.clone()).await.unwrap_err();
    assert!(matches!(refused, StoreError::StoredSettings { table: "policies", .. }), "{refused}");
    assert!(refused.hint().unwrap().contains("SELECT name, text FROM policies"));
    pool.execute("DELETE FROM policies").await.unwrap();
    pool.close().await;
    let store = test_store.open().await;

    // The first commit of an import would be long before.
    let row = |number: u32| format!(r#"{{"table":"program_descriptions","row":["{number}","b"]}}"#);
    let rows: Vec<String> = (0..600).map(row).collect();
    let policy = r#"{"table":"policies","row":["base","forbid (principal, action, resource);",5]}"#;
    let export = format!("{{\"toolyard_export\":1}}\n{}\n{policy}\n", rows.join("\n"));
    let refused = store.import(&mut Cursor::new(&export)).await.unwrap_err().to_string();
    assert!(refused.contains("`policies`") && refused.contains("line 602"), "{refused}");
    assert!(store.check().await.unwrap().rows.contains(&("program_descriptions", 0)));
}
