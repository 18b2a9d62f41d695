//! Checks MCP servers without starting them.

use std::path::{Path, PathBuf};

use toolyard::Toolyard;
use toolyard_core::SourceId;
use toolyard_mcp_client::{
    ManagedServer, ServerState,
    config::{ConfigError, McpServerConfig, TransportConfig, is_private_reference},
};

use super::finding::{Finding, Severity};
use crate::config::CliContext;
use crate::{
    commands::servers::failure_cache::{ServerFailure, ServerFailures},
    terminal::pluralize,
};

/// Used if `PATH` is not set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Checks definitions, variables, commands and tools that await approval; one finding per kind of trouble.
pub(super) fn check(context: &CliContext, toolyard: &Toolyard) -> Vec<Finding> {
    let servers = toolyard.servers().map(|manager| manager.servers()).unwrap_or_default();
    let failures = ServerFailures::read(context);
    let mut findings = Vec::new();
    if !servers.is_empty() {
        findings.push(summary(&servers));
    }
    let settings = context.server_settings.iter();
    let warnings = settings.flat_map(|(name, settings)| settings.warnings(name));
    let notes: Vec<String> = warnings.chain(context.server_notes.iter().cloned()).collect();
    let heading = |count: usize| format!("{count} notes on the settings of servers");
    findings.extend(Finding::group(Severity::Note, "servers", heading, notes));
    let mut unusable: Vec<String> = context.server_problems.iter().map(ToString::to_string).collect();
    let (mut never_started, mut awaiting, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
    for server in servers.iter().filter(|server| server.config().enabled) {
        // A server is reported once: what prevents its start explains its last failure, too.
        let id = &server.config().id;
        let problem = check_start(server.config(), context);
        if let Some(problem) = problem.or_else(|| failures.get(server.config()).map(|last| failure(id, last)))
        {
            unusable.push(problem);
        } else if server.state() == ServerState::Configured {
            never_started.push(id.to_string());
        }
        let approvals = server.tool_approvals();
        awaiting.extend(
            approvals
                .quarantined
                .iter()
                .map(|tool| (id.clone(), format!("{id}: {} awaits approval: {}", tool.name, tool.reason))),
        );
        rejected.extend(approvals.rejected.iter().map(|tool| {
            let name = tool.name.as_deref().unwrap_or("an unnamed tool");
            format!("{id}: {name} cannot be used: {}", tool.reason)
        }));
    }
    findings.extend(unusable_servers(unusable, servers.len()));
    findings.extend(never_started_servers(never_started));
    findings.extend(tools_awaiting_approval(awaiting));
    let heading = |count: usize| format!("{count} tools cannot be used");
    findings.extend(Finding::group(Severity::Note, "servers", heading, rejected));
    findings
}

fn failure(id: &SourceId, last: &ServerFailure) -> String {
    format!("{id} failed {}: {}", last.ago(), last.reason)
}

fn unusable_servers(problems: Vec<String>, servers: usize) -> Option<Finding> {
    let heading = |count: usize| format!("{count} of {} cannot be used", pluralize(servers, "server"));
    let finding = Finding::group(Severity::Problem, "servers", heading, problems)?;
    Some(finding.with_hint("retry: toolyard servers test NAME · log: toolyard servers logs NAME"))
}

fn never_started_servers(names: Vec<String>) -> Option<Finding> {
    let detail = match names.len() {
        0 => return None,
        1 => "1 server was never started; its tools are not known yet".to_owned(),
        count => format!("{count} servers were never started; their tools are not known yet"),
    };
    Some(Finding::note("servers", detail).with_names(names).with_hint("toolyard servers test"))
}

fn tools_awaiting_approval(tools: Vec<(SourceId, String)>) -> Option<Finding> {
    let id = tools.first()?.0.clone();
    let heading = |count: usize| format!("{count} tools await approval");
    let lines = tools.into_iter().map(|(_, line)| line).collect();
    let hint =
        format!("review the change: toolyard servers show {id} · accept it: toolyard servers approve {id}");
    Finding::group(Severity::Note, "servers", heading, lines).map(|finding| finding.with_hint(hint))
}

fn summary(servers: &[std::sync::Arc<ManagedServer>]) -> Finding {
    Finding::ok("servers", pluralize(servers.len(), "server"))
}

/// What prevents the start of a server: a variable, its folder or its program.
pub(in crate::commands) fn check_start(config: &McpServerConfig, context: &CliContext) -> Option<String> {
    let current_folder = &context.skill_environment.working_directory;
    let secrets = context.stored_secrets();
    let resolved = match config.resolve(|name| secrets.variable(name)) {
        Ok(resolved) => resolved,
        Err(error @ ConfigError::UnsetVariable { .. })
            if error.missing_variable().is_some_and(is_private_reference) =>
        {
            let explanation = error.explain_missing(|name| secrets.missing_reason(name));
            return Some(format!("{error}: {}", explanation.unwrap_or_default()));
        }
        Err(ConfigError::UnsetVariable { server, variable, field }) => {
            return Some(format!(
                "{server}: the environment variable `{variable}` ({field}) is not set where Toolyard is started"
            ));
        }
        Err(error) => return Some(error.to_string()),
    };
    let TransportConfig::Stdio { command, env, cwd, .. } = resolved.transport else { return None };
    let folder = cwd.unwrap_or_else(|| current_folder.to_owned());
    let id = &config.id;
    if !folder.is_dir() {
        return Some(format!("{id}: the working directory {} does not exist", folder.display()));
    }
    let path = env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok());
    let exists = candidates(&command, path.as_deref().unwrap_or(DEFAULT_PATH), &folder)
        .iter()
        .any(|file| is_program(file));
    // Shows the unresolved command: resolved variables may be secrets.
    let TransportConfig::Stdio { command: unresolved, .. } = &config.transport else { return None };
    let program = toolyard_core::redact(unresolved);
    let problem =
        format!("{id}: program `{program}` not found: install it, or set its full path as `command`");
    (!exists).then_some(problem)
}

fn candidates(command: &str, path: &str, folder: &Path) -> Vec<PathBuf> {
    if command.contains('/') {
        return vec![folder.join(command)];
    }
    path.split(':').filter(|entry| !entry.is_empty()).map(|entry| Path::new(entry).join(command)).collect()
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file() || file.with_extension("exe").is_file()
}
