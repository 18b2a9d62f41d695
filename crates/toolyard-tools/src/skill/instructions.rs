//! A skill's instructions as a tool: read when they are used, and never before.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
    grouped,
};

use super::{
    folder::{MANIFEST_FILE, ResourceError, files, open_inside, steps_downwards},
    frontmatter::{Place, find},
    scan::Skill,
};
use crate::arguments::{read_arguments, schema_of};

/// More of a file is never shown at once.
const MAX_BYTES: usize = 1 << 20;
const MAX_LISTED: usize = 512;

/// The arguments of a skill's tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A file of the skill to read, such as `references/style.md`; without it, the instructions themselves
    resource: Option<String>,
}

/// The tool named like its skill. It answers with the instructions, or with one file of the skill's folder.
#[derive(Debug)]
pub struct SkillTool {
    spec: ToolSpec,
    folder: PathBuf,
}

impl SkillTool {
    /// The tool of a skill. Nothing is read yet.
    pub fn new(skill: &Skill) -> Self {
        let spec = ToolSpec::new(skill.name.as_str(), skill.manifest.description.as_str())
            .with_input_schema(schema_of::<Arguments>())
            .with_hints(ToolHints { open_world: Some(false), ..ToolHints::READ_ONLY })
            // It tells how to do what its description says, and does not do it.
            .without_capabilities();
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
            let Arguments { resource } = read_arguments(&request.arguments)?;
            let (folder, name) = (self.folder.clone(), self.spec.name.to_string());
            let reading =
                tokio::task::spawn_blocking(move || match resource.filter(|path| !path.is_empty()) {
                    Some(resource) => read_resource(&folder, &resource).map_err(|error| {
                        ToolError::failed(format!("{error}: {resource:?}"))
                            .with_hint(format!("call `{name}` without `resource` for the list of its files"))
                    }),
                    None => instructions(&folder, &name).map_err(|error| {
                        ToolError::failed(format!("{MANIFEST_FILE} cannot be read: {error}"))
                    }),
                });
            let text =
                reading.await.map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))??;
            Ok(ToolOutput::text(text).sized())
        })
    }
}

/// The body of SKILL.md as it is now, and the list of the files beside it.
fn instructions(folder: &Path, name: &str) -> Result<String, ResourceError> {
    let (bytes, size) = read_bytes(folder, Path::new(MANIFEST_FILE))?;
    let body = match find(&bytes, true) {
        Place::Found { body, .. } => bytes.get(body..).unwrap_or_default(),
        Place::Absent | Place::Open => &bytes,
    };
    let body = shown(body.to_vec(), bytes.len(), size);
    let mut text = format!("<skill_content name=\"{name}\">\n{}\n</skill_content>", body.trim());
    let (files, more) = files(folder, MAX_LISTED);
    if !files.is_empty() {
        text.push_str("\n<skill_resources>\n");
        for file in &files {
            text.push_str("  <file>");
            text.push_str(file);
            text.push_str("</file>\n");
        }
        if more {
            text.push_str("  (and more)\n");
        }
        text.push_str("</skill_resources>");
    }
    Ok(text)
}

/// One file of the folder as text.
fn read_resource(folder: &Path, resource: &str) -> Result<String, ResourceError> {
    let relative = steps_downwards(resource)?;
    let (bytes, size) = read_bytes(folder, &relative)?;
    let read = bytes.len();
    Ok(shown(bytes, read, size))
}

/// The beginning of a file, and the size of the whole.
fn read_bytes(folder: &Path, relative: &Path) -> Result<(Vec<u8>, u64), ResourceError> {
    let (file, metadata) = open_inside(folder, relative)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64).read_to_end(&mut bytes)?;
    Ok((bytes, metadata.len()))
}

/// Bytes as text: says so when they are none, and when there is more of the file than was read.
fn shown(bytes: Vec<u8>, read: usize, size: u64) -> String {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let cut = size > read;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // Only the last character may be broken, and only by the cut.
        Err(error) if cut && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            String::from_utf8_lossy(error.as_bytes().get(..end).unwrap_or_default()).into_owned()
        }
        Err(_) => return format!("[a binary file of {} bytes]", grouped(size)),
    };
    if cut { format!("{text}\n[showing {} of {} bytes]", grouped(read), grouped(size)) } else { text }
}

#[cfg(test)]
#[path = "instructions_tests.rs"]
mod tests;
