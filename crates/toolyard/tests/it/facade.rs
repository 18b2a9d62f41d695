//! Agents in an embedding program.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use toolyard::{
    model::{ScriptedModel, ToolCalling},
    prelude::*,
};
use toolyard_agent::{Agent, AgentConfig, CancelToken, NoWatcher, RunEnd};
use toolyard_core::{SourceInfo, SourceKind};
use toolyard_hub::Profile;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Convert {
    amount: f64,
}

fn model_with_replies(texts: [&str; 2]) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::with_replies(ToolCalling::Schema, texts))
}

const PLAN: &str =
    r#"{"steps":[{"id":"rate","tool_type":"convert","arguments":{"amount":20},"description":"in yen"}]}"#;

#[tokio::test]
async fn an_agent_uses_a_custom_function() {
    let toolyard = Toolyard::builder()
        .function("convert", "Convert euros to yen", |c: Convert| async move { c.amount * 160.0 })
        .settings(
            toolyard::Settings::parse("[approvals]\nallow = [\"convert\"]", "toolyard.toml".as_ref())
                .unwrap(),
        )
        .model(model_with_replies([PLAN, "20 euros are 3200 yen."]))
        .build()
        .await
        .unwrap();
    let answer = toolyard.agent("assistant").ask("What are 20 euros in yen?").await.unwrap();
    assert_eq!(answer.to_string(), "20 euros are 3200 yen.");
    let RunEnd::Answered { sources, .. } = &answer.end else { panic!("{answer:?}") };
    assert!(sources.iter().any(|source| source.contains("convert")), "{answer:?}");
}

