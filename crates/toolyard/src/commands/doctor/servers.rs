//! Checks MCP servers without starting them.

use std::path::{Path, PathBuf};

use toolyard::Toolyard;
use toolyard_mcp_client::{
    ManagedServer, McpManager, ServerState,
    config::{ConfigError, McpServerConfig, TransportConfig},
};

use super::Finding;
use crate::config::CliContext;
use crate::{
    commands::servers::failure_cache::{ServerFailure, ServerFailures},
    terminal::pluralize,
};

/// Used if `PATH` is not set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Checks definitions, variables, commands and tools that await approval.
pub(super) fn check(context: &CliContext, toolyard: &Toolyard) -> Vec<Finding> {
    let servers = toolyard.servers().map(McpManager::servers).unwrap_or_default();
    let (mut findings, failures) = (Vec::new(), ServerFailures::read(context));
    if !servers.is_empty() {
        findings.push(summary(&servers));
    }
    let problems = context.server_problems.iter();
    findings.extend(problems.map(|problem| Finding::problem("servers", problem)));
    for (name, settings) in &context.server_settings {
        let warnings = settings.warnings(name).into_iter();
        findings.extend(warnings.map(|warning| Finding::note("servers", warning)));
    }
    let notes = context.server_notes.iter();
    findings.extend(notes.map(|note| Finding::note("servers", note)));
    for server in servers.iter().filter(|server| server.config().enabled) {
        findings.extend(check_start(server.config(), &context.skill_environment.working_directory));
        findings.extend(check_tools(server, failures.get(server.config())));
    }
    findings
}

fn summary(servers: &[std::sync::Arc<ManagedServer>]) -> Finding {
    let tools: usize = servers.iter().map(|server| server.tool_approvals().approved().len()).sum();
    let (servers, tools) = (pluralize(servers.len(), "server"), pluralize(tools, "tool"));
    Finding::ok("servers", format!("{servers}, {tools} known"))
}

/// Checks that a server could be started: variables, folder and program.
fn check_start(config: &McpServerConfig, current_folder: &Path) -> Option<Finding> {
    let problem = |detail: String| Finding::problem("servers", detail);
    let resolved = match config.resolve(|name| std::env::var(name).ok()) {
        Ok(resolved) => resolved,
        Err(ConfigError::UnsetVariable { server, variable, field }) => {
            let detail = format!("{server}: the environment variable `{variable}` ({field}) is not set");
            return Some(
                problem(detail).with_hint(format!("set it where Toolyard is started: export {variable}=…")),
            );
        }
        Err(error) => return Some(problem(error.to_string())),
    };
    let TransportConfig::Stdio { command, env, cwd, .. } = resolved.transport else { return None };
    let folder = cwd.unwrap_or_else(|| current_folder.to_owned());
    let id = &config.id;
    if !folder.is_dir() {
        return Some(problem(format!("{id}: the working directory {} does not exist", folder.display())));
    }
    let path = env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok());
    let exists = candidates(&command, path.as_deref().unwrap_or(DEFAULT_PATH), &folder)
        .iter()
        .any(|file| is_program(file));
    // Shows the unresolved command: resolved variables may be secrets.
    let TransportConfig::Stdio { command: unresolved, .. } = &config.transport else { return None };
    let detail = format!("{id}: program `{}` not found", toolyard_core::redact(unresolved));
    (!exists).then(|| problem(detail).with_hint("install it, or set its full path as `command`"))
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

/// Reports the last failure and tools that await approval or cannot be used.
fn check_tools(server: &ManagedServer, failure: Option<&ServerFailure>) -> Vec<Finding> {
    let (id, approvals) = (&server.config().id, server.tool_approvals());
    let mut findings = Vec::new();
    if let Some(failure) = failure {
        let detail = format!("{id} failed {}: {}", failure.ago(), failure.reason);
        let finding = Finding::problem("servers", detail);
        findings.push(finding.with_hint(format!("retry: toolyard servers test {id}")));
    } else if server.state() == ServerState::Configured {
        let finding =
            Finding::note("servers", format!("{id} was never started; its tools are not known yet"));
        findings.push(finding.with_hint(format!("toolyard servers test {id}")));
    }
    for tool in &approvals.quarantined {
        let detail = format!("{id}: {} awaits approval: {}", tool.name, tool.reason);
        findings.push(Finding::note("servers", detail).with_hint(format!(
            "review the change: toolyard servers show {id} · accept it: toolyard servers approve {id}"
        )));
    }
    for tool in &approvals.rejected {
        let name = tool.name.as_deref().unwrap_or("an unnamed tool");
        let detail = format!("{id}: {name} cannot be used: {}", tool.reason);
        findings.push(Finding::note("servers", detail));
    }
    findings
}
