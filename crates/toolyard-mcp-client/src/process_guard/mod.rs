//! A small process between us and one server that ends the server with everything it started, even if we are killed.
//!
//! - [`guard`]: command line and entry point of the guard process.
//! - `monitor`: waits for the server, for signals and for our end. `shutdown_phase`: the steps from graceful to killing.
//! - `process_tree`: the descendants of a process.

pub(crate) mod guard;
#[cfg(target_os = "linux")]
mod monitor;
#[cfg(target_os = "linux")]
pub(crate) mod process_tree;
#[cfg(target_os = "linux")]
mod shutdown_phase;
