//! The matrix: every real server over every way it can be reached, in every era it speaks, through the whole client.
//!
//! The servers are installed by `scripts/parts`. A test whose server is missing fails and says so.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test helper fails its test"
)]

mod asking;
mod calling;
mod content;
mod content_changes;
mod eras;
mod house;
mod lossless;
mod matrix;
mod parts;
mod person;
mod place;
mod readiness;
mod row;
mod stopping;
