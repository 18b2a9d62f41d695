//! What replaces a tool that is gone or cannot be reached: a tool with the same capability, then reasoning.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::{BoxFuture, ErrorKind, SourceId, SourceInfo, SourceKind};
use toolyard_hub::ToolHub;

use super::fixture::{Behavior, Fixture, failing, plan, replying, request, tool};
use crate::{
    ApprovalDecision, ApprovalRequest, CancelToken, EffectCause, EffectState, RunEnd, RunEvent, RunLimits,
    RunRequest, RunUpdate, RunWatcher, StepEnd, load_run,
};

/// Removes the tools of a source as soon as there is a plan.
struct RemovesSource(Arc<ToolHub>, &'static str);

impl RunWatcher for RemovesSource {
    fn on_update(&self, update: &RunUpdate) {
        if matches!(update, RunUpdate::Event { event: RunEvent::Planned { .. }, .. }) {
            self.0.register(SourceInfo::new(self.1, SourceKind::Mcp).trusted(true), Vec::new());
        }
    }

    fn decide<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(std::future::ready(None))
    }
}

fn without_replans(question: &str) -> RunRequest {
    RunRequest { limits: RunLimits { replans: 0, ..RunLimits::default() }, ..request(question) }
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_the_same_capability_replaces_one_that_is_gone() {
    let plan = plan(&[("find", "search_diary", json!({"query": "Anna"}), &[])]);
    let fixture = Fixture::new(
        replying([plan, "Found her.".to_owned()]),
        &[
            tool("search_diary", Behavior::Echo).with_source("diary").keeps_inside(),
            tool("look_up", Behavior::Echo).with_source("books").keeps_inside().with_capability("search"),
        ],
    );
    let watcher = RemovesSource(Arc::clone(&fixture.hub), "diary");
    let (run, end) = fixture.agent.ask(without_replans("?"), &watcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!(fixture.arguments_of("look_up"), [json!({"query": "Anna"})]);
    let StepEnd::Done { source, reasoned, .. } = fixture.step_end(&run, "find").await else { panic!() };
    assert_eq!((source.as_ref().map(SourceId::as_str), reasoned), (Some("books"), false));
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_reading_tool_cannot_be_reached_is_reasoned_out_and_marked() {
    let steps =
        plan(&[("data", "echo", json!({"eur": 100}), &[]), ("rate", "get_rate", json!({}), &["data"])]);
    let replies =
        || replying([steps.clone(), "About 7.".to_owned(), "The rate is 7 for 100 EUR.".to_owned()]);
    let tools = |kind| [tool("echo", Behavior::Echo), failing("get_rate", kind)];
    let fixture = Fixture::new(replies(), &tools(ErrorKind::Unavailable));
    let (run, end) = fixture.ask(without_replans("What is the rate?")).await;
    insta::assert_snapshot!(end.answer().unwrap(), @r"
    The rate is 7 for 100 EUR.

    [Reasoned by the model, because the tool could not be used: rate (get_rate)]
    ");
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert!(matches!(fixture.step_end(&run, "rate").await, StepEnd::Done { reasoned: true, .. }));

    // A tool that answered has said something, and a step may be planned anew.
    let fixture = Fixture::new(replies(), &tools(ErrorKind::Refused));
    let (run, _) = fixture.ask(without_replans("What is the rate?")).await;
    assert!(matches!(fixture.step_end(&run, "rate").await, StepEnd::Failed { .. }));
    let fixture = Fixture::new(replies(), &tools(ErrorKind::Unavailable));
    let (run, _) = fixture.ask(request("What is the rate?")).await;
    let is_reasoned = |event: &RunEvent| {
        matches!(event, RunEvent::StepEnded { outcome: StepEnd::Done { reasoned: true, .. }, .. })
    };
    assert!(!fixture.events(&run).await.iter().any(is_reasoned), "another plan may find another tool");
}

#[tokio::test(start_paused = true)]
async fn reasoning_changes_nothing() {
    let steps = plan(&[("save", "save_note", json!({"text": "milk"}), &[])]);
    let fixture = Fixture::new(
        replying([steps, "Saved.".to_owned(), "I saved it.".to_owned()]),
        &[tool("save_note", Behavior::Echo).with_source("notes").writes()],
    )
    .with_parts(|parts| parts.rules.allow = vec!["save_note".to_owned()]);
    let watcher = RemovesSource(Arc::clone(&fixture.hub), "notes");
    let (run, end) =
        fixture.agent.ask(without_replans("save a note"), &watcher, &CancelToken::new()).await.unwrap();
    let RunEnd::Partial { answer, unfinished_steps, .. } = end else { panic!("{end:?}") };
    assert_eq!(unfinished_steps, ["save"]);
    assert!(answer.starts_with("I saved it.") && answer.contains("save (save_note)"), "{answer}");
    let [effect] = load_run(&fixture.log, &run).await.unwrap().0.effects().try_into().unwrap();
    assert_eq!((effect.state, effect.cause), (EffectState::NotDone, Some(EffectCause::ReasonedOut)));
}
