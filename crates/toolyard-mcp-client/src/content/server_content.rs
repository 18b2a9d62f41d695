//! Prompts, resources, skills and instructions of a server, read while it is connected and cached.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_core::{RawJson, find_unsafe, sanitize};
use toolyard_mcp::{error_code::METHOD_NOT_FOUND, raw_field, text_field};

use crate::{
    content::skills::{SKILLS_EXTENSION, SkillEntry},
    session::{error::RequestError, handle::Session},
};

/// Entries with longer names or URIs are ignored.
const MAX_NAME_BYTES: usize = 8 << 10;
/// Longer instructions are truncated.
const MAX_INSTRUCTIONS_CHARS: usize = 2_000;

/// What a server offers besides tools, each entry as it was sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerContent {
    /// Prompts.
    pub prompts: Vec<RawJson>,
    /// Resources.
    pub resources: Vec<RawJson>,
    /// Resource templates.
    pub templates: Vec<RawJson>,
    /// Skills.
    pub skills: Vec<RawJson>,
    /// Whether the server has resources, even if it lists none.
    pub has_resources: bool,
    /// Whether the server completes arguments.
    pub completions: bool,
    /// Whether resources can be subscribed to.
    pub subscriptions: bool,
    /// Whether the server sends log messages.
    pub logging: bool,
    /// Whether the server can list the directories of its skills (`directoryRead`).
    pub reads_skill_directories: bool,
    /// How models should use the server, without unsafe characters and truncated.
    pub instructions: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentLists {
    pub(crate) prompts: bool,
    /// Resources, templates and skills.
    pub(crate) resources: bool,
}

impl ContentLists {
    pub(crate) const ALL: Self = Self { prompts: true, resources: true };
}

impl Session {
    /// Reads the content of the server. A list that is not in `lists` or cannot be read stays as in `before`.
    pub(crate) async fn read_content(
        &self,
        before: &ServerContent,
        lists: ContentLists,
        idle_timeout: Duration,
    ) -> ServerContent {
        let capabilities = &self.about().capabilities;
        let read = |is_requested, is_supported, list, before| {
            self.read_entries(is_requested, is_supported, list, before, idle_timeout)
        };
        let (prompts, resources, templates, skills) = tokio::join!(
            read(lists.prompts, capabilities.prompts, PROMPTS, &before.prompts),
            read(lists.resources, capabilities.resources, RESOURCES, &before.resources),
            read(lists.resources, capabilities.resources, TEMPLATES, &before.templates),
            read(lists.resources, self.offers_skills(), SKILLS, &before.skills),
        );
        ServerContent {
            prompts,
            resources,
            templates,
            skills,
            has_resources: capabilities.resources,
            completions: capabilities.completions,
            subscriptions: capabilities.subscriptions,
            logging: capabilities.logging,
            reads_skill_directories: self.reads_skill_directories(),
            instructions: self.about().instructions.as_deref().and_then(clean_instructions),
        }
    }

    async fn read_entries(
        &self,
        is_requested: bool,
        is_supported: bool,
        (method, key, is_usable): ListMethod,
        before: &[RawJson],
        idle_timeout: Duration,
    ) -> Vec<RawJson> {
        if !is_supported {
            return Vec::new();
        }
        if !is_requested {
            return before.to_vec();
        }
        match self.list(method, key, idle_timeout).await {
            Ok(mut entries) => {
                let total = entries.len();
                entries.retain(|entry| is_usable(entry) && !has_unsafe_text(&entry.to_value()));
                if entries.len() < total {
                    let (server, ignored) = (&self.inner.server, total - entries.len());
                    tracing::warn!(%server, method, ignored, "invalid entries of a list are ignored");
                }
                entries
            }
            // Some servers have resources but no templates.
            Err(RequestError::Rpc(error)) if error.code == METHOD_NOT_FOUND => Vec::new(),
            Err(error) => {
                tracing::warn!(server = %self.inner.server, method, %error, "failed to read a list");
                before.to_vec()
            }
        }
    }

    fn reads_skill_directories(&self) -> bool {
        let capabilities = self.about().capabilities.raw.as_ref();
        let extensions = capabilities.and_then(|all| raw_field(all, "extensions"));
        let skills = extensions.and_then(|all| raw_field(&all, SKILLS_EXTENSION));
        skills
            .and_then(|skills| raw_field(&skills, "directoryRead"))
            .is_some_and(|value| value.get() == "true")
    }
}

