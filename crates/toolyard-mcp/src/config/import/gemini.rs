//! Gemini CLI: `.gemini/settings.json`, where `url` means HTTP+SSE and `httpUrl` Streamable HTTP.

use super::Candidate;
use crate::config::{
    DocumentError, Place, ServerSettings, TransportSetting,
    dialect::Dialect,
    document::Node,
    draft::Drafts,
    entry::{Entry, EntryProblem, shared_fields},
};

pub(super) const CANDIDATES: &[Candidate] =
    &[Candidate::home(".gemini/settings.json"), Candidate::project(".gemini/settings.json")];

pub(super) fn read(text: &str, place: Place<'_>) -> Result<Drafts, DocumentError> {
    let document = Node::from_json(text)?;
    let servers = document.get("mcpServers").ok_or(DocumentError::NoServers { expected: "`mcpServers`" })?;
    let mut drafts = Drafts::default();
    drafts.read(servers, fields, Dialect::Dollar, place);
    let names = |field: &str| document.get("mcp").and_then(|mcp| mcp.get(field)).map(Node::items);
    let holds = |items: &[Node], name: &str| items.iter().any(|item| item.text() == Some(name));
    for draft in &mut drafts.drafts {
        let is_allowed = names("allowed").is_none_or(|allowed| holds(allowed, &draft.source));
        let is_excluded = names("excluded").is_some_and(|excluded| holds(excluded, &draft.source));
        draft.settings.enabled &= is_allowed && !is_excluded;
    }
    Ok(drafts)
}

fn fields(entry: &mut Entry<'_>) -> Result<ServerSettings, EntryProblem> {
    let mut settings = shared_fields(entry)?;
    // A `type` beside `url` is newer and says it better.
    if settings.transport.is_none() && settings.url.is_some() {
        settings.transport = Some(TransportSetting::Sse);
    }
    if let Some(url) = entry.text(&["httpUrl"])? {
        settings.url = Some(url);
        settings.transport = Some(TransportSetting::Http);
    }
    settings.call_timeout = entry.span(&["timeout"], 1.0);
    settings.tools = entry.texts(&["includeTools"])?;
    settings.without_tools = entry.texts(&["excludeTools"])?.unwrap_or_default();
    entry.without(
        &["authProviderType", "targetAudience", "targetServiceAccount"],
        Some("it is for Google accounts"),
    );
    Ok(settings)
}
