//! Removes unsafe characters from a definition where that is harmless, and rejects the definition where it is not.
//!
//! - Names and keys: rejected, because the sanitized name would call something else.
//! - Schema values with a meaning (`enum`, `default`, `const`, `pattern`, …): rejected, for the same reason.
//! - Prose (titles, descriptions, everything outside the schemas): removed, with a note that gives kind, count and
//!   location.
//! - Tag characters, direction overrides and runs long enough to encode a message: rejected everywhere, because nobody
//!   writes them by accident.
//!
//! [`toolyard_core::find_unsafe`] defines which characters are unsafe.

use toolyard_core::{UnsafeSpan, find_unsafe, is_attack, sanitize};

use super::{
    canonical::SchemaRole,
    json_tree::JsonTree,
    preview::{MAX_NAME_CHARS_SHOWN, preview},
};

/// Names and identifiers with invisible or control characters could deceive a reader.
///
/// Remedy: report it to the author of the server; the tool is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location} contains unsafe characters: {characters}")]
pub struct UnsafeText {
    /// The field.
    pub location: String,
    /// Kinds of characters, with counts.
    pub characters: String,
}

pub(crate) fn check_name(name: &str) -> Result<(), UnsafeText> {
    match find_unsafe(name) {
        spans if spans.is_empty() => Ok(()),
        spans => Err(UnsafeText { location: "the name".to_owned(), characters: count_kinds(&spans) }),
    }
}

/// Removes unsafe characters from prose. Returns a note for each changed text.
pub(crate) fn sanitize_definition(definition: &mut JsonTree) -> Result<Vec<String>, UnsafeText> {
    if !has_unsafe_text(definition) {
        return Ok(Vec::new());
    }
    let mut sanitizer = Sanitizer { path: Vec::new(), notes: Vec::new() };
    let JsonTree::Object(fields) = definition else { return Ok(Vec::new()) };
    for (key, value) in fields {
        let role = match key.as_str() {
            "inputSchema" | "outputSchema" => TextRole::Schema(SchemaRole::Schema),
            _ => TextRole::Prose,
        };
        sanitizer.sanitize_field(key, value, role)?;
    }
    Ok(sanitizer.notes)
}

fn has_unsafe_text(value: &JsonTree) -> bool {
    match value {
        JsonTree::Text(text) => !find_unsafe(text).is_empty(),
        JsonTree::List(items) => items.iter().any(has_unsafe_text),
        JsonTree::Object(fields) => {
            fields.iter().any(|(key, value)| !find_unsafe(key).is_empty() || has_unsafe_text(value))
        }
        JsonTree::Null | JsonTree::Bool(_) | JsonTree::Number(_) => false,
    }
}

#[derive(Clone, Copy)]
enum TextRole {
    Prose,
    Schema(SchemaRole),
}

struct Sanitizer {
    path: Vec<String>,
    notes: Vec<String>,
}

impl Sanitizer {
    fn sanitize_field(&mut self, key: &str, value: &mut JsonTree, role: TextRole) -> Result<(), UnsafeText> {
        self.path.push(preview(key, MAX_NAME_CHARS_SHOWN));
        let spans = find_unsafe(key);
        if !spans.is_empty() {
            return Err(self.unsafe_text("the key ", &spans));
        }
        self.sanitize_value(value, role)?;
        self.path.pop();
        Ok(())
    }

    fn sanitize_value(&mut self, value: &mut JsonTree, role: TextRole) -> Result<(), UnsafeText> {
        match value {
            JsonTree::Text(text) => self.sanitize_text(text, role),
            JsonTree::List(items) => items.iter_mut().try_for_each(|item| {
                let role = match role {
                    TextRole::Prose => TextRole::Prose,
                    TextRole::Schema(role) => TextRole::Schema(role.of_items()),
                };
                self.sanitize_value(item, role)
            }),
            JsonTree::Object(fields) => fields.iter_mut().try_for_each(|(key, value)| {
                let role = match role {
                    TextRole::Schema(SchemaRole::Schema)
                        if is_prose_keyword(key) && value.as_text().is_some() =>
                    {
                        TextRole::Prose
                    }
                    TextRole::Schema(role) => TextRole::Schema(role.of_field(key)),
                    TextRole::Prose => TextRole::Prose,
                };
                self.sanitize_field(key, value, role)
            }),
            JsonTree::Null | JsonTree::Bool(_) | JsonTree::Number(_) => Ok(()),
        }
    }

    fn sanitize_text(&mut self, text: &mut String, role: TextRole) -> Result<(), UnsafeText> {
        let (clean, spans) = sanitize(text);
        if spans.is_empty() {
            return Ok(());
        }
        if is_attack(&spans) || matches!(role, TextRole::Schema(_)) {
            return Err(self.unsafe_text("", &spans));
        }
        self.notes.push(format!("removed from {}: {}", self.path.join("."), count_kinds(&spans)));
        *text = clean.into_owned();
        Ok(())
    }

    fn unsafe_text(&self, prefix: &str, spans: &[UnsafeSpan]) -> UnsafeText {
        UnsafeText { location: format!("{prefix}{}", self.path.join(".")), characters: count_kinds(spans) }
    }
}

fn is_prose_keyword(key: &str) -> bool {
    matches!(key, "title" | "description" | "$comment" | "markdownDescription")
}

/// `tag characters (2), zero-width characters (1)`.
fn count_kinds(spans: &[UnsafeSpan]) -> String {
    let mut kinds: Vec<_> = spans.iter().map(|span| span.kind).collect();
    kinds.sort_unstable();
    let counts = kinds.chunk_by(PartialEq::eq);
    let texts = counts.filter_map(|group| Some(format!("{} ({})", group.first()?, group.len())));
    texts.collect::<Vec<_>>().join(", ")
}
