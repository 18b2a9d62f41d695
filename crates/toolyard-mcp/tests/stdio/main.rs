//! Real processes behind the stdio transport: talking servers, hostile ones, and whole trees that must not survive.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test helper fails its test and tells its figures"
)]

mod conversation;
mod hostile;
mod survivors;
mod yard;
