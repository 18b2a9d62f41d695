//! The hub asks its policy about every call, on every path.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use toolyard_core::{
    CallPolicy, CallerIdentity, Capability, ErrorKind, PolicyDecision, PolicyGrounds, PolicyRequest,
    PolicySubject, PolicyTool, ToolCallRequest,
};
use toolyard_hub::{CallOptions, HubConfig, Profile, ToolHub};

use crate::common::{CallLog, TestTool, register, request, test_tool};

/// Denies everything of one source to all but one subject, and records what it was asked.
#[derive(Debug, Default)]
struct TestPolicy {
    asked: Mutex<Vec<String>>,
}

impl CallPolicy for TestPolicy {
    fn decide(&self, request: &PolicyRequest<'_>) -> PolicyDecision {
        let PolicySubject { identity, agent, profile } = request.subject;
        let subject = identity.map_or("local", |identity| &identity.subject);
        let asked = format!(
            "{subject} {agent:?} {profile:?} {}@{} {}",
            request.tool.name,
            request.tool.source,
            request.arguments.get()
        );
        self.asked.lock().push(asked);
        let grounds = |reason: &str| {
            Arc::new(PolicyGrounds {
                policies: vec!["test".into()],
                reason: reason.to_owned(),
                waives_approval: false,
            })
        };
        match request.tool.source.as_str() == "mail" && subject != "ann" {
            true => PolicyDecision::Deny(grounds("mail is for Ann")),
            false => PolicyDecision::Ask(grounds("always ask")),
        }
    }

    fn decide_without_arguments(&self, _: &PolicySubject<'_>, _: &PolicyTool) -> Option<PolicyDecision> {
        None
    }

    fn may_be_called(&self, _: &PolicySubject<'_>, _: &PolicyTool) -> bool {
        true
    }
}

fn hub_with_policy(tools: &[TestTool]) -> (ToolHub, Arc<CallLog>, Arc<TestPolicy>) {
    let policy = Arc::new(TestPolicy::default());
    let hub = ToolHub::new(HubConfig { policy: Some(Arc::clone(&policy) as _), ..HubConfig::default() });
    let call_log = register(&hub, tools);
    (hub, call_log, policy)
}

fn as_caller(subject: &str) -> CallOptions {
    CallOptions::default()
        .on_behalf_of_identity(Some(Arc::new(CallerIdentity::principal("https://idp.example", subject))))
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_is_refused_by_name_by_source_and_by_capability() {
    let (hub, call_log, _) = hub_with_policy(&[test_tool("email_send", "mail")]);
    let capability = Capability::from("email");
    let named = ToolCallRequest { source: Some("mail".to_owned()), ..request("email_send") };
    for options in [as_caller("bob"), CallOptions::default()] {
        let refusals = [
            hub.execute(&request("email_send"), &options).await.unwrap_err(),
            hub.execute(&named, &options).await.unwrap_err(),
            hub.execute_by_capability(&capability, json!({}).into(), &options).await.unwrap_err(),
            hub.execute_or_by_capability(&request("email_send"), &capability, &options).await.unwrap_err(),
        ];
        for error in refusals {
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.message().contains("mail is for Ann"), "{error}");
            assert!(error.hint().unwrap().contains("decided by test"), "{error}");
        }
    }
    assert!(call_log.calls().is_empty());
    hub.execute(&request("email_send"), &as_caller("ann")).await.unwrap();
    assert_eq!(call_log.calls(), ["mail"]);
}

#[tokio::test(start_paused = true)]
async fn the_policy_learns_who_calls_what_and_through_what() {
    let (hub, _, policy) = hub_with_policy(&[test_tool("search", "web")]);
    let profile = Profile { name: "office".into(), ..Profile::default() };
    let options = as_caller("ann").by_agent("writer").within(Arc::new(profile));
    hub.execute(&ToolCallRequest::new("search", json!({"q": 1})), &options).await.unwrap();
    let asked = policy.asked.lock().clone();
    assert_eq!(asked, [r#"ann Some("writer") "office" search@web {"q":1}"#]);
}

#[tokio::test(start_paused = true)]
async fn an_equivalent_that_the_caller_may_call_is_called_instead() {
    let (hub, call_log, _) = hub_with_policy(&[test_tool("search", "mail"), test_tool("search", "web")]);
    hub.execute(&request("search"), &as_caller("bob")).await.unwrap();
    assert_eq!(call_log.calls(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn a_replaced_policy_holds_for_the_next_call() {
    let (hub, call_log, _) = hub_with_policy(&[test_tool("email_send", "mail")]);
    let _ = hub.execute(&request("email_send"), &as_caller("bob")).await.unwrap_err();
    hub.set_policy(None);
    hub.execute(&request("email_send"), &as_caller("bob")).await.unwrap();
    assert_eq!(call_log.calls(), ["mail"]);
}
