//! Agents in a program of one's own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use toolyard::{
    model::{ScriptedModel, ToolCalling},
    prelude::*,
};
use toolyard_agent::{CancelToken, RunEnd, Unwatched};
use toolyard_hub::surface::Profile;

#[derive(Deserialize, JsonSchema)]
struct Convert {
    amount: f64,
}

fn scripted(texts: [&str; 2]) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::saying(ToolCalling::Schema, texts))
}

const PLAN: &str =
    r#"{"steps":[{"id":"rate","tool_type":"convert","arguments":{"amount":20},"description":"in yen"}]}"#;

#[tokio::test]
async fn an_agent_answers_with_a_function_of_ones_own() {
    let yard = Toolyard::builder()
        .tool("convert", "Convert euros to yen", |c: Convert| async move { c.amount * 160.0 })
        .settings(
            toolyard::Settings::parse("[approvals]\nallow = [\"convert\"]", "toolyard.toml".as_ref())
                .unwrap(),
        )
        .model(scripted([PLAN, "20 euros are 3200 yen."]))
        .build()
        .await
        .unwrap();
    let answer = yard.agent("assistant").ask("What are 20 euros in yen?").await.unwrap();
    assert_eq!(answer.to_string(), "20 euros are 3200 yen.");
    assert!(answer.sources.iter().any(|source| source.contains("convert")), "{answer:?}");
}

#[tokio::test]
async fn without_a_word_from_anybody_nothing_is_changed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let yard = Toolyard::builder()
        .tool("convert", "Convert euros to yen", move |c: Convert| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { c.amount * 160.0 }
        })
        .model(scripted([PLAN, "unused"]))
        .build()
        .await
        .unwrap();
    let error = yard.agent("assistant").ask("What are 20 euros in yen?").await.unwrap_err().to_string();
    assert!(error.contains("it waits for a person"), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn agents_call_nothing_that_is_not_offered_where_they_are_asked() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let settings =
        toolyard::Settings::parse("[approvals]\nallow = [\"*\"]", "toolyard.toml".as_ref()).unwrap();
    let yard = Toolyard::builder()
        .tool("convert", "Convert euros to yen", move |c: Convert| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { c.amount * 160.0 }
        })
        .settings(settings)
        .model(scripted([PLAN, "unused"]))
        .build()
        .await
        .unwrap();
    let within = Profile { deny: vec!["convert".to_owned()], ..Profile::default() };
    let agents = yard.agents().clone().within(within);
    let agent = agents.agent("assistant", None).unwrap();
    let ask = agents.question("assistant", "What are 20 euros in yen?");
    let (_, end) = agent.ask(ask, &Unwatched, &CancelToken::new()).await.unwrap();
    assert!(!matches!(end, RunEnd::Suspended { .. }), "nobody is asked about it either: {end:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "{end:?}");
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let yard = Toolyard::builder().build().await.unwrap();
    let error = yard.agent("assistant").ask("hello").await.unwrap_err();
    assert_eq!(error.to_string(), "no model is configured");
    let yard = Toolyard::builder().model(scripted(["", ""])).build().await.unwrap();
    let error = yard.agent("nobody").ask("hello").await.unwrap_err();
    assert_eq!(error.to_string(), "agent `nobody` does not exist; there are assistant");
}
