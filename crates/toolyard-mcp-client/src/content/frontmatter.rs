//! The YAML metadata at the head of a SKILL.md.

use serde_json::{Map, Value};

use crate::sanitize::sanitize_line;

const MAX_FRONTMATTER_BYTES: usize = 64 << 10;
/// The line before and after the metadata.
const DELIMITER: &str = "---";

/// Why a SKILL.md has no usable frontmatter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontmatterError {
    /// The file of a skill has another encoding.
    ///
    /// Remedy: save `SKILL.md` as UTF-8.
    #[error("SKILL.md is not UTF-8")]
    NotUtf8,
    /// The first line of `SKILL.md` is not `---`.
    ///
    /// Remedy: begin the file with `---`, the fields `name` and `description`, and another `---`.
    #[error("SKILL.md does not begin with `---`")]
    NoStart,
    /// The closing `---` of the frontmatter is missing.
    ///
    /// Remedy: add a line `---` after the fields.
    #[error("the frontmatter of SKILL.md has no closing `---`")]
    NoEnd,
    /// The frontmatter is larger than Toolyard reads.
    ///
    /// Remedy: move long texts below the closing `---`.
    #[error("the frontmatter of SKILL.md is longer than {MAX_FRONTMATTER_BYTES} bytes")]
    TooLong,
    /// The frontmatter is not YAML, or its fields have wrong types.
    ///
    /// Remedy: correct the YAML at the place that the text names; quote values with colons.
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
