//! Servers that do everything wrong, each beside a healthy one in the same manager: a typed answer in time, little memory,
//! nothing left behind, and the healthy one never notices.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test helper fails its test and tells its figures"
)]

mod case;
mod house;
mod hygiene;
mod table;
