//! The shapes of tool results, learned from results: names and types, never content.

use crate::{BoxFuture, SourceId};

/// The shape of the results of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultShape {
    /// The tool.
    pub tool: String,
    /// Its source.
    pub source: SourceId,
    /// JSON with placeholder values: `{"rows":[{"name":"text","price":1}]}`.
    pub shape: String,
}

/// Stores the shapes of results, so that a plan can refer to parts of future results.
pub trait ResultShapes: Send + Sync {
    /// The `limit` latest shapes; empty if the store fails.
    fn recent(&self, limit: usize) -> BoxFuture<'_, Vec<ResultShape>>;

    /// Stores the shape of a tool's results, replacing an earlier one.
    fn record<'a>(&'a self, shape: &'a ResultShape) -> BoxFuture<'a, ()>;
}
