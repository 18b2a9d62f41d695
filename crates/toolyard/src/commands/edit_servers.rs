//! `toolyard servers add` and `remove`: edits the user's settings and leaves the rest of the file as it is.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde_json::json;
use toolyard_core::SourceId;
use toolyard_mcp::{
    cache::ServerCache,
    config::{ServerSettings, add_server, remove_server},
};

use crate::{
    cli::AddServer,
    failure::{Code, Failure},
    files,
    folders::Workplace,
    output::Output,
};

/// Adds a server to the user's settings.
pub(crate) fn add(server: AddServer, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let mut words = server.command.into_iter();
    let settings = ServerSettings {
        command: words.next(),
        args: words.collect(),
        cwd: server.cwd,
        url: server.url,
        headers: pairs(&server.headers)?,
        env: pairs(&server.env)?,
        trusted: server.trusted,
        strict: server.strict,
        ..ServerSettings::default()
    };
    let (file, text) = read(workplace)?;
    let unusable = |error: &dyn std::fmt::Display| Failure::new(Code::BadUse, error.to_string());
    settings.clone().into_config(&server.name, &workplace.config_folder).map_err(|error| unusable(&error))?;
    let text = add_server(&text, &server.name, &settings).map_err(|error| unusable(&error))?;
    for warning in settings.warnings(&server.name) {
        output.talk(&format!("note: {warning}"));
    }
    write(&file, &text)?;
    tell(output, &server.name, "added", &file);
    output.talk(&format!("  hint: see whether it works: toolyard servers test {}", server.name));
    Ok(())
}

/// Removes a server from the user's settings, with everything that was known of it.
pub(crate) async fn remove(name: &str, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let (file, text) = read(workplace)?;
    let without = remove_server(&text, name)
        .map_err(|error| Failure::new(Code::Failed, format!("{}: {error}", file.display())))?;
    let Some(without) = without else {
        return Err(Failure::new(Code::BadUse, format!("{} has no server `{name}`", file.display()))
            .with_hint("servers of a project or of an mcp.json are removed there"));
    };
    write(&file, &without)?;
    if let Some(store) = &workplace.store {
        let forgotten = ServerCache::new(Arc::new(store.clone())).forget(&SourceId::from(name)).await;
        forgotten.map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    }
    tell(output, name, "removed", &file);
    Ok(())
}

fn tell(output: &Output, name: &str, what: &str, file: &std::path::Path) {
    if output.wants_json() {
        output.json(&json!({"server": name, "done": what, "file": file}));
    } else {
        output.talk(&format!("{what} {name}: {}", file.display()));
    }
}

fn pairs(given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| {
        let split = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.to_owned()));
        split.ok_or_else(|| Failure::new(Code::BadUse, "a header or variable is written NAME=VALUE"))
    };
    given.iter().map(pair).collect()
}

/// The user's settings file, or the one that was named, and what is in it.
pub(crate) fn read(workplace: &Workplace) -> Result<(PathBuf, String), Failure> {
    let file = workplace.operators_file.clone();
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok((file, text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((file, String::new())),
        Err(error) => Err(Failure::new(Code::Failed, format!("failed to read {}: {error}", file.display()))),
    }
}

/// Writes the settings so that nobody ever sees half of them.
pub(crate) fn write(file: &std::path::Path, text: &str) -> Result<(), Failure> {
    files::write(file, text, files::Readers::Owner)
        .map_err(|error| Failure::new(Code::Failed, format!("failed to write {}: {error}", file.display())))
}
