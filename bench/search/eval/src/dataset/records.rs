//! Records of a test set: tools, queries and tasks, one JSON object per line.

use std::{collections::HashMap, path::PathBuf};

use serde::{Deserialize, de::DeserializeOwned};
use thiserror::Error;
use toolyard_core::ToolSpec;

use super::split::Half;

/// A tool of a test set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ToolRecord {
    /// Id used by queries.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    #[serde(default)]
    pub description: String,
    /// Name of the server; may be empty.
    #[serde(default)]
    pub server: String,
    /// Description of the server; may be empty.
    #[serde(default)]
    pub server_description: String,
    /// Category of the server; may be empty.
    #[serde(default)]
    pub category: String,
    /// Parameters.
    #[serde(default)]
    pub params: Vec<ParamRecord>,
    /// The definition as the server sent it, which replaces the fields above but the id and the server.
    #[serde(skip)]
    pub definition: Option<Box<ToolSpec>>,
}

/// A parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ParamRecord {
    /// Name of the parameter.
    pub name: String,
    /// Description; may be empty.
    #[serde(default)]
    pub description: String,
}

/// A query and its relevant tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct QueryRecord {
    /// Unique id; its hash decides the half.
    pub id: String,
    /// Text of the query.
    pub text: String,
    /// Ids of the relevant tools.
    pub relevant: Vec<String>,
    /// Groups of interchangeable tools; any one replaces the relevant tool of its group.
    #[serde(default)]
    pub alternatives: Vec<Vec<String>>,
    /// The query as steps, one per line.
    #[serde(default)]
    pub steps: Option<String>,
    /// Language of the query.
    #[serde(default)]
    pub lang: Option<String>,
    /// Kind of query.
    #[serde(default)]
    pub kind: Option<String>,
    /// The half, if not decided by the hash of the id.
    #[serde(default)]
    pub split: Option<Half>,
}

/// A task of several steps, in English and in Chinese.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TaskRecord {
    /// Unique id.
    pub id: String,
    /// The whole task in English.
    pub text_en: String,
    /// The whole task in Chinese.
    pub text_zh: String,
    /// Steps of the task.
    pub steps: Vec<StepRecord>,
    /// The half, if not decided by the hash of the id.
    #[serde(default)]
    pub split: Option<Half>,
}

/// One step of a task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StepRecord {
    /// The step in English.
    pub en: String,
    /// The step in Chinese.
    pub zh: String,
    /// Ids of the relevant tools; any one is enough.
    pub relevant: Vec<String>,
}

/// A test set cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file cannot be read.
    #[error("failed to read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A folder holds no test set.
    #[error("{} holds no test set", folder.display())]
    NoSet {
        /// The folder.
        folder: PathBuf,
    },
    /// No given set has the relevant tools of the queries.
    #[error("no test set holds the tools that {} refers to", file.display())]
    NoTools {
        /// The queries.
        file: PathBuf,
    },
    /// No query was found.
    #[error("the given folders hold no queries")]
    NoQueries,
    /// Two sets of one name.
    #[error("two test sets are named `{name}`")]
    SameName {
        /// The name.
        name: String,
    },
    /// An invalid line.
    #[error("{} line {line}: {problem}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
}

impl DatasetError {
    /// How to resolve the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::NoSet { .. } => {
                "a set is a folder with tools.jsonl ({id, name, description, server, params: [{name, description}]}) and \
                 queries.jsonl ({id, text, relevant: [tool ids]}); give one, or a folder of them"
            }
            Self::NoTools { .. } => "give the set whose tools.jsonl has them too",
            Self::NoQueries => "give a folder whose queries.jsonl is not empty",
            Self::SameName { .. } => "a set is named after its folder: give each name once",
            Self::Line { .. } => "every line is one JSON object; tool ids are those of tools.jsonl",
        }
    }
}

/// A file of a test set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path of the file.
    pub file: PathBuf,
    /// Content of the file.
    pub text: String,
}

impl SourceFile {
    /// An error about one line.
    pub(crate) fn problem(&self, line: usize, problem: impl Into<String>) -> DatasetError {
        DatasetError::Line { file: self.file.clone(), line, problem: problem.into() }
    }

    /// Parses the lines; empty ones are skipped. Returns the records with their line numbers.
    pub fn lines<T: DeserializeOwned>(&self) -> Result<Vec<(usize, T)>, DatasetError> {
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(at, line)| match serde_json::from_str(line) {
                Ok(value) => Ok((at + 1, value)),
                Err(error) => Err(self.problem(at + 1, describe(&error))),
            })
            .collect()
    }
}

/// The message of serde without its line number, which is always 1 here.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what} (column {})", error.column()),
        None => text,
    }
}

/// The tools of a test set.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// The tools in the order of the file.
    pub list: Vec<ToolRecord>,
    by_id: HashMap<String, usize>,
}

impl Catalogue {
    /// Reads tools.jsonl.
    pub fn read(source: &SourceFile) -> Result<Self, DatasetError> {
        let mut tools = Self::default();
        for (line, tool) in source.lines::<ToolRecord>()? {
            let id = tool.id.clone();
            if !tools.add(id, tool) {
                return Err(source.problem(line, "duplicate tool id"));
            }
        }
        Ok(tools)
    }

    /// Adds a tool; false if the id is taken.
    pub(crate) fn add(&mut self, id: String, tool: ToolRecord) -> bool {
        let at = self.list.len();
        if self.by_id.insert(id, at).is_some() {
            return false;
        }
        self.list.push(tool);
        true
    }

    /// Position of a tool in the list.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
