//! Content made small for storing, and made whole again within limits.

use std::io::Read as _;

use crate::error::StoreError;

/// Nothing that was stored is larger than this when it is whole again.
const LARGEST: u64 = 1 << 30;

/// Shorter content is kept as it is: compressing it costs more than it saves.
const WORTH_IT: usize = 2_048;
/// The first byte of what is stored says which of the two it is.
const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;

/// Content as it is stored.
pub(crate) fn compressed(content: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut stored = Vec::with_capacity(content.len().min(WORTH_IT) + 1);
    if content.len() < WORTH_IT {
        stored.push(PLAIN);
        stored.extend_from_slice(content);
        return Ok(stored);
    }
    stored.push(COMPRESSED);
    let failed = |error: std::io::Error| StoreError::Database(format!("cannot compress: {error}"));
    stored.extend(zstd::bulk::compress(content, 1).map_err(failed)?);
    Ok(stored)
}

/// Stored text as it was.
pub(crate) fn uncompressed(stored: &[u8]) -> Result<String, StoreError> {
    let corrupt = |error: &dyn std::fmt::Display| StoreError::Corrupt(error.to_string());
    match stored.split_first() {
        Some((&PLAIN, content)) => String::from_utf8(content.to_vec()).map_err(|error| corrupt(&error)),
        Some((&COMPRESSED, content)) => {
            let mut text = String::new();
            let decoder = zstd::stream::read::Decoder::new(content).map_err(|error| corrupt(&error))?;
            decoder.take(LARGEST).read_to_string(&mut text).map_err(|error| corrupt(&error))?;
            Ok(text)
        }
        _ => Err(StoreError::Corrupt("content of an unknown form".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_any_length_survives() {
        for length in [0, 1, WORTH_IT - 1, WORTH_IT, 100_000] {
            let text = "é".repeat(length);
            let stored = compressed(text.as_bytes()).unwrap();
            assert_eq!(uncompressed(&stored).unwrap(), text);
            assert!(length < WORTH_IT || stored.len() < text.len() / 10);
        }
    }

    #[test]
    fn what_is_not_content_is_refused() {
        for broken in [&[][..], &[7, 7], &[PLAIN, 0xFF], &[COMPRESSED, 1, 2, 3]] {
            assert!(uncompressed(broken).is_err(), "{broken:?}");
        }
    }
}
