//! `toolyard service`: writes and removes the file by which systemd or launchd runs the gateway for this user.
//!
//! - `definition`: the content of the file, and the commands that load it.

mod definition;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::json;
use toolyard_mcp_client::config::{ServerSettings, is_private_reference};

use self::definition::{Manager, OWN_MARK, ServiceDefinition};
use super::{
    import::client_files::home_folder, local_gateway::local_gateways, own_program::installed_program,
};
use crate::{
    cli::{InstallServiceArgs, ServiceCommand},
    config::{CliContext, files},
    error::CliError,
    terminal::Output,
};

/// Variables of the service, in the format of systemd, beside the settings.
const ENVIRONMENT_FILE: &str = "service.env";

pub(super) fn run(
    command: &ServiceCommand,
    config: Option<&Path>,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let manager = current_manager()?;
    let file = service_file(manager, context)?;
    match command {
        ServiceCommand::Install(arguments) => install(manager, &file, arguments, config, context, output),
        ServiceCommand::Uninstall { dry_run } => uninstall(manager, &file, *dry_run, output),
        ServiceCommand::Status => status(manager, &file, context, output),
    }
}

fn current_manager() -> Result<Manager, CliError> {
    if cfg!(target_os = "linux") {
        Ok(Manager::Systemd)
    } else if cfg!(target_os = "macos") {
        Ok(Manager::Launchd)
    } else {
        Err(CliError::usage("services can be installed on Linux and macOS only")
            .with_hint("start the gateway yourself: toolyard serve --http"))
    }
}

fn service_file(manager: Manager, context: &CliContext) -> Result<PathBuf, CliError> {
    Ok(match manager {
        // systemd looks for units of users beside the settings of other programs.
        Manager::Systemd => {
            context.config_folder.parent().unwrap_or(&context.config_folder).join("systemd/user")
        }
        Manager::Launchd => home_folder()?.join("Library/LaunchAgents"),
    }
    .join(manager.file_name()))
}

fn install(
    manager: Manager,
    file: &Path,
    arguments: &InstallServiceArgs,
    config: Option<&Path>,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let definition = describe_service(arguments, config, context)?;
    let content = definition.render(manager)?;
    let before = files::read_if_exists(file)?;
    if before.as_ref().is_some_and(|text| !text.contains(OWN_MARK)) && !arguments.force {
        return Err(CliError::denied(format!("{} was not written by Toolyard", file.display()))
            .with_hint("replace it: toolyard service install --force"));
    }
    let action = match &before {
        None => "created",
        Some(text) if *text == content => "unchanged",
        Some(_) => "updated",
    };
    if !arguments.dry_run && action != "unchanged" {
        files::write(file, &content, files::Access::Default)?;
    }
    let commands = manager.start_commands(file);
    let missing = unknown_variables(context);
    if output.is_json() {
        output.json(&json!({
            "file": file, "action": action, "dry_run": arguments.dry_run, "content": content,
            "commands": commands, "variables_of_terminal": missing,
        }));
        return Ok(());
    }
    if arguments.dry_run {
        output.verbatim(content.trim_end());
        output.message(&format!("nothing was written; the file would be {}", file.display()));
    } else {
        output.message(&format!("{action} {}", file.display()));
    }
    output.message("start the service now and at every sign-in:");
    print_commands(&commands, output);
    if manager == Manager::Systemd {
        output.message("  hint: to keep it running while you are signed out: loginctl enable-linger");
    }
    if !missing.is_empty() {
        let names = missing.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        output.message(&format!("note: servers need variables that only your terminal has: {names}"));
        output.message("  hint: store them: toolyard secrets set NAME, and refer to them as ${secret:NAME}");
    }
    if is_in_cache(&definition.program) {
        output.message(&format!("note: {} is in a cache, which may be cleaned", definition.program));
        output.message("  hint: install Toolyard permanently, then run this command again");
    }
    Ok(())
}

