//! Claude Desktop: `claude_desktop_config.json`.

use super::{Candidate, System};
use crate::config::{
    DocumentError, Place, dialect::Dialect, document::Node, draft::Drafts, entry::shared_fields,
};

pub(super) const CANDIDATES: &[Candidate] = &[
    Candidate::home_on(System::Linux, ".config/Claude/claude_desktop_config.json"),
    Candidate::home_on(System::MacOs, "Library/Application Support/Claude/claude_desktop_config.json"),
    Candidate::home_on(System::Windows, "AppData/Roaming/Claude/claude_desktop_config.json"),
];

pub(super) fn read(text: &str, place: Place<'_>) -> Result<Drafts, DocumentError> {
    let document = Node::from_json(text)?;
    let servers = document.get("mcpServers").ok_or(DocumentError::NoServers { expected: "`mcpServers`" })?;
    let mut drafts = Drafts::default();
    drafts.read(servers, shared_fields, Dialect::Braces, place);
    Ok(drafts)
}
