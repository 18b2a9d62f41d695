//! The operator's settings file, which `servers add`, `models add` and `import` edit.

use std::path::{Path, PathBuf};

use super::{CliContext, files};
use crate::error::CliError;

/// The path and content of the file; the content is empty if it does not exist.
pub(crate) fn read(context: &CliContext) -> Result<(PathBuf, String), CliError> {
    let file = context.operator_file.clone();
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok((file, text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((file, String::new())),
        Err(error) => Err(CliError::file("read", &file, error)),
    }
}

/// Replaces the content of the file.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), CliError> {
    files::write(file, text, files::Access::OwnerOnly).map_err(|error| CliError::file("write", file, error))
}
