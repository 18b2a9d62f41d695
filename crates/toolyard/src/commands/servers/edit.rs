//! `toolyard servers add` and `remove`: edits the user's settings file, or the settings in the store, and preserves the rest.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;
use toolyard_core::SourceId;
use toolyard_mcp_client::{
    ServerCache,
    config::{ServerSettings, add_server, remove_server},
};

use crate::{
    cli::AddServerArgs,
    config::{CliContext, SettingsDocument, SettingsPlace, current_user, running_hubs::reload_note},
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
        strict: server.strict,
        ..ServerSettings::default()
    };
    let place = add_to_settings((&server.name, server.store), &settings, &current_user(), context).await?;
    for warning in settings.warnings(&server.name) {
        output.message(&format!("note: {warning}"));
    }
    print_change(output, "server", &server.name, "added", &place);
    print_reload_note(&place, context, output);
    output.message(&format!("  hint: test it: toolyard servers test {}", server.name));
    Ok(())
}

/// Adds a server to the operator's settings. Returns where they are.
pub(super) async fn add_to_settings(
    (name, is_stored): (&str, bool),
    settings: &ServerSettings,
    added_by: &str,
    context: &CliContext,
) -> Result<SettingsPlace, CliError> {
    let document = SettingsDocument::read(is_stored, context).await?;
    let invalid = |error: &dyn std::fmt::Display| CliError::usage(error.to_string());
    settings.clone().into_config(name, &context.config_folder).map_err(|error| invalid(&error))?;
    let text = add_server(&document.text, name, settings).map_err(|error| invalid(&error))?;
    document.replace_by(added_by, &text, &format!("server {name} added"), context).await
}

/// Removes a server from the user's settings and from the cache.
pub(super) async fn remove(
    name: &str,
    is_stored: bool,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let document = SettingsDocument::read(is_stored, context).await?;
    let new_text = remove_server(&document.text, name)
        .map_err(|error| CliError::failed(format!("{}: {error}", document.place)))?;
    let Some(new_text) = new_text else {
        let hint = missing_hint(name, is_stored, context)
            .unwrap_or("remove servers of a project or an mcp.json from that file");
        return Err(CliError::usage(missing(&document.place, name)).with_hint(hint));
    };
    let place = document.replace(&new_text, &format!("server {name} removed"), context).await?;
    let mut others = context.server_settings.clone();
    others.remove(name);
    context.stored_secrets().remove_unused(&context.server_settings, &others)?;
    if let Some(store) = &context.store {
        let removed = ServerCache::new(Arc::new(store.clone())).remove(&SourceId::from(name)).await;
        removed.map_err(|error| CliError::failed(error.to_string()))?;
    }
    print_change(output, "server", name, "removed", &place);
    print_reload_note(&place, context, output);
    Ok(())
}

pub(super) fn missing(place: &SettingsPlace, name: &str) -> String {
    match place {
        SettingsPlace::File(file) => format!("{} has no server `{name}`", file.display()),
        SettingsPlace::Store { .. } => format!("the settings in the store have no server `{name}`"),
    }
}

/// Where a server is that the file or the store does not have.
pub(super) fn missing_hint(name: &str, is_stored: bool, context: &CliContext) -> Option<&'static str> {
    match (is_stored, context.is_stored_server(name)) {
        (true, _) => Some("show what is stored: toolyard settings stored"),
        (false, true) => Some("this server is in the settings of the store: add --store"),
        (false, false) => None,
    }
}

pub(crate) fn print_change(output: &Output, kind: &str, name: &str, action: &str, place: &SettingsPlace) {
    let mut data = json!({kind: name, "action": action});
    place.describe(&mut data);
    output.report(&data, &format!("{action} {name}: {place}"));
}

/// Says who takes a change over.
pub(crate) fn print_reload_note(place: &SettingsPlace, context: &CliContext, output: &Output) {
    match place {
        SettingsPlace::File(_) => reload_note(context).iter().for_each(|note| output.message(note)),
        SettingsPlace::Store { .. } if context.stored_settings_version.is_some() => {
            output.message("  gateways of this store follow within seconds");
        }
        SettingsPlace::Store { .. } => {
            output.message("  hint: a gateway uses it if its toolyard.toml has `stored_settings = true`");
        }
    }
}

fn parse_pairs(pairs: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let pair = |text: &String| {
        let split = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.to_owned()));
        split.ok_or_else(|| CliError::usage("headers and variables must be written as NAME=VALUE"))
    };
    pairs.iter().map(pair).collect()
}
