//! Validates tool definitions, each on its own: an invalid one does not affect the others of its list.
//!
//! Real servers are sloppy. A definition that can be called and shown safely is valid, with notes on what was ignored: a
//! missing schema accepts any object, a hint that is no boolean is ignored. Rejected are definitions that cannot be
//! called, cannot be shown safely, or are ambiguous.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use toolyard_core::{ContentHash, RawJson, ToolHints, ToolSpec};

use super::{
    canonical,
    complexity::{SchemaComplexityError, check_complexity},
    json_tree::{JsonTree, JsonTreeError, MAX_DEPTH},
    mirrored_headers::{MirroredHeaderError, collect_mirrored_parameters},
    preview::{MAX_NAME_CHARS_SHOWN, preview},
    sanitize::{self, UnsafeText},
    task_support::requires_task,
};

/// Bytes of one definition, icons included.
const MAX_DEFINITION_BYTES: usize = 512 << 10;
/// Bytes of a description or title. The longest real ones have about 6,000.
const MAX_TEXT_BYTES: usize = 64 << 10;
const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// Characters of a name; the protocol recommends 128.
const MAX_NAME_CHARS: usize = 256;
/// Further notes are only counted.
const MAX_NOTES: usize = 16;
const RECOMMENDED_NAME_CHARS: usize = 128;

/// A valid definition.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidTool {
    /// The tool as it is shown and called. `raw` is what the server sent, byte for byte, unless unsafe characters were
    /// removed from it.
    pub spec: ToolSpec,
    /// The definition as the server sent it; this is what is pinned.
    pub definition: RawJson,
    /// The hash of its canonical form.
    pub hash: ContentHash,
    /// What was ignored or removed.
    pub notes: Vec<String>,
}

/// An invalid definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedTool {
    /// Its name, if it has one, as a safe preview.
    pub name: Option<String>,
    /// Why it is invalid.
    pub reason: Rejection,
}

