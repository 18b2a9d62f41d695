//! What is searched of a server and its tools: their words, by the place where they stand.

use std::sync::Arc;

/// The words of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerText {
    /// Its name, by which it is known.
    pub id: Arc<str>,
    /// What it says about itself.
    pub description: String,
}

/// The words of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolText {
    /// What a hit is known by; unique within its server.
    pub key: Arc<str>,
    /// The name a model calls it by.
    pub name: String,
    /// A name for people.
    pub title: String,
    /// What it does.
    pub description: String,
    /// What it takes.
    pub params: Vec<ParamText>,
    /// What it is good for.
    pub capabilities: Vec<String>,
}

/// One parameter of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamText {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: String,
}
