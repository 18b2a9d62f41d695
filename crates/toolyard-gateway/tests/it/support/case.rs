//! [`ServerCase`]: a real server, its transport and MCP revision, and what tests know about it.

use std::path::Path;

use serde_json::{Value, json};
use toolyard_core::RevisionFamily;

use super::installed::installed_path;

/// A case of the matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerCase {
    pub(crate) kind: ServerKind,
    pub(crate) transport: Transport,
    /// The revision family that the client must detect.
    pub(crate) family: RevisionFamily,
    /// The revision family in the configuration.
    pub(crate) configured_family: Option<RevisionFamily>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// excel-mcp-server 0.1.8.
    OldExcel,
    /// excel-mcp-server 2.2.2.
    NewExcel,
    /// The official server that uses every feature.
    Everything,
    /// mcp-server-time.
    Time,
    /// A server with the official Python SDK that offers the same in both revision families.
    BothFamilies,
    /// The same, but its input requests work only in the legacy one.
    BackChannel,
    /// The same over stateless HTTP, where its input requests never work.
    NoBackChannel,
    /// FastMCP 4: one tool can ask for input only in the legacy family, another only in the modern one.
    FastMcp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
}

/// A case whose revision is detected.
pub(crate) fn case(kind: ServerKind, transport: Transport) -> ServerCase {
    let family = match kind {
        ServerKind::OldExcel | ServerKind::Everything => RevisionFamily::Legacy,
        ServerKind::NewExcel
        | ServerKind::Time
        | ServerKind::BothFamilies
        | ServerKind::BackChannel
        | ServerKind::NoBackChannel
        | ServerKind::FastMcp => RevisionFamily::Modern,
    };
    ServerCase { kind, transport, family, configured_family: None }
}

/// A case whose revision family is configured.
pub(crate) fn case_with_family(kind: ServerKind, transport: Transport, family: RevisionFamily) -> ServerCase {
    ServerCase { kind, transport, family, configured_family: Some(family) }
}

impl ServerCase {
    /// The command that starts it.
    pub(crate) fn command(self, folder: &Path, port: u16) -> (String, Vec<String>) {
        let owned = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
        let folder = folder.to_str().unwrap();
        match (self.kind, self.transport) {
            (ServerKind::OldExcel, transport) => {
                let transport_arg = ["stdio", "streamable-http", "sse"][transport as usize];
                (installed_path("excel-0.1.8/bin/excel-mcp-server"), owned(&[transport_arg]))
            }
            (ServerKind::NewExcel, Transport::Stdio) => {
                (installed_path("excel-2.2.2/bin/excel-mcp-server"), owned(&["stdio", "--allow-dir", folder]))
            }
            (ServerKind::NewExcel, _) => {
                let port = port.to_string();
                let args = ["streamable-http", "--allow-dir", folder, "--host", "127.0.0.1", "--port", &port];
                (installed_path("excel-2.2.2/bin/excel-mcp-server"), owned(&args))
            }
            (ServerKind::Everything, transport) => {
                let script =
                    installed_path("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
                let transport_arg = ["stdio", "streamableHttp", "sse"][transport as usize];
                (installed_path("node/node_modules/.bin/node"), owned(&[&script, transport_arg]))
            }
            (ServerKind::Time, _) => (installed_path("time/bin/mcp-server-time"), Vec::new()),
            (ServerKind::BothFamilies, transport) => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/both_families.py");
                let transport_arg = if transport == Transport::Stdio { "stdio" } else { "http" };
                (installed_path("excel-2.2.2/bin/python"), owned(&[script, transport_arg, &port.to_string()]))
            }
            (ServerKind::FastMcp, transport) => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/fastmcp_server.py");
                let transport_arg = if transport == Transport::Stdio { "stdio" } else { "http" };
                (installed_path("fastmcp/bin/python"), owned(&[script, transport_arg, &port.to_string()]))
            }
            (ServerKind::BackChannel | ServerKind::NoBackChannel, transport) => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/back_channel.py");
                let transport_arg = match (self.kind, transport) {
                    (ServerKind::NoBackChannel, _) => "stateless-http",
                    (_, Transport::Stdio) => "stdio",
                    _ => "http",
                };
                (installed_path("excel-2.2.2/bin/python"), owned(&[script, transport_arg, &port.to_string()]))
            }
        }
    }

    pub(crate) fn environment(self, folder: &Path, port: u16) -> Vec<(String, String)> {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let port = port.to_string();
        match self.kind {
            ServerKind::OldExcel => vec![
                pair("EXCEL_FILES_PATH", folder.to_str().unwrap()),
                pair("FASTMCP_HOST", "127.0.0.1"),
                pair("FASTMCP_PORT", &port),
            ],
            ServerKind::Everything => vec![pair("PORT", &port)],
            ServerKind::NewExcel
            | ServerKind::Time
            | ServerKind::BothFamilies
            | ServerKind::BackChannel
            | ServerKind::NoBackChannel
            | ServerKind::FastMcp => Vec::new(),
        }
    }

    /// The path of its endpoint.
    pub(crate) fn path(self) -> &'static str {
        if self.transport == Transport::Sse { "/sse" } else { "/mcp" }
    }

    /// The number of its tools, counted by an independent client with the same capabilities.
    pub(crate) fn tool_count(self) -> usize {
        match self.kind {
            ServerKind::OldExcel => 25,
            ServerKind::NewExcel => 46,
            // Without the one that can only be called as a task.
            ServerKind::Everything => 16,
            ServerKind::Time => 2,
            ServerKind::BothFamilies => 12,
            ServerKind::BackChannel | ServerKind::NoBackChannel | ServerKind::FastMcp => 3,
        }
    }

    /// The path of a workbook as the server expects it.
    pub(crate) fn workbook(self, folder: &Path) -> String {
        match (self.kind, self.transport) {
            (ServerKind::OldExcel, Transport::Stdio) => folder.join("book.xlsx").to_str().unwrap().to_owned(),
            _ => "book.xlsx".to_owned(),
        }
    }

    /// A call that changes nothing, and succeeds after the writing calls.
    pub(crate) fn read_only_call(self, folder: &Path) -> (&'static str, Value) {
        let workbook = self.workbook(folder);
        match self.kind {
            ServerKind::OldExcel => {
                ("read_data_from_excel", json!({"filepath": workbook, "sheet_name": "Sheet1"}))
            }
            ServerKind::NewExcel => ("read_range", json!({"path": workbook, "sheet": "Sheet1"})),
            ServerKind::Everything => ("echo", json!({"message": "ä \u{1f600} \"quoted\" \\ \u{7}"})),
            ServerKind::Time => ("convert_time", conversion("UTC")),
            ServerKind::BothFamilies => ("count", json!({"steps": 1, "pause": 0})),
            ServerKind::BackChannel | ServerKind::NoBackChannel | ServerKind::FastMcp => {
                ("wait", json!({"seconds": 0}))
            }
        }
    }
}

/// Arguments that convert noon to the time in Tokyo.
pub(crate) fn conversion(from: &str) -> Value {
    json!({"source_timezone": from, "time": "12:00", "target_timezone": "Asia/Tokyo"})
}
