//! What operators see of an outage of the store.

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use toolyard_core::Audit as _;
use toolyard_store::{AuditConfig, Engine, Location, Store, StoredAudit};
use tracing::{
    Event, Metadata, Subscriber,
    field::Field,
    span::{Attributes, Id, Record},
};

use crate::{
    audit_outage::{config, folder_of, record, set_disk_full, spill_files},
    common::TestStore,
    postgres_server::PostgresServer,
};

/// The lines of the audit log's writer.
#[derive(Clone, Default)]
struct AuditLines(Arc<Mutex<Vec<String>>>);

impl Subscriber for AuditLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("toolyard_store::audit")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            let _ = write!(line, " {}={value:?}", field.name());
        });
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

// One thread, to which the subscriber belongs.
#[tokio::test]
async fn an_outage_is_logged_once_with_the_file_that_keeps_the_records() {
    let lines = AuditLines::default();
    let _subscriber = tracing::subscriber::set_default(lines.clone());
    let test_store = TestStore::new(Engine::Sqlite).await;
    let audit = StoredAudit::start(&test_store.open().await, &config());
    set_disk_full(&test_store, true).await;
    for number in 0..3 {
        audit.record(record(format!("0:{number}")));
        audit.flush().await;
    }
    let [file] = spill_files(&folder_of(&test_store)).try_into().unwrap();
    let lines = lines.0.lock().unwrap();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line.contains("database or disk is full") && line.contains("none is lost"), "{line}");
    assert!(line.contains(&format!(" file={}", file.display())), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_a_restart_of_the_database_cut_are_no_outage() {
    sqlx::any::install_default_drivers();
    let mut server = PostgresServer::start();
    server.locate().await;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Location::Postgres(format!("{}/postgres", server.url))).await.unwrap();
    let audit_config = AuditConfig { data_folder: Some(folder.path().to_owned()), ..AuditConfig::default() };
    let audit = StoredAudit::start(&store, &audit_config);
    for number in 0..4 {
        audit.record(record(format!("0:{number}")));
        audit.flush().await;
    }
    server.stop();
    server.restart();
    // The pool tests connections that were idle for longer; the writers keep theirs.
    tokio::time::sleep(Duration::from_millis(600)).await;
    audit.record(record("0:4".to_owned()));
    audit.flush().await;
    assert_eq!(audit.queue_status().spill_bytes, 0, "the record is in the store");
}
