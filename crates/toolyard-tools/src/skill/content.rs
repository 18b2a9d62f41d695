//! Names content by its hash, so that a changed program is a different program.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::folder::{ResourceError, open_inside};

/// A skill with more files than this cannot be trusted: nobody has looked at all of them.
const MAX_FILES: usize = 4_096;

/// A blake3 hash in hexadecimal form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ContentHash(String);

impl ContentHash {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What trust in a skill is bound to: every file of its folder, by path and content. A program may load any of them.
pub(super) fn of_skill(folder: &Path) -> Result<ContentHash, ResourceError> {
    let mut hasher = blake3::Hasher::new();
    for path in everything_in(folder)? {
        let name = path.as_os_str().as_encoded_bytes();
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name);
        let whole = folder.join(&path);
        let metadata = fs::symlink_metadata(&whole)?;
        if metadata.is_symlink() {
            // Where it leads is part of the folder; what is there is not.
            let target = fs::read_link(&whole)?;
            hasher.update(b"link").update(target.as_os_str().as_encoded_bytes());
        } else {
            let (length, hash) = hash_file(folder, &path)?;
            // A file that becomes executable becomes a program.
            hasher.update(&[u8::from(metadata.permissions().mode() & 0o111 != 0)]);
            hasher.update(&length.to_le_bytes()).update(hash.as_bytes());
        }
    }
    Ok(ContentHash(hasher.finalize().to_hex().to_string()))
}

/// All plain files and links below a folder, hidden ones too, relative and sorted.
fn everything_in(folder: &Path) -> Result<Vec<PathBuf>, ResourceError> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(relative) = folders.pop() {
        for entry in fs::read_dir(folder.join(&relative))? {
            let entry = entry?;
            let path = relative.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() || kind.is_symlink() {
                found.push(path);
            }
            if found.len() + folders.len() > MAX_FILES {
                return Err(ResourceError::Unreadable(format!("more than {MAX_FILES} files")));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The content of one program.
pub(super) fn of_program(folder: &Path, program: &Path) -> Result<ContentHash, ResourceError> {
    hash_file(folder, program).map(|(_, hash)| ContentHash(hash.to_hex().to_string()))
}

fn hash_file(folder: &Path, path: &Path) -> Result<(u64, blake3::Hash), ResourceError> {
    let (mut file, _) = open_inside(folder, path)?;
    let mut hasher = blake3::Hasher::new();
    let length = io::copy(&mut file, &mut hasher)?;
    Ok((length, hasher.finalize()))
}
