//! Gemini CLI: `.gemini/settings.json`, where `url` means HTTP+SSE and `httpUrl` Streamable HTTP.

use super::ConfigPath;
use crate::config::{
    DocumentError, FileContext, ServerSettings, TransportSetting,
    client_file::document::Node,
    client_file::parsed_servers::ParsedServers,
    client_file::server_entry::{EntryError, MILLISECONDS, ServerEntry, parse_common_fields},
    client_file::variable_dialect::VariableDialect,
};

pub(super) const CONFIG_PATHS: &[ConfigPath] =
    &[ConfigPath::home(".gemini/settings.json"), ConfigPath::project(".gemini/settings.json")];

pub(super) fn parse(text: &str, context: FileContext<'_>) -> Result<ParsedServers, DocumentError> {
    let document = Node::from_json(text)?;
    let (servers, dialect) = (document.get("mcpServers"), VariableDialect::BracedOrBare);
    let mut parsed = ParsedServers::parse_table(servers, "`mcpServers`", parse_fields, dialect, context)?;
    let listed_names = |field: &str| document.get("mcp").and_then(|mcp| mcp.get(field)).map(Node::items);
    let contains_name = |items: &[Node], name: &str| items.iter().any(|item| item.text() == Some(name));
    for server in &mut parsed.servers {
        let is_allowed =
            listed_names("allowed").is_none_or(|allowed| contains_name(allowed, &server.original_name));
        let is_excluded =
            listed_names("excluded").is_some_and(|excluded| contains_name(excluded, &server.original_name));
        server.settings.enabled &= is_allowed && !is_excluded;
    }
    Ok(parsed)
}

fn parse_fields(entry: &mut ServerEntry<'_>) -> Result<ServerSettings, EntryError> {
    let mut settings = parse_common_fields(entry)?;
    // A `type` beside `url` takes precedence.
    if settings.transport.is_none() && settings.url.is_some() {
        settings.transport = Some(TransportSetting::Sse);
    }
    if let Some(url) = entry.text(&["httpUrl"])? {
        settings.url = Some(url);
        settings.transport = Some(TransportSetting::Http);
    }
    settings.call_timeout = entry.duration(&["timeout"], MILLISECONDS);
    entry.ignore_fields(
        &["authProviderType", "targetAudience", "targetServiceAccount"],
        Some("Google accounts are not supported"),
    );
    Ok(settings)
}
