//! The searchable text of servers and their tools.

use std::sync::Arc;

/// The searchable text of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerText {
    /// Unique name of the server.
    pub id: Arc<str>,
    /// Description of the server.
    pub description: String,
}

/// The searchable text of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolText {
    /// Identifies the tool within its server; copied into [`Hit::key`](crate::Hit::key).
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
