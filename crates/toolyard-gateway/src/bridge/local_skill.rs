//! [`LocalSkill`]: the files of one skill folder, and their URIs.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use aws_lc_rs::digest::{SHA256, digest};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use toolyard_mcp_client::{MAX_SKILL_BYTES, MAX_SKILL_FILES, is_skill_name, parse_frontmatter};

/// A folder with this file is a skill.
pub(super) const MANIFEST: &str = "SKILL.md";
/// A skill with deeper nested folders is rejected.
const MAX_FOLDER_DEPTH: usize = 8;
/// Characters that are percent-encoded in URIs: all but the unreserved ones of RFC 3986.
const PERCENT_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct LocalSkill {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) frontmatter: Map<String, Value>,
    /// Sorted by path.
    pub(super) files: Vec<LocalFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocalFile {
    /// Path components relative to the skill's folder.
    pub(super) path: Vec<String>,
    pub(super) size: u64,
    pub(super) modified: Option<SystemTime>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SkillError {
    /// A folder of skills has a name that is not a valid name of a skill.
    ///
    /// Remedy: rename the folder: lowercase letters, digits and `-`.
    #[error("the folder name is not a valid skill name")]
    Name,
    /// The file cannot be read or parsed; the text says why.
    ///
    /// Remedy: correct the file or its permissions; `toolyard skills list` shows all problems.
    #[error("SKILL.md cannot be read: {0}")]
    Manifest(String),
    /// `name` in the frontmatter is not the name of the folder.
    ///
    /// Remedy: rename the folder, or set `name` in `SKILL.md` to its name.
    #[error("the name in SKILL.md differs from the folder name")]
    NameMismatch,
    /// The frontmatter has no `description`, by which agents find the skill.
    ///
    /// Remedy: add a line `description: …` to the frontmatter of `SKILL.md`.
    #[error("SKILL.md has no description")]
    NoDescription,
    /// The skill has more files than are served to clients.
    ///
    /// Remedy: remove files that the skill does not need, such as dependencies and caches.
    #[error(
        "the skill has more than {MAX_SKILL_FILES} files, or folders nested deeper than {MAX_FOLDER_DEPTH}"
    )]
    TooManyFiles,
    /// The files of the skill are larger than what is served to clients.
    ///
    /// Remedy: remove large files from the folder, or let the skill refer to them by URL.
    #[error("the files have more than {MAX_SKILL_BYTES} bytes")]
    TooLarge,
    /// A file in the folder of the skill has a name that cannot be part of a URI.
    ///
    /// Remedy: rename the file.
    #[error("a file name is not UTF-8")]
    NotUtf8,
    /// The operating system does not let Toolyard read the folder of the skill.
    ///
    /// Remedy: check that the folder exists and is readable for this user.
    #[error("the folder cannot be read: {0}")]
    Unreadable(String),
}

impl LocalSkill {
    pub(super) fn load(folder: &Path) -> Result<Self, SkillError> {
        let name = folder.file_name().and_then(|name| name.to_str()).filter(|name| is_skill_name(name));
        let name = name.ok_or(SkillError::Name)?.to_owned();
        let manifest = read_up_to(&folder.join(MANIFEST), MAX_MANIFEST_BYTES)
            .map_err(|error| SkillError::Manifest(error.to_string()))?;
        let manifest =
            String::from_utf8(manifest).map_err(|_| SkillError::Manifest("not UTF-8".to_owned()))?;
        let frontmatter =
            parse_frontmatter(&manifest).map_err(|error| SkillError::Manifest(error.to_string()))?;
        if frontmatter.get("name").and_then(Value::as_str) != Some(&name) {
            return Err(SkillError::NameMismatch);
        }
        if frontmatter.get("description").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(SkillError::NoDescription);
        }
        let mut files = Vec::new();
        collect_files(folder, &mut Vec::new(), &mut files)?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        if files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size)) > MAX_SKILL_BYTES {
            return Err(SkillError::TooLarge);
        }
        Ok(Self { name, folder: folder.to_owned(), frontmatter, files })
    }

    /// The URI of its folder, with a trailing slash.
    pub(super) fn folder_uri(&self) -> String {
        format!("skill://{}/", self.name)
    }

    /// The URI of a file or folder in it.
    pub(super) fn uri(&self, path: &[String]) -> String {
        let components: Vec<String> =
            path.iter().map(|name| utf8_percent_encode(name, PERCENT_ENCODED).to_string()).collect();
        format!("{}{}", self.folder_uri(), components.join("/"))
    }

    pub(super) fn manifest_uri(&self) -> String {
        format!("{}{MANIFEST}", self.folder_uri())
    }

    pub(super) fn file(&self, uri: &str) -> Option<&LocalFile> {
        self.files.iter().find(|file| self.uri(&file.path) == uri)
    }

    pub(super) fn path_of(&self, file: &LocalFile) -> PathBuf {
        self.folder.join(file.path.iter().collect::<PathBuf>())
    }

    pub(super) fn read(&self, file: &LocalFile) -> Result<Vec<u8>, io::Error> {
        read_up_to(&self.path_of(file), MAX_SKILL_BYTES)
    }
}

/// The SHA-256 digest as skill lists write it: `sha256:` and hexadecimal digits.
pub(super) fn sha256_digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = "sha256:".to_owned();
    for byte in digest(&SHA256, bytes).as_ref() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Collects all regular files below a folder. Symbolic links are not followed; hidden files are not served.
fn collect_files(
    folder: &Path,
    path: &mut Vec<String>,
    files: &mut Vec<LocalFile>,
) -> Result<(), SkillError> {
    if path.len() > MAX_FOLDER_DEPTH {
        return Err(SkillError::TooManyFiles);
    }
    let unreadable = |error: io::Error| SkillError::Unreadable(error.to_string());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().into_string().map_err(|_| SkillError::NotUtf8)?;
        if name.starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(unreadable)?;
        path.push(name);
        if kind.is_dir() {
            collect_files(&entry.path(), path, files)?;
        } else if kind.is_file() {
            let metadata = entry.metadata().map_err(unreadable)?;
            files.push(LocalFile {
                path: path.clone(),
                size: metadata.len(),
                modified: metadata.modified().ok(),
            });
            if files.len() > MAX_SKILL_FILES {
                return Err(SkillError::TooManyFiles);
            }
        }
        path.pop();
    }
    Ok(())
}

fn read_up_to(path: &Path, max_bytes: u64) -> Result<Vec<u8>, io::Error> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > max_bytes {
        return Err(io::Error::other(format!("longer than {max_bytes} bytes")));
    }
    Ok(bytes)
}

pub(super) fn mime_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("md" | "markdown") => "text/markdown",
        Some("json") => "application/json",
        Some("yaml" | "yml") => "application/yaml",
        Some("toml") => "application/toml",
        Some("html" | "htm") => "text/html",
        Some("css") => "text/css",
        Some("csv") => "text/csv",
        Some("js" | "mjs") => "text/javascript",
        Some("py") => "text/x-python",
        Some("sh") => "text/x-shellscript",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("pdf") => "application/pdf",
        Some("txt") | None => "text/plain",
        Some(_) => "application/octet-stream",
    }
}
