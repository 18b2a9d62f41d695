//! A runaway agent stops at its quota and says so.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::{ErrorKind, WindowLimit};
use toolyard_model::{ModelReply, ScriptedModel, ToolCalling, Usage};
use toolyard_quota::{CountedPer, QuotaRule, Quotas};

use super::*;
use crate::{RunEnd, RunLimit};

fn set_quota(fixture: &Fixture, rule: QuotaRule) {
    let per = CountedPer { agent: true, ..CountedPer::default() };
    let quotas = Quotas::local(vec![QuotaRule { name: "agents".into(), per, ..rule }]).unwrap();
    fixture.hub.set_quota(Some(Arc::new(quotas)));
}

/// A model that always wants further calls, each with other arguments, and never answers.
fn runaway() -> ScriptedModel {
    let mut round = 0;
    ScriptedModel::new(ToolCalling::Schema, move |_| {
        round += 1;
        let steps: Vec<_> = (0..30)
            .map(|number| json!({"id": format!("s{number}"), "tool_type": "echo", "arguments": {"n": [round, number]}}))
            .collect();
        let usage = Usage { input: 400, output: 100, ..Usage::default() };
        Ok(ModelReply { text: json!({ "steps": steps }).to_string(), usage, ..ModelReply::default() })
    })
}

#[tokio::test(start_paused = true)]
async fn a_runaway_agent_stops_at_its_quota_of_calls_and_says_so() {
    let fixture = Fixture::new(runaway(), &[tool("echo", Behavior::Echo)]);
    let calls = Some(WindowLimit { limit: 12, window_millis: 3_600_000 });
    set_quota(&fixture, QuotaRule { calls, ..QuotaRule::default() });
    let (_, end) = fixture.ask(request("never stop")).await;
    let RunEnd::LimitReached { limit, message } = &end else { panic!("{end:?}") };
    assert_eq!(*limit, RunLimit::Quota);
    assert!(message.contains("quota `agents` is used up (12 calls per 3600s)"), "{message}");
    assert_eq!(fixture.calls().len(), 12);
    // Another run of the agent has nothing left either.
    let (_, end) = fixture.ask(request("once more")).await;
    assert!(matches!(end, RunEnd::LimitReached { limit: RunLimit::Quota, .. }), "{end:?}");
    assert_eq!(fixture.calls().len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_runaway_agent_stops_at_its_quota_of_tokens() {
    let model = runaway();
    let fixture = Fixture::new(model, &[failing("echo", ErrorKind::Failed)]);
    let tokens = Some(WindowLimit { limit: 1_000, window_millis: 3_600_000 });
    set_quota(&fixture, QuotaRule { tokens, ..QuotaRule::default() });
    let (_, end) = fixture.ask(request("never stop")).await;
    let RunEnd::LimitReached { limit: RunLimit::Quota, message } = &end else { panic!("{end:?}") };
    assert!(message.contains("quota `agents` is used up (1000 tokens per 3600s)"), "{message}");
    let refused = fixture.agent.admit_model_use(None).await.unwrap_err();
    assert!(refused.retry_after.as_secs() > 3_000);
}

#[tokio::test(start_paused = true)]
async fn an_agent_waits_for_a_quota_that_is_soon_free_again() {
    let steps: Vec<_> = (0..5)
        .map(|number| json!({"id": format!("s{number}"), "tool_type": "echo", "arguments": {"n": number}}))
        .collect();
    let model = replying([json!({ "steps": steps }).to_string(), "all five".to_owned()]);
    let fixture = Fixture::new(model, &[tool("echo", Behavior::Echo).with_delay_ms(300)]);
    set_quota(&fixture, QuotaRule { concurrent_calls: Some(2), ..QuotaRule::default() });
    let (_, end) = fixture.ask(request("all at once")).await;
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!((fixture.calls().len(), fixture.max_concurrent_calls()), (5, 2));
}
