//! The YAML metadata at the head of a SKILL.md.

use serde_json::{Map, Value};

use crate::sanitize::sanitize_line;

const MAX_FRONTMATTER_BYTES: usize = 64 << 10;
/// The line before and after the metadata.
const DELIMITER: &str = "---";

/// Why a SKILL.md has no usable frontmatter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum FrontmatterError {
    #[error("SKILL.md is not UTF-8")]
    NotUtf8,
    /// The first line is not `---`.
    #[error("SKILL.md does not begin with `---`")]
    NoStart,
    /// The closing `---` is missing.
    #[error("the frontmatter of SKILL.md has no closing `---`")]
    NoEnd,
    #[error("the frontmatter of SKILL.md is longer than {MAX_FRONTMATTER_BYTES} bytes")]
    TooLong,
    #[error("invalid frontmatter in SKILL.md: {0}")]
    InvalidYaml(String),
}

/// Parses the frontmatter of a SKILL.md.
pub fn parse_frontmatter(manifest: &str) -> Result<Map<String, Value>, FrontmatterError> {
    let text = manifest.strip_prefix('\u{feff}').unwrap_or(manifest);
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some(DELIMITER) {
        return Err(FrontmatterError::NoStart);
    }
    let mut yaml = String::new();
    for line in lines {
        if line.trim_end() == DELIMITER {
            return serde_saphyr::from_str(&yaml)
                .map_err(|error| FrontmatterError::InvalidYaml(sanitize_line(&error.to_string())));
        }
        yaml.push_str(line);
        if yaml.len() > MAX_FRONTMATTER_BYTES {
            return Err(FrontmatterError::TooLong);
        }
    }
    Err(FrontmatterError::NoEnd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_frontmatter_is_an_error() {
        let too_long = format!("---\nname: {}\n---\n", "x".repeat(MAX_FRONTMATTER_BYTES));
        for text in ["", "name: x", "---\nname: x\n", "---\n- a\n---\n", "---\n\t:\n---\n", &too_long] {
            assert!(parse_frontmatter(text).is_err(), "{text:.40}");
        }
    }

    #[test]
    fn byte_order_mark_and_crlf_are_accepted() {
        assert_eq!(parse_frontmatter("\u{feff}---\r\nname: x\r\n---").unwrap()["name"], "x");
    }
}
