//! Selects the profile of a client, writes it to the operator's settings, and removes it again.

use std::path::Path;

use toolyard_mcp_client::config::import::Client;

use super::{
    ClientServers,
    client_profile::{client_profile, extended, put_profile, remove_profile},
    undo_record::{CreatedProfile, UndoRecord},
};
use crate::{
    cli::ConnectArgs,
    config::{CliContext, files, operator_file},
    error::CliError,
};

/// The profile that a client gets.
pub(super) struct ProfileSelection {
    pub(super) name: String,
    /// What to write to the settings: a new profile, or one that this command created and extends now.
    pub(super) created: Option<CreatedProfile>,
}

/// The profile of `--profile`; none with `--all`, at a gateway elsewhere, or if the client had no servers; else the client's own
/// with what it had.
pub(super) fn select_profile(
    client: Client,
    arguments: &ConnectArgs,
    record_file: &Path,
    record: Option<&UndoRecord>,
    servers: &ClientServers,
    context: &CliContext,
) -> Result<Option<ProfileSelection>, CliError> {
    let profiles = &context.settings.serve;
    if let Some(name) = &arguments.profile {
        check_profile(name, arguments, context)?;
        return Ok(Some(ProfileSelection { name: name.clone(), created: None }));
    }
    if arguments.all || arguments.http.as_deref().is_some_and(is_elsewhere) {
        return Ok(None);
    }
    let name = record_file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let created = record.and_then(|record| record.profile.as_ref()).filter(|created| created.name == name);
    let created = created.map(|created| &created.content);
    let content = match profiles.profiles.get(&name).or(created) {
        // The operator's own says what the client gets.
        Some(_) if created.is_none() => return Ok(Some(ProfileSelection { name, created: None })),
        Some(existing) => extended(existing, &servers.replacements),
        None if !servers.replacements.is_empty() => client_profile(&servers.replacements),
        None if servers.unknown.is_empty() && servers.missing_variables.is_empty() => return Ok(None),
        None => {
            let unset = servers.missing_variables.iter().flat_map(|(_, variables)| variables.clone());
            let unset: Vec<String> = unset.collect();
            let (why, first) = match unset.as_slice() {
                [] => (String::new(), "import them first: toolyard import".to_owned()),
                unset => (format!(": {} is not set", unset.join(", ")), "set it first".to_owned()),
            };
            let message = format!("Toolyard can replace no server of {}{why}", client.display_name());
            return Err(CliError::usage(message).with_hint(format!(
                "{first} · or offer {} all tools: toolyard connect {} --all",
                client.display_name(),
                arguments.client
            )));
        }
    };
    let is_changed = profiles.profiles.get(&name) != Some(&content);
    let settings_file = context.operator_file.clone();
    let created = is_changed.then(|| CreatedProfile { settings_file, name: name.clone(), content });
    Ok(Some(ProfileSelection { name, created }))
}

/// Whether the gateway at a URL runs on another machine, which has profiles of its own.
fn is_elsewhere(url: &str) -> bool {
    let host =
        url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?']).next().unwrap_or_default();
    let is_here =
        |prefix: &str| host == prefix || host.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(':'));
    !["127.0.0.1", "localhost", "[::1]"].into_iter().any(is_here)
}

/// Refuses a profile that does not exist: the client would lose its tools. A gateway that runs elsewhere has its own.
fn check_profile(name: &str, arguments: &ConnectArgs, context: &CliContext) -> Result<(), CliError> {
    let profiles = &context.settings.serve.profiles;
    if arguments.http.is_some() || profiles.contains_key(name) {
        return Ok(());
    }
    let hint = match profiles.keys().map(String::as_str).collect::<Vec<_>>().join(", ") {
        known if known.is_empty() => format!("define it in toolyard.toml: [serve.profiles.{name}]"),
        known => format!("profiles: {known}"),
    };
    Err(CliError::usage(format!("there is no profile `{name}`")).with_hint(hint))
}

/// A planned change of the operator's settings: the profile of the client.
pub(super) struct SettingsChange {
    pub(super) profile: CreatedProfile,
    pub(super) before: String,
    pub(super) after: String,
}

impl SettingsChange {
    pub(super) fn new(profile: CreatedProfile) -> Result<Self, CliError> {
        let before = files::read_if_exists(&profile.settings_file)?.unwrap_or_default();
        let after = put_profile(&before, &profile.settings_file, &profile.name, &profile.content)?;
        Ok(Self { profile, before, after })
    }

    pub(super) async fn write(&self, context: &CliContext) -> Result<(), CliError> {
        let change = format!("profile {} written", self.profile.name);
        operator_file::write(&self.profile.settings_file, &self.after, &change, context).await
    }
}

/// Removes the profile that was created for a client, unless the operator changed it since.
pub(super) async fn remove_created_profile(
    profile: &CreatedProfile,
    context: &CliContext,
) -> Result<(), CliError> {
    let text = files::read_if_exists(&profile.settings_file)?.unwrap_or_default();
    let after = remove_profile(&text, &profile.settings_file, &profile.name, &profile.content)?;
    let Some(after) = after else { return Ok(()) };
    let change = format!("profile {} removed", profile.name);
    operator_file::write(&profile.settings_file, &after, &change, context).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_on_another_machine_has_its_own_profiles() {
        for here in ["http://127.0.0.1:7300/mcp", "http://localhost/mcp", "http://[::1]:1/mcp"] {
            assert!(!is_elsewhere(here), "{here}");
        }
        for elsewhere in
            ["https://tools.example.com/mcp", "http://127.0.0.1.example.com/mcp", "http://10.0.0.1:7300"]
        {
            assert!(is_elsewhere(elsewhere), "{elsewhere}");
        }
    }
}
