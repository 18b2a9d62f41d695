//! The operator's settings file, which `servers add`, `models add` and `import` edit.

use std::path::{Path, PathBuf};

use super::{CliContext, files};
use crate::error::CliError;

/// The path and content of the file; the content is empty if it does not exist.
pub(crate) fn read(context: &CliContext) -> Result<(PathBuf, String), CliError> {
    let file = context.operator_file.clone();
    let text = files::read_if_exists(&file)?.unwrap_or_default();
    Ok((file, text))
}

pub(crate) fn write(file: &Path, text: &str) -> Result<(), CliError> {
    files::write(file, text, files::Access::OwnerOnly)
}
