//! Our own entry in the files of other clients, in the form that each of them has.

use serde_json::{Value, json};
use toolyard_mcp::config::import::Client;

use super::connect_edit::INPUT;

/// How a client reaches us.
#[derive(Debug)]
pub(super) enum Way {
    /// It starts this program with these words.
    Program { command: String, args: Vec<String> },
    /// We are running already.
    Address(String),
}

/// The variable that holds the token where a client looks variables up.
pub(super) const TOKEN_VARIABLE: &str = "TOOLYARD_TOKEN";

/// The entry of a client. A token is never written into it: it stays a reference.
pub(super) fn entry(client: Client, way: &Way) -> Value {
    match way {
        Way::Program { command, args } => match client {
            Client::VsCode => json!({"type": "stdio", "command": command, "args": args}),
            _ => json!({"command": command, "args": args}),
        },
        Way::Address(url) => {
            let bearer = |reference: String| json!({"Authorization": format!("Bearer {reference}")});
            match client {
                Client::Cursor => {
                    json!({"url": url, "headers": bearer(format!("${{env:{TOKEN_VARIABLE}}}"))})
                }
                Client::VsCode => {
                    json!({"type": "http", "url": url, "headers": bearer(format!("${{input:{INPUT}}}"))})
                }
                Client::Codex => json!({"url": url, "bearer_token_env_var": TOKEN_VARIABLE}),
                Client::Gemini => json!({"httpUrl": url, "headers": bearer(format!("${TOKEN_VARIABLE}"))}),
                _ => json!({"type": "http", "url": url, "headers": bearer(format!("${{{TOKEN_VARIABLE}}}"))}),
            }
        }
    }
}

/// Whether an entry is ours: it has our name, and starts this program or none. What else starts this program is a person's own.
pub(super) fn is_ours(name: &str, server: &Value) -> bool {
    let command = server.get("command").and_then(Value::as_str).unwrap_or_default();
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let starts_us = program.strip_suffix(".exe").unwrap_or(program) == "toolyard";
    name == super::connect_edit::OWN && (starts_us || command.is_empty())
}
