//! `toolyard servers add` and `remove`: edits the user's settings file and preserves the rest.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;
use toolyard_core::SourceId;
use toolyard_mcp_client::{
    ServerCache,
    config::{HeldTools, ServerSettings, add_server, remove_server},
};

use crate::{
    cli::AddServerArgs,
    config::{CliContext, current_user, operator_file, running_hubs::reload_note},
    error::CliError,
    terminal::Output,
};

pub(super) async fn add(
    server: AddServerArgs,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let mut command = server.command.into_iter();
    let settings = ServerSettings {
        command: command.next(),
        args: command.collect(),
        cwd: server.cwd,
        url: server.url,
        headers: parse_pairs(&server.headers)?,
        env: parse_pairs(&server.env)?,
        trusted: server.trusted,
        hold_new_tools: if server.hold_all_tools { HeldTools::All } else { HeldTools::default() },
        ..ServerSettings::default()
    };
    let file = add_to_settings(&server.name, &settings, &current_user(), context).await?;
    for warning in settings.warnings(&server.name) {
        output.message(&format!("note: {warning}"));
    }
    print_change(output, "server", &server.name, "added", &file);
    print_reload_note(context, output);
    output.message(&format!("  hint: test it: toolyard servers test {}", server.name));
    Ok(())
}

/// Adds a server to the operator's settings file. Returns the file.
pub(super) async fn add_to_settings(
    name: &str,
    settings: &ServerSettings,
    added_by: &str,
    context: &CliContext,
) -> Result<PathBuf, CliError> {
    let (file, text) = operator_file::read(context)?;
    let invalid = |error: &dyn std::fmt::Display| CliError::usage(error.to_string());
    settings.clone().into_config(name, &context.config_folder).map_err(|error| invalid(&error))?;
    let text = add_server(&text, name, settings).map_err(|error| invalid(&error))?;
    operator_file::write_by(added_by, &file, &text, &format!("server {name} added"), context).await?;
    Ok(file)
}

/// Removes a server from the user's settings and from the cache.
pub(super) async fn remove(name: &str, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let (file, text) = operator_file::read(context)?;
    let new_text = remove_server(&text, name)
        .map_err(|error| CliError::failed(format!("{}: {error}", file.display())))?;
    let Some(new_text) = new_text else {
        return Err(CliError::usage(missing(&file, name))
            .with_hint("remove servers of a project or an mcp.json from that file"));
    };
    operator_file::write(&file, &new_text, &format!("server {name} removed"), context).await?;
    let mut others = context.server_settings.clone();
    others.remove(name);
    context.stored_secrets().remove_unused(&context.server_settings, &others)?;
    if let Some(store) = &context.store {
        let removed = ServerCache::new(Arc::new(store.clone())).remove(&SourceId::from(name)).await;
        removed.map_err(|error| CliError::failed(error.to_string()))?;
    }
    print_change(output, "server", name, "removed", &file);
    print_reload_note(context, output);
    Ok(())
}

pub(super) fn missing(file: &Path, name: &str) -> String {
    format!("{} has no server `{name}`", file.display())
}

pub(crate) fn print_change(output: &Output, kind: &str, name: &str, action: &str, file: &Path) {
    output.report(
        &json!({kind: name, "action": action, "file": file}),
        &format!("{action} {name}: {}", file.display()),
    );
}

/// Says which gateways take a change of the operator's settings file over.
pub(crate) fn print_reload_note(context: &CliContext, output: &Output) {
    reload_note(context).iter().for_each(|note| output.message(note));
}

fn parse_pairs(pairs: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let pair = |text: &String| {
        let split = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.to_owned()));
        split.ok_or_else(|| CliError::usage("headers and variables must be written as NAME=VALUE"))
    };
    pairs.iter().map(pair).collect()
}
