//! Plain `mcp.json`, `.mcp.json` and `mcp.local.json` files.

use std::path::Path;

use toolyard_core::RawJson;

use super::{
    document::{DocumentError, Node},
    parsed_servers::{ParsedServers, name_in_entry},
    server_entry::{EntryError, InvalidServer, ServerEntry, parse_common_fields},
    variable_dialect::{FileContext, VariableDialect},
};
use crate::config::{McpServerConfig, ServerSettings, redacted::safe_preview};

/// The servers of one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileServers {
    /// Valid servers.
    pub servers: Vec<FileServer>,
    /// Invalid servers.
    pub invalid: Vec<InvalidServer>,
}

/// One server of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileServer {
    /// The configuration.
    pub config: McpServerConfig,
    /// Notes on ignored fields and on secrets in the file.
    pub notes: Vec<String>,
}

/// Parses an `mcp.json` file; relative paths in it are relative to `base`. Invalid servers do not affect the others.
/// Secrets in the file are used, with a note; no server is trusted.
pub fn read_mcp_json(text: &str, base: &Path) -> Result<FileServers, DocumentError> {
    let document = Node::from_json(text)?;
    let servers = find_servers(&document)
        .ok_or(DocumentError::NoServers { expected: "a table `mcpServers` or `servers`" })?;
    let folder = base.to_string_lossy();
    let mut parsed = ParsedServers::default();
    parsed.parse_all(
        servers,
        parse_fields,
        VariableDialect::Braced,
        FileContext { workspace: Some(&folder), ..FileContext::default() },
    );
    let mut file = FileServers { servers: Vec::new(), invalid: parsed.invalid };
    let cached: std::collections::HashMap<&str, &Node> = cached_tools(servers).collect();
    for server in parsed.servers {
        let mut notes = server.notes;
        if server.name != server.original_name {
            notes.insert(0, format!("renamed from `{}`", safe_preview(&server.original_name)));
        }
        notes.extend(server.settings.warnings(&server.name));
        let tools = cached.get(server.original_name.as_str()).map(|tools| tools.items()).unwrap_or_default();
        let cached_tools = tools.iter().map(|tool| RawJson::from_value(&tool.to_json())).collect();
        match server.settings.into_config(&server.name, base) {
            Ok(config) => {
                let config = McpServerConfig { cached_tools, ..config };
                file.servers.push(FileServer { config, notes });
            }
            Err(error) => file.invalid.push(InvalidServer { server: server.name, reason: error.into() }),
        }
    }
    Ok(file)
}

fn find_servers(document: &Node) -> Option<&Node> {
    let inner = document.get("mcp").and_then(|inner| inner.get_any(&["mcpServers", "servers"]));
    let found = document.get_any(&["mcpServers", "servers", "mcp_servers"]).or(inner);
    let found = if matches!(document, Node::List(_)) { Some(document) } else { found };
    found.filter(|servers| matches!(servers, Node::Map(_) | Node::List(_)))
}

fn cached_tools(servers: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let named = servers.entries().iter().map(|(name, node)| (name.as_str(), node));
    let listed = servers.items().iter().map(|node| (name_in_entry(node), node));
    named.chain(listed).filter_map(|(name, node)| Some((name, node.get_any(CACHED_TOOLS)?)))
}

const CACHED_TOOLS: &[&str] = &["cached_tools", "cachedTools"];

/// The common fields, and those of the specification's `MCPServerConfig` with one table per transport.
fn parse_fields(entry: &mut ServerEntry<'_>) -> Result<ServerSettings, EntryError> {
    let mut settings = parse_common_fields(entry)?;
    entry.ignore_fields(CACHED_TOOLS, None);
    entry.ignore_fields(&["created_at", "updated_at", "last_tools_check_at"], None);
    for node in [entry.node(&["stdio_config"]), entry.node(&["http_config"])].into_iter().flatten() {
        let mut inner = ServerEntry::new(node)?;
        let nested_settings = parse_common_fields(&mut inner)?;
        let variables = inner.map(&["env_vars"])?;
        entry.notes.extend(inner.into_notes());
        settings.command = settings.command.or(nested_settings.command);
        settings.args.extend(nested_settings.args);
        settings.env.extend(nested_settings.env);
        settings.env.extend(variables);
        settings.cwd = settings.cwd.or(nested_settings.cwd);
        settings.url = settings.url.or(nested_settings.url);
        settings.headers.extend(nested_settings.headers);
    }
    Ok(settings)
}

#[cfg(test)]
#[path = "mcp_json_tests.rs"]
mod tests;
