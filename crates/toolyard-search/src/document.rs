//! The searchable text of sources and their tools.

use std::sync::Arc;

/// The searchable text of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceText {
    /// Unique id of the source; its words are searched too.
    pub id: Arc<str>,
    /// Description of the source.
    pub description: String,
}

/// The searchable text of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolText {
    /// Identifies the tool within its source; copied into [`Hit::key`](crate::Hit::key).
    pub key: Arc<str>,
    /// The name a model calls the tool by.
    pub name: String,
    /// Display name.
    pub title: String,
    /// Description of the tool.
    pub description: String,
    /// Parameters of the tool.
    pub params: Vec<ParamText>,
    /// Capability tags.
    pub capabilities: Vec<String>,
}

/// The searchable text of one parameter of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamText {
    /// Name of the parameter.
    pub name: String,
    /// Description of the parameter.
    pub description: String,
}
