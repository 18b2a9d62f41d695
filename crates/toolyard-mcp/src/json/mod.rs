//! Reads and writes JSON objects field by field, without building value trees.

mod edit;
mod fields;
mod object;

pub use edit::{FieldEdit, edit_fields};
pub(crate) use fields::{each_field, each_field_or_skip, truncate, truncated_text};
pub use fields::{raw_field, text_field};
pub use object::JsonObject;
pub(crate) use object::{push_quoted, quoted};
