//! `toolyard models`: lists, adds, removes and tests models.

mod edit;
mod test;
pub(crate) mod tool_calling_cache;

use serde_json::json;
use toolyard::settings::ModelSettings;
use toolyard_model::ToolCalling;

use crate::{cli::ModelsCommand, config::CliContext, error::CliError, terminal::Output};

pub(super) async fn run(
    command: ModelsCommand,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        ModelsCommand::Add(model) => edit::add(&model, context, output).await,
        ModelsCommand::Remove { name } => edit::remove(&name, context, output).await,
        ModelsCommand::List => {
            list(context, output);
            Ok(())
        }
        ModelsCommand::Test { names } => test::run(&names, context, output).await,
    }
}

fn list(context: &CliContext, output: &Output) {
    let models = tool_calling_cache::load_models(context);
    let default = models.resolve_name(None).ok();
    let configured = &context.settings.models;
    if output.is_json() {
        let entry = |(name, settings): (&String, &ModelSettings)| {
            json!({
                "name": name, "model": settings.model, "provider": settings.provider, "url": settings.url,
                "tool_calling": models.tool_calling(settings), "default": default.as_ref() == Some(name),
                "missing_variables": missing_variables(settings),
            })
        };
        return output.json(&configured.iter().map(entry).collect::<Vec<_>>());
    }
    if configured.is_empty() {
        return output.message(
            "No models yet. Add one: toolyard models add local --url http://127.0.0.1:11434/v1 --model qwen2.5:7b",
        );
    }
    let row = |(name, settings): (&String, &ModelSettings)| {
        let mut notes = Vec::new();
        if default.as_ref() == Some(name) {
            notes.push("default".to_owned());
        }
        notes.extend(
            missing_variables(settings).into_iter().map(|variable| format!("${variable} is not set")),
        );
        [
            name.clone(),
            settings.model.clone(),
            models.tool_calling(settings).map_or("not tested", mode_label).to_owned(),
            notes.join(", "),
            settings.url.as_ref().unwrap_or(&settings.provider).clone(),
        ]
    };
    let rows: Vec<_> = configured.iter().map(row).collect();
    output.table(["NAME", "MODEL", "TOOL CALLING", "NOTE", "ENDPOINT"], rows);
}

fn missing_variables(settings: &ModelSettings) -> Vec<String> {
    settings.variables().into_iter().filter(|name| std::env::var_os(name).is_none()).collect()
}

fn mode_label(mode: ToolCalling) -> &'static str {
    match mode {
        ToolCalling::Native => "native",
        ToolCalling::Text => "text",
        ToolCalling::Schema => "schema",
    }
}
