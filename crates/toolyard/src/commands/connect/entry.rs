//! Toolyard's own entry in a client's configuration, in that client's format.

use serde_json::{Map, Value, json};
use toolyard_mcp_client::config::import::Client;

pub(super) const OWN_NAME: &str = "toolyard";
/// The id of the input with which VS Code prompts for the token.
pub(super) const TOKEN_INPUT: &str = "toolyard-token";

#[derive(Debug)]
pub(super) enum GatewayConnection {
    /// The client starts this command.
    Stdio {
        command: String,
        args: Vec<String>,
        /// Environment variables that servers need; some clients pass on only those that their file names.
        variables: Vec<String>,
    },
    /// The client connects to a running gateway at this URL.
    Http(String),
}

/// The environment variable that clients read the token from.
pub(in crate::commands) const TOKEN_VARIABLE: &str = "TOOLYARD_TOKEN";

/// The entry for a client. The token is a reference, never a literal.
pub(super) fn entry(client: Client, connection: &GatewayConnection) -> Value {
    match connection {
        GatewayConnection::Stdio { command, args, variables } => match client {
            Client::VsCode => json!({"type": "stdio", "command": command, "args": args}),
            Client::Codex if !variables.is_empty() => {
                json!({"command": command, "args": args, "env_vars": variables})
            }
            Client::Gemini if !variables.is_empty() => {
                let env: Map<String, Value> =
                    variables.iter().map(|name| (name.clone(), format!("${name}").into())).collect();
                json!({"command": command, "args": args, "env": env})
            }
            _ => json!({"command": command, "args": args}),
        },
        GatewayConnection::Http(url) => {
            let bearer = |reference: String| json!({"Authorization": format!("Bearer {reference}")});
            match client {
                Client::Cursor => {
                    json!({"url": url, "headers": bearer(format!("${{env:{TOKEN_VARIABLE}}}"))})
                }
                Client::VsCode => {
                    json!({"type": "http", "url": url, "headers": bearer(format!("${{input:{TOKEN_INPUT}}}"))})
                }
                Client::Codex => json!({"url": url, "bearer_token_env_var": TOKEN_VARIABLE}),
                Client::Gemini => json!({"httpUrl": url, "headers": bearer(format!("${TOKEN_VARIABLE}"))}),
                _ => json!({"type": "http", "url": url, "headers": bearer(format!("${{{TOKEN_VARIABLE}}}"))}),
            }
        }
    }
}

/// The input with which VS Code prompts for the token.
pub(super) fn token_input() -> Value {
    json!({"type": "promptString", "id": TOKEN_INPUT, "description": "Token of toolyard serve", "password": true})
}

/// Whether an entry is Toolyard's own: it has our name, and its command is this program or missing.
pub(super) fn is_own(name: &str, server: &Value) -> bool {
    let command = server.get("command").and_then(Value::as_str).unwrap_or_default();
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_toolyard = program.strip_suffix(".exe").unwrap_or(program) == "toolyard";
    name == OWN_NAME && (is_toolyard || command.is_empty())
}
