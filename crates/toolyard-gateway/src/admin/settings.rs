//! [`SettingsProvider`]: the settings in effect, and what the operator changes of them over the HTTP API. The application that
//! reads the settings files provides it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_core::{BoxFuture, ContentHash};
use utoipa::ToSchema;

use super::AdminError;

/// Knows the settings in effect and where they come from, and changes them for the operator.
pub trait SettingsProvider: Send + Sync + fmt::Debug {
    /// The settings in effect, without secrets.
    fn settings(&self) -> Result<SettingsReport, AdminError>;

    /// The MCP servers in the configuration files of editors and other clients.
    fn importable_servers(&self) -> BoxFuture<'_, Result<ImportReport, AdminError>>;

    /// Adds the named ones of them to the operator's settings file, untrusted, and reloads the settings. Literal secrets move to
    /// the store of secrets. Servers that exist already are not changed. `by` is who does it, for the audit log.
    fn import_servers<'a>(
        &'a self,
        names: &'a [String],
        by: &'a str,
    ) -> BoxFuture<'a, Result<ImportReport, AdminError>>;

    /// Adds a server to the operator's settings, untrusted, and reloads them. `by` is who does it, for the audit log.
    fn add_server<'a>(&'a self, server: &'a NewServer, by: &'a str) -> BoxFuture<'a, Result<(), AdminError>>;

    /// Changes a server of the operator's settings, and reloads them. `by` is who does it, for the audit log.
    fn change_server<'a>(
        &'a self,
        name: &'a str,
        change: ServerChange,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), AdminError>>;

    /// Records in the audit log that `by` approves a definition of a tool, given as `TOOL@SERVER`, before it can be called.
    fn record_approval<'a>(
        &'a self,
        tool: &'a str,
        definition: ContentHash,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), AdminError>>;
}

/// A server to add: a program to start, or the URL of one that runs elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewServer {
    /// Its name.
    pub name: String,
    /// The program to start; absent if the server runs elsewhere.
    pub command: Option<String>,
    /// The arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// The address of an HTTP server.
    pub url: Option<String>,
}

/// Changes to a server. Absent fields keep their values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerChange {
    /// Whether the server is enabled.
    pub enabled: Option<bool>,
    /// Whether its declarations about the effects of its tools are believed.
    pub trusted: Option<bool>,
}

/// The MCP servers of other clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportReport {
    /// The files that were read.
    pub files: Vec<ClientConfigFile>,
    /// The servers in them.
    pub servers: Vec<ImportableServer>,
    /// The settings file that servers are added to.
    pub settings_file: String,
    /// Whether it was written.
    pub written: bool,
}

/// A configuration file of another client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientConfigFile {
    /// The client.
    pub client: String,
    /// The path.
    pub file: String,
    /// Number of servers in it.
    pub servers: usize,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// A server in a configuration file of another client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportableServer {
    /// The name that it gets.
    pub name: String,
    /// The command or the URL, with references in place of secrets; empty if it cannot be imported.
    pub endpoint: String,
    /// Whether it can be imported.
    pub state: ImportState,
    /// The clients that have it.
    pub clients: Vec<String>,
    /// What the operator should know of it, such as variables to set, or why it cannot be imported.
    pub notes: Vec<String>,
}

/// Whether a server can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportState {
    /// It can be added, or was.
    New,
    /// The settings have it already.
    Existing,
    /// The settings have another server of this name, which is kept.
    Conflicting,
    /// It cannot be imported.
    Skipped,
}

/// The settings in effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettingsReport {
    /// The settings files that were read, the operator's first.
    pub files: Vec<String>,
    /// All values, sorted by key.
    pub values: Vec<SettingValue>,
}

/// A setting and where its value comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettingValue {
    /// The path of the setting: `serve.surface`, `servers.files.args`.
    pub key: String,
    /// The value; null if it is not set, or if it is a secret. Secrets that are references are shown: `${OPENAI_API_KEY}`.
    pub value: Value,
    /// Where the value comes from.
    pub origin: SettingOrigin,
    /// The settings file, if it comes from one. Lists of several files have the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether it is, or may contain, a secret.
    pub secret: bool,
    /// Whether the files have another value by now, which takes effect when the gateway is restarted.
    pub takes_effect_after_restart: bool,
}

/// Where the value of a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingOrigin {
    /// Nobody set it.
    Default,
    /// A settings file.
    File,
    /// An argument of the command.
    CommandLine,
}
