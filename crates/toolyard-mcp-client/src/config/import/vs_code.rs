//! Visual Studio Code: `mcp.json` of a project or a user, and the older `mcp.servers` in `settings.json`.

use super::{ConfigPath, OperatingSystem};
use crate::config::{
    DocumentError, FileContext, ServerSettings, TransportSetting,
    client_file::document::Node,
    client_file::parsed_servers::ParsedServers,
    client_file::server_entry::{EntryError, ServerEntry, parse_common_fields},
    client_file::variable_dialect::VariableDialect,
};

pub(super) const CONFIG_PATHS: &[ConfigPath] = &[
    ConfigPath::project(".vscode/mcp.json"),
    ConfigPath::project(".vscode/settings.json"),
    ConfigPath::home(".copilot/mcp-config.json"),
    ConfigPath::home_on(OperatingSystem::Linux, ".config/Code/User/mcp.json"),
    ConfigPath::home_on(OperatingSystem::Linux, ".config/Code/User/settings.json"),
    ConfigPath::home_on(OperatingSystem::MacOs, "Library/Application Support/Code/User/mcp.json"),
    ConfigPath::home_on(OperatingSystem::MacOs, "Library/Application Support/Code/User/settings.json"),
    ConfigPath::home_on(OperatingSystem::Windows, "AppData/Roaming/Code/User/mcp.json"),
    ConfigPath::home_on(OperatingSystem::Windows, "AppData/Roaming/Code/User/settings.json"),
];

pub(super) fn parse(text: &str, context: FileContext<'_>) -> Result<ParsedServers, DocumentError> {
    let document = Node::from_json(text)?;
    let nested = document.get("mcp").and_then(|mcp| mcp.get("servers"));
    let servers = document.get_any(&["servers", "mcpServers", "mcp.servers"]).or(nested);
    ParsedServers::parse_table(servers, "`servers`", parse_fields, VariableDialect::Braced, context)
}

fn parse_fields(entry: &mut ServerEntry<'_>) -> Result<ServerSettings, EntryError> {
    let settings = parse_common_fields(entry)?;
    entry.ignore_fields(&["sandboxEnabled", "sandbox"], Some("sandboxing is configured separately"));
    // `http` falls back to SSE in VS Code, as detection does here.
    let transport = settings.transport.filter(|kind| *kind != TransportSetting::Http);
    Ok(ServerSettings { transport, ..settings })
}
