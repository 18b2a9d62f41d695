//! Content hashes of skills: trust and cached descriptions hold only for the content they were made for.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use toolyard_core::ContentHash;

use super::files::{SkillFileError, open_inside, open_regular_file};

/// Skills with more files cannot be trusted: no user reviews that many.
const MAX_FILES: usize = 4_096;

/// The hash that trust in a skill is bound to: every file of its folder, by path, content and executable bit, because
/// a program may load any of them. The target of a link counts too; a link to a folder outside is an error, because that folder
/// may hold any number of files.
pub(super) fn skill_content_hash(folder: &Path) -> Result<ContentHash, SkillFileError> {
    let mut hasher = blake3::Hasher::new();
    for path in all_files(folder)? {
        hash_path(&mut hasher, &path);
        let full_path = folder.join(&path);
        let metadata = fs::symlink_metadata(&full_path)?;
        if metadata.is_symlink() {
            hasher.update(b"link");
            hash_path(&mut hasher, &fs::read_link(&full_path)?);
            hash_link_target(&mut hasher, folder, &full_path)?;
        } else {
            let (file, _) = open_inside(folder, &path)?;
            let (length, hash) = hash_file(file)?;
            // Setting the executable bit makes a file a program.
            hasher.update(&[u8::from(metadata.permissions().mode() & 0o111 != 0)]);
            hasher.update(&length.to_le_bytes()).update(hash.as_bytes());
        }
    }
    Ok(finalize(&hasher))
}

/// All regular files and links below a folder, including hidden ones, relative and sorted.
fn all_files(folder: &Path) -> Result<Vec<PathBuf>, SkillFileError> {
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
                return Err(SkillFileError::Unreadable(format!("more than {MAX_FILES} files")));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The cache key of a program's description: a hash of the whole skill, because the program may wrap another file, and the
/// program's name, because one file may be several programs.
pub(super) fn program_cache_key(skill: &ContentHash, program: &Path) -> ContentHash {
    let name = program.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
    ContentHash::of_parts([&skill.as_bytes()[..], name])
}

/// Adds what a program reads through a link: the target may change while the link does not.
fn hash_link_target(hasher: &mut blake3::Hasher, folder: &Path, link: &Path) -> Result<(), SkillFileError> {
    let target = match link.canonicalize() {
        Ok(target) => target,
        // Once the target exists, the hash differs.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            hasher.update(b"missing");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    // Other links outside may be part of the way, so that the same link leads to another file.
    hash_path(hasher, &target);
    // Files of the folder are part of the hash anyway.
    if target.starts_with(folder) {
        return Ok(());
    }
    let (file, metadata) = open_regular_file(&target).map_err(|error| match error {
        SkillFileError::NotRegularFile => SkillFileError::OutsideFolder,
        error => error,
    })?;
    let (length, hash) = hash_file(file)?;
    hasher.update(&[u8::from(metadata.permissions().mode() & 0o111 != 0)]);
    hasher.update(&length.to_le_bytes()).update(hash.as_bytes());
    Ok(())
}

fn hash_path(hasher: &mut blake3::Hasher, path: &Path) {
    let bytes = path.as_os_str().as_encoded_bytes();
    hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
}

/// The length and hash of a file, read in chunks.
fn hash_file(mut file: File) -> Result<(u64, ContentHash), SkillFileError> {
    let mut hasher = blake3::Hasher::new();
    let length = io::copy(&mut file, &mut hasher)?;
    Ok((length, finalize(&hasher)))
}

fn finalize(hasher: &blake3::Hasher) -> ContentHash {
    ContentHash::from(*hasher.finalize().as_bytes())
}
