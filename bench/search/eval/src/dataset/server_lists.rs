//! A test set as servers answered: their `tools/list`, and requests in files of their own.
//!
//! `servers/NAME.json` is `{server, tools}` with the definitions as the server sent them; `dev.jsonl` and `test.jsonl` are
//! requests, `{id, language, request, tools: ["tool@server", …]}`, for tuning and for reporting. Any of the tools will do. The
//! native tools of Toolyard are part of the catalogue, as they are of every hub.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;
use toolyard_core::ToolSpec;
use toolyard_hub::MemoryResults;
use toolyard_tools::native::NativeToolSettings;

use super::{
    records::{Catalogue, DatasetError, SourceFile, ToolRecord},
    suite::QuerySet,
};

const SERVERS_FOLDER: &str = "servers";
/// Files of requests, and the halves that they are.
const REQUEST_FILES: [(&str, &str); 2] = [("dev.jsonl", "dev"), ("test.jsonl", "test")];

/// The tools of the servers and the requests.
#[derive(Debug)]
pub(super) struct ServerLists {
    pub(super) tools: Catalogue,
    pub(super) queries: QuerySet,
}

#[derive(Debug, Deserialize)]
struct ServerRecord {
    server: String,
    tools: Vec<ToolSpec>,
}

#[derive(Debug, Deserialize)]
struct RequestRecord {
    id: String,
    language: String,
    request: String,
    tools: Vec<String>,
}

impl ServerLists {
    /// Reads a folder; `None` if it has no servers or no requests.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, DatasetError> {
        let files = json_files(&folder.join(SERVERS_FOLDER));
        let requests: Vec<(PathBuf, &str)> = REQUEST_FILES
            .iter()
            .map(|(file, half)| (folder.join(file), *half))
            .filter(|(file, _)| file.is_file())
            .collect();
        if files.is_empty() || requests.is_empty() {
            return Ok(None);
        }
        let mut tools = Catalogue::default();
        for file in files {
            let source = read(file)?;
            let record: ServerRecord = serde_json::from_str(&source.text)
                .map_err(|error| source.problem(error.line(), error.to_string()))?;
            for tool in record.tools {
                add(&mut tools, &record.server, tool);
            }
        }
        let native = NativeToolSettings::default().build(std::sync::Arc::new(MemoryResults::default()));
        for tool in native {
            add(&mut tools, "native", tool.spec().clone());
        }
        let mut text = String::new();
        for (file, half) in requests {
            for (_, record) in read(file)?.lines::<RequestRecord>()? {
                let query = json!({"id": record.id, "text": record.request, "relevant": record.tools,
                                   "lang": record.language, "kind": "everyday", "split": half});
                text.push_str(&query.to_string());
                text.push('\n');
            }
        }
        let name = folder.canonicalize().ok();
        let name =
            name.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let queries = SourceFile { file: folder.to_owned(), text };
        Ok(Some(Self { tools, queries: QuerySet { name, queries, tasks: None } }))
    }
}

fn add(tools: &mut Catalogue, server: &str, tool: ToolSpec) {
    let id = format!("{}@{server}", tool.name);
    let record = ToolRecord {
        id: id.clone(),
        name: tool.name.to_string(),
        description: tool.description.clone(),
        server: server.to_owned(),
        definition: Some(Box::new(tool)),
        ..ToolRecord::default()
    };
    tools.add(id, record);
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_json).collect();
    files.sort();
    files
}

fn read(file: PathBuf) -> Result<SourceFile, DatasetError> {
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(SourceFile { file, text }),
        Err(source) => Err(DatasetError::Read { file, source }),
    }
}
