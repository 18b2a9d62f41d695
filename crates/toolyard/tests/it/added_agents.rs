//! Agents that an embedding program adds, replaces and removes while it runs.

use std::{sync::Arc, time::Duration};

use toolyard::{
    AgentsError,
    model::{ScriptedModel, ToolCalling},
    prelude::*,
    settings::AgentSettings,
};
use toolyard_agent::{CancelToken, NoWatcher};
use toolyard_store::{Location, Store};

fn settings(instructions: &str) -> AgentSettings {
    AgentSettings { instructions: instructions.to_owned(), ..AgentSettings::default() }
}

async fn build(store: Option<Store>) -> Toolyard {
    let answer = r#"{"steps":[],"answer":"Done."}"#;
    let model = Arc::new(ScriptedModel::with_replies(ToolCalling::Schema, [answer, answer]));
    let builder = Toolyard::builder().model(model);
    match store {
        Some(store) => builder.store(store),
        None => builder,
    }
    .build()
    .await
    .unwrap()
}

#[tokio::test]
async fn an_agent_is_added_replaced_and_removed_while_runs_keep_theirs() {
    let toolyard = build(None).await;
    let agents = toolyard.agents();
    agents.add("clerk", &settings("Be brief."), "test").await.unwrap();
    assert_eq!(toolyard.agent("clerk").ask("Well?").await.unwrap().to_string(), "Done.");
    let before = agents.agent("clerk", None).unwrap();
    let run = before.create_run(before.request("And now?")).await.unwrap();
    agents.replace("clerk", &settings("Be verbose."), "test").await.unwrap();
    assert_eq!(agents.config("clerk").unwrap().instructions, "Be verbose.");
    assert_eq!(before.parts().config.instructions, "Be brief.");
    agents.remove("clerk", "test").await.unwrap();
    assert!(matches!(agents.config("clerk"), Err(AgentsError::Unknown { .. })));
    let end = before.drive(&run, &NoWatcher, &CancelToken::default()).await.unwrap();
    assert_eq!(end.answer(), Some("Done."), "a run outlives its agent");
}

#[tokio::test]
async fn an_agent_of_the_settings_cannot_be_changed() {
    let text = "[agents.fixed]\ndescription = \"of the file\"";
    let parsed = toolyard::Settings::parse(text, "toolyard.toml".as_ref()).unwrap();
    let toolyard = Toolyard::builder().settings(parsed).build().await.unwrap();
    let agents = toolyard.agents();
    assert!(matches!(agents.add("fixed", &settings(""), "test").await, Err(AgentsError::Exists(_))));
    assert!(matches!(agents.replace("fixed", &settings(""), "test").await, Err(AgentsError::ReadOnly(_))));
    assert!(matches!(agents.remove("assistant", "test").await, Err(AgentsError::ReadOnly(_))));
    assert!(matches!(agents.remove("nobody", "test").await, Err(AgentsError::Unknown { .. })));
    for name in ["", "a b", "a/b", "ä", &"x".repeat(65)] {
        assert!(matches!(agents.add(name, &settings(""), "test").await, Err(AgentsError::InvalidName(_))));
    }
}

#[tokio::test]
async fn another_process_sees_a_stored_agent_and_so_does_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(folder.path().join("toolyard.db"));
    let store = Store::open(location).await.unwrap();
    let (one, other) = (build(Some(store.clone())).await, build(Some(store.clone())).await);
    one.agents().add("clerk", &settings("Be brief."), "test").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    other.agents().refresh().await;
    assert!(other.agents().names().contains(&"clerk".to_owned()));
    let next = build(Some(store)).await;
    assert_eq!(next.agents().config("clerk").unwrap().instructions, "Be brief.");
}
