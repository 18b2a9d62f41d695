//! Skills that a server offers (SEP-2640): listed without their files, loaded when needed, and never used unverified.
//!
//! A listing brings entries and reads no file. [`Session::load_skill`] reads the SKILL.md of one entry and compares it
//! with what the entry promised; only what it gives back leads to the other files, one by one, each verified.

use std::{collections::HashSet, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolyard_core::RawJson;

use super::{RequestError, Session, http_target::harmless};
use crate::wire::{JsonObject, WireError};

/// How the extension is called among capabilities.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";
/// Files of one skill.
pub const MOST_SKILL_FILES: usize = 512;
/// Bytes of all files of one skill.
pub const MOST_SKILL_BYTES: u64 = 16 << 20;
/// Bytes of the frontmatter of a SKILL.md.
const MOST_FRONTMATTER: usize = 64 << 10;

/// Everything a server says it has. Nothing of it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SkillListing {
    /// Skills that can be loaded.
    pub skills: Vec<SkillEntry>,
    /// What was listed and cannot be: its address as far as there is one, and why.
    pub refused: Vec<(Option<String>, SkillError)>,
}

/// One skill as a server lists it. Names and descriptions are text from outside, and a skill of a server is never taken for
/// one of the same name on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillEntry {
    /// Where its SKILL.md is: `skill://…/NAME/SKILL.md`.
    pub uri: String,
    /// Its name, which is the name of its folder.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The frontmatter that its SKILL.md must have.
    pub frontmatter: Map<String, Value>,
    /// All its files, SKILL.md among them.
    pub files: Vec<SkillFile>,
}

/// One file of a skill, as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Where it is.
    pub uri: String,
    /// Its bytes.
    pub size: u64,
    /// Their SHA-256.
    pub sha256: [u8; 32],
}

/// A skill whose SKILL.md was read and found to be what the listing promised.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSkill {
    /// What was promised.
    pub entry: SkillEntry,
    /// Its SKILL.md, frontmatter and all.
    pub manifest: String,
}

/// Why a skill is not used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The server could not be asked.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Its entry in the listing cannot be used.
    #[error("its entry cannot be used: {0}")]
    Entry(String),
    /// More files than a skill may have.
    #[error("it has {0} files; at most {MOST_SKILL_FILES} are taken")]
    TooManyFiles(usize),
    /// More bytes than a skill may have.
    #[error("its files have {0} bytes; at most {MOST_SKILL_BYTES} are taken")]
    TooLarge(u64),
    /// A file that is not in its entry.
    #[error("it has no file {0}")]
    NotListed(String),
    /// What was read is no file.
    #[error("{uri} cannot be read: {problem}")]
    NoContent {
        /// Which file.
        uri: String,
        /// Why.
        problem: &'static str,
    },
    /// A file has another size than was promised.
    #[error("{uri} has {found} bytes and not {promised}: it is not what was listed, and is not used")]
    Size {
        /// Which file.
        uri: String,
        /// How many were promised.
        promised: u64,
        /// How many there are.
        found: u64,
    },
    /// A file has another content than was promised.
    #[error("{0} has another digest than the one that was listed, and is not used")]
    Digest(String),
    /// The frontmatter cannot be read.
    #[error("its SKILL.md has no frontmatter that can be read: {0}")]
    NoFrontmatter(String),
    /// The frontmatter differs from the listed one.
    #[error("its SKILL.md says something else about `{0}` than its entry, and is not used")]
    Frontmatter(String),
}

impl Session {
    /// Whether the server says that it offers skills.
    pub fn offers_skills(&self) -> bool {
        self.about().capabilities.extensions.iter().any(|name| name == SKILLS_EXTENSION)
    }

    /// All skills, over all pages. No file is read.
    pub async fn list_skills(&self, silence: Duration) -> Result<SkillListing, RequestError> {
        let limits = &self.parts.limits;
        let (mut listing, mut bytes, mut cursor): (_, usize, Option<String>) =
            (SkillListing::default(), 0, None);
        for _ in 0..limits.pages {
            let fields = cursor.as_deref().map(|cursor| JsonObject::new().with_text("cursor", cursor));
            let raw = self.request("skills/list", None, fields.unwrap_or_default(), Some(silence)).await?;
            bytes = bytes.saturating_add(raw.get().len());
            if bytes > limits.list_bytes {
                return Err(
                    WireError::TooLong { what: "the list of skills", limit: limits.list_bytes }.into()
                );
            }
            let page: Page = raw.read().map_err(|error| not_a_list(&error.to_string()))?;
            page.skills.iter().for_each(|entry| listing.add(entry));
            if listing.skills.len() + listing.refused.len() > limits.tools {
                return Err(not_a_list(&format!("there are more than {} skills", limits.tools)));
            }
            match page.next_cursor {
                None => return Ok(listing),
                same if same == cursor => break,
                next => cursor = next,
            }
        }
        Err(not_a_list("its pages never end"))
    }

