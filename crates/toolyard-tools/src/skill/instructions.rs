//! The tool that returns a skill's instructions and files, read at each call.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
    group_digits,
};

use super::{
    files::{MANIFEST_FILE, SkillFileError, list_files, open_inside, parse_relative_path},
    manifest::{FrontmatterSpan, find_frontmatter},
    scan::Skill,
};
use crate::arguments::{read_arguments, schema_of};

/// Longer files are truncated.
const MAX_FILE_BYTES: usize = 1 << 20;
const MAX_LISTED_FILES: usize = 512;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SkillInstructionsArguments {
    /// A file of the skill to read, such as `references/style.md`; without it, the instructions themselves
    resource: Option<String>,
}

/// The tool named like its skill. It returns the instructions, or one file of the skill's folder.
#[derive(Debug)]
pub struct SkillTool {
    spec: ToolSpec,
    folder: PathBuf,
}

impl SkillTool {
    /// Creates the tool of a skill; reads nothing.
    pub fn new(skill: &Skill) -> Self {
        let spec = ToolSpec::new(skill.name.as_str(), skill.manifest.description.as_str())
            .with_input_schema(schema_of::<SkillInstructionsArguments>())
            .with_hints(ToolHints { open_world: Some(false), ..ToolHints::READ_ONLY })
            // The tool explains what its description promises, but does not do it.
            .without_inferred_capabilities();
        Self { spec, folder: skill.path.clone() }
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let SkillInstructionsArguments { resource } = read_arguments(&request.arguments)?;
            let (folder, name) = (self.folder.clone(), self.spec.name.to_string());
            let task = tokio::task::spawn_blocking(move || match resource.filter(|path| !path.is_empty()) {
                Some(resource) => read_resource(&folder, &resource).map_err(|error| {
                    ToolError::failed(format!("{error}: {resource:?}"))
                        .with_hint(format!("call `{name}` without `resource` for the list of its files"))
                }),
                None => instructions(&folder, &name)
                    .map_err(|error| ToolError::failed(format!("failed to read {MANIFEST_FILE}: {error}"))),
            });
            let text =
                task.await.map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))??;
            Ok(ToolOutput::text(text).exempt_from_budget())
        })
    }
}

/// The body of SKILL.md and the list of the files beside it.
fn instructions(folder: &Path, name: &str) -> Result<String, SkillFileError> {
    let (bytes, size) = read_bytes(folder, Path::new(MANIFEST_FILE))?;
    let body = match find_frontmatter(&bytes, /* at_end */ true) {
        FrontmatterSpan::Found { body, .. } => bytes.get(body..).unwrap_or_default(),
        FrontmatterSpan::Missing | FrontmatterSpan::Incomplete => &bytes,
    };
    let body = to_text(body.to_vec(), bytes.len(), size);
    let mut text = format!("<skill_content name=\"{name}\">\n{}\n</skill_content>", body.trim());
    let (files, is_incomplete) = list_files(folder, MAX_LISTED_FILES);
    if !files.is_empty() {
        text.push_str("\n<skill_resources>\n");
        for file in &files {
            text.push_str("  <file>");
            text.push_str(file);
            text.push_str("</file>\n");
        }
        if is_incomplete {
            text.push_str("  (and more)\n");
        }
        text.push_str("</skill_resources>");
    }
    Ok(text)
}

/// One file of the folder as text.
fn read_resource(folder: &Path, resource: &str) -> Result<String, SkillFileError> {
    let relative = parse_relative_path(resource)?;
    let (bytes, size) = read_bytes(folder, &relative)?;
    let bytes_read = bytes.len();
    Ok(to_text(bytes, bytes_read, size))
}

/// The start of a file, and the size of the whole file.
fn read_bytes(folder: &Path, relative: &Path) -> Result<(Vec<u8>, u64), SkillFileError> {
    let (file, metadata) = open_inside(folder, relative)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64).read_to_end(&mut bytes)?;
    Ok((bytes, metadata.len()))
}

/// Bytes as text, with a note if the file is binary or was truncated. `bytes_read` may count more than `bytes`, which lack
/// the frontmatter.
fn to_text(bytes: Vec<u8>, bytes_read: usize, file_size: u64) -> String {
    let file_size = usize::try_from(file_size).unwrap_or(usize::MAX);
    let is_truncated = file_size > bytes_read;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // Truncation may have split the last character.
        Err(error) if is_truncated && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            String::from_utf8_lossy(error.as_bytes().get(..end).unwrap_or_default()).into_owned()
        }
        Err(_) => return format!("[a binary file of {} bytes]", group_digits(file_size)),
    };
    if is_truncated {
        format!("{text}\n[showing {} of {} bytes]", group_digits(bytes_read), group_digits(file_size))
    } else {
        text
    }
}

#[cfg(test)]
#[path = "instructions_tests.rs"]
mod tests;
