//! Configuration on this machine: settings files, folders, the store, project trust and credentials.
//!
//! ```text
//! caller_tokens.rs       OAuth tokens of single callers for MCP servers
//! context.rs             finds settings, folders and the store of one invocation
//! decisions.rs           records the operator's decisions in the audit log
//! operator_file.rs       the settings file that commands edit
//! project_trust.rs       reads a project's file once and decides whether it is trusted
//! running_hubs.rs        which hubs run, and how they learn of changed settings
//! server_files.rs        collects MCP servers from settings and mcp.json files
//! server_credentials.rs  environment variables, stored secrets and OAuth tokens for MCP servers
//! secrets/               stored secrets that settings refer to, and their keys
//! files.rs               atomic file writes
//! ```

mod caller_tokens;
mod context;
mod decisions;
pub(crate) mod files;
pub(crate) mod operator_file;
mod project_trust;
pub(crate) mod running_hubs;
pub(crate) mod secrets;
mod server_credentials;
mod server_files;

pub(crate) use context::CliContext;
pub(crate) use decisions::{current_user, record_decision, record_decision_by};
pub(crate) use project_trust::HashedFile;
pub(crate) use secrets::StoredSecrets;
pub(crate) use server_credentials::ServerCredentials;
pub(crate) use server_files::UntrustedFile;
