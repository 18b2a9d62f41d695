//! Plain `mcp.json`, `.mcp.json` and `mcp.local.json` files, used as they are.

use std::path::Path;

use toolyard_core::RawJson;

use super::{
    McpServerConfig, ServerSettings,
    dialect::{Dialect, Place},
    document::{DocumentError, Node},
    draft::Drafts,
    entry::{Entry, EntryProblem, Problem, shared_fields},
};

/// The servers of one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileServers {
    /// Those that can be used.
    pub servers: Vec<FileServer>,
    /// Those that cannot, and why.
    pub problems: Vec<Problem>,
}

/// One server of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileServer {
    /// The server.
    pub config: McpServerConfig,
    /// The seeds' `cached_tools`: definitions the file brings along. They are what the file says, not what the server
    /// said.
    pub cached_tools: Vec<RawJson>,
    /// What there is to say about it: fields that were left out, secrets that stand in the file.
    pub notes: Vec<String>,
}

/// Reads such a file. One server that cannot be used does not stop the others. Secrets that stand in the file are used,
/// with a note; nobody is trusted because of it.
pub fn read_mcp_json(text: &str, base: &Path) -> Result<FileServers, DocumentError> {
    let document = Node::from_json(text)?;
    let servers = servers_of(&document)
        .ok_or(DocumentError::NoServers { expected: "a table `mcpServers` or `servers`" })?;
    let folder = base.to_string_lossy();
    let mut drafts = Drafts::default();
    drafts.read(servers, file_fields, Dialect::Braces, Place { workspace: Some(&folder) });
    let mut file = FileServers { servers: Vec::new(), problems: drafts.problems };
    let cached: std::collections::HashMap<&str, &Node> = cached_tools(servers).collect();
    for draft in drafts.drafts {
        let mut notes = draft.notes;
        notes.extend(draft.settings.warnings(&draft.name));
        let tools = cached.get(draft.source.as_str()).map(|tools| tools.items()).unwrap_or_default();
        let cached_tools = tools.iter().map(|tool| RawJson::from_value(&tool.to_json())).collect();
        match draft.settings.into_config(&draft.name, base) {
            Ok(config) => file.servers.push(FileServer { config, cached_tools, notes }),
            Err(error) => file.problems.push(Problem { server: draft.name, reason: error.into() }),
        }
    }
    Ok(file)
}

/// The table or list of servers, wherever such files keep it.
fn servers_of(document: &Node) -> Option<&Node> {
    let inner = document.get("mcp").and_then(|inner| inner.either(&["mcpServers", "servers"]));
    let found = document.either(&["mcpServers", "servers", "mcp_servers"]).or(inner);
    let found = if matches!(document, Node::List(_)) { Some(document) } else { found };
    found.filter(|servers| matches!(servers, Node::Map(_) | Node::List(_)))
}

/// The definitions that servers bring along, by the name they have in the file.
fn cached_tools(servers: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let named = servers.entries().iter().map(|(name, node)| (name.as_str(), node));
    let listed = servers.items().iter().map(|node| (super::draft::inner_name(node), node));
    named.chain(listed).filter_map(|(name, node)| Some((name, node.either(CACHED_TOOLS)?)))
}

const CACHED_TOOLS: &[&str] = &["cached_tools", "cachedTools"];

/// The shared fields, and the shape of the seeds' `MCPServerConfig` with one table for each transport.
fn file_fields(entry: &mut Entry<'_>) -> Result<ServerSettings, EntryProblem> {
    let mut settings = shared_fields(entry)?;
    entry.without(CACHED_TOOLS, None);
    entry.without(&["created_at", "updated_at", "last_tools_check_at"], None);
    for node in [entry.node(&["stdio_config"]), entry.node(&["http_config"])].into_iter().flatten() {
        let mut inner = Entry::new(node)?;
        let part = shared_fields(&mut inner)?;
        let variables = inner.map(&["env_vars"])?;
        entry.notes.extend(inner.finish());
        settings.command = settings.command.or(part.command);
        settings.args.extend(part.args);
        settings.env.extend(part.env);
        settings.env.extend(variables);
        settings.cwd = settings.cwd.or(part.cwd);
        settings.url = settings.url.or(part.url);
        settings.headers.extend(part.headers);
    }
    Ok(settings)
}

#[cfg(test)]
#[path = "mcp_json_tests.rs"]
mod tests;