/// The instructions as a client may get them; none if nothing is left of them.
fn clean_instructions(instructions: &str) -> Option<String> {
    let mut clean = sanitize(instructions).0.trim().to_owned();
    if let Some((end, _)) = clean.char_indices().nth(MAX_INSTRUCTIONS_CHARS) {
        clean.truncate(end);
        clean.push('…');
    }
    (!clean.is_empty()).then_some(clean)
}

/// A list method, the key of its entries, and which entries are usable.
type ListMethod = (&'static str, &'static str, fn(&RawJson) -> bool);

const PROMPTS: ListMethod = ("prompts/list", "prompts", |entry| has_text(entry, "name"));
const RESOURCES: ListMethod = ("resources/list", "resources", |entry| has_text(entry, "uri"));
const TEMPLATES: ListMethod =
    ("resources/templates/list", "resourceTemplates", |entry| has_text(entry, "uriTemplate"));
const SKILLS: ListMethod =
    ("skills/list", "skills", |entry| SkillEntry::read(entry).is_ok() || is_dynamic_skill(entry));

fn has_text(entry: &RawJson, key: &str) -> bool {
    text_field(entry, key, MAX_NAME_BYTES).is_some_and(|text| !text.is_empty())
}

fn has_unsafe_text(value: &Value) -> bool {
    match value {
        Value::String(text) => !find_unsafe(text).is_empty(),
        Value::Array(items) => items.iter().any(has_unsafe_text),
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| !find_unsafe(key).is_empty() || has_unsafe_text(value))
        }
        _ => false,
    }
}

/// Whether an entry is a skill without a list of its files (`"resources": "dynamic"`).
fn is_dynamic_skill(entry: &RawJson) -> bool {
    let is_dynamic = raw_field(entry, "resources").is_some_and(|value| value.get() == "\"dynamic\"");
    let name = raw_field(entry, "frontmatter").and_then(|value| text_field(&value, "name", MAX_NAME_BYTES));
    let uri = text_field(entry, "uri", MAX_NAME_BYTES);
    is_dynamic && name.zip(uri).is_some_and(|(name, uri)| uri.ends_with(&format!("/{name}/SKILL.md")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_content_is_read_back_unchanged() {
        let content = ServerContent {
            prompts: vec![RawJson::parse(r#"{"name":"a","x":1.50}"#.to_owned()).unwrap()],
            completions: true,
            ..ServerContent::default()
        };
        let cached = RawJson::from_serialize(&content).unwrap();
        assert_eq!(cached.read::<ServerContent>().unwrap(), content);
        assert_eq!(RawJson::empty_object().read::<ServerContent>().unwrap(), ServerContent::default());
    }

    #[test]
    fn content_that_an_earlier_version_cached_has_no_instructions() {
        let cached = RawJson::parse(r#"{"prompts":[],"completions":true}"#.to_owned()).unwrap();
        let content = cached.read::<ServerContent>().unwrap();
        assert_eq!((content.completions, content.instructions), (true, None));
    }

    #[test]
    fn instructions_are_sanitized_and_truncated() {
        let hidden = "\n Use \u{e0049}\u{e0067}\u{202e}it. \r\n\tTwice. \n";
        assert_eq!(clean_instructions(hidden).unwrap(), "Use it. \r\n\tTwice.");
        assert_eq!((clean_instructions(" \n"), clean_instructions("\u{200b}")), (None, None));
        let whole = "é".repeat(MAX_INSTRUCTIONS_CHARS);
        assert_eq!(clean_instructions(&whole), Some(whole.clone()));
        assert_eq!(clean_instructions(&format!("{whole}x")), Some(format!("{whole}…")));
    }

    #[test]
    fn invalid_prompts_and_skills_are_recognized() {
        let (.., is_valid_prompt) = PROMPTS;
        assert!(is_valid_prompt(&json!({"name": "a"}).into()));
        for unusable in [json!({}), json!({"name": ""}), json!({"name": 1}), json!(["name"]), json!(null)] {
            assert!(!is_valid_prompt(&unusable.into()));
        }
        let (.., is_valid_skill) = SKILLS;
        let skill = |uri: &str| {
            json!({"uri": uri, "frontmatter": {"name": "a", "description": "d"}, "resources": "dynamic"})
                .into()
        };
        assert!(is_valid_skill(&skill("skill://x/a/SKILL.md")));
        assert!(!is_valid_skill(&skill("skill://x/b/SKILL.md")));
        assert!(
            has_unsafe_text(&json!({"name": "a", "description": ["\u{202e}txt"]}))
                && !has_unsafe_text(&json!({"name": "ä"}))
        );
    }
}