    /// Reads the SKILL.md of a skill and verifies it: size, digest, and frontmatter.
    pub async fn load_skill(&self, entry: &SkillEntry, silence: Duration) -> Result<LoadedSkill, SkillError> {
        let manifest = self.read_verified(entry, &entry.uri, silence).await?;
        let manifest = String::from_utf8(manifest)
            .map_err(|_| SkillError::NoFrontmatter("it is not UTF-8 text".to_owned()))?;
        same_frontmatter(&entry.frontmatter, &frontmatter(&manifest)?)?;
        Ok(LoadedSkill { entry: entry.clone(), manifest })
    }

    /// Reads one more file of a skill that was loaded, and verifies it.
    pub async fn read_skill_file(
        &self,
        skill: &LoadedSkill,
        uri: &str,
        silence: Duration,
    ) -> Result<Vec<u8>, SkillError> {
        self.read_verified(&skill.entry, uri, silence).await
    }

    async fn read_verified(
        &self,
        entry: &SkillEntry,
        uri: &str,
        silence: Duration,
    ) -> Result<Vec<u8>, SkillError> {
        let file = entry.files.iter().find(|file| file.uri == uri);
        let file = file.ok_or_else(|| SkillError::NotListed(harmless(uri)))?;
        let fields = JsonObject::new().with_text("uri", uri);
        let raw = self.request("resources/read", Some(uri), fields, Some(silence)).await?;
        let bytes = content(&raw, uri)?;
        file.verify(&bytes)?;
        Ok(bytes)
    }
}

impl SkillListing {
    fn add(&mut self, entry: &RawJson) {
        match SkillEntry::read(entry) {
            Ok(skill) if self.skills.iter().any(|known| known.uri == skill.uri) => {
                let twice = SkillError::Entry("it is listed twice".to_owned());
                self.refused.push((Some(harmless(&skill.uri)), twice));
            }
            Ok(skill) => self.skills.push(skill),
            Err(error) => {
                let uri = entry.read::<Located>().ok().map(|entry| harmless(&entry.uri));
                self.refused.push((uri, error));
            }
        }
    }
}

impl SkillEntry {
    /// Reads one entry of a listing.
    pub fn read(entry: &RawJson) -> Result<Self, SkillError> {
        let unusable = |problem: &str| SkillError::Entry(problem.to_owned());
        let listed: Listed = entry.read().map_err(|error| SkillError::Entry(harmless(&error.to_string())))?;
        let folder = listed.uri.strip_suffix("SKILL.md").filter(|folder| folder.ends_with('/'));
        let folder = folder.ok_or_else(|| unusable("its uri does not end with /SKILL.md"))?;
        let text = |key: &str| listed.frontmatter.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").filter(|name| is_name(name)).ok_or_else(|| unusable("it has no name"))?;
        if folder.trim_end_matches('/').rsplit('/').next() != Some(&name) {
            return Err(unusable("its folder does not have its name"));
        }
        if listed.resources.len() > MOST_SKILL_FILES {
            return Err(SkillError::TooManyFiles(listed.resources.len()));
        }
        let files =
            listed.resources.into_iter().map(|file| file.read(folder)).collect::<Result<Vec<_>, _>>()?;
        let total = files.iter().fold(0_u64, |total, file| total.saturating_add(file.size));
        if total > MOST_SKILL_BYTES {
            return Err(SkillError::TooLarge(total));
        }
        let mut seen = HashSet::new();
        if !files.iter().all(|file| seen.insert(file.uri.as_str())) {
            return Err(unusable("a file is listed twice"));
        }
        if !seen.contains(listed.uri.as_str()) {
            return Err(unusable("its SKILL.md is not among its files, so that nothing could verify it"));
        }
        let description = text("description").unwrap_or_default();
        Ok(Self { uri: listed.uri, name, description, frontmatter: listed.frontmatter, files })
    }
}

