//! Reads a skill's folder without ever leaving it and without ever waiting for what is not a plain file.

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
const MAX_VISITED: usize = 20_000;
const MAX_PROGRAMS: usize = 32;

/// Why a file of a skill is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The path could lead out of the folder.
    #[error("the path must be relative and stay inside the skill's folder")]
    BadPath,
    /// The path does lead out of the folder, by a link.
    #[error("the file is outside of the skill's folder")]
    Outside,
    /// There is no such file.
    #[error("there is no such file in the skill's folder")]
    NotFound,
    /// A folder, pipe, socket or device.
    #[error("this is not a plain file")]
    NotPlain,
    /// The file could not be read.
    #[error("failed to read the file: {0}")]
    Unreadable(String),
}

impl From<io::Error> for ResourceError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

/// The path as plain steps downwards; hidden files are not offered.
pub(super) fn steps_downwards(resource: &str) -> Result<PathBuf, ResourceError> {
    let unwanted = resource.is_empty() || resource.len() > MAX_PATH_BYTES || resource.contains(['\0', '\\']);
    if unwanted {
        return Err(ResourceError::BadPath);
    }
    let mut path = PathBuf::new();
    for component in Path::new(resource).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(step) if !is_hidden(step.as_encoded_bytes()) => path.push(step),
            _ => return Err(ResourceError::BadPath),
        }
    }
    if path.as_os_str().is_empty() { Err(ResourceError::BadPath) } else { Ok(path) }
}

/// Opens a plain file inside `root`, which must be canonical.
pub(super) fn open_inside(root: &Path, relative: &Path) -> Result<(File, Metadata), ResourceError> {
    let path = root.join(relative).canonicalize()?;
    if !path.starts_with(root) {
        return Err(ResourceError::Outside);
    }
    open_plain(&path)
}

/// Opens a plain file. A pipe or device is not even opened; one that appears in between cannot make the open wait.
fn open_plain(path: &Path) -> Result<(File, Metadata), ResourceError> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(ResourceError::NotPlain);
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(ResourceError::NotPlain) }
}

/// The executable plain files directly in `root` (canonical), sorted by name; links may not lead out.
pub(super) fn programs(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name();
        if is_hidden(name.as_encoded_bytes()) || name == MANIFEST_FILE {
            continue;
        }
        let Ok(path) = root.join(&name).canonicalize() else { continue };
        let executable =
            |metadata: Metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        if path.starts_with(root) && fs::symlink_metadata(&path).is_ok_and(executable) {
            programs.push(root.join(name));
        }
    }
    programs.sort();
    programs.truncate(MAX_PROGRAMS);
    Ok(programs)
}

/// The plain files below `root` (canonical), relative and sorted, and whether there are more than `limit`.
pub(super) fn files(root: &Path, limit: usize) -> (Vec<String>, bool) {
    let mut found = Vec::new();
    let mut visited = 0;
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries.flatten() {
            visited += 1;
            if visited > MAX_VISITED {
                break;
            }
            let relative = folder.join(entry.file_name());
            let Some(text) = listable(&relative) else { continue };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_LISTED_DEPTH => folders.push((relative, depth + 1)),
                Ok(kind) if kind.is_file() => found.push(text),
                Ok(kind) if kind.is_symlink() && open_inside(root, &relative).is_ok() => found.push(text),
                _ => {}
            }
        }
    }
    found.sort();
    let more = found.len() > limit || visited > MAX_VISITED;
    found.truncate(limit);
    (found, more)
}

/// A path that can be shown in a list and asked for again.
fn listable(relative: &Path) -> Option<String> {
    let text = relative.to_str()?;
    let name = relative.file_name()?;
    let wanted = !is_hidden(name.as_encoded_bytes())
        && name != "node_modules"
        && relative != Path::new(MANIFEST_FILE)
        && !text.contains(char::is_control)
        && !text.contains(['<', '>', '\\']);
    wanted.then(|| text.to_owned())
}

pub(super) fn is_hidden(name: &[u8]) -> bool {
    name.first() == Some(&b'.')
}
