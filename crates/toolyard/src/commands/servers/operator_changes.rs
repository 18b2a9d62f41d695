//! Changes to servers that the operator makes over the HTTP API; nothing is asked at a terminal.

use toolyard_gateway::{NewServer, ServerChange};
use toolyard_mcp_client::config::ServerSettings;

use super::{change::change_settings, edit::add_to_settings};
use crate::{config::CliContext, error::CliError};

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
    add_to_settings(&name, &settings, added_by, context).await?;
    Ok(())
}

/// Changes a server of the operator's settings file.
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
    change_settings(name, &action, changed_by, context, |settings| {
        settings.enabled = change.enabled.unwrap_or(settings.enabled);
        settings.trusted = change.trusted.unwrap_or(settings.trusted);
        Ok(())
    })
    .await?;
    Ok(())
}
