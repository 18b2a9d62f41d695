//! Checks models and the agents that use them, without sending requests.

use toolyard::{ModelsError, settings::ModelSettings};
use toolyard_agent::DEFAULT_AGENT;

use super::finding::Finding;
use crate::commands::models::tool_calling_cache;
use crate::config::CliContext;

pub(super) fn check(context: &CliContext) -> Vec<Finding> {
    let settings = &context.settings;
    let mut findings: Vec<Finding> =
        settings.models.iter().map(|(name, model)| check_model(name, model, context)).collect();
    let known = tool_calling_cache::load_models(context);
    if let (Some(name), Err(error)) = (&settings.default_model, known.resolve_name(None)) {
        let hint = format!("define it in toolyard.toml: [models.{name}]");
        findings.push(Finding::problem("models", format!("default_model: {error}")).with_hint(hint));
    }
    // The agent `assistant` exists without settings.
    let needs_default = || {
        settings.agents.values().any(|agent| agent.model.is_none())
            || !settings.agents.contains_key(DEFAULT_AGENT)
    };
    if let (None, Err(error @ ModelsError::NoDefault { .. })) =
        (&settings.default_model, known.resolve_name(None))
        && needs_default()
    {
        let hint = "choose one in toolyard.toml: default_model = \"NAME\"";
        findings.push(Finding::problem("models", error.to_string()).with_hint(hint));
    }
    for (agent, agent_settings) in &settings.agents {
        if let Some(model) =
            agent_settings.model.as_deref().filter(|model| known.resolve_name(Some(model)).is_err())
        {
            let detail = format!("agent {agent} uses model `{model}`, which does not exist");
            findings.push(Finding::problem("agents", detail).with_hint("list models: toolyard models list"));
        }
    }
    findings
}

fn check_model(name: &str, model: &ModelSettings, context: &CliContext) -> Finding {
    let models = tool_calling_cache::load_models(context);
    if let Err(error) = models.get(Some(name)) {
        return Finding::problem("models", error.to_string())
            .with_hint(format!("agents cannot use {name} until this is fixed"));
    }
    let detail = format!("{name}: {}", model.model);
    match models.tool_calling(model) {
        Some(_) => Finding::ok("models", detail),
        None => Finding::note("models", format!("{detail}, not tested for tool calling"))
            .with_hint(format!("toolyard models test {name}")),
    }
}
