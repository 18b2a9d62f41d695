//! Skills of a server (SEP-2640): listed without their files, loaded on demand, and always verified.
//!
//! A listing reads no file. [`Session::load_skill`] reads the SKILL.md of one entry and compares it with the entry. Only the
//! loaded skill gives access to the other files, one by one, each verified.

use std::{collections::HashSet, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolyard_core::{ContentHash, RawJson};
use toolyard_mcp::JsonObject;

use crate::{
    content::frontmatter::{FrontmatterError, parse_frontmatter},
    sanitize::sanitize_line,
    session::{error::RequestError, handle::Session},
};

/// The name of the extension in capabilities.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The limit of files in one skill.
pub const MAX_SKILL_FILES: usize = 512;
/// The limit of bytes in all files of one skill.
pub const MAX_SKILL_BYTES: u64 = 16 << 20;

/// The skills that a server lists. No file was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SkillListing {
    /// Skills that can be loaded.
    pub skills: Vec<SkillEntry>,
    /// Entries that cannot be used: their URIs as far as known, and why.
    pub rejected: Vec<(Option<String>, SkillError)>,
}

/// A skill as a server lists it. Names and descriptions are untrusted text.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillEntry {
    /// The URI of its SKILL.md: `skill://…/NAME/SKILL.md`.
    pub uri: String,
    /// The name, which is the name of its directory.
    pub name: String,
    /// The description.
    pub description: String,
    /// The expected frontmatter of its SKILL.md.
    pub frontmatter: Map<String, Value>,
    /// All files, SKILL.md included.
    pub files: Vec<SkillFile>,
}

/// A file of a skill, as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// The URI.
    pub uri: String,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 digest.
    pub sha256: [u8; 32],
}

/// A skill whose SKILL.md was read and verified.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSkill {
    /// The entry.
    pub entry: SkillEntry,
    /// The SKILL.md, frontmatter included.
    pub manifest: String,
}

