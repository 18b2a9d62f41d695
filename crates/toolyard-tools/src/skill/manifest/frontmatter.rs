//! Reads the frontmatter of a SKILL.md without reading the instructions after it.

use std::{
    io::{self, Read},
    ops::Range,
};

/// The read size: at most this much is read past the frontmatter.
const BUFFER_BYTES: usize = 512;
const MAX_FRONTMATTER_BYTES: usize = 64 << 10;
/// A longer first line cannot be `---` with white space after it.
const MAX_FENCE_BYTES: usize = 64;

/// Why the frontmatter cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontmatterError {
    /// The first line of `SKILL.md` is not `---`.
    ///
    /// Remedy: begin the file with `---`, the fields `name` and `description`, and another `---`.
    #[error("the file does not begin with a line `---`")]
    Missing,
    /// The closing `---` of the frontmatter is missing.
    ///
    /// Remedy: add a line `---` after the fields.
    #[error("the frontmatter has no closing line `---`")]
    Unclosed,
    /// The frontmatter is larger than Toolyard reads.
    ///
    /// Remedy: move long texts below the closing `---`.
    #[error("the frontmatter is larger than {MAX_FRONTMATTER_BYTES} bytes")]
    TooLarge,
    /// The frontmatter has another encoding.
    ///
    /// Remedy: save `SKILL.md` as UTF-8.
    #[error("the frontmatter is not UTF-8 text")]
    NotUtf8,
    /// `SKILL.md` could not be read; the text says why.
    ///
    /// Remedy: check the permissions of the file.
    #[error("failed to read the file: {0}")]
    Unreadable(String),
}

/// The position of the frontmatter in the bytes read so far.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::skill) enum FrontmatterSpan {
    /// The range of the YAML, and the start of the body.
    Found { yaml: Range<usize>, body: usize },
    /// The file has no frontmatter.
    Missing,
    /// The closing line is not among these bytes.
    Incomplete,
}

/// Reads the YAML between the two lines `---`.
pub(super) fn read_frontmatter(mut reader: impl Read) -> Result<String, FrontmatterError> {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; BUFFER_BYTES];
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(FrontmatterError::Unreadable(error.to_string())),
        };
        bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let at_end = count == 0;
        match find_frontmatter(&bytes, at_end) {
            FrontmatterSpan::Found { yaml, .. } => {
                let yaml = bytes.get(yaml).unwrap_or_default();
                return String::from_utf8(yaml.to_vec()).map_err(|_| FrontmatterError::NotUtf8);
            }
            FrontmatterSpan::Missing => return Err(FrontmatterError::Missing),
            FrontmatterSpan::Incomplete if at_end => return Err(FrontmatterError::Unclosed),
            FrontmatterSpan::Incomplete if bytes.len() > MAX_FRONTMATTER_BYTES => {
                return Err(FrontmatterError::TooLarge);
            }
            FrontmatterSpan::Incomplete => {}
        }
    }
}

/// Finds the frontmatter. `at_end` means that no more bytes follow.
pub(in crate::skill) fn find_frontmatter(bytes: &[u8], at_end: bool) -> FrontmatterSpan {
    // After a byte-order mark.
    let mut position = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut yaml_start = None;
    for line in bytes.get(position..).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
        let is_complete = at_end || line.ends_with(b"\n");
        let is_fence = line.trim_ascii_end() == b"---";
        let start = position;
        position += line.len();
        match yaml_start {
            None if is_fence && is_complete => yaml_start = Some(position),
            None if is_complete || line.len() > MAX_FENCE_BYTES => return FrontmatterSpan::Missing,
            Some(yaml) if is_fence && is_complete => {
                return FrontmatterSpan::Found { yaml: yaml..start, body: position };
            }
            _ => {}
        }
    }
    if at_end && yaml_start.is_none() { FrontmatterSpan::Missing } else { FrontmatterSpan::Incomplete }
}