impl SkillFile {
    /// Whether these bytes are what was promised.
    pub fn verify(&self, bytes: &[u8]) -> Result<(), SkillError> {
        let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if found != self.size {
            return Err(SkillError::Size { uri: harmless(&self.uri), promised: self.size, found });
        }
        if digest(&SHA256, bytes).as_ref() != self.sha256 {
            return Err(SkillError::Digest(harmless(&self.uri)));
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    skills: Vec<RawJson>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Located {
    uri: String,
}

#[derive(Deserialize)]
struct Listed {
    uri: String,
    frontmatter: Map<String, Value>,
    resources: Vec<ListedFile>,
}

#[derive(Deserialize)]
struct ListedFile {
    uri: String,
    digest: String,
    size: u64,
}

impl ListedFile {
    fn read(self, folder: &str) -> Result<SkillFile, SkillError> {
        let path = self.uri.strip_prefix(folder);
        if !path.is_some_and(|path| path.split('/').all(is_plain)) {
            return Err(SkillError::Entry(format!("{} is no file of its folder", harmless(&self.uri))));
        }
        let sha256 = self.digest.strip_prefix("sha256:").and_then(unhexed);
        let sha256 = sha256
            .ok_or_else(|| SkillError::Entry(format!("{} has no SHA-256 digest", harmless(&self.uri))))?;
        Ok(SkillFile { uri: self.uri, size: self.size, sha256 })
    }
}

/// A name as SKILL.md files have it.
pub(crate) fn is_name(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(letter)
}

/// One part of a path that can mean nothing but a name: whoever writes the file somewhere must not be led elsewhere.
fn is_plain(part: &str) -> bool {
    let lower = part.to_ascii_lowercase();
    !matches!(part, "" | "." | "..")
        && !part.contains(['\\', ':', '?', '#'])
        && !part.contains(char::is_control)
        && !["%2e", "%2f", "%5c", "%00"].iter().any(|escape| lower.contains(escape))
}

fn unhexed(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// The bytes of a file in the result of `resources/read`.
fn content(result: &RawJson, uri: &str) -> Result<Vec<u8>, SkillError> {
    #[derive(Deserialize)]
    struct Read {
        contents: Vec<Content>,
    }
    #[derive(Deserialize)]
    struct Content {
        uri: String,
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        blob: Option<String>,
    }
    let no_content = |problem| SkillError::NoContent { uri: harmless(uri), problem };
    let read: Read = result.read().map_err(|_| no_content("the answer has no contents"))?;
    let mut contents = read.contents.into_iter();
    match (contents.next(), contents.next()) {
        (Some(content), None) if content.uri == uri => match (content.text, content.blob) {
            (Some(text), None) => Ok(text.into_bytes()),
            (None, Some(blob)) => STANDARD.decode(blob).map_err(|_| no_content("its bytes are not Base64")),
            _ => Err(no_content("the answer is neither text nor bytes")),
        },
        _ => Err(no_content("the answer is not this one file")),
    }
}

/// The YAML between the two lines `---` at the head of a SKILL.md, read.
pub(crate) fn frontmatter(manifest: &str) -> Result<Map<String, Value>, SkillError> {
    let problem = |problem: &str| SkillError::NoFrontmatter(problem.to_owned());
    let text = manifest.strip_prefix('\u{feff}').unwrap_or(manifest);
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some("---") {
        return Err(problem("it does not begin with a line `---`"));
    }
    let mut yaml = String::new();
    for line in lines {
        if line.trim_end() == "---" {
            let read: Result<Map<String, Value>, _> = serde_saphyr::from_str(&yaml);
            return read.map_err(|error| SkillError::NoFrontmatter(harmless(&error.to_string())));
        }
        yaml.push_str(line);
        if yaml.len() > MOST_FRONTMATTER {
            return Err(problem("it is too large"));
        }
    }
    Err(problem("it has no closing line `---`"))
}

/// Compares field by field; the first field that differs is named.
fn same_frontmatter(listed: &Map<String, Value>, found: &Map<String, Value>) -> Result<(), SkillError> {
    let differs = |name: &&String| listed.get(*name) != found.get(*name);
    match listed.keys().chain(found.keys()).find(differs) {
        Some(name) => Err(SkillError::Frontmatter(harmless(name))),
        None => Ok(()),
    }
}

fn not_a_list(problem: &str) -> RequestError {
    WireError::NotAnAnswer { method: "skills/list", problem: harmless(problem) }.into()
}

#[cfg(test)]
#[path = "skills_tests.rs"]
mod tests;
