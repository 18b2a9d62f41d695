//! The files of one skill on this machine: which there are, what they hold, and at which addresses they are served.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Map, Value};

use crate::client::{MOST_SKILL_BYTES, MOST_SKILL_FILES, frontmatter, is_skill_name};

/// The file that makes a folder a skill.
pub(super) const MANIFEST: &str = "SKILL.md";
/// Folders in folders beyond this are not looked into.
const DEEPEST: usize = 8;
/// A longer manifest is not read for its frontmatter.
const LONGEST_MANIFEST: u64 = 1 << 20;

/// A skill on this machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LocalSkill {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) frontmatter: Map<String, Value>,
    /// By path.
    pub(super) files: Vec<LocalFile>,
}

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocalFile {
    /// The steps from the skill's folder to the file.
    pub(super) steps: Vec<String>,
    pub(super) size: u64,
    pub(super) changed: Option<SystemTime>,
}

/// Why a folder is not served as a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotServed {
    #[error("its folder is not called as a skill may be called")]
    Name,
    #[error("its SKILL.md cannot be read: {0}")]
    Manifest(String),
    #[error("its SKILL.md says another name than its folder")]
    OtherName,
    #[error("its SKILL.md has no description")]
    NoDescription,
    #[error("it has more than {MOST_SKILL_FILES} files, or folders too deep")]
    TooManyFiles,
    #[error("its files have more than {MOST_SKILL_BYTES} bytes")]
    TooLarge,
    #[error("a name in it is not text")]
    NotText,
    #[error("its folder cannot be read: {0}")]
    Unreadable(String),
}

impl LocalSkill {
    /// Looks at one folder.
    pub(super) fn look(folder: &Path) -> Result<Self, NotServed> {
        let name = folder.file_name().and_then(|name| name.to_str()).filter(|name| is_skill_name(name));
        let name = name.ok_or(NotServed::Name)?.to_owned();
        let manifest = read_up_to(&folder.join(MANIFEST), LONGEST_MANIFEST).map_err(NotServed::Manifest)?;
        let manifest =
            String::from_utf8(manifest).map_err(|_| NotServed::Manifest("it is not text".to_owned()))?;
        let frontmatter = frontmatter(&manifest).map_err(|error| NotServed::Manifest(error.to_string()))?;
        if frontmatter.get("name").and_then(Value::as_str) != Some(&name) {
            return Err(NotServed::OtherName);
        }
        if frontmatter.get("description").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(NotServed::NoDescription);
        }
        let mut files = Vec::new();
        collect(folder, &mut Vec::new(), &mut files)?;
        files.sort_by(|one, other| one.steps.cmp(&other.steps));
        if files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size)) > MOST_SKILL_BYTES {
            return Err(NotServed::TooLarge);
        }
        Ok(Self { name, folder: folder.to_owned(), frontmatter, files })
    }

    /// The address of its folder, with a slash at its end.
    pub(super) fn root(&self) -> String {
        format!("skill://{}/", self.name)
    }

    /// The address of a file or folder in it.
    pub(super) fn address(&self, steps: &[String]) -> String {
        let steps: Vec<String> = steps.iter().map(|step| encoded(step)).collect();
        format!("{}{}", self.root(), steps.join("/"))
    }

    /// A file by its address.
    pub(super) fn file(&self, address: &str) -> Option<&LocalFile> {
        self.files.iter().find(|file| self.address(&file.steps) == address)
    }

    /// The bytes of one of its files.
    pub(super) fn read(&self, file: &LocalFile) -> Result<Vec<u8>, String> {
        let path = file.steps.iter().fold(self.folder.clone(), |path, step| path.join(step));
        read_up_to(&path, MOST_SKILL_BYTES)
    }
}

/// The SHA-256 of bytes, as skills say it.
pub(super) fn digest_of(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = "sha256:".to_owned();
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing into a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// All plain files below a folder. Links are not followed, and what is hidden is not served.
fn collect(folder: &Path, steps: &mut Vec<String>, files: &mut Vec<LocalFile>) -> Result<(), NotServed> {
    if steps.len() > DEEPEST {
        return Err(NotServed::TooManyFiles);
    }
    let unreadable = |error: std::io::Error| NotServed::Unreadable(error.to_string());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().into_string().map_err(|_| NotServed::NotText)?;
        if name.starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(unreadable)?;
        steps.push(name);
        if kind.is_dir() {
            collect(&entry.path(), steps, files)?;
        } else if kind.is_file() {
            let metadata = entry.metadata().map_err(unreadable)?;
            files.push(LocalFile {
                steps: steps.clone(),
                size: metadata.len(),
                changed: metadata.modified().ok(),
            });
            if files.len() > MOST_SKILL_FILES {
                return Err(NotServed::TooManyFiles);
            }
        }
        steps.pop();
    }
    Ok(())
}

fn read_up_to(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let metadata = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no plain file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Err("it is too long".to_owned());
    }
    Ok(bytes)
}

/// A step of a path as it stands in an address.
fn encoded(step: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(step.len());
    for byte in step.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// What kind of content a file has, by its name.
pub(super) fn kind_of(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
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
