//! `toolyard models add` and `remove`: edits the user's settings and leaves the rest of the file as it is.

use std::path::Path;

use serde_json::json;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};
use toolyard::{Settings, settings::ModelSettings};

use super::edit_servers::{read, write};
use crate::{
    cli::AddModel,
    failure::{Code, Failure},
    folders::Workplace,
    output::Output,
};

/// Adds a model to the user's settings.
pub(super) fn add(model: &AddModel, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let wrong = |message: String| Failure::new(Code::BadUse, message);
    toolyard_mcp::config::check_name(&model.name)
        .map_err(|problem| wrong(format!("`{}` is no name for a model: {problem}", model.name)))?;
    if model.url.is_none() && model.provider == "openai" {
        return Err(wrong("a model needs an address".to_owned())
            .with_hint("--url http://127.0.0.1:11434/v1 for Ollama, https://api.openai.com/v1 for OpenAI"));
    }
    let settings = ModelSettings { key: model.key.clone(), ..ModelSettings::default() };
    // Only whether the key is a reference matters now; the variable may be set later.
    settings.secrets(&model.name, |_| Some(String::new()))?;
    let (file, text) = read(workplace)?;
    let mut document = parsed(&text, &file)?;
    if models(&document).is_some_and(|models| models.contains_key(&model.name)) {
        return Err(wrong(format!("model `{}` is there already", model.name))
            .with_hint(format!("remove it first: toolyard models remove {}", model.name)));
    }
    put(&mut document, model, &file)?;
    let text = document.to_string();
    Settings::parse(&text, &file)?;
    write(&file, &text)?;
    tell(output, &model.name, "added", &file);
    output.talk(&format!("  hint: see whether it works: toolyard models test {}", model.name));
    Ok(())
}

/// Removes a model from the user's settings.
pub(super) fn remove(name: &str, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let (file, text) = read(workplace)?;
    let mut document = parsed(&text, &file)?;
    let removed = match document.get_mut("models").and_then(Item::as_table_like_mut) {
        Some(models) => models.remove(name).is_some(),
        None => false,
    };
    if !removed {
        return Err(Failure::new(Code::BadUse, format!("{} has no model `{name}`", file.display()))
            .with_hint("models of a project are removed there"));
    }
    if document.get("default_model").and_then(Item::as_str) == Some(name) {
        document.remove("default_model");
    }
    write(&file, &document.to_string())?;
    tell(output, name, "removed", &file);
    Ok(())
}

fn parsed(text: &str, file: &Path) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        Failure::new(Code::Failed, format!("{}: {}", file.display(), error.message()))
    })
}

fn models(document: &DocumentMut) -> Option<&dyn TableLike> {
    document.get("models").and_then(Item::as_table_like)
}

/// Writes a model into the document.
fn put(document: &mut DocumentMut, model: &AddModel, file: &Path) -> Result<(), Failure> {
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
        return Err(Failure::new(Code::Failed, format!("{}: `models` is no table", file.display())));
    };
    models.insert(&model.name, Item::Table(table));
    if model.default {
        document.insert("default_model", Item::Value(Value::from(model.name.as_str())));
    }
    Ok(())
}

fn tell(output: &Output, name: &str, what: &str, file: &Path) {
    if output.wants_json() {
        output.json(&json!({"model": name, "done": what, "file": file}));
    } else {
        output.talk(&format!("{what} {name}: {}", file.display()));
    }
}
