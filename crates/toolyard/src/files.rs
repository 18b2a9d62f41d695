//! Writing files so that nobody ever sees half of one.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// Who may read a file that was not there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Whoever may read new files usually.
    Usual,
    /// Its owner only.
    Owner,
}

/// Puts a text in the place of a file's content, all at once. A file that is a link stays one, and who may read it stays as
/// it was.
pub(crate) fn write(file: &Path, text: &str, readers: Readers) -> io::Result<()> {
    std::fs::create_dir_all(file.parent().unwrap_or(file))?;
    let target = destination(file);
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let draft = target.with_file_name(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    restrict(&mut options, readers);
    let facts = target.metadata().ok();
    // A draft that was left behind may be readable by others.
    let _ = std::fs::remove_file(&draft);
    let mut written = options.open(&draft)?;
    if let Some(facts) = facts {
        written.set_permissions(facts.permissions())?;
    }
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    std::fs::rename(&draft, &target)
}

/// Writes a file that only its owner can read, all at once, unless somebody else was first: then theirs stays.
pub(crate) fn write_first(file: &Path, text: &str) -> io::Result<()> {
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

/// Where a link leads, even if nothing is there yet.
fn destination(file: &Path) -> PathBuf {
    if let Ok(target) = file.canonicalize() {
        return target;
    }
    match file.read_link() {
        Ok(target) => file.parent().unwrap_or(file).join(target),
        Err(_) => file.to_owned(),
    }
}

#[cfg(unix)]
fn restrict(options: &mut std::fs::OpenOptions, readers: Readers) {
    use std::os::unix::fs::OpenOptionsExt as _;
    if readers == Readers::Owner {
        options.mode(0o600);
    }
}

#[cfg(not(unix))]
fn restrict(_options: &mut std::fs::OpenOptions, _readers: Readers) {}
