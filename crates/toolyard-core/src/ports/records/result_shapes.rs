//! The shapes of tool results, learned from results: names and types rather than content. Names may be private, too, so that shapes
//! have an owner.

use crate::{BoxFuture, DataOwner, SourceId};

/// The shape of the results of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultShape {
    /// Whose result it was.
    pub owner: DataOwner,
    /// The tool.
    pub tool: String,
    /// Its source.
    pub source: SourceId,
    /// JSON with placeholder values: `{"rows":[{"name":"text","price":1}]}`.
    pub shape: String,
}

/// Stores the shapes of results, so that a plan can refer to parts of future results.
pub trait ResultShapes: Send + Sync {
    /// The `limit` latest shapes of one owner; empty if the store fails.
    fn recent(&self, owner: DataOwner, limit: usize) -> BoxFuture<'_, Vec<ResultShape>>;

    /// Stores the shape of a tool's results, replacing an earlier one of its owner.
    fn record<'a>(&'a self, shape: &'a ResultShape) -> BoxFuture<'a, ()>;
}
