//! Claude Desktop: `claude_desktop_config.json`.

use super::{ConfigPath, OperatingSystem};
use crate::config::{
    DocumentError, FileContext, client_file::document::Node, client_file::parsed_servers::ParsedServers,
    client_file::server_entry::parse_common_fields, client_file::variable_dialect::VariableDialect,
};

pub(super) const CONFIG_PATHS: &[ConfigPath] = &[
    ConfigPath::home_on(OperatingSystem::Linux, ".config/Claude/claude_desktop_config.json"),
    ConfigPath::home_on(
        OperatingSystem::MacOs,
        "Library/Application Support/Claude/claude_desktop_config.json",
    ),
    ConfigPath::home_on(OperatingSystem::Windows, "AppData/Roaming/Claude/claude_desktop_config.json"),
];

pub(super) fn parse(text: &str, context: FileContext<'_>) -> Result<ParsedServers, DocumentError> {
    let document = Node::from_json(text)?;
    let servers = document.get("mcpServers").ok_or(DocumentError::NoServers { expected: "`mcpServers`" })?;
    let mut parsed = ParsedServers::default();
    parsed.parse_all(servers, parse_common_fields, VariableDialect::Braced, context);
    Ok(parsed)
}
