//! Content made small for storing, and made whole again within limits.

use std::io::Read as _;

use crate::error::StoreError;

/// Nothing that was stored is larger than this when it is whole again.
const LARGEST: u64 = 1 << 30;

/// Content as it is stored.
pub(crate) fn compressed(content: &[u8]) -> Result<Vec<u8>, StoreError> {
    zstd::bulk::compress(content, 1)
        .map_err(|error| StoreError::Database(format!("cannot compress: {error}")))
}

/// Stored text as it was.
pub(crate) fn uncompressed(stored: &[u8]) -> Result<String, StoreError> {
    let corrupt = |error: std::io::Error| StoreError::Corrupt(error.to_string());
    let mut text = String::new();
    let decoder = zstd::stream::read::Decoder::new(stored).map_err(corrupt)?;
    decoder.take(LARGEST).read_to_string(&mut text).map_err(corrupt)?;
    Ok(text)
}