#[tokio::test]
async fn calls_with_side_effects_need_approval() {
    let calls = Arc::new(AtomicUsize::new(0));
    let call_counter = Arc::clone(&calls);
    let toolyard = Toolyard::builder()
        .function("convert", "Convert euros to yen", move |c: Convert| {
            call_counter.fetch_add(1, Ordering::SeqCst);
            async move { c.amount * 160.0 }
        })
        .model(model_with_replies([PLAN, "unused"]))
        .build()
        .await
        .unwrap();
    let outcome = toolyard.agent("assistant").ask("What are 20 euros in yen?").await.unwrap();
    assert!(matches!(outcome.end, RunEnd::Suspended { .. }), "{outcome:?}");
    assert_eq!(
        (outcome.answer(), outcome.to_string().as_str()),
        (None, "the run is suspended: it waits for approvals or for the outcome of a step")
    );
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_agent_calls_no_tool_outside_its_profile() {
    let calls = Arc::new(AtomicUsize::new(0));
    let call_counter = Arc::clone(&calls);
    let settings =
        toolyard::Settings::parse("[approvals]\nallow = [\"*\"]", "toolyard.toml".as_ref()).unwrap();
    let toolyard = Toolyard::builder()
        .function("convert", "Convert euros to yen", move |c: Convert| {
            call_counter.fetch_add(1, Ordering::SeqCst);
            async move { c.amount * 160.0 }
        })
        .settings(settings)
        .model(model_with_replies([PLAN, "unused"]))
        .build()
        .await
        .unwrap();
    let profile = Profile { deny: vec!["convert".to_owned()], ..Profile::default() };
    let agents = toolyard.agents();
    let mut parts = agents.agent("assistant", None).unwrap().parts().clone();
    let config = AgentConfig::clone(&parts.config);
    parts.config = Arc::new(AgentConfig { profile: Some(Arc::new(profile)), ..config });
    let agent = Agent::new(parts);
    let request = agent.request("What are 20 euros in yen?");
    let (_, end) = agent.ask(request, &NoWatcher, &CancelToken::new()).await.unwrap();
    assert!(!matches!(end, RunEnd::Suspended { .. }), "no approval is requested either: {end:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "{end:?}");
}

#[tokio::test]
async fn the_call_timeout_holds_for_agents() {
    let text = "[approvals]\nallow = [\"*\"]\n[call]\ntimeout = \"100ms\"";
    let toolyard = Toolyard::builder()
        .function("convert", "Convert euros to yen", |_: Convert| async {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            0.0
        })
        .settings(toolyard::Settings::parse(text, "toolyard.toml".as_ref()).unwrap())
        .model(model_with_replies([PLAN, "unused"]))
        .build()
        .await
        .unwrap();
    let agents = toolyard.agents();
    let agent = agents.agent("assistant", None).unwrap();
    let request = agent.request("What are 20 euros in yen?");
    let started = std::time::Instant::now();
    let (_, end) = agent.ask(request, &NoWatcher, &CancelToken::new()).await.unwrap();
    assert!(started.elapsed().as_secs() < 20, "{end:?}");
}

#[tokio::test]
async fn a_chat_honours_the_limits_of_the_agent_and_is_remembered_without_a_store() {
    let text = "[agents.clerk]\njudge = true\nlimits = { model_calls = 2 }\n[approvals]\nallow = [\"*\"]";
    let hello = r#"{"steps": [], "answer": "Hello, Ada."}"#;
    let replies = [hello, PLAN, "unused"];
    let toolyard = Toolyard::builder()
        .function("convert", "Convert euros to yen", |c: Convert| async move { c.amount * 160.0 })
        .settings(toolyard::Settings::parse(text, "toolyard.toml".as_ref()).unwrap())
        .model(ScriptedModel::with_replies(ToolCalling::Schema, replies))
        .build()
        .await
        .unwrap();
    let agents = toolyard.agents();
    let (agent, stop) = (agents.agent("clerk", None).unwrap(), CancelToken::new());
    let mut chat = agents.chat("money").await.unwrap();
    chat.ask(&agent, "I am Ada", &NoWatcher, &stop).await.unwrap();
    let mut chat = agents.chat("money").await.unwrap();
    let (run, end) = chat.ask(&agent, "What are 20 euros in yen?", &NoWatcher, &stop).await.unwrap();
    // The plan and the judgement of its result are two requests to the model; the answer would be the third.
    let RunEnd::LimitReached { message, .. } = end else { panic!("{end:?}") };
    assert!(message.contains("limit of 2 model requests"), "{message}");
    let (state, _) = toolyard_agent::load_run(&**agents.log(), &run).await.unwrap();
    let request = state.request().unwrap();
    assert!(request.judge && request.history.iter().any(|message| message.text == "Hello, Ada."));
    assert!(agents.chat("a\nb").await.is_err(), "a name has no control characters");
}

#[tokio::test]
async fn the_model_combines_the_outputs_of_several_sources() {
    let model = ScriptedModel::with_replies(ToolCalling::Text, ["Both are open."]);
    let toolyard = Toolyard::builder().model(model).build().await.unwrap();
    for (source, text) in [("north", "open until six"), ("south", "open until eight")] {
        let tool = function("opening_hours", "When the shop is open", move |_: Nothing| async move { text });
        let tool = Arc::new(tool.read_only()) as Arc<dyn Tool>;
        toolyard.hub().register(SourceInfo::new(source, SourceKind::Mcp).trusted(true), vec![tool]);
    }
    let output = toolyard.call("opening_hours", json!({})).await.unwrap();
    assert_eq!((output.to_text().as_str(), output.meta.synthesized), ("Both are open.", true));
}

#[tokio::test]
async fn missing_models_and_agents_are_reported() {
    let toolyard = Toolyard::builder().build().await.unwrap();
    let error = toolyard.agent("assistant").ask("hello").await.unwrap_err();
    assert_eq!(error.to_string(), "no model is configured");
    let toolyard = Toolyard::builder().model(model_with_replies(["", ""])).build().await.unwrap();
    let error = toolyard.agent("nobody").ask("hello").await.unwrap_err();
    assert_eq!(error.to_string(), "agent `nobody` does not exist; known agents: assistant");
}
