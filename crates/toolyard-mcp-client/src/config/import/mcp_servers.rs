//! Claude Desktop (`claude_desktop_config.json`) and Cursor (`.cursor/mcp.json`): JSON with common fields under `mcpServers`.

use super::{ConfigPath, OperatingSystem};
use crate::config::{
    DocumentError, FileContext,
    client_file::parsed_servers::ParsedServers,
    client_file::variable_dialect::VariableDialect,
    client_file::{document::Node, server_entry::parse_common_fields},
};

pub(super) const CLAUDE_DESKTOP_PATHS: &[ConfigPath] = &[
    ConfigPath::home_on(OperatingSystem::Linux, ".config/Claude/claude_desktop_config.json"),
    ConfigPath::home_on(
        OperatingSystem::MacOs,
        "Library/Application Support/Claude/claude_desktop_config.json",
    ),
    ConfigPath::home_on(OperatingSystem::Windows, "AppData/Roaming/Claude/claude_desktop_config.json"),
];
pub(super) const CURSOR_PATHS: &[ConfigPath] =
    &[ConfigPath::home(".cursor/mcp.json"), ConfigPath::project(".cursor/mcp.json")];

pub(super) fn parse(text: &str, context: FileContext<'_>) -> Result<ParsedServers, DocumentError> {
    let servers = Node::from_json(text)?;
    ParsedServers::parse_table(
        servers.get("mcpServers"),
        "`mcpServers`",
        parse_common_fields,
        VariableDialect::Braced,
        context,
    )
}
