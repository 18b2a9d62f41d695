//! The commands of the program, and the library in an embedding program.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::needless_pass_by_value,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod added_agents;
mod agents;
mod cli;
#[path = "../common/client.rs"]
#[expect(dead_code, reason = "only a part of it is needed here")]
mod client;
mod connect;
mod facade;
mod history;
mod leaks;
mod library;
#[path = "../common/model_server.rs"]
mod model_server;
mod person;
mod reload;
mod secrets;
mod servers;
#[cfg(target_os = "linux")]
mod service;
mod test_files;
#[path = "../common/test_home.rs"]
mod test_home;
