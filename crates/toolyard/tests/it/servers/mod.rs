//! The commands for MCP servers (`servers`, `import`, `trust`, `prompt`), with a fake server whose tools the tests change.

mod cached_tools;
mod change;
#[cfg(target_os = "linux")]
mod decisions;
mod doctor;
mod import;
mod lifecycle;
mod messages;
mod names;
mod pins;
mod prompt;
mod secrets;
mod shared_names;
mod stored_secrets;
mod terminal;
mod trust;
