//! Changes to servers that the operator makes over the HTTP API; nothing is asked at a terminal.

use toolyard::Settings;
use toolyard_gateway::{NewServer, ServerChange};
use toolyard_mcp_client::config::ServerSettings;

use super::{change::change_settings, edit::add_to_settings};
use crate::{
    config::{CliContext, operator_file},
    error::CliError,
};

/// Adds a server to the operator's settings file, untrusted.
pub(in crate::commands) async fn add(
    server: NewServer,
    added_by: &str,
    context: &CliContext,
) -> Result<(), CliError> {
    let NewServer { name, command, args, url } = server;
    if command.is_some() == url.is_some() {
        return Err(CliError::usage("a new server needs either a program or an address")
            .with_hint("give one of them; toolyard servers add takes both"));
    }
    let settings = ServerSettings { command, args, url, ..ServerSettings::default() };
    if let Some(warning) = settings.warnings(&name).into_iter().next() {
        return Err(CliError::usage(format!("{warning}; nothing was added"))
            .with_hint("add it in a terminal, with the secret kept apart: toolyard servers add --help"));
    }
    add_to_settings((&name, false), &settings, added_by, context).await?;
    Ok(())
}

/// Changes a server where it is configured: in the operator's settings file, or in the store.
pub(in crate::commands) async fn change(
    name: &str,
    change: ServerChange,
    changed_by: &str,
    context: &CliContext,
) -> Result<(), CliError> {
    let words = [
        change.enabled.map(|enabled| if enabled { "enabled" } else { "disabled" }),
        change.trusted.map(|trusted| if trusted { "trusted" } else { "no longer trusted" }),
    ];
    let action = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
    // A server of the file replaces one of the store.
    let (_, file) = operator_file::read(context)?;
    let is_in_file = Settings::parse(&file, &context.operator_file)?.servers.contains_key(name);
    let place = (name, !is_in_file && context.is_stored_server(name));
    change_settings(place, &action, changed_by, context, |settings| {
        settings.enabled = change.enabled.unwrap_or(settings.enabled);
        settings.trusted = change.trusted.unwrap_or(settings.trusted);
        Ok(())
    })
    .await?;
    Ok(())
}
