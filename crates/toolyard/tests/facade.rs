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
use toolyard_hub::Profile;

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
        .tool("convert", "Convert euros to yen", |c: Convert| async move { c.amount * 160.0 })
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
    assert!(answer.sources.iter().any(|source| source.contains("convert")), "{answer:?}");
}

#[tokio::test]
async fn calls_with_side_effects_need_approval() {
    let calls = Arc::new(AtomicUsize::new(0));
    let call_counter = Arc::clone(&calls);
    let toolyard = Toolyard::builder()
        .tool("convert", "Convert euros to yen", move |c: Convert| {
            call_counter.fetch_add(1, Ordering::SeqCst);
            async move { c.amount * 160.0 }
        })
        .model(model_with_replies([PLAN, "unused"]))
        .build()
        .await
        .unwrap();
    let error = toolyard.agent("assistant").ask("What are 20 euros in yen?").await.unwrap_err().to_string();
    assert!(error.contains("waiting for your decision"), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_agent_calls_no_tool_outside_its_profile() {
    let calls = Arc::new(AtomicUsize::new(0));
    let call_counter = Arc::clone(&calls);
    let settings =
        toolyard::Settings::parse("[approvals]\nallow = [\"*\"]", "toolyard.toml".as_ref()).unwrap();
    let toolyard = Toolyard::builder()
        .tool("convert", "Convert euros to yen", move |c: Convert| {
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
    let request = agents.run_request("assistant", "What are 20 euros in yen?");
    let (_, end) = agent.ask(request, &NoWatcher, &CancelToken::new()).await.unwrap();
    assert!(!matches!(end, RunEnd::Suspended { .. }), "no approval is requested either: {end:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "{end:?}");
}

#[tokio::test]
async fn the_call_timeout_holds_for_agents() {
    let text = "[approvals]\nallow = [\"*\"]\n[call]\ntimeout = \"100ms\"";
    let toolyard = Toolyard::builder()
        .tool("convert", "Convert euros to yen", |_: Convert| async {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            0.0
        })
        .settings(toolyard::Settings::parse(text, "toolyard.toml".as_ref()).unwrap())
        .model(model_with_replies([PLAN, "unused"]))
        .build()
        .await
        .unwrap();
    let agents = toolyard.agents();
    let request = agents.run_request("assistant", "What are 20 euros in yen?");
    let agent = agents.agent("assistant", None).unwrap();
    let started = std::time::Instant::now();
    let (_, end) = agent.ask(request, &NoWatcher, &CancelToken::new()).await.unwrap();
    assert!(started.elapsed().as_secs() < 20, "{end:?}");
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
