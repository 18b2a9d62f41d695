//! One definition as a server sent it: usable, or quarantined with the reason. The others of its list are untouched.
//!
//! Real servers are sloppy, so what can be called and shown safely is used, with a note on what was overlooked: a
//! missing schema means any object, a hint that is no boolean says nothing. Quarantined is only what cannot be called,
//! cannot be shown safely, or can be read in two ways.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use toolyard_core::{ContentHash, RawJson, ToolHints, ToolSpec};

use super::{
    canonical,
    headers::{HeaderProblem, mirrored},
    hidden::{self, HiddenText},
    text::brief,
    tree::{Tree, TreeError},
    weight::{self, TooHeavy},
};

/// Bytes of one definition, icons and all.
const MAX_DEFINITION: usize = 512 << 10;
/// Bytes of a description or title. The longest real ones have some 6,000.
const MAX_WORDS: usize = 64 << 10;
/// Bytes of one schema.
const MAX_SCHEMA: usize = 256 << 10;
/// Levels of one definition. Real ones have up to 11.
const MAX_DEPTH: usize = 64;
/// Characters of a name; the protocol recommends 128.
const MAX_NAME: usize = 256;
/// Notes on one definition.
const MAX_NOTES: usize = 16;
/// What the protocol recommends for names.
const USUAL_NAME: usize = 128;

/// What is known of one definition.
#[derive(Debug, Clone, PartialEq)]
pub enum Judged {
    /// It can be used.
    Usable(Box<UsableTool>),
    /// It cannot, and why.
    Quarantined(QuarantinedTool),
}

/// A definition that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct UsableTool {
    /// The tool as it is shown and called. `raw` is what the server sent, byte for byte, unless hidden text had to be
    /// taken out of it; then it is the definition without that.
    pub spec: ToolSpec,
    /// The definition as the server sent it, hidden text and all; this is what is pinned.
    pub definition: RawJson,
    /// The hash of its canonical form.
    pub hash: ContentHash,
    /// What was overlooked or taken out, for people.
    pub notes: Vec<String>,
}

/// A definition that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedTool {
    /// Its name as far as it has one, fit to be shown.
    pub name: Option<String>,
    /// Why.
    pub reason: Quarantine,
}

