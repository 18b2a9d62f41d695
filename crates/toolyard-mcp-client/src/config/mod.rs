//! Server configurations: how a server is reached and which rights it has.
//!
//! Everything here is a function of texts; the caller reads files and looks up variables.
//!
//! - `settings`, `server`: `[servers.NAME]` of `toolyard.toml` and the configuration it describes.
//! - `template`: `${VAR}`, `${secret:NAME}` and `${file:PATH}` references in configured values.
//! - `caller_header`: `${caller:…}` references in headers.
//! - `secrets`: replaces secrets in settings with references.
//! - `held_tools`: which new tools of a server are held until they are approved.
//! - `settings_file`: edits `toolyard.toml` and preserves its formatting.
//! - `client_file`: parses mcp.json and the files of other clients.
//! - `import`, `import_plan`: imports the servers of other clients.

mod caller_header;
mod client_file;
mod duration_setting;
mod error;
mod held_tools;
pub mod import;
mod import_plan;
mod isolation;
mod oauth_settings;
mod redacted;
mod scope;
mod secrets;
mod server;
mod server_name;
mod settings;
mod settings_file;
mod summary;
mod template;
mod value_syntax;

pub use caller_header::{CallerHeader, CallerHeaderError};
pub use client_file::{
    document::{DocumentError, MAX_FILE_BYTES},
    mcp_json::{FileServer, FileServers, read_mcp_json},
    server_entry::{EntryError, InvalidServer},
    variable_dialect::{FileContext, ReadEnvFile},
};
pub use duration_setting::{DurationSetting, IdleStop, InvalidDuration, deserialize_duration};
pub use error::ConfigError;
pub use held_tools::HeldTools;
pub use import_plan::{
    ConflictPolicy, ConflictingServer, ImportPlan, PlannedServer, SkippedServer, plan_import,
};
pub use isolation::IsolationSetting;
pub use oauth_settings::{CallerGrant, IssuerClientSettings, OauthSettings};
pub use secrets::ExtractedSecret;
pub(crate) use secrets::secret_part;
pub use server::{HttpKind, McpServerConfig, ToolFilter, TransportConfig};
pub use server_name::{MAX_NAME_LENGTH, NameError, check_server_name, suggest_server_name, unique_name};
pub use settings::{RevisionSetting, ServerSettings, TransportSetting};
pub use settings_file::{EditError, add_server, change_server, remove_server};
pub use template::{
    ReferenceError, SECRET_FILE_PREFIX, STORED_SECRET_PREFIX, Template, UnsetVariable, is_private_reference,
    is_secret_name, resolve::ResolvedServer,
};
