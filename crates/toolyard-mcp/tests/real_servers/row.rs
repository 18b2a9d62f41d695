//! The rows of the matrix: which server, over what, in which era, and what is known about it beforehand.

use std::path::Path;

use serde_json::{Value, json};
use toolyard_core::ProtocolEra;

use crate::parts::part;

/// One row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) wire: Wire,
    /// What it must turn out to speak.
    pub(crate) era: ProtocolEra,
    /// What the operator says it speaks.
    pub(crate) forced: Option<ProtocolEra>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// excel-mcp-server 0.1.8.
    OldExcel,
    /// excel-mcp-server 2.2.2.
    NewExcel,
    /// The official server that has something of everything.
    Everything,
    /// mcp-server-time.
    Time,
    /// A server of the official Python SDK with what no packaged one has in both eras.
    BothEras,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Stdio,
    Http,
    Sse,
}

/// A row whose era is found out.
pub(crate) fn row(kind: Kind, wire: Wire) -> Row {
    let era = match kind {
        Kind::OldExcel | Kind::Everything => ProtocolEra::Legacy,
        Kind::NewExcel | Kind::Time | Kind::BothEras => ProtocolEra::Modern,
    };
    Row { kind, wire, era, forced: None }
}

/// A row whose era the operator names.
pub(crate) fn forced(kind: Kind, wire: Wire, era: ProtocolEra) -> Row {
    Row { kind, wire, era, forced: Some(era) }
}

impl Row {
    /// How it is started.
    pub(crate) fn command(self, folder: &Path, port: u16) -> (String, Vec<String>) {
        let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
        let folder = folder.to_str().unwrap();
        match (self.kind, self.wire) {
            (Kind::OldExcel, wire) => {
                let word = [("stdio"), ("streamable-http"), ("sse")][wire as usize];
                (part("excel-0.1.8/bin/excel-mcp-server"), words(&[word]))
            }
            (Kind::NewExcel, Wire::Stdio) => {
                (part("excel-2.2.2/bin/excel-mcp-server"), words(&["stdio", "--allow-dir", folder]))
            }
            (Kind::NewExcel, _) => {
                let port = port.to_string();
                let args = ["streamable-http", "--allow-dir", folder, "--host", "127.0.0.1", "--port", &port];
                (part("excel-2.2.2/bin/excel-mcp-server"), words(&args))
            }
            (Kind::Everything, wire) => {
                let script = part("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
                let word = ["stdio", "streamableHttp", "sse"][wire as usize];
                (part("node/node_modules/.bin/node"), words(&[&script, word]))
            }
            (Kind::Time, _) => (part("time/bin/mcp-server-time"), Vec::new()),
            (Kind::BothEras, wire) => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/both_eras.py");
                let word = if wire == Wire::Stdio { "stdio" } else { "http" };
                (part("excel-2.2.2/bin/python"), words(&[script, word, &port.to_string()]))
            }
        }
    }

    pub(crate) fn environment(self, folder: &Path, port: u16) -> Vec<(String, String)> {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let port = port.to_string();
        match self.kind {
            Kind::OldExcel => vec![
                pair("EXCEL_FILES_PATH", folder.to_str().unwrap()),
                pair("FASTMCP_HOST", "127.0.0.1"),
                pair("FASTMCP_PORT", &port),
            ],
            Kind::Everything => vec![pair("PORT", &port)],
            Kind::NewExcel | Kind::Time | Kind::BothEras => Vec::new(),
        }
    }

    /// Where it listens.
    pub(crate) fn path(self) -> &'static str {
        if self.wire == Wire::Sse { "/sse" } else { "/mcp" }
    }

    /// How many tools it has for someone whom it can ask nothing. Counted by a client of a few lines that is not ours.
    pub(crate) fn tools(self) -> usize {
        match self.kind {
            Kind::OldExcel => 25,
            Kind::NewExcel => 46,
            Kind::Everything => 13,
            Kind::Time => 2,
            Kind::BothEras => 12,
        }
    }

    /// The path of a workbook as the server wants it.
    pub(crate) fn workbook(self, folder: &Path) -> String {
        match (self.kind, self.wire) {
            (Kind::OldExcel, Wire::Stdio) => folder.join("book.xlsx").to_str().unwrap().to_owned(),
            _ => "book.xlsx".to_owned(),
        }
    }

    /// A call that changes nothing and succeeds, once the effects were made.
    pub(crate) fn harmless(self, folder: &Path) -> (&'static str, Value) {
        let book = self.workbook(folder);
        match self.kind {
            Kind::OldExcel => ("read_data_from_excel", json!({"filepath": book, "sheet_name": "Sheet1"})),
            Kind::NewExcel => ("read_range", json!({"path": book, "sheet": "Sheet1"})),
            Kind::Everything => ("echo", json!({"message": "ä \u{1f600} \"quoted\" \\ \u{7}"})),
            Kind::Time => ("convert_time", conversion("UTC")),
            Kind::BothEras => ("count", json!({"steps": 1, "pause": 0})),
        }
    }
}

/// Noon somewhere, as the arguments of a conversion to Tokyo.
pub(crate) fn conversion(from: &str) -> Value {
    json!({"source_timezone": from, "time": "12:00", "target_timezone": "Asia/Tokyo"})
}
