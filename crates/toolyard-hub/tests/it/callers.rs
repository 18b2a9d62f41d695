//! What a caller gets from a call: its input requests, and an audit record even if the caller disconnects.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::timeout;
use toolyard_core::{Audit, AuditRecord, AuditUnavailable, BoxFuture, ErrorKind, RawJson};
use toolyard_hub::{CallOptions, HubConfig, ToolHub};

use crate::common::{Behavior, register, request, test_tool};

#[derive(Debug, Default)]
struct RecordedAudit(Mutex<Vec<AuditRecord>>);

impl Audit for RecordedAudit {
    fn record(&self, record: AuditRecord) {
        self.0.lock().push(record);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_leaves_an_audit_record() {
    let records = Arc::new(RecordedAudit::default());
    let hub = ToolHub::new(HubConfig { audit: Some(Arc::clone(&records) as _), ..HubConfig::default() });
    register(&hub, &[test_tool("pay", "bank").writes().with_behavior(Behavior::Hang)]);
    let options = CallOptions::default().on_behalf_of("somebody");
    let dropped = timeout(Duration::from_secs(1), hub.execute(&request("pay"), &options)).await;
    assert!(dropped.is_err());
    let records = records.0.lock();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(
        (record.tool.as_str(), record.caller.as_str(), record.outcome.as_str()),
        ("pay", "somebody", "response_lost")
    );
}

#[tokio::test(start_paused = true)]
async fn a_huge_name_leaves_a_small_record() {
    let records = Arc::new(RecordedAudit::default());
    let hub = ToolHub::new(HubConfig { audit: Some(Arc::clone(&records) as _), ..HubConfig::default() });
    let huge = "é".repeat(1 << 20);
    let options = CallOptions::default().on_behalf_of(huge.clone());
    assert!(hub.execute(&request(&huge), &options).await.is_err());
    let records = records.0.lock();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert!(record.tool.len() + record.caller.len() < 2_000, "{} bytes", record.tool.len());
    assert!(record.tool.starts_with("éé") && record.tool.ends_with('…'));
}

/// An audit log that must be complete and cannot be written.
#[derive(Debug, Default)]
struct Unwritable(RecordedAudit);

impl Audit for Unwritable {
    fn record(&self, record: AuditRecord) {
        self.0.record(record);
    }

    fn admit(&self) -> Result<(), AuditUnavailable> {
        Err(AuditUnavailable { reason: "the disk is full".to_owned() })
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_record_cannot_be_kept_is_not_made() {
    let audit = Arc::new(Unwritable::default());
    let hub = ToolHub::new(HubConfig { audit: Some(Arc::clone(&audit) as _), ..HubConfig::default() });
    let call_log = register(&hub, &[test_tool("pay", "bank").writes()]);
    let options = CallOptions::default();
    let refused = [
        hub.execute(&request("pay"), &options).await,
        hub.execute_by_capability(&"pay".into(), RawJson::empty_object(), &options).await,
        hub.execute_or_by_capability(&request("pay"), &"pay".into(), &options).await,
    ];
    for outcome in refused {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AuditUnavailable, "{error}");
        assert!(error.retryable() && error.had_no_effect() && !error.is_source_fault());
        assert!(error.to_string().contains("the disk is full"), "{error}");
    }
    assert!(call_log.calls().is_empty(), "nothing was executed");
    assert!(audit.0.0.lock().is_empty());
}

/// An audit log that takes a second to keep a record, or cannot.
#[derive(Debug)]
struct Slow {
    is_full: bool,
}

impl Audit for Slow {
    fn record(&self, _record: AuditRecord) {}

    fn wait_until_durable(&self) -> Option<BoxFuture<'_, Result<(), AuditUnavailable>>> {
        Some(Box::pin(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let full = || AuditUnavailable { reason: "the disk is full".to_owned() };
            if self.is_full { Err(full()) } else { Ok(()) }
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_its_record_and_without_one_the_outcome_is_unknown() {
    for is_full in [false, true] {
        let audit = Arc::new(Slow { is_full });
        let hub = ToolHub::new(HubConfig { audit: Some(audit as _), ..HubConfig::default() });
        register(&hub, &[test_tool("pay", "bank").writes()]);
        let (started, options) = (tokio::time::Instant::now(), CallOptions::default());
        let outcome = hub.execute(&request("pay"), &options).await;
        assert!(started.elapsed() >= Duration::from_secs(1), "answered before the record was kept");
        match outcome {
            Ok(_) => assert!(!is_full),
            Err(error) => {
                assert!(is_full && !error.had_no_effect(), "{error}");
                assert_eq!((error.kind(), error.retryable()), (ErrorKind::OutcomeUnknown, false));
                assert!(error.to_string().contains("its result is withheld"), "{error}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_wins_over_an_input_request() {
    for (tool, delay_ms) in [("find_thing", 10), ("search_web", 10)] {
        let hub = ToolHub::default();
        let eliciting =
            test_tool(tool, "asking").with_behavior(Behavior::RequireInput).with_delay_ms(delay_ms);
        register(&hub, &[eliciting, test_tool(tool, "answering").with_delay_ms(500)]);
        let output = hub.execute(&request(tool), &CallOptions::default()).await.unwrap();
        assert!(!output.input_required && output.to_text().contains("answering"), "{tool}: {output:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_input_request_is_passed_on_if_no_source_answers() {
    for tool in ["find_thing", "search_web"] {
        let hub = ToolHub::default();
        register(
            &hub,
            &[
                test_tool(tool, "one").with_behavior(Behavior::RequireInput),
                test_tool(tool, "other").with_behavior(Behavior::RequireInput),
            ],
        );
        let output = hub.execute(&request(tool), &CallOptions::default()).await.unwrap();
        assert!(output.input_required, "{tool}: {output:?}");
        assert_eq!(output.meta.source.unwrap().as_str(), "one");
    }
}
