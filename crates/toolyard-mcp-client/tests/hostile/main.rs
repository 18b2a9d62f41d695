//! Hostile servers, each beside a healthy one in the same manager: every outcome is typed, in time and with little memory,
//! no process is left behind, and the healthy server is not affected.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a panic in a test helper fails the test, as intended; cases print measurements"
)]

mod case;
mod kept_sessions;
mod private_instances;
mod server_lifecycle;
mod table;
mod test_host;
