//! `toolyard service`: writes and removes the file by which systemd or launchd runs the gateway for this user.
//!
//! - `definition`: the content of the file, and the commands that load it.

mod definition;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;

use self::definition::{Manager, OWN_MARK, ServiceDefinition};
use super::{
    import::client_files::home_folder, local_gateway::gateways_of_operator, own_program::installed_program,
};
use crate::{
    cli::{InstallServiceArgs, ServiceCommand},
    config::{CliContext, files, secrets::KEY_VARIABLE},
    error::CliError,
    terminal::Output,
};

/// Variables of the service, in the format of systemd, beside the settings.
const ENVIRONMENT_FILE: &str = "service.env";
/// Where programs look for their settings; systemd also looks there for units.
const CONFIG_VARIABLE: &str = "XDG_CONFIG_HOME";
/// Variables that every service of a user has, or that its file sets.
const KNOWN_VARIABLES: [&str; 9] =
    ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER", CONFIG_VARIABLE, "XDG_DATA_HOME"];
/// How long a gateway may take to end, besides the drain period of the settings: calls may finish, then servers end.
const STOP_TIME: Duration = Duration::from_secs(60);

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
    check_address(&arguments.http)?;
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
    let commands = manager.start_commands(file, before.is_some());
    let missing = missing_variables(manager, context)?;
    if output.is_json() {
        output.json(&json!({
            "file": file, "action": action, "dry_run": arguments.dry_run, "content": content,
            "commands": commands, "missing_variables": missing,
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
    match manager {
        Manager::Systemd => {
            output.message("  hint: to keep it running while you are signed out: loginctl enable-linger");
            if std::env::var_os(CONFIG_VARIABLE).is_some() {
                output.message(&format!(
                    "note: systemd finds the file only if its own {CONFIG_VARIABLE} is that of this terminal"
                ));
                output.message("  hint: compare: systemctl --user show-environment");
            }
        }
        Manager::Launchd if commands.len() > 1 => {
            output.message("  hint: if the last command fails, the old service is still ending: repeat it");
        }
        Manager::Launchd => {}
    }
    if !missing.is_empty() {
        print_missing_variables(manager, &missing, &environment_file(context), output);
    }
    Ok(())
}

fn print_missing_variables(manager: Manager, names: &BTreeSet<String>, file: &Path, output: &Output) {
    let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    output.message(&format!("note: the settings need variables that the service does not have: {names}"));
    let store = "store them: toolyard secrets set NAME, and refer to them as ${secret:NAME}";
    output.message(&match manager {
        Manager::Systemd => format!("  hint: {store}; or write NAME=VALUE into {}", file.display()),
        Manager::Launchd => format!("  hint: {store}"),
    });
}

/// Checked now, because nobody watches when the service starts.
fn check_address(address: &str) -> Result<(), CliError> {
    let is_name = |host: &str| {
        !host.is_empty() && host.chars().all(|letter| letter.is_ascii_alphanumeric() || "-.".contains(letter))
    };
    let is_port = |port: &str| !port.starts_with('+') && port.parse::<u16>().is_ok_and(|port| port > 0);
    match address.rsplit_once(':') {
        Some((host, port)) if is_port(port) && (is_name(host) || address.parse::<SocketAddr>().is_ok()) => {
            Ok(())
        }
        _ => Err(CliError::usage(format!("`{address}` is not an address"))
            .with_hint("an address is a port or HOST:PORT, such as 127.0.0.1:7300")),
    }
}

fn describe_service(
    arguments: &InstallServiceArgs,
    config: Option<&Path>,
    context: &CliContext,
) -> Result<ServiceDefinition, CliError> {
    // Links are kept: by this path, other commands recognize the gateway of their settings.
    let find = |file: &Path| {
        let found = file.metadata().and_then(|_| std::path::absolute(file));
        found.map_err(|error| CliError::file("find", file, error))
    };
    let config = config.map(find).transpose()?;
    let drain = context.settings.serve.drain.map_or(Duration::ZERO, |period| period.0);
    Ok(ServiceDefinition {
        program: text_of("the path of this program", installed_program()?.into())?,
        config: config.map(|file| text_of("the path of the settings", file.into())).transpose()?,
        address: arguments.http.clone(),
        environment: service_environment()?,
        environment_file: text_of("the path of the settings", environment_file(context).into())?,
        log_file: text_of("the path of the data folder", log_file(context).into())?,
        stop_seconds: (drain + STOP_TIME).as_secs(),
    })
}

/// The variables of this terminal by which the service finds programs, settings and data.
fn service_environment() -> Result<Vec<(&'static str, String)>, CliError> {
    let mut environment = Vec::new();
    for name in ["PATH", CONFIG_VARIABLE, "XDG_DATA_HOME"] {
        let Some(value) = std::env::var_os(name) else { continue };
        let value = text_of(name, value)?;
        let value = if name == "PATH" { absolute_folders(&value) } else { value };
        // Relative paths mean something else elsewhere, and programs ignore them in the other two.
        if value.starts_with('/') {
            environment.push((name, value));
        }
    }
    Ok(environment)
}

/// Service files contain text only.
fn text_of(what: &str, value: OsString) -> Result<String, CliError> {
    value.into_string().map_err(|value| {
        CliError::failed(format!("{what} is not valid UTF-8: {}", value.display()))
            .with_hint("rename the folder, or remove it from the variable")
    })
}

fn environment_file(context: &CliContext) -> PathBuf {
    context.config_folder.join(ENVIRONMENT_FILE)
}

fn log_file(context: &CliContext) -> PathBuf {
    context.data_folder.join("service.log")
}

/// The folders of a list that mean the same wherever a program starts.
fn absolute_folders(folders: &str) -> String {
    folders.split(':').filter(|folder| folder.starts_with('/')).collect::<Vec<_>>().join(":")
}

/// Variables that the user's settings need and that the service does not have.
fn missing_variables(manager: Manager, context: &CliContext) -> Result<BTreeSet<String>, CliError> {
    let given = match manager {
        Manager::Systemd => files::read_if_exists(&environment_file(context))?.unwrap_or_default(),
        Manager::Launchd => String::new(),
    };
    let given: BTreeSet<&str> =
        given.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.trim()).collect();
    // Without it, the service cannot read the stored secrets.
    let key = std::env::var_os(KEY_VARIABLE).is_some().then(|| KEY_VARIABLE.to_owned());
    let needed = context.own_variables.iter().cloned().chain(key);
    let is_known = |name: &str| KNOWN_VARIABLES.contains(&name) || given.contains(name);
    Ok(needed.filter(|name| !is_known(name)).collect())
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
    // The link first: without the file, another try would not get here.
    let link = manager.enabling_link(file).filter(|link| link.is_symlink());
    let removed: Vec<PathBuf> = link.into_iter().chain([file.to_owned()]).collect();
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
        gateways_of_operator(context).iter().map(|gateway| gateway.origin().to_owned()).collect();
    if output.is_json() {
        output.json(&json!({"file": file, "state": state, "gateways": gateways}));
        return Ok(());
    }
    output.line(&format!("service   {state}: {}", file.display()));
    let running = if gateways.is_empty() { "none of yours runs".to_owned() } else { gateways.join(", ") };
    output.line(&format!("gateway   {running}"));
    output.message(&match &content {
        None => "  hint: toolyard service install".to_owned(),
        Some(_) => format!("  hint: {}", manager.status_commands(&log_file(context))),
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
    #[cfg(unix)]
    fn a_path_that_is_not_text_is_refused() {
        use std::os::unix::ffi::OsStringExt as _;

        let error = text_of("PATH", OsString::from_vec(b"/opt/\xff".to_vec())).unwrap_err();
        assert!(error.message().starts_with("PATH is not valid UTF-8: /opt/"), "{}", error.message());
    }
}
