//! Codex: `[mcp_servers.NAME]` of `config.toml`. Values stand for themselves there; variables have fields of their own.

use super::Candidate;
use crate::config::{
    DocumentError, Place, ServerSettings,
    dialect::Dialect,
    document::Node,
    draft::{Drafts, texts_mut},
    entry::{Entry, EntryProblem, shared_fields},
    expand::Template,
    hidden::shown,
    name::is_variable,
};

pub(super) const CANDIDATES: &[Candidate] =
    &[Candidate::home(".codex/config.toml"), Candidate::project(".codex/config.toml")];

pub(super) fn read(text: &str, place: Place<'_>) -> Result<Drafts, DocumentError> {
    let document = Node::from_toml(text)?;
    let servers =
        document.get("mcp_servers").ok_or(DocumentError::NoServers { expected: "`[mcp_servers]`" })?;
    let mut drafts = Drafts::default();
    drafts.read(servers, fields, Dialect::Ours, place);
    Ok(drafts)
}

fn fields(entry: &mut Entry<'_>) -> Result<ServerSettings, EntryProblem> {
    let inherit = inherited(entry);
    let mut settings = shared_fields(entry)?;
    settings.inherit = inherit;
    settings.headers = entry.map(&["http_headers", "headers"])?;
    // References are made below; all that was read so far stands for itself.
    texts_mut(&mut settings).for_each(|text| *text = Template::escape(text));
    for (header, variable) in entry.map(&["env_http_headers"])? {
        let value = reference(&variable, "env_http_headers", entry)?;
        settings.headers.insert(header, value);
    }
    if let Some(variable) = entry.text(&["bearer_token_env_var"])? {
        let value = reference(&variable, "bearer_token_env_var", entry)?;
        settings.headers.insert("Authorization".to_owned(), format!("Bearer {value}"));
    } else if let Some(token) = entry.text(&["bearer_token"])? {
        settings.headers.insert("Authorization".to_owned(), format!("Bearer {}", Template::escape(&token)));
    }
    settings.startup_timeout = match entry.span(&["startup_timeout_sec"], 1_000.0) {
        Some(span) => Some(span),
        None => entry.span(&["startup_timeout_ms"], 1.0),
    };
    settings.call_timeout = entry.span(&["tool_timeout_sec"], 1_000.0);
    settings.tools = entry.texts(&["enabled_tools"])?;
    settings.without_tools = entry.texts(&["disabled_tools"])?.unwrap_or_default();
    if let Some(scopes) = entry.texts(&["scopes"])? {
        settings.oauth.get_or_insert_default().scopes = scopes;
    }
    entry.without(&["required"], Some("a server that is down never stops the others here"));
    entry.without(
        &["default_tools_approval_mode", "tools", "supports_parallel_tool_calls", "oauth_resource"],
        Some("it is decided here by rules of our own"),
    );
    Ok(settings)
}

/// Names of variables, as texts or as tables with a name.
fn inherited(entry: &mut Entry<'_>) -> Vec<String> {
    let items = entry.node(&["env_vars"]).map(Node::items).unwrap_or_default();
    let name = |item: &Node| item.text().or_else(|| item.get("name").and_then(Node::text)).map(str::to_owned);
    items.iter().filter_map(name).collect()
}

fn reference(variable: &str, field: &str, entry: &mut Entry<'_>) -> Result<String, EntryProblem> {
    if is_variable(variable) {
        return Ok(format!("${{{variable}}}"));
    }
    entry.notes.push(format!("`{}` in `{field}` is no name of a variable", shown(variable)));
    Err(EntryProblem::Unsupported("a header comes from something that is no environment variable"))
}
