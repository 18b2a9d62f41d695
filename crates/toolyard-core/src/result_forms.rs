//! What results of tools look like, learned from results: names and kinds, never content.

use crate::{BoxFuture, SourceId};

/// What the results of one tool look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultForm {
    /// The tool.
    pub tool: String,
    /// Where it lives.
    pub source: SourceId,
    /// JSON whose values only stand for what is there: `{"rows":[{"name":"text","price":1}]}`.
    pub form: String,
}

/// Remembers what results look like, so that a plan can refer to parts of results that are still to come.
pub trait ResultForms: Send + Sync {
    /// The forms that were learned last, at most so many. A memory that fails has none.
    fn recent(&self, limit: usize) -> BoxFuture<'_, Vec<ResultForm>>;

    /// Remembers a form in place of what was known of the tool.
    fn learn<'a>(&'a self, form: &'a ResultForm) -> BoxFuture<'a, ()>;
}
