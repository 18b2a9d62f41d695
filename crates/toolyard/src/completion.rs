//! Shell completion. The shell calls this program, which completes commands, and names of tools and servers as far as they
//! are known: nothing is started for it.

use std::{ffi::OsString, path::PathBuf};

use clap::CommandFactory as _;
use clap_complete::{
    CompleteEnv, Shell,
    engine::{ArgValueCandidates, CompletionCandidate},
    env::Shells,
};

use crate::{
    cli::Cli,
    commands::{builder, servers_setup},
    config::{CliContext, secrets::referenced_secrets},
    error::CliError,
};

/// Set by the completion script to the name of its shell.
const SHELL_VARIABLE: &str = "TOOLYARD_COMPLETE";
const NAME: &str = "toolyard";

/// Completes a command line if the completion script asks for it, and exits then.
pub(crate) fn complete() {
    if std::env::var_os(SHELL_VARIABLE).is_some() {
        CompleteEnv::with_factory(command).var(SHELL_VARIABLE).complete();
    }
}

/// The completion script of a shell.
pub(crate) fn script(shell: Shell) -> Result<String, CliError> {
    let failed = |reason: &str| CliError::failed(format!("failed to write the completion script: {reason}"));
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).ok_or_else(|| failed("unknown shell"))?;
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from(NAME));
    let mut script = Vec::new();
    completer
        .write_registration(SHELL_VARIABLE, NAME, NAME, &program.to_string_lossy(), &mut script)
        .map_err(|error| failed(&error.to_string()))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Commands, their arguments that are completed, and with what.
const NAMED_ARGUMENTS: [(&[&str], &str, NameKind); 25] = [
    (&["call"], "name", NameKind::Tool),
    (&["call"], "source", NameKind::Source),
    (&["tools", "show"], "name", NameKind::Tool),
    (&["tools", "list"], "source", NameKind::Source),
    (&["servers", "show"], "name", NameKind::Server),
    (&["servers", "remove"], "name", NameKind::Server),
    (&["servers", "edit"], "name", NameKind::Server),
    (&["servers", "enable"], "name", NameKind::Server),
    (&["servers", "disable"], "name", NameKind::Server),
    (&["servers", "trust"], "name", NameKind::Server),
    (&["servers", "untrust"], "name", NameKind::Server),
    (&["servers", "stop"], "name", NameKind::Server),
    (&["servers", "test"], "names", NameKind::Server),
    (&["servers", "approve"], "name", NameKind::Server),
    (&["servers", "logs"], "name", NameKind::Server),
    (&["servers", "login"], "name", NameKind::Server),
    (&["servers", "logout"], "name", NameKind::Server),
    (&["secrets", "set"], "name", NameKind::Secret),
    (&["secrets", "remove"], "name", NameKind::Secret),
    (&["models", "test"], "names", NameKind::Model),
    (&["models", "remove"], "name", NameKind::Model),
    (&["ask"], "name", NameKind::Agent),
    (&["ask"], "model", NameKind::Model),
    (&["chat"], "name", NameKind::Agent),
    (&["chat"], "model", NameKind::Model),
];

/// The command line with candidates for its names.
fn command() -> clap::Command {
    NAMED_ARGUMENTS.iter().fold(Cli::command(), |command, (path, argument, kind)| {
        with_candidates(command, path, argument, *kind)
    })
}

fn with_candidates(command: clap::Command, path: &[&str], argument: &str, kind: NameKind) -> clap::Command {
    if let Some((first, rest)) = path.split_first() {
        return command.mut_subcommand(first, |command| with_candidates(command, rest, argument, kind));
    }
    // Unlike `mut_arg`, this keeps the order of positional arguments.
    let candidates = || ArgValueCandidates::new(move || candidates(kind));
    command.mut_args(|arg| if arg.get_id() == argument { arg.add(candidates()) } else { arg })
}

#[derive(Debug, Clone, Copy)]
enum NameKind {
    Tool,
    Server,
    /// A server, or `native`.
    Source,
    Model,
    Agent,
    /// A stored secret that a server refers to: others would need the keychain.
    Secret,
}

/// The names that are known; none if the settings cannot be read.
fn candidates(kind: NameKind) -> Vec<CompletionCandidate> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    runtime.block_on(known_names(kind)).unwrap_or_default()
}

async fn known_names(kind: NameKind) -> Result<Vec<CompletionCandidate>, CliError> {
    let mut context = CliContext::load(config_argument().as_deref()).await?;
    Ok(match kind {
        NameKind::Tool => {
            // Loading a skill may run its programs.
            context.skill_environment.skill_folders.clear();
            tool_names(&context).await?
        }
        NameKind::Server => context.servers.iter().map(|server| named(server.id.as_str())).collect(),
        NameKind::Source => {
            let servers = context.servers.iter().map(|server| named(server.id.as_str()));
            servers.chain([named("native")]).collect()
        }
        NameKind::Model => context.settings.models.keys().map(|name| named(name)).collect(),
        NameKind::Secret => {
            referenced_secrets(&context.server_settings).keys().map(|name| named(name)).collect()
        }
        NameKind::Agent => context.settings.agents.keys().map(|name| named(name)).collect(),
    })
}

/// Every name by which a known tool can be called, with the first line of its description.
async fn tool_names(context: &CliContext) -> Result<Vec<CompletionCandidate>, CliError> {
    let toolyard = builder(context, servers_setup(context)).build().await?;
    let snapshot = toolyard.hub().snapshot();
    let mut names = Vec::new();
    for (_, found) in snapshot.candidates_by_name() {
        let tools = found.equivalents.iter().take(1).chain(found.non_equivalents());
        for tool in tools.filter(|tool| !tool.denied) {
            // A tool that no name reaches cannot be called.
            let Some(name) = snapshot.callable_name(tool, None) else { continue };
            let line = tool.spec().description.lines().next().unwrap_or_default().to_owned();
            let help = (!line.is_empty()).then(|| line.into());
            names.push(CompletionCandidate::new(name.to_string()).help(help));
        }
    }
    Ok(names)
}

fn named(name: &str) -> CompletionCandidate {
    CompletionCandidate::new(name.to_owned())
}

/// The value of `--config` in the command line that is being completed.
fn config_argument() -> Option<PathBuf> {
    let mut arguments = std::env::args_os().skip_while(|argument| argument != "--").skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            return arguments.next().map(PathBuf::from);
        }
        let text = argument.to_str().and_then(|text| text.strip_prefix("--config="));
        if let Some(file) = text {
            return Some(PathBuf::from(OsString::from(file)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_that_is_completed_exists() {
        command().debug_assert();
        for (path, argument, _) in NAMED_ARGUMENTS {
            let command = Cli::command();
            let found = path.iter().try_fold(&command, |command, name| command.find_subcommand(name));
            let has_argument =
                found.is_some_and(|found| found.get_arguments().any(|arg| arg.get_id() == argument));
            assert!(has_argument, "{path:?} {argument}");
        }
    }
}
