//! What is known of a server before it is asked anything: how to reach it and how far it may go.
//!
//! Everything here is a function of texts: files are read, variables are looked up and people are asked elsewhere.

mod dialect;
mod document;
mod draft;
mod edit;
mod entry;
mod error;
mod expand;
mod hidden;
pub mod import;
mod mcp_json;
mod name;
mod plan;
mod secret;
mod server;
mod settings;
mod span;
mod summary;

pub use dialect::Place;
pub use document::{DocumentError, LARGEST_FILE};
pub use edit::{EditError, add_server, remove_server};
pub use entry::{EntryProblem, Problem};
pub use error::ConfigError;
pub use expand::{ExpandError, ReferenceProblem, Resolved, SecretText, Template};
pub use mcp_json::{FileServer, FileServers, read_mcp_json};
pub use name::{LONGEST_NAME, NameProblem, check_name, free_name, valid_name};
pub use plan::{Difference, ImportPlan, OnDifference, Planned, Skipped, plan_import};
pub use secret::Lifted;
pub use server::{HttpKind, McpServerConfig, OauthConfig, ToolFilter, TransportConfig};
pub use settings::{EraSetting, OauthSettings, ServerSettings, TransportSetting};
pub use span::{IdleStop, NotASpan, Span};
