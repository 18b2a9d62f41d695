//! Claude Code: `.mcp.json` of a project, and `~/.claude.json` with servers for all projects and for single ones.

use super::ConfigPath;
use crate::config::{
    DocumentError, FileContext, client_file::document::Node, client_file::parsed_servers::ParsedServers,
    client_file::server_entry::parse_common_fields, client_file::variable_dialect::VariableDialect,
    redacted::safe_preview,
};

pub(super) const CONFIG_PATHS: &[ConfigPath] =
    &[ConfigPath::home(".claude.json"), ConfigPath::project(".mcp.json")];

pub(super) fn parse(text: &str, context: FileContext<'_>) -> Result<ParsedServers, DocumentError> {
    let document = Node::from_json(text)?;
    let projects = document.get("projects").map(Node::entries).unwrap_or_default();
    if document.get("mcpServers").is_none() && projects.is_empty() {
        return Err(DocumentError::NoServers { expected: "`mcpServers`" });
    }
    let mut parsed = ParsedServers::default();
    if let Some(servers) = document.get("mcpServers") {
        parsed.parse_all(servers, parse_common_fields, VariableDialect::Braced, context);
    }
    for (folder, project) in projects {
        let Some(servers) = project.get("mcpServers") else { continue };
        let previous_count = parsed.servers.len();
        parsed.parse_all(
            servers,
            parse_common_fields,
            VariableDialect::Braced,
            FileContext { workspace: Some(folder), ..context },
        );
        for server in parsed.servers.iter_mut().skip(previous_count) {
            server.notes.push(format!("configured only for the project {}", safe_preview(folder)));
        }
    }
    Ok(parsed)
}