/// Why a skill cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum SkillError {
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A server lists a skill in a form that the extension does not permit; the skill is not offered.
    ///
    /// Remedy: report it to the author of the server.
    #[error("invalid skill entry: {0}")]
    InvalidEntry(String),
    /// A skill of a server has more files than Toolyard accepts.
    ///
    /// Remedy: report it to the author of the server, or use the skill from a local folder.
    #[error("the skill has {0} files; the limit is {MAX_SKILL_FILES}")]
    TooManyFiles(usize),
    /// The files of a skill of a server are larger than Toolyard accepts.
    ///
    /// Remedy: report it to the author of the server, or use the skill from a local folder.
    #[error("the files of the skill have {0} bytes; the limit is {MAX_SKILL_BYTES}")]
    TooLarge(u64),
    /// A client asked for a file that the server does not list for this skill.
    ///
    /// Remedy: read the list of files of the skill again; the skill may have changed.
    #[error("the skill has no file {0}")]
    NotListed(String),
    /// The server did not return the content of a file of a skill.
    ///
    /// Remedy: see the log of the server (`toolyard servers logs NAME`), and report it to its author.
    #[error("failed to read {uri}: {problem}")]
    InvalidContent { uri: String, problem: &'static str },
    /// The server returned another version of a file than it lists.
    ///
    /// Remedy: try again, the skill may just have changed; otherwise report it to the author of the server.
    #[error("{uri} has {found} bytes instead of the listed {listed}")]
    SizeMismatch { uri: String, listed: u64, found: u64 },
    /// The server returned another version of a file than it lists; it is not used.
    ///
    /// Remedy: try again, the skill may just have changed; otherwise report it to the author of the server, because
    /// somebody may have altered the file.
    #[error("the digest of {0} differs from the listed one")]
    DigestMismatch(String),
    #[error(transparent)]
    InvalidFrontmatter(#[from] FrontmatterError),
    /// The frontmatter that the server lists is not that of the file.
    ///
    /// Remedy: report it to the author of the server; the skill is not offered.
    #[error("`{0}` in SKILL.md differs from the listed frontmatter")]
    FrontmatterMismatch(String),
}

impl Session {
    /// Whether the server announces the skills extension.
    pub fn offers_skills(&self) -> bool {
        self.about().capabilities.extensions.iter().any(|name| name == SKILLS_EXTENSION)
    }

    /// All skills, over all pages. No file is read.
    pub async fn list_skills(&self, idle_timeout: Duration) -> Result<SkillListing, RequestError> {
        let mut listing = SkillListing::default();
        for entry in self.list("skills/list", "skills", idle_timeout).await? {
            listing.add(&entry);
        }
        Ok(listing)
    }

    /// Reads the SKILL.md of a skill and verifies size, digest and frontmatter.
    pub async fn load_skill(
        &self,
        entry: &SkillEntry,
        idle_timeout: Duration,
    ) -> Result<LoadedSkill, SkillError> {
        let manifest = self.read_verified(entry, &entry.uri, idle_timeout).await?;
        let manifest = String::from_utf8(manifest).map_err(|_| FrontmatterError::NotUtf8)?;
        compare_frontmatter(&entry.frontmatter, &parse_frontmatter(&manifest)?)?;
        Ok(LoadedSkill { entry: entry.clone(), manifest })
    }

    /// Reads another file of a loaded skill and verifies it.
    pub async fn read_skill_file(
        &self,
        skill: &LoadedSkill,
        uri: &str,
        idle_timeout: Duration,
    ) -> Result<Vec<u8>, SkillError> {
        self.read_verified(&skill.entry, uri, idle_timeout).await
    }

    async fn read_verified(
        &self,
        entry: &SkillEntry,
        uri: &str,
        idle_timeout: Duration,
    ) -> Result<Vec<u8>, SkillError> {
        let file = entry.files.iter().find(|file| file.uri == uri);
        let file = file.ok_or_else(|| SkillError::NotListed(sanitize_line(uri)))?;
        let fields = JsonObject::new().with_text("uri", uri);
        let raw = self.request("resources/read", Some(uri), fields, Some(idle_timeout)).await?;
        let bytes = file_content(&raw, uri)?;
        file.verify(&bytes)?;
        Ok(bytes)
    }
}

impl SkillListing {
    fn add(&mut self, entry: &RawJson) {
        match SkillEntry::read(entry) {
            Ok(skill) if self.skills.iter().any(|known| known.uri == skill.uri) => {
                let duplicate = SkillError::InvalidEntry("listed twice".to_owned());
                self.rejected.push((Some(sanitize_line(&skill.uri)), duplicate));
            }
            Ok(skill) => self.skills.push(skill),
            Err(error) => {
                let uri = entry.read::<UriField>().ok().map(|entry| sanitize_line(&entry.uri));
                self.rejected.push((uri, error));
            }
        }
    }
}

impl SkillEntry {
    /// Reads one entry of a listing.
    pub fn read(entry: &RawJson) -> Result<Self, SkillError> {
        let invalid = |problem: &str| SkillError::InvalidEntry(problem.to_owned());
        let listed: ListedSkill =
            entry.read().map_err(|error| SkillError::InvalidEntry(sanitize_line(&error.to_string())))?;
        let folder = listed.uri.strip_suffix("SKILL.md").filter(|folder| folder.ends_with('/'));
        let folder = folder.ok_or_else(|| invalid("the URI does not end with /SKILL.md"))?;
        let text = |key: &str| listed.frontmatter.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").filter(|name| is_skill_name(name)).ok_or_else(|| invalid("no valid name"))?;
        if folder.trim_end_matches('/').rsplit('/').next() != Some(&name) {
            return Err(invalid("the directory does not have the name of the skill"));
        }
        if listed.resources.len() > MAX_SKILL_FILES {
            return Err(SkillError::TooManyFiles(listed.resources.len()));
        }
        let files =
            listed.resources.into_iter().map(|file| file.read(folder)).collect::<Result<Vec<_>, _>>()?;
        let total = files.iter().fold(0_u64, |total, file| total.saturating_add(file.size));
        if total > MAX_SKILL_BYTES {
            return Err(SkillError::TooLarge(total));
        }
        let mut uris = HashSet::new();
        if !files.iter().all(|file| uris.insert(file.uri.as_str())) {
            return Err(invalid("a file is listed twice"));
        }
        if !uris.contains(listed.uri.as_str()) {
            return Err(invalid("SKILL.md is not among the listed files"));
        }
        let description = text("description").unwrap_or_default();
        Ok(Self { uri: listed.uri, name, description, frontmatter: listed.frontmatter, files })
    }
}

impl SkillFile {
    /// Checks size and digest of the content.
    pub fn verify(&self, bytes: &[u8]) -> Result<(), SkillError> {
        let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if found != self.size {
            return Err(SkillError::SizeMismatch { uri: sanitize_line(&self.uri), listed: self.size, found });
        }
        if digest(&SHA256, bytes).as_ref() != self.sha256 {
            return Err(SkillError::DigestMismatch(sanitize_line(&self.uri)));
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct UriField {
    uri: String,
}

#[derive(Deserialize)]
struct ListedSkill {
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
        if !path.is_some_and(|path| path.split('/').all(is_plain_segment)) {
            return Err(SkillError::InvalidEntry(format!(
                "{} is not in the directory of the skill",
                sanitize_line(&self.uri)
            )));
        }
        let sha256 =
            self.digest.strip_prefix("sha256:").and_then(|digits| digits.parse::<ContentHash>().ok());
        let sha256 = sha256.ok_or_else(|| {
            SkillError::InvalidEntry(format!("{} has no SHA-256 digest", sanitize_line(&self.uri)))
        })?;
        Ok(SkillFile { uri: self.uri, size: self.size, sha256: *sha256.as_bytes() })
    }
}

/// Whether a text is a valid name of a skill: 1 to 64 lower-case ASCII letters, digits and hyphens.
pub fn is_skill_name(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(is_valid)
}

/// Whether a path segment is only a name, so that a file that is written under it stays in its directory.
fn is_plain_segment(segment: &str) -> bool {
    let lower = segment.to_ascii_lowercase();
    !matches!(segment, "" | "." | "..")
        && !segment.contains(['\\', ':', '?', '#'])
        && !segment.contains(char::is_control)
        && !["%2e", "%2f", "%5c", "%00"].iter().any(|escape| lower.contains(escape))
}

/// The content of a file in the result of `resources/read`.
fn file_content(result: &RawJson, uri: &str) -> Result<Vec<u8>, SkillError> {
    #[derive(Deserialize)]
    struct ReadResult {
        contents: Vec<ResourceContent>,
    }
    #[derive(Deserialize)]
    struct ResourceContent {
        uri: String,
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        blob: Option<String>,
    }
    let invalid = |problem| SkillError::InvalidContent { uri: sanitize_line(uri), problem };
    let read: ReadResult = result.read().map_err(|_| invalid("the response has no contents"))?;
    let mut contents = read.contents.into_iter();
    match (contents.next(), contents.next()) {
        (Some(content), None) if content.uri == uri => match (content.text, content.blob) {
            (Some(text), None) => Ok(text.into_bytes()),
            (None, Some(blob)) => STANDARD.decode(blob).map_err(|_| invalid("the blob is not Base64")),
            _ => Err(invalid("the response is neither text nor blob")),
        },
        _ => Err(invalid("the response is not exactly this file")),
    }
}

/// Compares field by field; the error names the first difference.
fn compare_frontmatter(listed: &Map<String, Value>, found: &Map<String, Value>) -> Result<(), SkillError> {
    let differs = |name: &&String| listed.get(*name) != found.get(*name);
    match listed.keys().chain(found.keys()).find(differs) {
        Some(name) => Err(SkillError::FrontmatterMismatch(sanitize_line(name))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "skills_tests.rs"]
mod tests;
