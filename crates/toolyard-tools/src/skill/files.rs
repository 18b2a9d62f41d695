//! Access to the files of a skill: never outside its folder, and never blocking on a pipe or device.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

use rustix::fs::OFlags;

/// The file that makes a folder a skill.
pub(super) const MANIFEST_FILE: &str = "SKILL.md";
const MAX_PATH_BYTES: usize = 1_024;
const MAX_LISTED_DEPTH: usize = 8;
const MAX_VISITED_ENTRIES: usize = 20_000;
const MAX_PROGRAMS: usize = 32;

/// Why a file of a skill cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillFileError {
    /// The path of a file of a skill is absolute, or has `..` or hidden parts.
    ///
    /// Remedy: use a path from the list of files of the skill.
    #[error("the path must be relative and stay inside the skill's folder")]
    InvalidPath,
    /// A link in the folder of a skill leads out of it, so it is not read.
    ///
    /// Remedy: copy the file into the folder of the skill.
    #[error("the file is outside of the skill's folder")]
    OutsideFolder,
    /// The skill has no such file.
    ///
    /// Remedy: call the skill without `resource` for the list of its files.
    #[error("no such file in the skill's folder")]
    NotFound,
    /// A folder, pipe, socket or device cannot be read as a file of a skill.
    ///
    /// Remedy: use a path from the list of files of the skill.
    #[error("not a regular file")]
    NotRegularFile,
    /// The file of a skill could not be read; the text says why.
    ///
    /// Remedy: check the permissions of the file.
    #[error("failed to read the file: {0}")]
    Unreadable(String),
}

impl From<io::Error> for SkillFileError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

/// Parses the path of a resource: relative, without `..` and hidden components.
pub(super) fn parse_relative_path(resource: &str) -> Result<PathBuf, SkillFileError> {
    if resource.is_empty() || resource.len() > MAX_PATH_BYTES || resource.contains(['\0', '\\']) {
        return Err(SkillFileError::InvalidPath);
    }
    let mut path = PathBuf::new();
    for component in Path::new(resource).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) if !is_hidden(name.as_encoded_bytes()) => path.push(name),
            _ => return Err(SkillFileError::InvalidPath),
        }
    }
    if path.as_os_str().is_empty() { Err(SkillFileError::InvalidPath) } else { Ok(path) }
}

/// Opens a regular file inside `root`, which must be canonical.
pub(super) fn open_inside(root: &Path, relative: &Path) -> Result<(File, Metadata), SkillFileError> {
    let path = root.join(relative).canonicalize()?;
    if !path.starts_with(root) {
        return Err(SkillFileError::OutsideFolder);
    }
    open_regular_file(&path)
}

/// Opens a regular file. The flags keep the open from blocking if the file is replaced by a pipe after the check.
pub(super) fn open_regular_file(path: &Path) -> Result<(File, Metadata), SkillFileError> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(SkillFileError::NotRegularFile);
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(SkillFileError::NotRegularFile) }
}

/// The executable regular files directly in `root` (canonical), sorted by name; links must stay inside.
pub(super) fn list_programs(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name();
        if is_hidden(name.as_encoded_bytes()) || name == MANIFEST_FILE {
            continue;
        }
        let Ok(path) = root.join(&name).canonicalize() else { continue };
        let is_executable =
            |metadata: Metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        if path.starts_with(root) && fs::symlink_metadata(&path).is_ok_and(is_executable) {
            programs.push(root.join(name));
        }
    }
    programs.sort();
    programs.truncate(MAX_PROGRAMS);
    Ok(programs)
}

/// The regular files below `root` (canonical), relative and sorted, at most `limit`, and whether the list is incomplete.
pub(super) fn list_files(root: &Path, limit: usize) -> (Vec<String>, bool) {
    let mut found = Vec::new();
    let mut visited = 0;
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries.flatten() {
            visited += 1;
            if visited > MAX_VISITED_ENTRIES {
                break;
            }
            let relative = folder.join(entry.file_name());
            let Some(text) = listable_path(&relative) else { continue };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_LISTED_DEPTH => folders.push((relative, depth + 1)),
                Ok(kind) if kind.is_file() => found.push(text),
                Ok(kind) if kind.is_symlink() && open_inside(root, &relative).is_ok() => found.push(text),
                _ => {}
            }
        }
    }
    found.sort();
    let is_incomplete = found.len() > limit || visited > MAX_VISITED_ENTRIES;
    found.truncate(limit);
    (found, is_incomplete)
}

/// The path as text, if it can be listed and passed back as a resource.
fn listable_path(relative: &Path) -> Option<String> {
    let text = relative.to_str()?;
    let name = relative.file_name()?;
    let is_listable = !is_hidden(name.as_encoded_bytes())
        && name != "node_modules"
        && relative != Path::new(MANIFEST_FILE)
        && !text.contains(char::is_control)
        && !text.contains(['<', '>', '\\']);
    is_listable.then(|| text.to_owned())
}

pub(super) fn is_hidden(name: &[u8]) -> bool {
    name.first() == Some(&b'.')
}
