//! MCP servers as a person meets them on the command line, with a small server whose behaviour the tests change.

#![expect(clippy::unwrap_used, reason = "a test helper fails its test")]

mod import;
mod lifecycle;
mod pins;
mod prompt;
mod secrets;
mod test_home;
mod trust;
