//! Real processes behind the stdio transport: talking servers, hostile ones, and whole trees that must not survive.

#![expect(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test helper fails its test")]

mod conversation;
mod hostile;
mod survivors;
mod yard;
