//! The parser of tool calls with a corpus of outputs, and the clients of model servers with scripted and real servers.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod anthropic;
mod corpus;
mod fuzz_parser;
mod local_model;
mod openai;
mod scripted_server;
