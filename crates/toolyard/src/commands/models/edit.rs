//! `toolyard models add` and `remove`: edits the user's settings file and preserves the rest of it.

use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};
use toolyard::{Settings, settings::ModelSettings};

use crate::{
    cli::AddModelArgs,
    commands::servers::edit::print_change,
    config::{CliContext, operator_file},
    error::CliError,
    terminal::Output,
};

pub(super) async fn add(model: &AddModelArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let usage = |message: String| CliError::usage(message);
    toolyard_mcp_client::config::check_server_name(&model.name)
        .map_err(|problem| usage(format!("invalid model name `{}`: {problem}", model.name)))?;
    if model.url.is_none() && model.provider == "openai" {
        return Err(usage("--url is missing".to_owned())
            .with_hint("--url http://127.0.0.1:11434/v1 for Ollama, https://api.openai.com/v1 for OpenAI"));
    }
    let settings = ModelSettings { key: model.key.clone(), ..ModelSettings::default() };
    // Checks only that the key is a reference; its variable may be set later.
    settings.secrets(&model.name, |_| Some(String::new()))?;
    let (file, text) = operator_file::read(context)?;
    let mut document = parse_document(&text, &file)?;
    if models_table(&document).is_some_and(|models| models.contains_key(&model.name)) {
        return Err(usage(format!("model `{}` already exists", model.name))
            .with_hint(format!("remove it first: toolyard models remove {}", model.name)));
    }
    insert_model(&mut document, model, &file)?;
    let text = document.to_string();
    Settings::parse(&text, &file)?;
    operator_file::write(&file, &text, &format!("model {} added", model.name), context).await?;
    print_change(output, "model", &model.name, "added", &file);
    output.message(&format!("  hint: test it: toolyard models test {}", model.name));
    Ok(())
}

pub(super) async fn remove(name: &str, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let (file, text) = operator_file::read(context)?;
    let mut document = parse_document(&text, &file)?;
    let removed = match document.get_mut("models").and_then(Item::as_table_like_mut) {
        Some(models) => models.remove(name).is_some(),
        None => false,
    };
    if !removed {
        return Err(CliError::usage(format!("{} has no model `{name}`", file.display()))
            .with_hint("remove models of a project from its toolyard.toml"));
    }
    if document.get("default_model").and_then(Item::as_str) == Some(name) {
        document.remove("default_model");
    }
    let text = document.to_string();
    operator_file::write(&file, &text, &format!("model {name} removed"), context).await?;
    print_change(output, "model", name, "removed", &file);
    Ok(())
}

fn parse_document(text: &str, file: &Path) -> Result<DocumentMut, CliError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        CliError::failed(format!("{}: {}", file.display(), error.message()))
    })
}

fn models_table(document: &DocumentMut) -> Option<&dyn TableLike> {
    document.get("models").and_then(Item::as_table_like)
}

fn insert_model(document: &mut DocumentMut, model: &AddModelArgs, file: &Path) -> Result<(), CliError> {
    let mut table = Table::new();
    let url = model.url.as_deref().map(|url| ("url", url));
    let key = model.key.as_deref().map(|key| ("key", key));
    let provider = Some(("provider", model.provider.as_str())).filter(|(_, provider)| *provider != "openai");
    for (field, text) in url.into_iter().chain([("model", model.model.as_str())]).chain(key).chain(provider) {
        table.insert(field, Item::Value(Value::from(text)));
    }
    let models = document.entry("models").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let Some(models) = models.as_table_like_mut() else {
        return Err(CliError::failed(format!("{}: `models` is not a table", file.display())));
    };
    models.insert(&model.name, Item::Table(table));
    if model.default {
        document.insert("default_model", Item::Value(Value::from(model.name.as_str())));
    }
    Ok(())
}
