//! Which runs of another process an agent may continue.

use std::sync::Arc;

use serde_json::json;
use toolyard_hub::Profile;

use super::*;
use crate::{AgentConfig, ApprovalRules, Run, RunRequest, TakeOverError, load_run};

fn rules(allow: &[&str]) -> ApprovalRules {
    ApprovalRules {
        allow: allow.iter().map(|pattern| (*pattern).to_owned()).collect(),
        ..ApprovalRules::default()
    }
}

/// A run that waits for the approval of a call of `write`, created by an agent without rules.
async fn suspended_run(fixture: &Fixture) -> Run {
    let authority = Some(Box::new(fixture.agent.authority()));
    let (run, _) = fixture.ask(RunRequest { authority, ..request("?") }).await;
    load_run(&fixture.log, &run).await.unwrap().0
}

fn writing() -> Fixture {
    let steps = plan(&[("r", "read", json!({}), &[]), ("w", "write", json!({}), &["r"])]);
    let tools = [tool("read", Behavior::Echo), tool("write", Behavior::Echo).writes().with_source("other")];
    Fixture::new(replying([steps, "Done.".to_owned()]), &tools)
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_the_same_rules_and_tools_may_continue_a_run() {
    let fixture = writing();
    let run = suspended_run(&fixture).await;
    assert!(fixture.agent.may_take_over(&run));
    // Instructions and model may differ.
    let config = AgentConfig { instructions: "Be brief.".to_owned(), ..AgentConfig::new("assistant") };
    let fixture = fixture.with_parts(|parts| parts.config = Arc::new(config));
    assert!(fixture.agent.may_take_over(&run));
    // Tools of finished steps are not needed.
    fixture.hub.remove(&"local".into());
    assert!(fixture.agent.may_take_over(&run));
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_other_rules_may_not_continue_a_run() {
    let fixture = writing();
    let run = suspended_run(&fixture).await;
    let limited = Profile { deny: vec!["delete_*".to_owned()], ..Profile::default() };
    let fixture = fixture.with_rules(rules(&["write"]));
    assert!(!fixture.agent.may_take_over(&run), "the new rules would not ask");
    assert_eq!(fixture.agent.check_take_over(&run), Err(TakeOverError::OtherRules));
    let fixture = fixture.with_rules(ApprovalRules::default());
    assert!(fixture.agent.may_take_over(&run));
    let config = AgentConfig { profile: Some(Arc::new(limited)), ..AgentConfig::new("assistant") };
    let fixture = fixture.with_parts(|parts| parts.config = Arc::new(config));
    assert!(!fixture.agent.may_take_over(&run), "another profile");
    let config = AgentConfig { tools: vec!["write".to_owned()], ..AgentConfig::new("assistant") };
    let fixture = fixture.with_parts(|parts| parts.config = Arc::new(config));
    assert!(!fixture.agent.may_take_over(&run), "other tools");
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_command_is_not_continued() {
    let fixture = writing();
    let (run, _) = fixture.ask(request("?")).await;
    let (run, _) = load_run(&fixture.log, &run).await.unwrap();
    assert_eq!(fixture.agent.check_take_over(&run), Err(TakeOverError::NoAuthority));
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_tool_or_with_a_riskier_one_may_not_continue_a_run() {
    let fixture = writing();
    let run = suspended_run(&fixture).await;
    fixture.hub.remove(&"other".into());
    let missing = Err(TakeOverError::OtherTool("write".to_owned()));
    assert_eq!(fixture.agent.check_take_over(&run), missing, "the tool is missing");
    fixture.register(&[tool("write", Behavior::Echo).writes().with_source("third")]);
    assert!(!fixture.agent.may_take_over(&run), "another source has a tool of this name");
    fixture.hub.remove(&"third".into());
    fixture.register(&[tool("write", Behavior::Echo).with_source("other")]);
    assert!(!fixture.agent.may_take_over(&run), "here it needs no approval");
    fixture.register(&[tool("write", Behavior::Echo).writes().with_source("other")]);
    assert!(fixture.agent.may_take_over(&run));
}