/// Why a definition cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Quarantine {
    /// Too large as a whole.
    #[error("the definition has {0} bytes; at most {max} are read", max = MAX_DEFINITION)]
    TooLarge(usize),
    /// It cannot be read, or in two ways.
    #[error("the definition cannot be read safely: {0}")]
    Unreadable(#[from] TreeError),
    /// It is not an object.
    #[error("the definition is {0} and not an object")]
    NotAnObject(&'static str),
    /// It has no name.
    #[error("the definition has no name")]
    NoName,
    /// Its name cannot be shown or called safely.
    #[error("the name {0}")]
    BadName(&'static str),
    /// Text that people do not see.
    #[error("{0}")]
    HiddenText(#[from] HiddenText),
    /// A description or title beyond all measure.
    #[error("the {field} has {bytes} bytes; at most {max} are shown", max = MAX_WORDS)]
    TooManyWords {
        /// Which.
        field: &'static str,
        /// How many.
        bytes: usize,
    },
    /// A schema beyond all measure.
    #[error("the {field} has {bytes} bytes; at most {max} are read", max = MAX_SCHEMA)]
    LargeSchema {
        /// Which.
        field: &'static str,
        /// How many.
        bytes: usize,
    },
    /// No arguments can fit its schema.
    #[error("the inputSchema {0}; arguments are always an object")]
    BadSchema(String),
    /// Checking arguments against its schema would take too long.
    #[error("the inputSchema {0}")]
    HeavySchema(#[from] TooHeavy),
    /// An invalid `x-mcp-header`.
    #[error("{0}")]
    BadHeader(#[from] HeaderProblem),
    /// Several definitions of one name that differ.
    #[error("{0} different definitions in one list have this name")]
    Ambiguous(usize),
}

/// What depends on how the server is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JudgeRules {
    /// Tools with an invalid `x-mcp-header` are quarantined: Streamable HTTP of revision 2026-07-28 says so. Elsewhere
    /// the word means nothing.
    pub mirrored_headers: bool,
}

/// A list of definitions, judged one by one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgedList {
    /// In the server's order; no name twice.
    pub usable: Vec<UsableTool>,
    /// In the server's order.
    pub quarantined: Vec<QuarantinedTool>,
}

/// Judges all definitions of a list. Of definitions that share a name none is used, unless they are all the same.
pub fn judge_list(definitions: &[RawJson], rules: JudgeRules) -> JudgedList {
    let mut list = JudgedList::default();
    for definition in definitions {
        match judge(definition, rules) {
            Judged::Usable(tool) => list.usable.push(*tool),
            Judged::Quarantined(tool) => list.quarantined.push(tool),
        }
    }
    without_ambiguous(list)
}

/// Judges one definition.
pub fn judge(definition: &RawJson, rules: JudgeRules) -> Judged {
    match usable(definition, rules) {
        Ok(tool) => Judged::Usable(Box::new(tool)),
        Err(reason) => Judged::Quarantined(QuarantinedTool { name: shown_name(definition), reason }),
    }
}

/// The name of a definition that may be unreadable otherwise.
fn shown_name(definition: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let named: Named = definition.read().ok()?;
    (!named.name.is_empty()).then(|| brief(&named.name, 64))
}

fn without_ambiguous(list: JudgedList) -> JudgedList {
    let JudgedList { usable, mut quarantined } = list;
    let mut hashes: HashMap<Arc<str>, Vec<ContentHash>> = HashMap::new();
    for tool in &usable {
        let of_name = hashes.entry(Arc::clone(&tool.spec.name)).or_default();
        if !of_name.contains(&tool.hash) {
            of_name.push(tool.hash);
        }
    }
    let mut kept: Vec<UsableTool> = Vec::with_capacity(hashes.len());
    for tool in usable {
        // Taken out with the first of its name, so that a copy of it finds nothing.
        match hashes.remove(&tool.spec.name).map(|of_name| of_name.len()) {
            Some(1) => kept.push(tool),
            Some(different) => quarantined.push(QuarantinedTool {
                name: Some(tool.spec.name.to_string()),
                reason: Quarantine::Ambiguous(different),
            }),
            None => {}
        }
    }
    JudgedList { usable: kept, quarantined }
}

fn usable(definition: &RawJson, rules: JudgeRules) -> Result<UsableTool, Quarantine> {
    let sent = definition.get();
    if sent.len() > MAX_DEFINITION {
        return Err(Quarantine::TooLarge(sent.len()));
    }
    let mut tree = Tree::read(sent, MAX_DEPTH)?;
    let name = checked_name(&tree)?;
    if sent.len() > MAX_WORDS {
        check_sizes(&tree)?;
    }
    let hash = canonical::hash(&tree);
    let mut notes = hidden::clean(&mut tree)?;
    let raw = if notes.is_empty() { Ok(definition.clone()) } else { RawJson::parse(tree.to_text()) };
    let raw = raw.map_err(|_| TreeError::Malformed)?;
    if name.chars().count() > USUAL_NAME || !name.chars().all(is_usual) {
        notes.push("its name is not of the form that the protocol recommends".to_owned());
    }
    check_schema(&tree, rules, &mut notes)?;
    let spec = spec(name, &tree, raw, &mut notes);
    if notes.len() > MAX_NOTES {
        let more = notes.len() - MAX_NOTES;
        notes.truncate(MAX_NOTES);
        notes.push(format!("and {more} more"));
    }
    Ok(UsableTool { spec, definition: definition.clone(), hash, notes })
}

fn checked_name(tree: &Tree) -> Result<String, Quarantine> {
    if !matches!(tree, Tree::Object(_)) {
        return Err(Quarantine::NotAnObject(tree.kind()));
    }
    let name = tree.get("name").and_then(Tree::as_text).ok_or(Quarantine::NoName)?;
    if name.is_empty() {
        return Err(Quarantine::NoName);
    }
    hidden::check_name(name)?;
    if name.chars().count() > MAX_NAME {
        return Err(Quarantine::BadName("is longer than 256 characters"));
    }
    if name.starts_with(' ')
        || name.ends_with(' ')
        || name.chars().any(|one| one.is_whitespace() && one != ' ')
    {
        return Err(Quarantine::BadName("has white space that nobody can tell apart"));
    }
    if name.contains(['<', '>', '"', '`', '\\', '{', '}']) || name.chars().any(is_private) {
        return Err(Quarantine::BadName("has characters that can be taken for something else in a prompt"));
    }
    Ok(name.to_owned())
}

fn is_usual(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/')
}

fn is_private(letter: char) -> bool {
    matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

fn check_sizes(tree: &Tree) -> Result<(), Quarantine> {
    for field in ["description", "title"] {
        let bytes = tree.get(field).and_then(Tree::as_text).map_or(0, str::len);
        if bytes > MAX_WORDS {
            return Err(Quarantine::TooManyWords { field, bytes });
        }
    }
    for field in ["inputSchema", "outputSchema"] {
        let bytes = tree.get(field).map_or(0, |schema| schema.to_text().len());
        if bytes > MAX_SCHEMA {
            return Err(Quarantine::LargeSchema { field, bytes });
        }
    }
    Ok(())
}

fn check_schema(tree: &Tree, rules: JudgeRules, notes: &mut Vec<String>) -> Result<(), Quarantine> {
    let schema = match tree.get("inputSchema") {
        None | Some(Tree::Null) => {
            notes.push("it has no inputSchema; any object is taken for its arguments".to_owned());
            return Ok(());
        }
        Some(schema @ Tree::Object(_)) => schema,
        Some(other) => return Err(Quarantine::BadSchema(format!("is {}", other.kind()))),
    };
    match schema.get("type") {
        Some(Tree::Text(kind)) if kind == "object" => {}
        Some(Tree::List(kinds)) if kinds.iter().any(|kind| kind.as_text() == Some("object")) => {}
        None => notes.push("its inputSchema does not say that arguments are an object".to_owned()),
        Some(kind) => {
            return Err(Quarantine::BadSchema(format!("has the type {}", brief(&kind.to_text(), 64))));
        }
    }
    weight::check(schema)?;
    if rules.mirrored_headers {
        mirrored(schema)?;
    }
    Ok(())
}

/// The schemas, cut out of the text as they are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Schemas {
    input_schema: Option<RawJson>,
    output_schema: Option<RawJson>,
}

fn spec(name: String, tree: &Tree, raw: RawJson, notes: &mut Vec<String>) -> ToolSpec {
    let mut words = |field: &str| match tree.get(field) {
        Some(Tree::Text(words)) => Some(words.clone()),
        None | Some(Tree::Null) => None,
        Some(other) => {
            notes.push(format!("its {field} is {} and is ignored", other.kind()));
            None
        }
    };
    let (title, description) = (words("title"), words("description"));
    let mut spec = ToolSpec::new(name, description.unwrap_or_default());
    let annotations = tree.get("annotations");
    // The revision 2025-03-26 had the title among the annotations.
    let earlier = annotations.and_then(|hints| hints.get("title")).and_then(Tree::as_text).map(str::to_owned);
    spec.title = title.or(earlier);
    spec.hints = hints(annotations, notes);
    if let Ok(schemas) = raw.read::<Schemas>() {
        if let Some(schema) = schemas.input_schema {
            spec.input_schema = schema;
        }
        spec.output_schema = schemas.output_schema;
    }
    if let Some(other) =
        tree.get("outputSchema").filter(|schema| !matches!(schema, Tree::Object(_) | Tree::Null))
    {
        notes.push(format!("its outputSchema is {} and is ignored", other.kind()));
        spec.output_schema = None;
    }
    spec.with_raw(raw)
}

fn hints(annotations: Option<&Tree>, notes: &mut Vec<String>) -> ToolHints {
    if let Some(other) = annotations.filter(|hints| !matches!(hints, Tree::Object(_) | Tree::Null)) {
        notes.push(format!("its annotations are {} and are ignored", other.kind()));
    }
    let mut hint = |field: &str| match annotations.and_then(|hints| hints.get(field)) {
        Some(Tree::Bool(hint)) => Some(*hint),
        None | Some(Tree::Null) => None,
        Some(other) => {
            notes.push(format!("its {field} is {} and is ignored", other.kind()));
            None
        }
    };
    ToolHints {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
