//! What the doctor finds about models and the agents that think with them. Nobody is asked anything.

use toolyard::settings::ModelSettings;

use super::{
    doctor::{Finding, State},
    model_memory,
};
use crate::folders::Workplace;

/// Looks at models and agents, where there are any.
pub(super) fn models(workplace: &Workplace) -> Vec<Finding> {
    let settings = &workplace.settings;
    let mut findings: Vec<Finding> =
        settings.models.iter().map(|(name, model)| one(name, model, workplace)).collect();
    let known = model_memory::models(workplace);
    if let (Some(name), Err(error)) = (&settings.default_model, known.meant(None)) {
        let hint = format!("describe it in toolyard.toml: [models.{name}]");
        findings.push(Finding::new(State::Problem, "models", format!("default_model: {error}")).hint(hint));
    }
    for (agent, described) in &settings.agents {
        if let Some(model) = described.model.as_deref().filter(|model| known.meant(Some(model)).is_err()) {
            let detail = format!("agent {agent} thinks with model `{model}`, which does not exist");
            findings
                .push(Finding::new(State::Problem, "agents", detail).hint("list them: toolyard models list"));
        }
    }
    findings
}

fn one(name: &str, model: &ModelSettings, workplace: &Workplace) -> Finding {
    if let Err(error) = model_memory::models(workplace).get(Some(name)) {
        return Finding::new(State::Problem, "models", error.to_string())
            .hint(format!("agents cannot think with {name} until then"));
    }
    let detail = format!("{name}: {}", model.model);
    match model_memory::models(workplace).tool_calling(model) {
        Some(_) => Finding::new(State::Fine, "models", detail),
        None => {
            Finding::new(State::Note, "models", format!("{detail}, how it calls tools best is not known"))
                .hint(format!("toolyard models test {name}"))
        }
    }
}
