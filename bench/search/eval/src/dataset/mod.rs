//! Test sets: their records, their location, their split into halves, and the suites of queries made from them.

pub mod records;
mod server_lists;
pub mod split;
pub mod suite;
pub mod test_sets;
