//! Codex: `[mcp_servers.NAME]` of `config.toml`. Values are literal; variables have their own fields.

use super::ConfigPath;
use crate::config::{
    DocumentError, FileContext, ServerSettings,
    client_file::document::Node,
    client_file::parsed_servers::{ParsedServers, templates_mut},
    client_file::server_entry::{EntryError, MILLISECONDS, SECONDS, ServerEntry, parse_common_fields},
    client_file::variable_dialect::VariableDialect,
    redacted::safe_preview,
    template::Template,
    value_syntax::is_variable_name,
};

pub(super) const CONFIG_PATHS: &[ConfigPath] =
    &[ConfigPath::home(".codex/config.toml"), ConfigPath::project(".codex/config.toml")];

pub(super) fn parse(text: &str, context: FileContext<'_>) -> Result<ParsedServers, DocumentError> {
    let document = Node::from_toml(text)?;
    let servers = document.get("mcp_servers");
    ParsedServers::parse_table(servers, "`[mcp_servers]`", parse_fields, VariableDialect::Native, context)
}

fn parse_fields(entry: &mut ServerEntry<'_>) -> Result<ServerSettings, EntryError> {
    let inherit = parse_inherited_variables(entry);
    let mut settings = parse_common_fields(entry)?;
    settings.inherit = inherit;
    settings.headers = entry.map(&["http_headers", "headers"])?;
    // All values so far are literal; references are added below.
    templates_mut(&mut settings).for_each(|text| *text = Template::escape(text));
    for (header, variable) in entry.map(&["env_http_headers"])? {
        let value = variable_reference(&variable, "env_http_headers", entry)?;
        settings.headers.insert(header, value);
    }
    if let Some(variable) = entry.text(&["bearer_token_env_var"])? {
        let value = variable_reference(&variable, "bearer_token_env_var", entry)?;
        settings.headers.insert("Authorization".to_owned(), format!("Bearer {value}"));
    } else if let Some(token) = entry.text(&["bearer_token"])? {
        settings.headers.insert("Authorization".to_owned(), format!("Bearer {}", Template::escape(&token)));
    }
    settings.startup_timeout = match entry.duration(&["startup_timeout_sec"], SECONDS) {
        Some(timeout) => Some(timeout),
        None => entry.duration(&["startup_timeout_ms"], MILLISECONDS),
    };
    settings.call_timeout = entry.duration(&["tool_timeout_sec"], SECONDS);
    if let Some(scopes) = entry.texts(&["scopes"])? {
        settings.oauth.get_or_insert_default().scopes = scopes;
    }
    entry.ignore_fields(&["required"], Some("failures are isolated per server"));
    entry.ignore_fields(
        &["default_tools_approval_mode", "tools", "supports_parallel_tool_calls", "oauth_resource"],
        Some("approval rules decide this"),
    );
    Ok(settings)
}

/// Names of variables, as texts or as tables with a name.
fn parse_inherited_variables(entry: &mut ServerEntry<'_>) -> Vec<String> {
    let items = entry.node(&["env_vars"]).map(Node::items).unwrap_or_default();
    let name = |item: &Node| item.text().or_else(|| item.get("name").and_then(Node::text)).map(str::to_owned);
    items.iter().filter_map(name).collect()
}

fn variable_reference(
    variable: &str,
    field: &str,
    entry: &mut ServerEntry<'_>,
) -> Result<String, EntryError> {
    if is_variable_name(variable) {
        return Ok(format!("${{{variable}}}"));
    }
    entry.notes.push(format!("`{}` in `{field}` is not a variable name", safe_preview(variable)));
    Err(EntryError::Unsupported("a header refers to an invalid environment variable name"))
}
