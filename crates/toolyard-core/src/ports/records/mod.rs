//! What calls leave behind: audit records, history, stored results, and what is learned from them.

pub(crate) mod argument_examples;
pub(crate) mod audit;
pub(crate) mod history;
pub(crate) mod result_shapes;
pub(crate) mod results;
