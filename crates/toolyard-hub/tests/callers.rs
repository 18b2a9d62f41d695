//! What a call owes whoever makes it: its questions, and a record even when the caller leaves.

#![expect(clippy::unwrap_used, reason = "a test helper fails its test")]

mod common;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{Act, part, register, request};
use tokio::time::timeout;
use toolyard_core::{Audit, AuditRecord};
use toolyard_hub::{CallOptions, HubConfig, ToolHub};

#[derive(Debug, Default)]
struct Records(Mutex<Vec<AuditRecord>>);

impl Audit for Records {
    fn record(&self, record: AuditRecord) {
        self.0.lock().unwrap().push(record);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_leaves_a_record() {
    let records = Arc::new(Records::default());
    let hub = ToolHub::new(HubConfig { audit: Some(Arc::clone(&records) as _), ..HubConfig::default() });
    register(&hub, &[part("pay", "bank").writes().act(Act::Hang)]);
    let options = CallOptions::default().on_behalf_of("somebody");
    let given_up = timeout(Duration::from_secs(1), hub.execute(&request("pay"), &options)).await;
    assert!(given_up.is_err());
    let records = records.0.lock().unwrap();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(
        (record.tool.as_str(), record.caller.as_str(), record.outcome.as_str()),
        ("pay", "somebody", "response_lost")
    );
}

#[tokio::test(start_paused = true)]
async fn questions_do_not_win_against_answers() {
    for (tool, asks_after) in [("find_thing", 10), ("search_web", 10)] {
        let hub = ToolHub::default();
        let asking = part(tool, "asking").act(Act::Ask).takes(asks_after);
        register(&hub, &[asking, part(tool, "answering").takes(500)]);
        let output = hub.execute(&request(tool), &CallOptions::default()).await.unwrap();
        assert!(!output.input_required && output.to_text().contains("answering"), "{tool}: {output:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_passed_on_where_nobody_answers() {
    for tool in ["find_thing", "search_web"] {
        let hub = ToolHub::default();
        register(&hub, &[part(tool, "one").act(Act::Ask), part(tool, "other").act(Act::Ask)]);
        let output = hub.execute(&request(tool), &CallOptions::default()).await.unwrap();
        assert!(output.input_required, "{tool}: {output:?}");
        assert_eq!(output.meta.source.unwrap().as_str(), "one");
    }
}
