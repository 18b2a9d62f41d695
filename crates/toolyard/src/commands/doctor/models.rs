//! Checks models and the agents that use them, without sending requests.

use toolyard::settings::ModelSettings;

use super::{Finding, Severity};
use crate::commands::models::tool_calling_cache;
use crate::config::CliContext;

pub(super) fn check(context: &CliContext) -> Vec<Finding> {
    let settings = &context.settings;
    let mut findings: Vec<Finding> =
        settings.models.iter().map(|(name, model)| check_model(name, model, context)).collect();
    let known = tool_calling_cache::models(context);
    if let (Some(name), Err(error)) = (&settings.default_model, known.resolve_name(None)) {
        let hint = format!("define it in toolyard.toml: [models.{name}]");
        findings
            .push(Finding::new(Severity::Problem, "models", format!("default_model: {error}")).hint(hint));
    }
    for (agent, agent_settings) in &settings.agents {
        if let Some(model) =
            agent_settings.model.as_deref().filter(|model| known.resolve_name(Some(model)).is_err())
        {
            let detail = format!("agent {agent} uses model `{model}`, which does not exist");
            findings.push(
                Finding::new(Severity::Problem, "agents", detail).hint("list models: toolyard models list"),
            );
        }
    }
    findings
}

fn check_model(name: &str, model: &ModelSettings, context: &CliContext) -> Finding {
    let models = tool_calling_cache::models(context);
    if let Err(error) = models.get(Some(name)) {
        return Finding::new(Severity::Problem, "models", error.to_string())
            .hint(format!("agents cannot use {name} until this is fixed"));
    }
    let detail = format!("{name}: {}", model.model);
    match models.tool_calling(model) {
        Some(_) => Finding::new(Severity::Ok, "models", detail),
        None => Finding::new(Severity::Note, "models", format!("{detail}, not tested for tool calling"))
            .hint(format!("toolyard models test {name}")),
    }
}