/// Why a definition is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The definition of a tool is too large.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the definition has {0} bytes; at most {max} are allowed", max = MAX_DEFINITION_BYTES)]
    TooLarge(usize),
    /// The definition of a tool is malformed or ambiguous JSON.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the definition is invalid JSON: {0}")]
    InvalidJson(#[from] JsonTreeError),
    /// The definition of a tool is not an object.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the definition is {0}, not an object")]
    NotAnObject(&'static str),
    /// The definition of a tool has no name.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the definition has no name")]
    MissingName,
    /// The name of a tool cannot be shown or called safely; the text says why.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the name {0}")]
    InvalidName(&'static str),
    /// Unsafe characters that cannot be removed.
    #[error("{0}")]
    UnsafeText(#[from] UnsafeText),
    /// A description or title of a tool is too long.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the {field} has {bytes} bytes; at most {max} are allowed", max = MAX_TEXT_BYTES)]
    TextTooLong {
        /// The field.
        field: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// A schema of a tool is too large.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the {field} has {bytes} bytes; at most {max} are allowed", max = MAX_SCHEMA_BYTES)]
    SchemaTooLarge {
        /// The field.
        field: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// No arguments can satisfy the schema of the tool; the text says why.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the inputSchema {0}; it must describe an object")]
    InvalidSchema(String),
    /// Checking arguments against the schema would take too long; the text says why.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the inputSchema {0}")]
    ComplexSchema(#[from] SchemaComplexityError),
    /// An invalid `x-mcp-header`.
    #[error("{0}")]
    InvalidMirroredHeader(#[from] MirroredHeaderError),
    /// The server lists several different tools with one name.
    ///
    /// Remedy: report it to the author of the server; none of them is offered.
    #[error("{0} different definitions have this name")]
    Ambiguous(usize),
}

/// Rules that depend on how the server is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ValidationRules {
    /// Reject tools with an invalid `x-mcp-header`, as Streamable HTTP of revision 2026-07-28 requires. Elsewhere the
    /// keyword has no meaning.
    pub mirrored_headers: bool,
}

/// The outcome of validating a list of definitions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ValidatedTools {
    /// In the server's order; no name twice.
    pub valid: Vec<ValidTool>,
    /// In the server's order.
    pub rejected: Vec<RejectedTool>,
}

/// Validates a list of definitions. Definitions that share a name are all rejected, unless they are equal.
pub fn validate_tools(definitions: &[RawJson], rules: ValidationRules) -> ValidatedTools {
    let mut list = ValidatedTools::default();
    for definition in definitions {
        match validate_tool(definition, rules) {
            Ok(tool) => list.valid.push(tool),
            Err(tool) => list.rejected.push(tool),
        }
    }
    reject_ambiguous(list)
}

/// Validates one definition.
pub fn validate_tool(definition: &RawJson, rules: ValidationRules) -> Result<ValidTool, RejectedTool> {
    check_definition(definition, rules)
        .map_err(|reason| RejectedTool { name: name_for_display(definition), reason })
}

/// The name of a definition that may be invalid otherwise.
fn name_for_display(definition: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    struct NameField {
        name: String,
    }
    let field: NameField = definition.read().ok()?;
    (!field.name.is_empty()).then(|| preview(&field.name, MAX_NAME_CHARS_SHOWN))
}

fn reject_ambiguous(list: ValidatedTools) -> ValidatedTools {
    let ValidatedTools { valid, mut rejected } = list;
    let mut hashes: HashMap<Arc<str>, Vec<ContentHash>> = HashMap::new();
    for tool in &valid {
        let hashes_of_name = hashes.entry(Arc::clone(&tool.spec.name)).or_default();
        if !hashes_of_name.contains(&tool.hash) {
            hashes_of_name.push(tool.hash);
        }
    }
    let mut unambiguous: Vec<ValidTool> = Vec::with_capacity(hashes.len());
    for tool in valid {
        // Removed with the first of its name, so that copies of it are skipped.
        match hashes.remove(&tool.spec.name).map(|hashes_of_name| hashes_of_name.len()) {
            Some(1) => unambiguous.push(tool),
            Some(count) => rejected.push(RejectedTool {
                name: Some(tool.spec.name.to_string()),
                reason: Rejection::Ambiguous(count),
            }),
            None => {}
        }
    }
    ValidatedTools { valid: unambiguous, rejected }
}

fn check_definition(definition: &RawJson, rules: ValidationRules) -> Result<ValidTool, Rejection> {
    let text = definition.get();
    if text.len() > MAX_DEFINITION_BYTES {
        return Err(Rejection::TooLarge(text.len()));
    }
    let mut tree = JsonTree::parse(text, MAX_DEPTH)?;
    let name = check_name(&tree)?;
    if text.len() > MAX_TEXT_BYTES {
        check_sizes(&tree)?;
    }
    let hash = canonical::definition_hash(&tree);
    let mut notes = sanitize::sanitize_definition(&mut tree)?;
    let raw = if notes.is_empty() { Ok(definition.clone()) } else { RawJson::parse(tree.to_text()) };
    let raw = raw.map_err(|_| JsonTreeError::Malformed)?;
    if name.chars().count() > RECOMMENDED_NAME_CHARS || !name.chars().all(is_recommended_in_name) {
        notes.push("the name does not have the form that the protocol recommends".to_owned());
    }
    check_schema(&tree, rules, &mut notes)?;
    let spec = build_spec(name, &tree, raw, &mut notes);
    if requires_task(&spec) {
        notes.push("the tool is not offered, because it can only be called as a task".to_owned());
    }
    if notes.len() > MAX_NOTES {
        let more = notes.len() - MAX_NOTES;
        notes.truncate(MAX_NOTES);
        notes.push(format!("and {more} more"));
    }
    Ok(ValidTool { spec, definition: definition.clone(), hash, notes })
}

fn check_name(tree: &JsonTree) -> Result<String, Rejection> {
    if !matches!(tree, JsonTree::Object(_)) {
        return Err(Rejection::NotAnObject(tree.type_with_article()));
    }
    let name = tree.get("name").and_then(JsonTree::as_text).ok_or(Rejection::MissingName)?;
    if name.is_empty() {
        return Err(Rejection::MissingName);
    }
    sanitize::check_name(name)?;
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(Rejection::InvalidName("is longer than 256 characters"));
    }
    // Such a name could pose as the text around it where calls are approved.
    if name.contains(|letter: char| letter.is_whitespace() || "()[]（）［］｛｝【】".contains(letter))
    {
        return Err(Rejection::InvalidName("has a space or a bracket"));
    }
    if name.contains('@') {
        return Err(Rejection::InvalidName("contains `@`, which separates a tool from its source in rules"));
    }
    if name.contains(['<', '>', '"', '`', '\\', '{', '}']) || name.chars().any(is_private_use) {
        return Err(Rejection::InvalidName("has characters with a meaning in prompts"));
    }
    Ok(name.to_owned())
}

fn is_recommended_in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-' | '/')
}

fn is_private_use(character: char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

fn check_sizes(tree: &JsonTree) -> Result<(), Rejection> {
    for field in ["description", "title"] {
        let bytes = tree.get(field).and_then(JsonTree::as_text).map_or(0, str::len);
        if bytes > MAX_TEXT_BYTES {
            return Err(Rejection::TextTooLong { field, bytes });
        }
    }
    for field in ["inputSchema", "outputSchema"] {
        let bytes = tree.get(field).map_or(0, |schema| schema.to_text().len());
        if bytes > MAX_SCHEMA_BYTES {
            return Err(Rejection::SchemaTooLarge { field, bytes });
        }
    }
    Ok(())
}

fn check_schema(tree: &JsonTree, rules: ValidationRules, notes: &mut Vec<String>) -> Result<(), Rejection> {
    let schema = match tree.get("inputSchema") {
        None | Some(JsonTree::Null) => {
            notes.push("no inputSchema: any object is accepted as arguments".to_owned());
            return Ok(());
        }
        Some(schema @ JsonTree::Object(_)) => schema,
        Some(other) => return Err(Rejection::InvalidSchema(format!("is {}", other.type_with_article()))),
    };
    match schema.get("type") {
        Some(JsonTree::Text(kind)) if kind == "object" => {}
        Some(JsonTree::List(kinds)) if kinds.iter().any(|kind| kind.as_text() == Some("object")) => {}
        None => notes.push("the inputSchema does not declare the type object".to_owned()),
        Some(kind) => {
            return Err(Rejection::InvalidSchema(format!(
                "has the type {}",
                preview(&kind.to_text(), MAX_NAME_CHARS_SHOWN)
            )));
        }
    }
    check_complexity(schema)?;
    if rules.mirrored_headers {
        collect_mirrored_parameters(schema)?;
    }
    Ok(())
}

/// The schemas as they were sent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Schemas {
    input_schema: Option<RawJson>,
    output_schema: Option<RawJson>,
}

fn build_spec(name: String, tree: &JsonTree, raw: RawJson, notes: &mut Vec<String>) -> ToolSpec {
    let mut read_text = |field: &str| match tree.get(field) {
        Some(JsonTree::Text(text)) => Some(text.clone()),
        None | Some(JsonTree::Null) => None,
        Some(other) => {
            notes.push(format!("the {field} is {} and is ignored", other.type_with_article()));
            None
        }
    };
    let (title, description) = (read_text("title"), read_text("description"));
    let mut spec = ToolSpec::new(name, description.unwrap_or_default());
    let annotations = tree.get("annotations");
    // Revision 2025-03-26 has the title among the annotations.
    let annotation_title =
        annotations.and_then(|hints| hints.get("title")).and_then(JsonTree::as_text).map(str::to_owned);
    spec.title = title.or(annotation_title);
    spec.hints = read_hints(annotations, notes);
    if let Ok(schemas) = raw.read::<Schemas>() {
        if let Some(schema) = schemas.input_schema {
            spec.input_schema = schema;
        }
        spec.output_schema = schemas.output_schema;
    }
    if let Some(other) =
        tree.get("outputSchema").filter(|schema| !matches!(schema, JsonTree::Object(_) | JsonTree::Null))
    {
        notes.push(format!("the outputSchema is {} and is ignored", other.type_with_article()));
        spec.output_schema = None;
    }
    spec.with_raw(raw)
}

fn read_hints(annotations: Option<&JsonTree>, notes: &mut Vec<String>) -> ToolHints {
    if let Some(other) = annotations.filter(|hints| !matches!(hints, JsonTree::Object(_) | JsonTree::Null)) {
        notes.push(format!("the annotations are {} and are ignored", other.type_with_article()));
    }
    let mut read_hint = |field: &str| match annotations.and_then(|hints| hints.get(field)) {
        Some(JsonTree::Bool(hint)) => Some(*hint),
        None | Some(JsonTree::Null) => None,
        Some(other) => {
            notes.push(format!("the {field} is {} and is ignored", other.type_with_article()));
            None
        }
    };
    ToolHints {
        read_only: read_hint("readOnlyHint"),
        destructive: read_hint("destructiveHint"),
        idempotent: read_hint("idempotentHint"),
        open_world: read_hint("openWorldHint"),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
