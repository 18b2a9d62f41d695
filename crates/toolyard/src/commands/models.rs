//! `toolyard models`: which there are, and how they call tools best.

use serde_json::json;
use toolyard::{Models, settings::ModelSettings};
use toolyard_model::ToolCalling;

use super::{edit_models, model_memory, test_models};
use crate::{
    cli::ModelsCommand,
    failure::Failure,
    folders::Workplace,
    output::{Output, harmless},
};

/// Lists, tests, adds, removes.
pub(crate) async fn run(
    command: ModelsCommand,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        ModelsCommand::Add(model) => edit_models::add(&model, workplace, output),
        ModelsCommand::Remove { name } => edit_models::remove(&name, workplace, output),
        ModelsCommand::List => {
            list(workplace, output);
            Ok(())
        }
        ModelsCommand::Test { names } => test_models::run(&names, workplace, output).await,
    }
}

fn list(workplace: &Workplace, output: &Output) {
    let models = model_memory::models(workplace);
    let default = models.meant(None).ok();
    let all = &workplace.settings.models;
    if output.wants_json() {
        let facts = |(name, settings): (&String, &ModelSettings)| {
            json!({
                "name": name, "model": settings.model, "provider": settings.provider, "url": settings.url,
                "tool_calling": models.tool_calling(settings), "default": default.as_ref() == Some(name),
                "missing_variables": missing(settings),
            })
        };
        return output.json(&all.iter().map(facts).collect::<Vec<_>>());
    }
    if all.is_empty() {
        return output.talk(
            "no models yet; add one: toolyard models add local --url http://127.0.0.1:11434/v1 --model qwen2.5:7b",
        );
    }
    let row = |(name, settings): (&String, &ModelSettings)| {
        let mut notes = Vec::new();
        if default.as_ref() == Some(name) {
            notes.push("default".to_owned());
        }
        notes.extend(missing(settings).into_iter().map(|variable| format!("${variable} is not set")));
        [
            name.clone(),
            harmless(&settings.model),
            calling(settings, &models),
            notes.join(", "),
            harmless(settings.url.as_deref().unwrap_or(&settings.provider)),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    output.table(["NAME", "MODEL", "CALLS TOOLS", "NOTE", "ASKED AT"], &rows);
}

fn missing(settings: &ModelSettings) -> Vec<String> {
    settings.variables().into_iter().filter(|name| std::env::var_os(name).is_none()).collect()
}

fn calling(settings: &ModelSettings, models: &Models) -> String {
    models.tool_calling(settings).map_or("not tested", way).to_owned()
}

/// How a model calls tools, in words.
pub(super) fn way(calling: ToolCalling) -> &'static str {
    match calling {
        ToolCalling::Native => "natively",
        ToolCalling::Text => "in text",
        ToolCalling::Schema => "by schema",
    }
}
