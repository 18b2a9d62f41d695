//! References: `$step.path` in an argument stands for the value of another step, or for a part of it.
//!
//! An argument that is exactly one reference is replaced by the value and keeps its type; inside a longer text the value is
//! inserted as text. `$$` is a literal dollar sign. Resolved values are never scanned for references again.
//!
//! | file | purpose |
//! |---|---|
//! | `parse.rs` | finds references in text and parses their paths |
//! | `path.rs` | follows a path exactly as written |
//! | `main_value.rs` | the main part of a result that has metadata beside it |
//! | `select.rs`, `adapt.rs` | picks the part of a value that a parameter can take |
//! | `argument_tree.rs`, `resolve.rs` | builds the final arguments without copying large values |
//! | `coerce.rs` | converts written values to the type of a parameter |

mod adapt;
mod argument_tree;
pub(crate) mod coerce;
mod error;
mod main_value;
mod parse;
mod path;
mod resolve;
mod select;

pub(crate) use self::{
    parse::Reference,
    resolve::{ResolvedArguments, references, references_in, resolve_references},
};

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::any_value;
