//! The messages at start-up that say how to connect.

use std::{io::IsTerminal as _, net::SocketAddr};

use toolyard::{Toolyard, settings::ServeSettings};

use super::{DEFAULT_ADDRESS, console::ServedConsole, secrets::Secrets};
use crate::{
    cli::ServeArgs,
    commands::{agent_run::suggest_model_test, tools::count_tools},
    terminal::Output,
};

/// Prints the endpoints, the tools that are known so far, the token and how to connect a client.
pub(super) fn print(
    address: SocketAddr,
    toolyard: &Toolyard,
    arguments: &ServeArgs,
    serve: &ServeSettings,
    secrets: &Secrets,
    output: &Output,
) {
    let url = format!("http://{address}/mcp");
    output.message(&format!("serving at {url}"));
    output.message(&format!("  {}   (toolyard tools list)", count_tools(toolyard)));
    for profile in serve.profiles.keys() {
        output.message(&format!("  profile {profile} at {url}/{profile}"));
    }
    if arguments.legacy_sse {
        output.message(&format!("  HTTP+SSE clients (MCP 2024-11-05) at http://{address}/sse"));
    }
    if !address.ip().is_loopback() {
        output.message("  note: traffic is not encrypted; put a TLS proxy in front of this address");
    }
    if arguments.no_auth {
        output.message("  note: authentication is disabled; every program on this machine may connect");
    } else {
        output.message(&format!("  token: {}", secrets.token_hint(std::io::stderr().is_terminal())));
    }
    let url = if address.to_string() == DEFAULT_ADDRESS { String::new() } else { format!(" {url}") };
    output.message(&format!(
        "  connect a client: toolyard connect claude --http{url}   (or cursor, vscode, codex, gemini)"
    ));
    if !arguments.no_auth {
        output.message(&format!(
            "  other clients: header `Authorization: Bearer TOKEN`; in a shell: {}",
            secrets.export_command()
        ));
    }
}

/// Prints where the console is; on a terminal, with a link that signs in. A log must not have that link.
pub(super) fn print_console(address: SocketAddr, console: &ServedConsole, output: &Output) {
    let is_terminal = std::io::stderr().is_terminal();
    let link = if is_terminal { console.console.sign_in_path().ok() } else { None };
    let path = link.as_deref().unwrap_or("/");
    let more = if link.is_some() {
        "   (once, within 10 minutes; then: toolyard open)"
    } else {
        "   (sign in: toolyard open)"
    };
    output.message(&format!("  console: http://{address}{path}{more}"));
}

pub(super) fn print_agents(address: SocketAddr, toolyard: &Toolyard, output: &Output) {
    let names = toolyard.agents().names().join(", ");
    output.message(&format!("  agents over the OpenAI API: http://{address}/v1   (as model: {names})"));
    output.message(&format!("  runs: POST http://{address}/api/v1/runs, described at /api/openapi.json"));
    output.message("  approve tool calls of agents: toolyard runs list, toolyard runs approve RUN");
    if let Ok(model) = toolyard.agents().models().resolve_name(None) {
        suggest_model_test(toolyard, &model, output);
    }
}
