//! The MCP server over real sockets and pipes: both eras, sessions, questions, cancelling, news, hostile clients.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod calls;
mod cancel;
mod client;
mod fast_path;
mod hostile;
mod house;
mod legacy_sse;
mod listening;
mod lists;
mod modern_questions;
mod pages;
mod questions;
mod sessions;
mod stdio;
mod stopping;
mod tools;
