//! Cursor: `.cursor/mcp.json`.

use super::Candidate;
use crate::config::{
    DocumentError, Place, dialect::Dialect, document::Node, draft::Drafts, entry::shared_fields,
};

pub(super) const CANDIDATES: &[Candidate] =
    &[Candidate::home(".cursor/mcp.json"), Candidate::project(".cursor/mcp.json")];

pub(super) fn read(text: &str, place: Place<'_>) -> Result<Drafts, DocumentError> {
    let document = Node::from_json(text)?;
    let servers = document.get("mcpServers").ok_or(DocumentError::NoServers { expected: "`mcpServers`" })?;
    let mut drafts = Drafts::default();
    drafts.read(servers, shared_fields, Dialect::Braces, place);
    Ok(drafts)
}
