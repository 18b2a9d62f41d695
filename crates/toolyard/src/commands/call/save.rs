//! `toolyard call --output FILE`: saves images, audio and other binary content of a result, or its text.

use std::path::{Path, PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use toolyard_core::{ContentBlock, ToolOutput};

use crate::{error::CliError, terminal::Output};

/// Saves a result. The first binary block gets the name as given, further ones a number before the extension; a result
/// without binary content is saved as text.
pub(super) fn save(result: &ToolOutput, path: &Path, output: &Output) -> Result<(), CliError> {
    let mut files: Vec<(Vec<u8>, String)> = Vec::new();
    for block in &result.content {
        if let Some((data, kind)) = binary_content(block) {
            let bytes = BASE64_STANDARD
                .decode(data)
                .map_err(|error| CliError::failed(format!("the {kind} is not valid base64: {error}")))?;
            files.push((bytes, kind.to_owned()));
        }
    }
    if files.is_empty() {
        files.push((result.to_text().into_bytes(), "text".to_owned()));
    }
    for (index, (bytes, kind)) in files.iter().enumerate() {
        let path = numbered(path, index);
        std::fs::write(&path, bytes)
            .map_err(|error| CliError::failed(format!("failed to write {}: {error}", path.display())))?;
        output.message(&format!("saved {} ({kind}, {} bytes)", path.display(), bytes.len()));
    }
    Ok(())
}

/// How many files [`save`] would write of content that is not text.
pub(super) fn count_files(result: &ToolOutput) -> usize {
    result.content.iter().filter(|block| binary_content(block).is_some()).count()
}

/// Base64 and media type of a block with binary content.
fn binary_content(block: &ContentBlock) -> Option<(&str, &str)> {
    match block {
        ContentBlock::Image { data, mime_type } | ContentBlock::Audio { data, mime_type } => {
            Some((data, mime_type))
        }
        ContentBlock::Resource { resource } => {
            let field = |key| resource.get(key).and_then(Value::as_str);
            field("blob").map(|blob| (blob, field("mimeType").unwrap_or("binary content")))
        }
        _ => None,
    }
}

/// `chart.png`, `chart-2.png`, …
fn numbered(path: &Path, index: usize) -> PathBuf {
    if index == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-{}{}", index + 1, extension.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_files_are_numbered() {
        assert_eq!(numbered(Path::new("a/chart.png"), 0), Path::new("a/chart.png"));
        assert_eq!(numbered(Path::new("a/chart.png"), 1), Path::new("a/chart-2.png"));
        assert_eq!(numbered(Path::new("chart"), 2), Path::new("chart-3"));
    }
}
