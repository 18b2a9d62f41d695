//! Claude Code: `.mcp.json` of a project, and `~/.claude.json` with servers for all projects and for single ones.

use super::Candidate;
use crate::config::{
    DocumentError, Place, dialect::Dialect, document::Node, draft::Drafts, entry::shared_fields,
    hidden::shown,
};

pub(super) const CANDIDATES: &[Candidate] =
    &[Candidate::home(".claude.json"), Candidate::project(".mcp.json")];

pub(super) fn read(text: &str, place: Place<'_>) -> Result<Drafts, DocumentError> {
    let document = Node::from_json(text)?;
    let projects = document.get("projects").map(Node::entries).unwrap_or_default();
    if document.get("mcpServers").is_none() && projects.is_empty() {
        return Err(DocumentError::NoServers { expected: "`mcpServers`" });
    }
    let mut drafts = Drafts::default();
    if let Some(servers) = document.get("mcpServers") {
        drafts.read(servers, shared_fields, Dialect::Braces, place);
    }
    for (folder, project) in projects {
        let Some(servers) = project.get("mcpServers") else { continue };
        let before = drafts.drafts.len();
        drafts.read(servers, shared_fields, Dialect::Braces, Place { workspace: Some(folder) });
        for draft in drafts.drafts.iter_mut().skip(before) {
            draft.notes.push(format!("it was only for the project {}", shown(folder)));
        }
    }
    Ok(drafts)
}
