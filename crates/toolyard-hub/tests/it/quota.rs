//! The hub counts every call on every path, before anything is sent, and only calls that it would make.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{advance, timeout};
use toolyard_core::{
    Audit, AuditRecord, CallerIdentity, Capability, ErrorKind, RawJson, ToolError, WindowLimit,
};
use toolyard_hub::{CallOptions, HubConfig, ToolHub};
use toolyard_quota::{CountedPer, QuotaRule, Quotas};

use crate::common::{Behavior, CallLog, TestTool, register, request, test_tool};

#[derive(Debug, Default)]
struct RecordedAudit(Mutex<Vec<AuditRecord>>);

impl Audit for RecordedAudit {
    fn record(&self, record: AuditRecord) {
        self.0.lock().push(record);
    }
}

fn hub(rule: QuotaRule, tools: &[TestTool]) -> (ToolHub, Arc<CallLog>, Arc<RecordedAudit>) {
    let audit = Arc::new(RecordedAudit::default());
    let quota = Quotas::local(vec![QuotaRule { name: "test".into(), ..rule }]).unwrap();
    let config = HubConfig {
        audit: Some(Arc::clone(&audit) as _),
        quota: Some(Arc::new(quota)),
        ..HubConfig::default()
    };
    let hub = ToolHub::new(config);
    let call_log = register(&hub, tools);
    (hub, call_log, audit)
}

fn calls(limit: u64) -> QuotaRule {
    QuotaRule { calls: Some(WindowLimit { limit, window_millis: 60_000 }), ..QuotaRule::default() }
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_the_quota_is_not_made_and_is_audited() {
    let (hub, call_log, audit) = hub(calls(2), &[test_tool("email_send", "mail")]);
    let (options, capability) = (CallOptions::default(), Capability::from("email"));
    assert!(hub.execute(&request("email_send"), &options).await.is_ok());
    assert!(hub.execute_by_capability(&capability, json!({}).into(), &options).await.is_ok());
    let refusals = [
        hub.execute(&request("email_send"), &options).await.unwrap_err(),
        hub.execute_by_capability(&capability, json!({}).into(), &options).await.unwrap_err(),
        hub.execute_or_by_capability(&request("email_send"), &capability, &options).await.unwrap_err(),
    ];
    for refusal in &refusals {
        assert_eq!(refusal.kind(), ErrorKind::QuotaExceeded, "{refusal}");
        assert!(refusal.retryable() && refusal.had_no_effect());
    }
    assert_eq!(call_log.calls().len(), 2);
    let outcomes: Vec<String> = audit.0.lock().iter().map(|record| record.outcome.clone()).collect();
    assert_eq!(outcomes, ["ok", "ok", "quota_exceeded", "quota_exceeded", "quota_exceeded"]);
    advance(refusals.first().and_then(ToolError::retry_after).unwrap()).await;
    assert!(hub.execute(&request("email_send"), &options).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn calls_that_would_not_be_made_anyway_do_not_count() {
    let tool = TestTool {
        schema: json!({"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}}),
        ..test_tool("send", "mail")
    };
    let (hub, call_log, _) = hub(calls(1), &[tool]);
    let options = CallOptions::default();
    for _ in 0..3 {
        let invalid = hub.execute(&request("send"), &options).await.unwrap_err();
        assert_eq!(invalid.kind(), ErrorKind::InvalidArguments);
        assert_eq!(hub.execute(&request("none"), &options).await.unwrap_err().kind(), ErrorKind::UnknownTool);
    }
    let mut valid = request("send");
    valid.arguments = RawJson::from(json!({"to": "ann"}));
    assert!(hub.execute(&valid, &options).await.is_ok());
    assert_eq!(call_log.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn callers_and_agents_are_counted_apart() {
    let per = CountedPer { caller: true, agent: true, tool: false };
    let (hub, _, _) = hub(QuotaRule { per, ..calls(1) }, &[test_tool("echo", "local")]);
    let as_caller = |subject: &str| {
        let identity = CallerIdentity::principal("https://idp.example", subject);
        CallOptions::default().on_behalf_of_identity(Some(Arc::new(identity)))
    };
    for options in [
        as_caller("ann").by_agent("writer"),
        as_caller("ann").by_agent("reader"),
        as_caller("bob").by_agent("writer"),
    ] {
        assert!(hub.execute(&request("echo"), &options).await.is_ok());
        let refused = hub.execute(&request("echo"), &options).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::QuotaExceeded);
    }
    // A quota per agent is about agents.
    for _ in 0..3 {
        assert!(hub.execute(&request("echo"), &as_caller("ann")).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn calls_at_the_same_time_are_limited_and_end_when_dropped_or_panicking() {
    let rule = QuotaRule { concurrent_calls: Some(1), ..QuotaRule::default() };
    let tools = [
        test_tool("hang", "a").with_behavior(Behavior::Hang),
        test_tool("panic", "b").with_behavior(Behavior::Panic),
        test_tool("echo", "c"),
    ];
    let (hub, _, _) = hub(rule, &tools);
    let options = CallOptions::default();
    let (hanging, echo) = (request("hang"), request("echo"));
    let during = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        hub.execute(&echo, &options).await
    };
    let (dropped, refused) =
        tokio::join!(timeout(Duration::from_secs(1), hub.execute(&hanging, &options)), during);
    assert!(dropped.is_err());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::QuotaExceeded);
    assert!(hub.execute(&echo, &options).await.is_ok(), "the dropped call has ended");
    assert_eq!(hub.execute(&request("panic"), &options).await.unwrap_err().kind(), ErrorKind::Internal);
    assert!(hub.execute(&echo, &options).await.is_ok(), "the panicking call has ended");
}
