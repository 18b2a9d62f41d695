//! JSON as text: [`raw`] keeps it exactly as it came, [`cursor`] validates and walks it in one pass.

pub(crate) mod cursor;
pub(crate) mod grammar;
pub(crate) mod raw;
mod skip_index;
pub(crate) mod value;

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
