//! What the doctor finds on MCP servers. None is started for it.

use std::path::{Path, PathBuf};

use toolyard::Toolyard;
use toolyard_mcp::{
    client::{McpManager, Server, ServerState},
    config::{ExpandError, McpServerConfig, TransportConfig},
};

use super::{
    doctor::{Finding, State},
    server_memory::{ServerMemory, Trouble},
};
use crate::folders::Workplace;

/// Where programs are looked for when the environment has no `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Descriptions, variables, programs, and what waits for a person.
pub(super) fn servers(workplace: &Workplace, yard: &Toolyard) -> Vec<Finding> {
    let servers = yard.servers().map(McpManager::servers).unwrap_or_default();
    let (mut findings, memory) = (Vec::new(), ServerMemory::read(workplace));
    if !servers.is_empty() {
        findings.push(summary(&servers));
    }
    let problems = workplace.server_problems.iter();
    findings.extend(problems.map(|problem| Finding::new(State::Problem, "servers", problem)));
    for (name, settings) in &workplace.written_servers {
        let warnings = settings.warnings(name).into_iter();
        findings.extend(warnings.map(|warning| Finding::new(State::Note, "servers", warning)));
    }
    let notes = workplace.server_notes.iter();
    findings.extend(notes.map(|note| Finding::new(State::Note, "servers", note)));
    for server in servers.iter().filter(|server| server.config().enabled) {
        findings.extend(reach(server.config(), &workplace.surroundings.working_directory));
        findings.extend(tools(server, memory.of(server.config())));
    }
    findings
}

fn summary(servers: &[std::sync::Arc<Server>]) -> Finding {
    let tools: usize = servers.iter().map(|server| server.shelf().in_service.len()).sum();
    let counted =
        |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let (servers, tools) = (counted(servers.len(), "server"), counted(tools, "tool"));
    Finding::new(State::Fine, "servers", format!("{servers}, {tools} known"))
}

/// Whether it could be started, as far as that shows without starting it.
fn reach(config: &McpServerConfig, here: &Path) -> Option<Finding> {
    let problem = |detail: String| Finding::new(State::Problem, "servers", detail);
    let resolved = match config.resolve(|name| std::env::var(name).ok()) {
        Ok(resolved) => resolved,
        Err(ExpandError::Unset { server, variable, place }) => {
            let detail = format!("{server} needs the variable `{variable}` ({place}), which is not set");
            return Some(
                problem(detail).hint(format!("set it where toolyard is started: export {variable}=…")),
            );
        }
        Err(error) => return Some(problem(error.to_string())),
    };
    let TransportConfig::Stdio { command, env, cwd, .. } = resolved.transport else { return None };
    let folder = cwd.unwrap_or_else(|| here.to_owned());
    let id = &config.id;
    if !folder.is_dir() {
        return Some(problem(format!("{id}: its folder {} does not exist", folder.display())));
    }
    let path = env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok());
    let is_there = candidates(&command, path.as_deref().unwrap_or(USUAL_PATH), &folder)
        .iter()
        .any(|file| is_program(file));
    // The command as it was written: once variables are looked up, it may hold a secret.
    let TransportConfig::Stdio { command: written, .. } = &config.transport else { return None };
    let detail = format!("{id}: the program `{}` was not found", toolyard_core::redact(written));
    (!is_there).then(|| problem(detail).hint("install it, or give its full path in the server's settings"))
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
    file.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file() || file.with_extension("exe").is_file()
}

/// What is known of its tools, and what waits for a person.
fn tools(server: &Server, trouble: Option<&Trouble>) -> Vec<Finding> {
    let (id, shelf) = (&server.config().id, server.shelf());
    let mut findings = Vec::new();
    if let Some(trouble) = trouble {
        let detail = format!("{id} could not be used {}: {}", trouble.ago(), trouble.reason);
        let finding = Finding::new(State::Problem, "servers", detail);
        findings.push(finding.hint(format!("try it again: toolyard servers test {id}")));
    } else if server.state() == ServerState::Configured {
        let finding =
            Finding::new(State::Note, "servers", format!("{id} was never started, its tools are not known"));
        findings.push(finding.hint(format!("toolyard servers test {id}")));
    }
    for tool in &shelf.out_of_service {
        let detail = format!("{id}: {} is out of service: {}", tool.name, tool.reason);
        findings.push(Finding::new(State::Note, "servers", detail).hint(format!(
            "see what changed: toolyard servers show {id} · then: toolyard servers approve {id}"
        )));
    }
    for tool in &shelf.quarantined {
        let name = tool.name.as_deref().unwrap_or("a tool without a name");
        let detail = format!("{id}: {name} cannot be used: {}", tool.reason);
        findings.push(Finding::new(State::Note, "servers", detail));
    }
    findings
}
