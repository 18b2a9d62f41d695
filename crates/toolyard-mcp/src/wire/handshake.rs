//! What a server says about itself: the results of `initialize` (legacy) and of `server/discover` (modern).

use toolyard_core::{JsonCursor, JsonFault, JsonKind, RawJson};

use super::{
    Caching, WireError,
    walk::{each_field, short_text},
};

/// Names, versions and titles are kept up to this many bytes.
const MAX_NAME: usize = 256;
/// Instructions are kept up to this many bytes.
const MAX_INSTRUCTIONS: usize = 64 << 10;
/// More versions than this are not looked at.
const MAX_VERSIONS: usize = 64;
/// Where the modern era says who the server is.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The result of `initialize`.
#[derive(Debug, Clone, PartialEq)]
pub struct InitializeResult {
    /// The revision the server wants to speak.
    pub protocol_version: String,
    /// Everything else it says.
    pub about: AboutServer,
}

/// The result of `server/discover`.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoverResult {
    /// The revisions the server speaks.
    pub supported_versions: Vec<String>,
    /// Everything else it says.
    pub about: AboutServer,
    /// How long this may be taken for fresh, and by whom.
    pub caching: Caching,
}

/// What a server says about itself in either era.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AboutServer {
    /// What it can do.
    pub capabilities: Capabilities,
    /// Its name; never used to tell servers apart, for anyone can take any name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// How it wants to be used.
    pub instructions: Option<String>,
}

/// What a server can do, as far as anyone here asks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capabilities {
    /// All of it as it came.
    pub raw: Option<RawJson>,
    /// It has tools.
    pub tools: bool,
    /// It tells when its tools change.
    pub tools_changed: bool,
    /// It has resources.
    pub resources: bool,
    /// It tells when its list of resources changes.
    pub resources_changed: bool,
    /// Its resources can be subscribed to.
    pub subscriptions: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It tells when its prompts change.
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
        let mut about = AboutServer::default();
        let mut protocol_version = None;
        each_field(&mut JsonCursor::of(result), |key, cursor| {
            match key {
                "protocolVersion" => protocol_version = short_text(cursor, MAX_NAME)?,
                _ => about.field(key, cursor, result)?,
            }
            Ok(())
        })?;
        let protocol_version = protocol_version.ok_or_else(|| WireError::NotAnAnswer {
            method: "initialize",
            problem: "it has no `protocolVersion`".to_owned(),
        })?;
        Ok(Self { protocol_version, about })
    }
}

impl DiscoverResult {
    /// Reads the result of `server/discover`.
    pub fn read(result: &RawJson) -> Result<Self, WireError> {
        let (mut about, mut caching) = (AboutServer::default(), Caching::default());
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
            let problem = "it has no `supportedVersions`".to_owned();
            return Err(WireError::NotAnAnswer { method: "server/discover", problem });
        }
        Ok(Self { supported_versions, about, caching })
    }
}

impl AboutServer {
    /// Takes the value of one field, and what it says if it is about the server.
    fn field<'t>(
        &mut self,
        key: &str,
        cursor: &mut JsonCursor<'t>,
        result: &RawJson,
    ) -> Result<(), JsonFault> {
        match key {
            "capabilities" => self.capabilities = Capabilities::read(cursor, result)?,
            "serverInfo" => self.read_server_info(cursor)?,
            "instructions" => self.instructions = short_text(cursor, MAX_INSTRUCTIONS)?,
            "_meta" => {
                let entered = each_field(cursor, |key, cursor| match key {
                    SERVER_INFO => self.read_server_info(cursor),
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

    fn read_server_info(&mut self, cursor: &mut JsonCursor<'_>) -> Result<(), JsonFault> {
        let entered = each_field(cursor, |key, cursor| {
            match key {
                "name" => self.name = short_text(cursor, MAX_NAME)?,
                "version" => self.version = short_text(cursor, MAX_NAME)?,
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

impl Capabilities {
    fn read(cursor: &mut JsonCursor<'_>, result: &RawJson) -> Result<Self, JsonFault> {
        let text = cursor.skip()?;
        let mut read = Self { raw: Some(result.part(text)), ..Self::default() };
        each_field(&mut JsonCursor::new(text.get(), usize::MAX), |key, cursor| {
            let value = cursor.skip()?;
            let has = !matches!(value.kind(), JsonKind::Null) && value.boolean() != Some(false);
            let mut inside = JsonCursor::new(value.get(), usize::MAX);
            match key {
                "tools" => {
                    read.tools = has;
                    read.tools_changed = says(&mut inside, "listChanged")?;
                }
                "resources" => {
                    read.resources = has;
                    read.resources_changed = says(&mut inside.clone(), "listChanged")?;
                    read.subscriptions = says(&mut inside, "subscribe")?;
                }
                "prompts" => {
                    read.prompts = has;
                    read.prompts_changed = says(&mut inside, "listChanged")?;
                }
                "completions" => read.completions = has,
                "logging" => read.logging = has,
                "extensions" => {
                    each_field(&mut inside, |key, cursor| {
                        if read.extensions.len() < MAX_VERSIONS && key.len() <= MAX_NAME {
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

/// Whether something stands there with this word said to be true.
fn says(cursor: &mut JsonCursor<'_>, word: &str) -> Result<bool, JsonFault> {
    let mut said = false;
    each_field(cursor, |key, cursor| {
        said |= cursor.skip()?.boolean() == Some(true) && key == word;
        Ok(())
    })?;
    Ok(said)
}

fn read_versions(cursor: &mut JsonCursor<'_>) -> Result<Vec<String>, JsonFault> {
    let mut versions = Vec::new();
    if !cursor.enter_array()? {
        cursor.skip()?;
        return Ok(versions);
    }
    while cursor.next_item()? {
        let version = short_text(cursor, MAX_NAME)?;
        if versions.len() < MAX_VERSIONS {
            versions.extend(version);
        }
    }
    Ok(versions)
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
