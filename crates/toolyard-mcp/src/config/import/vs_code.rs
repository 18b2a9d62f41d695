//! Visual Studio Code: `mcp.json` of a project or a person, and the older `mcp.servers` in `settings.json`.

use super::{Candidate, System};
use crate::config::{
    DocumentError, Place, ServerSettings, TransportSetting,
    dialect::Dialect,
    document::Node,
    draft::Drafts,
    entry::{Entry, EntryProblem, shared_fields},
};

pub(super) const CANDIDATES: &[Candidate] = &[
    Candidate::project(".vscode/mcp.json"),
    Candidate::project(".vscode/settings.json"),
    Candidate::home(".copilot/mcp-config.json"),
    Candidate::home_on(System::Linux, ".config/Code/User/mcp.json"),
    Candidate::home_on(System::Linux, ".config/Code/User/settings.json"),
    Candidate::home_on(System::MacOs, "Library/Application Support/Code/User/mcp.json"),
    Candidate::home_on(System::MacOs, "Library/Application Support/Code/User/settings.json"),
    Candidate::home_on(System::Windows, "AppData/Roaming/Code/User/mcp.json"),
    Candidate::home_on(System::Windows, "AppData/Roaming/Code/User/settings.json"),
];

pub(super) fn read(text: &str, place: Place<'_>) -> Result<Drafts, DocumentError> {
    let document = Node::from_json(text)?;
    let nested = document.get("mcp").and_then(|mcp| mcp.get("servers"));
    let servers = document
        .either(&["servers", "mcpServers", "mcp.servers"])
        .or(nested)
        .ok_or(DocumentError::NoServers { expected: "`servers`" })?;
    let mut drafts = Drafts::default();
    drafts.read(servers, fields, Dialect::Braces, place);
    Ok(drafts)
}

fn fields(entry: &mut Entry<'_>) -> Result<ServerSettings, EntryProblem> {
    let settings = shared_fields(entry)?;
    entry.without(&["sandboxEnabled", "sandbox"], Some("servers are confined here by rules of our own"));
    // `http` falls back to the older transport there, as finding out does here.
    let transport = settings.transport.filter(|kind| *kind != TransportSetting::Http);
    Ok(ServerSettings { transport, ..settings })
}
