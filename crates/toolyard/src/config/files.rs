//! Atomic file writes: readers see the old content or the new, never a part.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::error::CliError;

/// Permissions of a file that is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// As the umask says.
    Default,
    OwnerOnly,
}

/// Replaces a file's content atomically. A symbolic link and the permissions of an existing file are preserved.
pub(crate) fn write(file: &Path, content: impl AsRef<[u8]>, access: Access) -> Result<(), CliError> {
    replace(file, content.as_ref(), access).map_err(|error| CliError::file("write", file, error))
}

/// Replaces a file by the indented JSON of a value.
pub(crate) fn write_json(file: &Path, value: &impl Serialize, access: Access) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::file("write", file, error))?;
    write(file, format!("{text}\n"), access)
}

/// The content of a file; `None` if it does not exist.
pub(crate) fn read_if_exists(file: &Path) -> Result<Option<String>, CliError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::file("read", file, error)),
    }
}

/// Reads a cache; an unreadable one counts as empty.
pub(crate) fn read_cache<T: DeserializeOwned + Default>(file: &Path) -> T {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap_or_default()).unwrap_or_default()
}

pub(super) fn replace(file: &Path, content: &[u8], access: Access) -> io::Result<()> {
    std::fs::create_dir_all(file.parent().unwrap_or(file))?;
    let target = link_target(file);
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let draft = target.with_file_name(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    restrict_access(&mut options, access);
    let metadata = target.metadata().ok();
    // A draft left behind by a crash may have wider permissions.
    let _ = std::fs::remove_file(&draft);
    let mut draft_file = options.open(&draft)?;
    if let Some(metadata) = metadata {
        draft_file.set_permissions(metadata.permissions())?;
    }
    draft_file.write_all(content)?;
    draft_file.sync_all()?;
    std::fs::rename(&draft, &target)
}

/// Creates a folder with its parents; only its owner can list the folders that did not exist.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Opens a file for writing, emptied; only its owner can read it, also if it existed with wider permissions.
pub(crate) fn create_private(file: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    open_private(&mut options, file)
}

/// Opens a file for appending; only its owner can read it, also if it existed with wider permissions.
pub(crate) fn append_private(file: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    open_private(&mut options, file)
}

fn open_private(options: &mut std::fs::OpenOptions, path: &Path) -> io::Result<std::fs::File> {
    restrict_access(options, Access::OwnerOnly);
    let file = options.open(path)?;
    // Devices and pipes, such as /dev/stdout, keep their permissions.
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Creates an owner-only file atomically. If it exists by then, the existing file stays.
pub(crate) fn create_if_absent(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    match draft.persist_noclobber(file) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

/// Where a symbolic link leads, even if its target does not exist yet.
fn link_target(file: &Path) -> PathBuf {
    if let Ok(target) = file.canonicalize() {
        return target;
    }
    match file.read_link() {
        Ok(target) => file.parent().unwrap_or(file).join(target),
        Err(_) => file.to_owned(),
    }
}

#[cfg(unix)]
fn restrict_access(options: &mut std::fs::OpenOptions, access: Access) {
    use std::os::unix::fs::OpenOptionsExt as _;
    if access == Access::OwnerOnly {
        options.mode(0o600);
    }
}

#[cfg(not(unix))]
fn restrict_access(_options: &mut std::fs::OpenOptions, _access: Access) {}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn private_files_are_readable_by_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |file: &Path| file.metadata().unwrap().permissions().mode() & 0o777;
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        std::fs::write(&old, "before").unwrap();
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o644)).unwrap();
        append_private(&old).unwrap().write_all(b" after").unwrap();
        create_private(&new).unwrap().write_all(b"x").unwrap();
        assert_eq!((mode(&new), mode(&old)), (0o600, 0o600));
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "before after");
    }
}
