//! `${file:PATH}`: reads a secret from a file, such as one that Docker or Kubernetes mounts.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

/// Larger files are no secrets, and Linux passes no longer value to a program.
const MAX_BYTES: u64 = 64 << 10;

/// Why a file has no value. The messages follow the name of the file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretFileError {
    /// `${file:PATH}` names a file that does not exist.
    ///
    /// Remedy: create the file, or correct the path in the settings of the server.
    #[error("there is no such file")]
    Missing,
    #[error("{0}")]
    Io(String),
    /// `${file:PATH}` names a folder or device.
    ///
    /// Remedy: name a regular file.
    #[error("not a regular file")]
    NotAFile,
    /// `${file:PATH}` names a file that is too large for a secret.
    ///
    /// Remedy: name the file with the secret only.
    #[error("larger than 64 KiB")]
    TooLarge,
    /// `${file:PATH}` names a file with another content than text.
    ///
    /// Remedy: write the secret as text, for example as base64.
    #[error("not UTF-8 text")]
    NotText,
    /// `${file:PATH}` names a file without content.
    ///
    /// Remedy: write the secret into the file; an orchestrator may mount it later.
    #[error("the file is empty")]
    Empty,
    /// A path begins with `~`, and the process has no home folder.
    ///
    /// Remedy: set `HOME` in the environment of Toolyard, or write the whole path.
    #[error("`~` needs the environment variable HOME")]
    NoHome,
}

/// The content of a file without the line feed at its end. `~/` is the home folder.
pub(super) fn read(path: &str, home: Option<&Path>) -> Result<String, SecretFileError> {
    let path = match path.strip_prefix("~/") {
        Some(rest) => home.ok_or(SecretFileError::NoHome)?.join(rest),
        None => PathBuf::from(path),
    };
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => SecretFileError::Missing,
        _ => SecretFileError::Io(error.to_string()),
    };
    // Before it is opened: opening a pipe would wait for a writer.
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(SecretFileError::NotAFile);
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(failed)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        return Err(SecretFileError::TooLarge);
    }
    let text = String::from_utf8(bytes).map_err(|_| SecretFileError::NotText)?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() { Err(SecretFileError::Empty) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_without_the_line_feed_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for (content, value) in
            [("hunter2", "hunter2"), ("hunter2\n", "hunter2"), ("a\r\n", "a"), ("a\nb\n\n", "a\nb\n")]
        {
            std::fs::write(path("token"), content).unwrap();
            assert_eq!(read(&path("token"), None).as_deref(), Ok(value));
            assert_eq!(read("~/token", Some(folder.path())).as_deref(), Ok(value));
        }
        assert_eq!(read("~/token", None), Err(SecretFileError::NoHome));
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("empty"), "\n").unwrap();
        std::fs::write(path("binary"), [0xff, 0xfe]).unwrap();
        std::fs::write(path("large"), "x".repeat((64 << 10) + 1)).unwrap();
        std::fs::write(path("largest"), "x".repeat(64 << 10)).unwrap();
        assert_eq!(read(&path("none"), None), Err(SecretFileError::Missing));
        assert_eq!(read(&path(""), None), Err(SecretFileError::NotAFile));
        assert_eq!(read("/dev/zero", None), Err(SecretFileError::NotAFile));
        assert_eq!(read(&path("empty"), None), Err(SecretFileError::Empty));
        assert_eq!(read(&path("binary"), None), Err(SecretFileError::NotText));
        assert_eq!(read(&path("large"), None), Err(SecretFileError::TooLarge));
        assert!(read(&path("largest"), None).is_ok());
    }
}
