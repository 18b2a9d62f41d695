//! `toolyard policy explain`: what is decided about a call, and why.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolyard::Toolyard;
use toolyard_core::{PolicyDecision, PolicyRequest, PolicySubject, RawJson, ToolPattern};
use toolyard_hub::ToolCandidate;
use toolyard_policy::{CaseCaller, Policy};

use super::load;
use crate::{
    cli::ExplainArgs,
    commands::{close, discover, open},
    config::CliContext,
    error::CliError,
    terminal::Output,
};

pub(super) async fn run(
    arguments: ExplainArgs,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let policy = load(context)?;
    let toolyard = open(context).await?;
    discover(&toolyard, context, output).await?;
    let outcome = explain(&arguments, &policy, &toolyard, output);
    close(&toolyard, context).await?;
    outcome
}

fn explain(
    arguments: &ExplainArgs,
    policy: &Policy,
    toolyard: &Toolyard,
    output: &Output,
) -> Result<(), CliError> {
    let caller = CaseCaller {
        id: arguments.caller.clone(),
        name: None,
        groups: arguments.group.clone(),
        scopes: arguments.scope.clone(),
        claims: arguments.claims.as_deref().map_or(Ok(Map::new()), |text| object("--claims", text))?,
    };
    let identity = caller.identity().map_err(|error| {
        CliError::usage(error.to_string()).with_hint("the person at this machine is `local`")
    })?;
    let subject = PolicySubject {
        identity: identity.as_ref(),
        agent: arguments.agent.as_deref(),
        profile: &arguments.profile,
    };
    let call_arguments = RawJson::from(Value::Object(object("--arguments", &arguments.arguments)?));
    let candidates = candidates(toolyard, &arguments.tool);
    if candidates.is_empty() {
        return Err(CliError::usage(format!("tool `{}` does not exist", arguments.tool))
            .with_hint("list all tools: toolyard tools list"));
    }
    let decisions: Vec<(Arc<ToolCandidate>, PolicyDecision)> = candidates
        .into_iter()
        .map(|candidate| {
            let request =
                PolicyRequest { subject, tool: candidate.policy_tool(), arguments: &call_arguments };
            let decision = policy.decide(&request);
            (candidate, decision)
        })
        .collect();
    let caller_id = toolyard_policy::caller_id(identity.as_deref());
    if output.is_json() {
        let row = |(candidate, decision): &(Arc<ToolCandidate>, PolicyDecision)| {
            let grounds = decision.grounds();
            json!({
                "caller": caller_id, "tool": &*candidate.name, "source": candidate.source_id().as_str(),
                "decision": decision.label(), "policies": grounds.policies, "reason": grounds.reason,
            })
        };
        output.json(&decisions.iter().map(row).collect::<Vec<_>>());
        return Ok(());
    }
    let row = |(candidate, decision): &(Arc<ToolCandidate>, PolicyDecision)| {
        let grounds = decision.grounds();
        [
            candidate.name.to_string(),
            candidate.source_id().to_string(),
            decision.label().to_owned(),
            grounds.policies.join(", "),
            grounds.reason.clone(),
        ]
    };
    output.table(["TOOL", "SOURCE", "DECISION", "POLICIES", "REASON"], decisions.iter().map(row).collect());
    Ok(())
}

/// The tools that `NAME` or `NAME@SOURCE` means.
fn candidates(toolyard: &Toolyard, tool: &str) -> Vec<Arc<ToolCandidate>> {
    let snapshot = toolyard.hub().snapshot();
    let ToolPattern { name, source } = ToolPattern::parse(tool);
    match (source, snapshot.find(name)) {
        (Some(source), _) => snapshot.find_in(name, source).map(Arc::clone).into_iter().collect(),
        (None, Some(found)) => found.all().map(Arc::clone).collect(),
        (None, None) => Vec::new(),
    }
}

fn object(option: &str, text: &str) -> Result<Map<String, Value>, CliError> {
    serde_json::from_str(text).map_err(|error| {
        CliError::usage(format!("{option} is not a JSON object: {error}"))
            .with_hint("quote it for the shell: '{\"path\": \"/tmp\"}'")
    })
}
