//! A runaway agent stops at its quota and says so. All that its model does is counted, and an outage of the store ends no run.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use toolyard_core::{
    BoxFuture, CallQuota, ErrorKind, Journal as _, ModelUse, QuotaCall, QuotaExceeded, QuotaLimit,
    QuotaPermit, QuotaSubject, RunState, ToolOutput, WindowLimit,
};
use toolyard_hub::{HubConfig, ToolHub};
use toolyard_model::{
    Model, ModelEvent, ModelReply, ModelRequest, ModelStream, ModelSynthesizer, ScriptedModel, ToolCalling,
    Usage,
};
use toolyard_quota::{CountedPer, QuotaRule, Quotas};

use super::*;
use crate::{AgentError, CancelToken, NoWatcher, RunEnd, RunLimit};

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

const TOKENS: WindowLimit = WindowLimit { limit: 1_000, window_millis: 3_600_000 };

/// Quotas that record the use of models, and refuse it as long as their store fails.
#[derive(Debug, Default)]
struct RecordingQuota {
    store_fails_until: Option<Instant>,
    used_up_after: Option<usize>,
    charges: Mutex<Vec<ModelUse>>,
}

impl RecordingQuota {
    fn charges(&self) -> Vec<ModelUse> {
        self.charges.lock().clone()
    }
}

impl CallQuota for RecordingQuota {
    fn take_call<'a>(
        &'a self,
        _call: &QuotaCall<'_>,
    ) -> BoxFuture<'a, Result<QuotaPermit, Box<QuotaExceeded>>> {
        Box::pin(std::future::ready(Ok(QuotaPermit::default())))
    }

    fn admit_model_use<'a>(
        &'a self,
        _subject: QuotaSubject<'_>,
    ) -> BoxFuture<'a, Result<(), Box<QuotaExceeded>>> {
        let fails = self.store_fails_until.is_some_and(|until| Instant::now() < until);
        let is_used_up = self.used_up_after.is_some_and(|calls| self.charges().len() >= calls);
        let exceeded = (fails || is_used_up).then(|| {
            let (limit, retry_after) = (QuotaLimit::Tokens(TOKENS), Duration::from_secs(1));
            let store_error = fails.then(|| "connection refused".to_owned());
            Box::new(QuotaExceeded { quota: "agents".into(), limit, retry_after, store_error })
        });
        Box::pin(std::future::ready(exceeded.map_or(Ok(()), Err)))
    }

    fn charge_model_use<'a>(&'a self, subject: QuotaSubject<'_>, used: ModelUse) -> BoxFuture<'a, ()> {
        assert_eq!(subject.agent, Some("assistant"));
        self.charges.lock().push(used);
        // The store takes for ever.
        Box::pin(tokio::time::sleep(Duration::from_millis(10)))
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn refusals(&self) -> Vec<(Arc<str>, u64)> {
        Vec::new()
    }
}

