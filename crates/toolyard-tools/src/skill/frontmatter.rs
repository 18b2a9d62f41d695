//! Finds the frontmatter at the head of a SKILL.md, and reads no further than that.

use std::{
    io::{self, Read},
    ops::Range,
};

/// How much is read at a time, and so how far past the frontmatter a reader can get.
const BUFFER_BYTES: usize = 512;
/// No honest frontmatter is larger.
const MAX_BYTES: usize = 64 << 10;

/// Why there is no frontmatter to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontmatterError {
    /// The file does not begin with `---`.
    #[error("the file does not begin with a line `---`")]
    Absent,
    /// The closing `---` is missing.
    #[error("the frontmatter has no closing line `---`")]
    Unclosed,
    /// The closing `---` is too far away.
    #[error("the frontmatter is larger than {MAX_BYTES} bytes")]
    TooLarge,
    /// It is not text.
    #[error("the frontmatter is not UTF-8 text")]
    NotText,
    /// The file could not be read.
    #[error("failed to read the file: {0}")]
    Unreadable(String),
}

/// Where the frontmatter of a file is, as far as the bytes at hand tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its YAML, and where the body begins.
    Found { yaml: Range<usize>, body: usize },
    /// There is none.
    Absent,
    /// The closing line is not among these bytes.
    Open,
}

/// The YAML between the two lines `---`.
pub(super) fn read(mut reader: impl Read) -> Result<String, FrontmatterError> {
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
        match find(&bytes, at_end) {
            Place::Found { yaml, .. } => {
                let yaml = bytes.get(yaml).unwrap_or_default();
                return String::from_utf8(yaml.to_vec()).map_err(|_| FrontmatterError::NotText);
            }
            Place::Absent => return Err(FrontmatterError::Absent),
            Place::Open if at_end => return Err(FrontmatterError::Unclosed),
            Place::Open if bytes.len() > MAX_BYTES => return Err(FrontmatterError::TooLarge),
            Place::Open => {}
        }
    }
}

/// Looks for the frontmatter. `at_end` says that no more bytes will come.
pub(super) fn find(bytes: &[u8], at_end: bool) -> Place {
    let mut position = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut yaml_start = None;
    for line in bytes.get(position..).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
        let whole = at_end || line.ends_with(b"\n");
        let is_fence = line.trim_ascii_end() == b"---";
        let start = position;
        position += line.len();
        match yaml_start {
            None if is_fence && whole => yaml_start = Some(position),
            None if whole || line.len() > 64 => return Place::Absent,
            Some(yaml) if is_fence && whole => return Place::Found { yaml: yaml..start, body: position },
            _ => {}
        }
    }
    if at_end && yaml_start.is_none() { Place::Absent } else { Place::Open }
}
