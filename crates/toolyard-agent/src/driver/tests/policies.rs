//! Policies of the hub: which calls of agents they let pass, and which need an approval.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::{
    CallPolicy, PolicyDecision, PolicyGrounds, PolicyRequest, PolicySubject, PolicyTool, SourceInfo,
    SourceKind,
};

use super::*;
use crate::{ApprovalDecision, ApprovalRules, CancelToken, RunEnd, RunLimits, RunRequest, load_run};

/// What the policy of a test says about a tool.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Require,
    Permit,
    /// Waives the approval of calls whose arguments contain this text.
    WaiveFor(&'static str),
    /// Requires an approval of calls whose arguments contain this text.
    RequireFor(&'static str),
}

/// A policy about one tool.
#[derive(Debug)]
struct TestPolicy(&'static str, Rule);

fn grounds(waives_approval: bool) -> Arc<PolicyGrounds> {
    Arc::new(PolicyGrounds { policies: vec!["test".into()], reason: "a rule".to_owned(), waives_approval })
}

impl CallPolicy for TestPolicy {
    fn decide(&self, request: &PolicyRequest<'_>) -> PolicyDecision {
        let Self(name, rule) = self;
        match rule {
            _ if *request.tool.name != **name => PolicyDecision::Allow(Arc::default()),
            Rule::Require => PolicyDecision::Ask(grounds(false)),
            Rule::Permit => PolicyDecision::Allow(grounds(false)),
            Rule::WaiveFor(text) if request.arguments.get().contains(text) => {
                PolicyDecision::Allow(grounds(true))
            }
            Rule::WaiveFor(_) => PolicyDecision::Ask(grounds(false)),
            Rule::RequireFor(text) if request.arguments.get().contains(text) => {
                PolicyDecision::Ask(grounds(false))
            }
            Rule::RequireFor(_) => PolicyDecision::Allow(Arc::default()),
        }
    }

    fn decide_without_arguments(
        &self,
        subject: &PolicySubject<'_>,
        tool: &PolicyTool,
    ) -> Option<PolicyDecision> {
        let Self(name, rule) = self;
        let reads_arguments = *tool.name == **name && matches!(rule, Rule::WaiveFor(_) | Rule::RequireFor(_));
        let arguments = toolyard_core::RawJson::empty_object();
        (!reads_arguments)
            .then(|| self.decide(&PolicyRequest { subject: *subject, tool, arguments: &arguments }))
    }

    fn may_be_called(&self, _: &PolicySubject<'_>, _: &PolicyTool) -> bool {
        true
    }
}

fn fixture(steps: &[(&str, &str, serde_json::Value, &[&str])], tools: &[fixture::TestTool]) -> Fixture {
    Fixture::new(replying([plan(steps), "Done.".to_owned()]), tools)
}

#[tokio::test(start_paused = true)]
async fn a_substitute_that_needs_an_approval_is_not_called() {
    for (rule, calls) in [(Rule::Require, 0), (Rule::Permit, 1)] {
        let tools = [
            tool("search_diary", Behavior::Echo).with_source("diary").keeps_inside(),
            tool("look_up", Behavior::Echo).with_source("books").keeps_inside().with_capability("search"),
        ];
        let fixture = fixture(&[("find", "search_diary", json!({"query": "Anna"}), &[])], &tools);
        fixture.hub.set_policy(Some(Arc::new(TestPolicy("look_up", rule))));
        let watcher = RecordingWatcher::with_decisions([ApprovalDecision::Deny]);
        let watcher = RemovesDiary { hub: Arc::clone(&fixture.hub), inner: watcher };
        let limits = RunLimits { replans: 0, ..RunLimits::default() };
        let request = RunRequest { limits, ..request("?") };
        fixture.agent.ask(request, &watcher, &CancelToken::new()).await.unwrap();
        assert_eq!(fixture.arguments_of("look_up").len(), calls, "{rule:?}");
    }
}

/// Removes the tool of the plan as soon as there is one.
struct RemovesDiary {
    hub: Arc<toolyard_hub::ToolHub>,
    inner: RecordingWatcher,
}

impl crate::RunWatcher for RemovesDiary {
    fn on_update(&self, update: &crate::RunUpdate) {
        if matches!(update, crate::RunUpdate::Event { event: crate::RunEvent::Planned { .. }, .. }) {
            self.hub.register(SourceInfo::new("diary", SourceKind::Mcp).trusted(true), Vec::new());
        }
        self.inner.on_update(update);
    }

    fn decide<'a>(
        &'a self,
        request: &'a crate::ApprovalRequest,
    ) -> toolyard_core::BoxFuture<'a, Option<ApprovalDecision>> {
        self.inner.decide(request)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_because_of_a_policy_can_be_continued_under_the_same_policy() {
    let fixture = fixture(&[("r", "read", json!({}), &[])], &[tool("read", Behavior::Echo)]);
    let policy: Arc<dyn CallPolicy> = Arc::new(TestPolicy("read", Rule::Require));
    fixture.hub.set_policy(Some(Arc::clone(&policy)));
    let authority = Some(Box::new(fixture.agent.authority()));
    let (run, end) = fixture.ask(RunRequest { authority, ..request("?") }).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    let run = load_run(&fixture.log, &run).await.unwrap().0;
    assert_eq!(fixture.agent.check_take_over(&run), Ok(()));
    fixture.hub.set_policy(None);
    assert!(!fixture.agent.may_take_over(&run), "here it would need no approval");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_reads_arguments_can_waive_an_approval() {
    let policy = || Some(Arc::new(TestPolicy("send", Rule::WaiveFor("@example.com"))) as Arc<dyn CallPolicy>);
    for (to, is_sent) in [("ada@example.com", true), ("eve@example.org", false)] {
        let fixture = fixture(
            &[("s", "send", json!({ "to": to }), &[])],
            &[tool("send", Behavior::Echo).writes().keeps_inside()],
        );
        fixture.hub.set_policy(policy());
        let (_, end) = fixture.ask(request("?")).await;
        assert_eq!(fixture.calls().len(), usize::from(is_sent), "{to}");
        assert_eq!(matches!(end, RunEnd::Suspended { .. }), !is_sent, "{end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_for_the_run_does_not_cover_what_a_policy_asks_about() {
    let steps: [(&str, &str, serde_json::Value, &[&str]); 3] = [
        ("small", "transfer", json!({"amount": 10}), &[]),
        ("next", "transfer", json!({"amount": 20}), &["small"]),
        ("large", "transfer", json!({"amount": 100_000}), &["next"]),
    ];
    let fixture = fixture(&steps, &[tool("transfer", Behavior::Echo).writes().keeps_inside()]);
    fixture.hub.set_policy(Some(Arc::new(TestPolicy("transfer", Rule::RequireFor("100000")))));
    let watcher = RecordingWatcher::with_decisions([ApprovalDecision::AllowAlways, ApprovalDecision::Deny]);
    fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
    let made: Vec<_> = fixture.arguments_of("transfer").iter().map(|made| made["amount"].clone()).collect();
    assert_eq!(made, [10, 20], "the second question is about the policy");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_merely_permits_a_call_waives_no_approval() {
    let tools = [tool("read", Behavior::Echo)];
    let rules = ApprovalRules { ask: vec!["read".to_owned()], ..ApprovalRules::default() };
    for rule in [Rule::Permit, Rule::WaiveFor("")] {
        let fixture = fixture(&[("r", "read", json!({}), &[])], &tools).with_rules(rules.clone());
        fixture.hub.set_policy(Some(Arc::new(TestPolicy("read", rule))));
        let (_, end) = fixture.ask(request("?")).await;
        assert!(matches!(end, RunEnd::Suspended { .. }), "{rule:?}: {end:?}");
    }
}
