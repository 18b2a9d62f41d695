//! What a server declares: the results of `initialize` (legacy) and `server/discover` (modern).

use toolyard_core::{JsonCursor, JsonError, JsonKind, RawJson};

use super::CacheHints;
use crate::{
    WireError,
    json::{each_field, truncated_text},
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
    /// Everything else.
    pub about: ServerDescription,
}

/// The result of `server/discover`.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoverResult {
    /// The revisions that the server supports.
    pub supported_versions: Vec<String>,
    /// Everything else.
    pub about: ServerDescription,
    /// How long and by whom the result may be cached.
    pub caching: CacheHints,
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
                _ => about.field(key, cursor, result)?,
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
        let (mut about, mut caching) = (ServerDescription::default(), CacheHints::default());
        let mut supported_versions = Vec::new();
        each_field(&mut JsonCursor::of(result), |key, cursor| match key {
            "supportedVersions" => {
                supported_versions = read_versions(cursor)?;
                Ok(())
            }
            "ttlMs" | "cacheScope" => caching.field(key, cursor),
            _ => about.field(key, cursor, result),
        })?;
        if supported_versions.is_empty() {
            let problem = "`supportedVersions` is missing".to_owned();
            return Err(WireError::InvalidResult { method: "server/discover", problem });
        }
        Ok(Self { supported_versions, about, caching })
    }
}

impl ServerDescription {
    /// Consumes the value of a field and stores it if it describes the server.
    fn field<'t>(
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
                let entered = each_field(cursor, |key, cursor| match key {
                    SERVER_INFO_KEY => self.read_server_info(cursor),
                    _ => cursor.skip().map(drop),
                })?;
                if !entered {
                    cursor.skip()?;
                }
            }
            _ => drop(cursor.skip()?),
        }
        Ok(())
    }

    fn read_server_info(&mut self, cursor: &mut JsonCursor<'_>) -> Result<(), JsonError> {
        let entered = each_field(cursor, |key, cursor| {
            match key {
                "name" => self.name = truncated_text(cursor, MAX_NAME_BYTES)?,
                "version" => self.version = truncated_text(cursor, MAX_NAME_BYTES)?,
                _ => drop(cursor.skip()?),
            }
            Ok(())
        })?;
        if !entered {
            cursor.skip()?;
        }
        Ok(())
    }
}

impl ServerCapabilities {
    fn read(cursor: &mut JsonCursor<'_>, result: &RawJson) -> Result<Self, JsonError> {
        let text = cursor.skip()?;
        let mut read = Self { raw: Some(result.part(text)), ..Self::default() };
        each_field(&mut JsonCursor::new(text.get(), usize::MAX), |key, cursor| {
            let value = cursor.skip()?;
            let has = !matches!(value.kind(), JsonKind::Null) && value.boolean() != Some(false);
            let mut inside = JsonCursor::new(value.get(), usize::MAX);
            match key {
                "tools" => {
                    read.tools = has;
                    read.tools_changed = is_true_field(&mut inside, "listChanged")?;
                }
                "resources" => {
                    read.resources = has;
                    read.resources_changed = is_true_field(&mut inside.clone(), "listChanged")?;
                    read.subscriptions = is_true_field(&mut inside, "subscribe")?;
                }
                "prompts" => {
                    read.prompts = has;
                    read.prompts_changed = is_true_field(&mut inside, "listChanged")?;
                }
                "completions" => read.completions = has,
                "logging" => read.logging = has,
                "extensions" => {
                    each_field(&mut inside, |key, cursor| {
                        if read.extensions.len() < MAX_LIST_ENTRIES && key.len() <= MAX_NAME_BYTES {
                            read.extensions.push(key.to_owned());
                        }
                        cursor.skip().map(drop)
                    })?;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(read)
    }
}

/// Whether an object has this field with the value `true`.
fn is_true_field(cursor: &mut JsonCursor<'_>, name: &str) -> Result<bool, JsonError> {
    let mut is_true = false;
    each_field(cursor, |key, cursor| {
        is_true |= cursor.skip()?.boolean() == Some(true) && key == name;
        Ok(())
    })?;
    Ok(is_true)
}

fn read_versions(cursor: &mut JsonCursor<'_>) -> Result<Vec<String>, JsonError> {
    let mut versions = Vec::new();
    if !cursor.enter_array()? {
        cursor.skip()?;
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
