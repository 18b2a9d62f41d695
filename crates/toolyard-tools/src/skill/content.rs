//! Names skills and programs by the hash of their content, so that a changed program is a different program.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use toolyard_core::ContentHash;

use super::folder::{ResourceError, open_inside};

/// A skill with more files than this cannot be trusted: nobody has looked at all of them.
const MAX_FILES: usize = 4_096;

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
    Ok(finished(&hasher))
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

/// What a program's description is bound to: all of its skill, for it may be a mere wrapper of another file, and its
/// own name, for one file may be several programs.
pub(super) fn of_program(skill: &ContentHash, program: &Path) -> ContentHash {
    let name = program.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
    ContentHash::of_parts([&skill.as_bytes()[..], name])
}

/// The length and content of one file, however large it is.
fn hash_file(folder: &Path, path: &Path) -> Result<(u64, ContentHash), ResourceError> {
    let (mut file, _) = open_inside(folder, path)?;
    let mut hasher = blake3::Hasher::new();
    let length = io::copy(&mut file, &mut hasher)?;
    Ok((length, finished(&hasher)))
}

fn finished(hasher: &blake3::Hasher) -> ContentHash {
    ContentHash::from(*hasher.finalize().as_bytes())
}
