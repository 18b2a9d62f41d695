//! Reads the lines of a test set: tools, queries and tasks, one JSON object each.

use std::{collections::HashMap, path::PathBuf};

use serde::{Deserialize, de::DeserializeOwned};
use thiserror::Error;

use super::split::Half;

/// A tool as a test set describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ToolText {
    /// By what queries refer to it.
    pub id: String,
    /// By what a model calls it.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// Where it lives; may be empty.
    #[serde(default)]
    pub server: String,
    /// What that server is for; may be empty.
    #[serde(default)]
    pub server_description: String,
    /// What kind of server that is; may be empty.
    #[serde(default)]
    pub category: String,
    /// What it takes.
    #[serde(default)]
    pub params: Vec<ParamText>,
}

/// A parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ParamText {
    /// Its name.
    pub name: String,
    /// What it means; may be empty.
    #[serde(default)]
    pub description: String,
}

/// A query and the tools that answer it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct QueryText {
    /// Its name; decides to which half it belongs.
    pub id: String,
    /// What is asked for.
    pub text: String,
    /// The tools it takes.
    pub relevant: Vec<String>,
    /// Groups of interchangeable tools; any of a group will do for the relevant one in it.
    #[serde(default)]
    pub alternatives: Vec<Vec<String>>,
    /// The same in steps, one a line.
    #[serde(default)]
    pub steps: Option<String>,
    /// The language it is written in.
    #[serde(default)]
    pub lang: Option<String>,
    /// In what manner it asks.
    #[serde(default)]
    pub kind: Option<String>,
    /// The half it belongs to, where the set says so itself.
    #[serde(default)]
    pub split: Option<Half>,
}

/// A task of several steps, in English and in Chinese.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TaskText {
    /// Its name.
    pub id: String,
    /// The whole task in English.
    pub text_en: String,
    /// The whole task in Chinese.
    pub text_zh: String,
    /// What has to be done.
    pub steps: Vec<StepText>,
    /// The half it belongs to, where the set says so itself.
    #[serde(default)]
    pub split: Option<Half>,
}

/// One step of a task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StepText {
    /// The step in English.
    pub en: String,
    /// The step in Chinese.
    pub zh: String,
    /// Tools of which each one does it.
    pub relevant: Vec<String>,
}

/// A test set that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file cannot be read.
    #[error("failed to read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A folder holds no test set.
    #[error("{} holds no test set", folder.display())]
    NoSet {
        /// The folder.
        folder: PathBuf,
    },
    /// Queries without their tools.
    #[error("no set holds the tools that {} asks for", file.display())]
    NoTools {
        /// The queries.
        file: PathBuf,
    },
    /// Folders without any query.
    #[error("there is not a single query in what was given")]
    NoQueries,
    /// Two sets of one name.
    #[error("two sets are called `{name}`")]
    SameName {
        /// The name.
        name: String,
    },
    /// A line that is not what it should be.
    #[error("{} line {line}: {problem}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

impl DataError {
    /// What to do about it.
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

/// A file of a set: where it is and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Where it was read.
    pub file: PathBuf,
    /// What it says.
    pub text: String,
}

impl Source {
    /// An error about one of its lines.
    pub(crate) fn problem(&self, line: usize, problem: impl Into<String>) -> DataError {
        DataError::Line { file: self.file.clone(), line, problem: problem.into() }
    }

    /// Its lines as values, with their numbers; empty lines do not count.
    pub fn lines<T: DeserializeOwned>(&self) -> Result<Vec<(usize, T)>, DataError> {
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(at, line)| match serde_json::from_str(line) {
                Ok(value) => Ok((at + 1, value)),
                Err(error) => Err(self.problem(at + 1, said(&error))),
            })
            .collect()
    }
}

/// What serde found, without its own line number, which is always 1 here.
fn said(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what} (column {})", error.column()),
        None => text,
    }
}

/// The tools of a set, found by their ids.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    /// In the order of the file.
    pub list: Vec<ToolText>,
    by_id: HashMap<String, usize>,
}

impl Tools {
    /// Reads tools.jsonl.
    pub fn read(source: &Source) -> Result<Self, DataError> {
        let mut tools = Self::default();
        for (line, tool) in source.lines::<ToolText>()? {
            let id = tool.id.clone();
            if !tools.add(id, tool) {
                return Err(source.problem(line, "a tool of this id was there before"));
            }
        }
        Ok(tools)
    }

    /// Adds a tool under an id; false when the id is taken.
    pub(crate) fn add(&mut self, id: String, tool: ToolText) -> bool {
        let at = self.list.len();
        if self.by_id.insert(id, at).is_some() {
            return false;
        }
        self.list.push(tool);
        true
    }

    /// Where the tool of this id stands in the list.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;
