//! MCP servers in the files of editors and other clients, which the page of servers imports.

use crate::{
    api::{ImportReport, ImportState, ImportableServer},
    format::shorten,
    text::ServersText,
};

const MAX_SHOWN_SERVERS: usize = 40;
const MAX_ENDPOINT_CHARS: usize = 160;

/// A server in a file of another client.
pub(super) struct ImportRow {
    pub(super) name: String,
    pub(super) endpoint: String,
    pub(super) clients: String,
    pub(super) notes: String,
    pub(super) is_new: bool,
    pub(super) state: &'static str,
}

/// The servers that a page shows.
pub(super) fn import_rows(report: ImportReport, text: &ServersText) -> Vec<ImportRow> {
    let row = |server: ImportableServer| ImportRow {
        endpoint: shorten(&server.endpoint, MAX_ENDPOINT_CHARS).into_owned(),
        clients: server.clients.join(", "),
        notes: server.notes.join(" "),
        is_new: server.state == ImportState::New,
        state: match server.state {
            ImportState::New => "",
            ImportState::Existing => text.import_existing,
            ImportState::Conflicting => text.import_conflicting,
            ImportState::Skipped => text.import_skipped,
        },
        name: server.name,
    };
    report.servers.into_iter().take(MAX_SHOWN_SERVERS).map(row).collect()
}