fn one_step() -> ScriptedModel {
    let plan = plan(&[("s", "search", json!({"q": "x"}), &[])]);
    replying([plan, "found".to_owned()])
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_of_the_store_ends_no_run() {
    let fixture = Fixture::new(one_step(), &[tool("search", Behavior::Echo)]);
    let store_fails_until = Some(Instant::now() + Duration::from_secs(8));
    fixture.hub.set_quota(Some(Arc::new(RecordingQuota { store_fails_until, ..RecordingQuota::default() })));
    let (_, end) = fixture.ask(request("?")).await;
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_is_released_in_a_long_outage_and_goes_on_afterwards() {
    let fixture = Fixture::new(one_step(), &[tool("search", Behavior::Echo)]);
    let store_fails_until = Some(Instant::now() + Duration::from_secs(60));
    fixture.hub.set_quota(Some(Arc::new(RecordingQuota { store_fails_until, ..RecordingQuota::default() })));
    let run = fixture.agent.create_run(request("?")).await.unwrap();
    let released = fixture.agent.drive(&run, &NoWatcher, &CancelToken::new()).await.unwrap_err();
    assert!(matches!(released, AgentError::Released(_)), "{released}");
    assert_eq!(fixture.log.run(&run).await.unwrap().state, RunState::Open);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let end = fixture.resume(&run).await;
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
}

/// An agent whose tool `search` has two sources, the results of which its model merges.
fn merging_fixture() -> (Fixture, Arc<ScriptedModel>) {
    let mut steps = Some(plan(&[("s", "search", json!({"q": "x"}), &[])]));
    let model = Arc::new(ScriptedModel::new(ToolCalling::Schema, move |_| {
        let text = steps.take().unwrap_or_else(|| "Both agree.".to_owned());
        let usage = Usage { input: 30, output: 4, ..Usage::default() };
        Ok(ModelReply { text, usage, ..ModelReply::default() })
    }));
    let synthesizer = ModelSynthesizer::new(Arc::clone(&model) as _);
    let hub = ToolHub::new(HubConfig { synthesizer: Some(Arc::new(synthesizer)), ..HubConfig::default() });
    let search = |source: &'static str| {
        let long = format!("The source {source} says much. ").repeat(30);
        tool("search", Behavior::Output(ToolOutput::text(long))).with_source(source)
    };
    (Fixture::with_hub(hub, Arc::clone(&model) as _, &[search("a"), search("b")]), model)
}

#[tokio::test(start_paused = true)]
async fn merging_results_counts_as_use_of_the_agents_model() {
    let (fixture, model) = merging_fixture();
    let quota = Arc::new(RecordingQuota::default());
    fixture.hub.set_quota(Some(Arc::clone(&quota) as _));
    let (_, end) = fixture.ask(request("?")).await;
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    let merges = model.requests().iter().filter(|request| is_merge(request)).count();
    assert_eq!((merges, fixture.calls().len()), (1, 2));
    let used = ModelUse { tokens: 34, cost_micros: 0 };
    assert_eq!(quota.charges(), vec![used; model.requests().len()], "each request is charged");

    let (fixture, model) = merging_fixture();
    let quota = RecordingQuota { used_up_after: Some(1), ..RecordingQuota::default() };
    fixture.hub.set_quota(Some(Arc::new(quota)));
    let (_, end) = fixture.ask(request("?")).await;
    assert!(matches!(end, RunEnd::LimitReached { limit: RunLimit::Quota, .. }), "{end:?}");
    assert_eq!(model.requests().len(), 1, "after the plan nothing is left to merge with");
    assert_eq!(fixture.calls().len(), 2);
}

/// Whether a request merges results: it is the only one that shows what both sources said, without a system message.
fn is_merge(request: &ModelRequest) -> bool {
    request.messages.len() == 1 && request.messages.iter().any(|message| message.text.contains("source b"))
}

/// A model that begins a reply and never ends it.
#[derive(Debug)]
struct EndlessModel;

impl Model for EndlessModel {
    fn name(&self) -> &str {
        "endless"
    }

    fn tool_calling(&self) -> ToolCalling {
        ToolCalling::Schema
    }

    fn generate<'a>(&'a self, _request: &'a ModelRequest) -> ModelStream<'a> {
        let words = (0..20).map(|_| Ok(ModelEvent::Text("word ".to_owned())));
        Box::pin(stream::iter(words).chain(stream::pending()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_cancelled_is_counted() {
    let fixture = Fixture::with_model(Arc::new(EndlessModel), &[tool("echo", Behavior::Echo)]);
    let quota = Arc::new(RecordingQuota::default());
    fixture.hub.set_quota(Some(Arc::clone(&quota) as _));
    let cancel = CancelToken::new();
    let asked = fixture.agent.ask(request("?"), &NoWatcher, &cancel);
    let cancelling = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(quota.charges().is_empty());
        cancel.cancel();
    };
    let (asked, ()) = tokio::join!(asked, cancelling);
    assert_eq!(asked.unwrap().1, RunEnd::Cancelled);
    let [used] = quota.charges().try_into().unwrap();
    assert!(used.tokens > 20, "the request and 20 words: {used:?}");
}
