//! What a server declares: the results of `initialize` (legacy) and `server/discover` (modern).

use toolyard_core::{JsonCursor, JsonError, JsonKind, RawJson};

use crate::{
    WireError,
    json::{each_field, each_field_or_skip, truncated_text},
};

/// Longer names and versions are truncated.
const MAX_NAME_BYTES: usize = 256;
/// Longer instructions are truncated.
const MAX_INSTRUCTIONS_BYTES: usize = 64 << 10;
/// Revisions and extensions that are read.
const MAX_LIST_ENTRIES: usize = 64;
/// The `_meta` key for the server's name and version in modern revisions.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The result of `initialize`.
#[derive(Debug, Clone, PartialEq)]
pub struct InitializeResult {
    /// The revision that the server chose.
    pub protocol_version: String,
    /// What the server declares about itself.
    pub about: ServerDescription,
}

/// The result of `server/discover`.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoverResult {
    /// The revisions that the server supports.
    pub supported_versions: Vec<String>,
    /// What the server declares about itself.
    pub about: ServerDescription,
}

/// What a server declares about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerDescription {
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Its name. Not an identity: names are not unique.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// How models should use it.
    pub instructions: Option<String>,
}

/// The capabilities of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerCapabilities {
    /// All capabilities as sent.
    pub raw: Option<RawJson>,
    /// It has tools.
    pub tools: bool,
    /// It notifies of changed tools.
    pub tools_changed: bool,
    /// It has resources.
    pub resources: bool,
    /// It notifies of changed resource lists.
    pub resources_changed: bool,
    /// It supports resource subscriptions.
    pub subscriptions: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It notifies of changed prompts.
    pub prompts_changed: bool,
    /// It completes arguments.
    pub completions: bool,
    /// It sends log messages.
    pub logging: bool,
    /// The names of its extensions.
    pub extensions: Vec<String>,
}

impl InitializeResult {
    /// Reads the result of `initialize`.
    pub fn read(result: &RawJson) -> Result<Self, WireError> {
        let mut about = ServerDescription::default();
        let mut protocol_version = None;
        each_field(&mut JsonCursor::of(result), |key, cursor| {
            match key {
                "protocolVersion" => protocol_version = truncated_text(cursor, MAX_NAME_BYTES)?,
                _ => about.read_field(key, cursor, result)?,
            }
            Ok(())
        })?;
        let protocol_version = protocol_version.ok_or_else(|| WireError::InvalidResult {
            method: "initialize",
            problem: "`protocolVersion` is missing".to_owned(),
        })?;
        Ok(Self { protocol_version, about })
    }
}

impl DiscoverResult {
    /// Reads the result of `server/discover`.
    pub fn read(result: &RawJson) -> Result<Self, WireError> {
        let mut about = ServerDescription::default();
        let mut supported_versions = Vec::new();
        each_field(&mut JsonCursor::of(result), |key, cursor| match key {
            "supportedVersions" => {
                supported_versions = read_versions(cursor)?;
                Ok(())
            }
            _ => about.read_field(key, cursor, result),
        })?;
        if supported_versions.is_empty() {
            let problem = "`supportedVersions` is missing".to_owned();
            return Err(WireError::InvalidResult { method: "server/discover", problem });
        }
        Ok(Self { supported_versions, about })
    }
}

impl ServerDescription {
    /// Consumes the value of a field and stores it if it describes the server.
    fn read_field<'t>(
        &mut self,
        key: &str,
        cursor: &mut JsonCursor<'t>,
        result: &RawJson,
    ) -> Result<(), JsonError> {
        match key {
            "capabilities" => self.capabilities = ServerCapabilities::read(cursor, result)?,
            "serverInfo" => self.read_server_info(cursor)?,
            "instructions" => self.instructions = truncated_text(cursor, MAX_INSTRUCTIONS_BYTES)?,
            "_meta" => {
                each_field_or_skip(cursor, |key, cursor| match key {
                    SERVER_INFO_KEY => self.read_server_info(cursor),
                    _ => cursor.next_value().map(drop),
                })?;
            }
            _ => drop(cursor.next_value()?),
        }
        Ok(())
    }

    fn read_server_info(&mut self, cursor: &mut JsonCursor<'_>) -> Result<(), JsonError> {
        each_field_or_skip(cursor, |key, cursor| {
            match key {
                "name" => self.name = truncated_text(cursor, MAX_NAME_BYTES)?,
                "version" => self.version = truncated_text(cursor, MAX_NAME_BYTES)?,
                _ => drop(cursor.next_value()?),
            }
            Ok(())
        })
    }
}

impl ServerCapabilities {
    fn read(cursor: &mut JsonCursor<'_>, result: &RawJson) -> Result<Self, JsonError> {
        let text = cursor.next_value()?;
        let mut capabilities = Self { raw: Some(result.part(text)), ..Self::default() };
        each_field(&mut JsonCursor::new(text.get(), usize::MAX), |key, cursor| {
            let value = cursor.next_value()?;
            let is_declared = !matches!(value.kind(), JsonKind::Null) && value.boolean() != Some(false);
            let mut fields = JsonCursor::new(value.get(), usize::MAX);
            match key {
                "tools" => {
                    capabilities.tools = is_declared;
                    capabilities.tools_changed = has_true_field(&mut fields, "listChanged")?;
                }
                "resources" => {
                    capabilities.resources = is_declared;
                    capabilities.resources_changed = has_true_field(&mut fields.clone(), "listChanged")?;
                    capabilities.subscriptions = has_true_field(&mut fields, "subscribe")?;
                }
                "prompts" => {
                    capabilities.prompts = is_declared;
                    capabilities.prompts_changed = has_true_field(&mut fields, "listChanged")?;
                }
                "completions" => capabilities.completions = is_declared,
                "logging" => capabilities.logging = is_declared,
                "extensions" => {
                    each_field(&mut fields, |key, cursor| {
                        if capabilities.extensions.len() < MAX_LIST_ENTRIES && key.len() <= MAX_NAME_BYTES {
                            capabilities.extensions.push(key.to_owned());
                        }
                        cursor.next_value().map(drop)
                    })?;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(capabilities)
    }
}

fn has_true_field(cursor: &mut JsonCursor<'_>, name: &str) -> Result<bool, JsonError> {
    let mut is_true = false;
    each_field(cursor, |key, cursor| {
        is_true |= cursor.next_value()?.boolean() == Some(true) && key == name;
        Ok(())
    })?;
    Ok(is_true)
}

fn read_versions(cursor: &mut JsonCursor<'_>) -> Result<Vec<String>, JsonError> {
    let mut versions = Vec::new();
    if !cursor.enter_array()? {
        cursor.next_value()?;
        return Ok(versions);
    }
    while cursor.next_item()? {
        let version = truncated_text(cursor, MAX_NAME_BYTES)?;
        if versions.len() < MAX_LIST_ENTRIES {
            versions.extend(version);
        }
    }
    Ok(versions)
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
