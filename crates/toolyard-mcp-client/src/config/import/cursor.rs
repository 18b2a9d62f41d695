//! Cursor: `.cursor/mcp.json`.

use super::ConfigPath;
use crate::config::{
    DocumentError, FileContext, client_file::document::Node, client_file::parsed_servers::ParsedServers,
    client_file::server_entry::parse_common_fields, client_file::variable_dialect::VariableDialect,
};

pub(super) const CONFIG_PATHS: &[ConfigPath] =
    &[ConfigPath::home(".cursor/mcp.json"), ConfigPath::project(".cursor/mcp.json")];

pub(super) fn parse(text: &str, context: FileContext<'_>) -> Result<ParsedServers, DocumentError> {
    let document = Node::from_json(text)?;
    let servers = document.get("mcpServers").ok_or(DocumentError::NoServers { expected: "`mcpServers`" })?;
    let mut parsed = ParsedServers::default();
    parsed.parse_all(servers, parse_common_fields, VariableDialect::Braced, context);
    Ok(parsed)
}
