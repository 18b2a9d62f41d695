//! Compressed columns: one format byte, then the content, compressed if it is large enough.

use std::io::Read as _;

use crate::error::StoreError;

/// Bounds decompression of a corrupt or hostile column.
const MAX_DECOMPRESSED_BYTES: u64 = 1 << 30;
/// Shorter content is stored as it is: compression would cost more than it saves.
const MIN_COMPRESSED_BYTES: usize = 2_048;
/// Fast rather than small.
const ZSTD_LEVEL: i32 = 1;
// The format bytes.
const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;

pub(crate) fn compress(content: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut stored = Vec::with_capacity(content.len().min(MIN_COMPRESSED_BYTES) + 1);
    if content.len() < MIN_COMPRESSED_BYTES {
        stored.push(PLAIN);
        stored.extend_from_slice(content);
        return Ok(stored);
    }
    stored.push(COMPRESSED);
    let failed = |error: std::io::Error| StoreError::Database(format!("failed to compress: {error}"));
    stored.extend(zstd::bulk::compress(content, ZSTD_LEVEL).map_err(failed)?);
    Ok(stored)
}

pub(crate) fn decompress(stored: &[u8]) -> Result<String, StoreError> {
    match stored.split_first() {
        Some((&PLAIN, content)) => String::from_utf8(content.to_vec()).map_err(StoreError::corrupt),
        Some((&COMPRESSED, content)) => {
            let mut text = String::new();
            let decoder = zstd::stream::read::Decoder::new(content).map_err(StoreError::corrupt)?;
            decoder.take(MAX_DECOMPRESSED_BYTES).read_to_string(&mut text).map_err(StoreError::corrupt)?;
            Ok(text)
        }
        _ => Err(StoreError::corrupt("unknown content format")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_any_length_survives() {
        for length in [0, 1, MIN_COMPRESSED_BYTES - 1, MIN_COMPRESSED_BYTES, 100_000] {
            let text = "é".repeat(length);
            let stored = compress(text.as_bytes()).unwrap();
            assert_eq!(decompress(&stored).unwrap(), text);
            assert!(length < MIN_COMPRESSED_BYTES || stored.len() < text.len() / 10);
        }
    }

    #[test]
    fn invalid_content_is_rejected() {
        for broken in [&[][..], &[7, 7], &[PLAIN, 0xFF], &[COMPRESSED, 1, 2, 3]] {
            assert!(decompress(broken).is_err(), "{broken:?}");
        }
    }
}
