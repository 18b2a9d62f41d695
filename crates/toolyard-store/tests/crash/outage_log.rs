//! What operators see of an outage of the store.

use std::{
    fmt::{Debug, Write as _},
    sync::Arc,
};

use parking_lot::Mutex;
use toolyard_core::Audit as _;
use toolyard_store::{Engine, StoredAudit};
use tracing::{
    Event, Metadata, Subscriber,
    field::Field,
    span::{Attributes, Id, Record},
};

use crate::{
    audit_outage::{config, folder_of, record, set_disk_full, spill_files},
    common::TestStore,
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
        self.0.lock().push(line);
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
    let lines = lines.0.lock();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line.contains("database or disk is full") && line.contains("none is lost"), "{line}");
    assert!(line.contains(&format!(" file={}", file.display())), "{line}");
}