fn describe_service(
    arguments: &InstallServiceArgs,
    config: Option<&Path>,
    context: &CliContext,
) -> Result<ServiceDefinition, CliError> {
    let text = |path: PathBuf| {
        let not_text = || {
            CliError::failed(format!("{} is not valid UTF-8", path.display()))
                .with_hint("move it to a path of valid UTF-8")
        };
        path.to_str().map(str::to_owned).ok_or_else(not_text)
    };
    let program = installed_program()?;
    let config = config
        .map(|file| file.canonicalize().map_err(|error| CliError::file("find", file, error)))
        .transpose()?;
    Ok(ServiceDefinition {
        program: text(program)?,
        config: config.map(text).transpose()?,
        address: arguments.http.clone(),
        search_path: absolute_folders(&std::env::var("PATH").unwrap_or_default()),
        environment_file: text(context.config_folder.join(ENVIRONMENT_FILE))?,
    })
}

/// The folders of a PATH that mean the same wherever a program starts.
fn absolute_folders(search_path: &str) -> String {
    search_path.split(':').filter(|folder| folder.starts_with('/')).collect::<Vec<_>>().join(":")
}

/// Whether the program was started by npx or uvx, which keep it in a cache.
fn is_in_cache(program: &str) -> bool {
    program.contains("/_npx/") || program.contains("/uv/archive-")
}

/// Variables that servers need and that no settings give them.
fn unknown_variables(context: &CliContext) -> BTreeSet<String> {
    let known = ["HOME", "PATH", "USER"];
    let required = context.server_settings.values().flat_map(ServerSettings::required_variables);
    required.filter(|name| !is_private_reference(name) && !known.contains(&name.as_str())).collect()
}

fn uninstall(manager: Manager, file: &Path, dry_run: bool, output: &Output) -> Result<(), CliError> {
    let Some(content) = files::read_if_exists(file)? else {
        return Err(CliError::usage(format!("the service is not installed: no {}", file.display()))
            .with_hint("install it: toolyard service install"));
    };
    if !content.contains(OWN_MARK) {
        return Err(CliError::denied(format!("{} was not written by Toolyard", file.display()))
            .with_hint("remove it yourself if it is not needed"));
    }
    let removed: Vec<PathBuf> = std::iter::once(file.to_owned())
        .chain(manager.enabling_link(file).filter(|link| link.is_symlink()))
        .collect();
    if !dry_run {
        for file in &removed {
            std::fs::remove_file(file).map_err(|error| CliError::file("remove", file, error))?;
        }
    }
    let commands = manager.stop_commands();
    if output.is_json() {
        output
            .json(&json!({"files": removed, "action": "removed", "dry_run": dry_run, "commands": commands}));
        return Ok(());
    }
    for file in &removed {
        let action = if dry_run { "would remove" } else { "removed" };
        output.message(&format!("{action} {}", file.display()));
    }
    output.message("stop the service if it runs:");
    print_commands(&commands, output);
    Ok(())
}

fn status(manager: Manager, file: &Path, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let content = files::read_if_exists(file)?;
    let state = match &content {
        None => "not installed",
        Some(text) if text.contains(OWN_MARK) => "installed",
        Some(_) => "not written by Toolyard",
    };
    let gateways: Vec<String> =
        local_gateways(context).iter().map(|gateway| gateway.origin().to_owned()).collect();
    if output.is_json() {
        output.json(&json!({"file": file, "state": state, "gateways": gateways}));
        return Ok(());
    }
    output.line(&format!("service   {state}: {}", file.display()));
    let running =
        if gateways.is_empty() { "none runs with these settings".to_owned() } else { gateways.join(", ") };
    output.line(&format!("gateway   {running}"));
    output.message(&match &content {
        None => "  hint: toolyard service install".to_owned(),
        Some(_) => format!("  hint: {}", manager.status_command()),
    });
    Ok(())
}

fn print_commands(commands: &[String], output: &Output) {
    for command in commands {
        output.message(&format!("  {command}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_folders_of_the_search_path_are_kept() {
        assert_eq!(absolute_folders("/a/bin:.::bin:/usr/bin"), "/a/bin:/usr/bin");
        assert_eq!(absolute_folders(""), "");
    }

    #[test]
    fn programs_in_caches_of_npx_and_uvx_are_noticed() {
        assert!(is_in_cache("/home/a/.npm/_npx/1f/node_modules/@toolyard/linux-x64/bin/toolyard"));
        assert!(is_in_cache("/home/a/.cache/uv/archive-v0/x/bin/toolyard"));
        assert!(!is_in_cache("/home/a/.cargo/bin/toolyard"));
    }
}
