//! What a server offers besides tools: prompts, resources, skills. Read when it is connected anyway, and remembered.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_core::{RawJson, hidden_places};

use super::{RequestError, SKILLS_EXTENSION, Session, SkillEntry};
use crate::wire::{field_of, text_of};

/// JSON-RPC's code for a method that is not there.
const METHOD_NOT_FOUND: i64 = -32601;
/// A longer address or name is none.
const LONGEST_NAME: usize = 8 << 10;

/// What a server offers besides tools, each entry as it wrote it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Offer {
    /// Its prompts.
    pub prompts: Vec<RawJson>,
    /// Its resources.
    pub resources: Vec<RawJson>,
    /// Its templates of resources.
    pub templates: Vec<RawJson>,
    /// Its skills.
    pub skills: Vec<RawJson>,
    /// It has resources, whether it lists any or not.
    pub has_resources: bool,
    /// It completes arguments.
    pub completions: bool,
    /// Its resources can be subscribed to.
    pub subscriptions: bool,
    /// It sends log messages.
    pub logging: bool,
    /// Folders of its skills can be read.
    pub directories: bool,
}

/// Which lists are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lists {
    pub(super) prompts: bool,
    /// Resources, templates and skills.
    pub(super) resources: bool,
}

impl Lists {
    pub(super) const ALL: Self = Self { prompts: true, resources: true };
}

impl Session {
    /// What the server offers besides tools at this moment. A list that cannot be read stays what it was before.
    pub(super) async fn offer(&self, before: &Offer, lists: Lists, silence: Duration) -> Offer {
        let can = &self.about().capabilities;
        let prompts = self.entries(lists.prompts, can.prompts, PROMPTS, &before.prompts, silence);
        let resources = self.entries(lists.resources, can.resources, RESOURCES, &before.resources, silence);
        let templates = self.entries(lists.resources, can.resources, TEMPLATES, &before.templates, silence);
        let skills = self.entries(lists.resources, self.offers_skills(), SKILLS, &before.skills, silence);
        let (prompts, resources, templates, skills) = tokio::join!(prompts, resources, templates, skills);
        Offer {
            prompts,
            resources,
            templates,
            skills,
            has_resources: can.resources,
            completions: can.completions,
            subscriptions: can.subscriptions,
            logging: can.logging,
            directories: self.reads_directories(),
        }
    }

    async fn entries(
        &self,
        wanted: bool,
        has: bool,
        (method, key, usable): List,
        before: &[RawJson],
        silence: Duration,
    ) -> Vec<RawJson> {
        if !has {
            return Vec::new();
        }
        if !wanted {
            return before.to_vec();
        }
        match self.list(method, key, silence).await {
            Ok(mut entries) => {
                let all = entries.len();
                entries.retain(|entry| usable(entry) && !hides(&entry.to_value()));
                if entries.len() < all {
                    let (server, unusable) = (&self.parts.server, all - entries.len());
                    tracing::warn!(%server, method, unusable, "entries that cannot be used are left out");
                }
                entries
            }
            // Some have resources and do not know of templates.
            Err(RequestError::Rpc(error)) if error.code == METHOD_NOT_FOUND => Vec::new(),
            Err(error) => {
                tracing::warn!(server = %self.parts.server, method, %error, "a list could not be read");
                before.to_vec()
            }
        }
    }

    fn reads_directories(&self) -> bool {
        let capabilities = self.about().capabilities.raw.as_ref();
        let extensions = capabilities.and_then(|all| field_of(all, "extensions"));
        let skills = extensions.and_then(|all| field_of(&all, SKILLS_EXTENSION));
        skills.and_then(|skills| field_of(&skills, "directoryRead")).is_some_and(|said| said.get() == "true")
    }
}

/// A method that lists something, under which key, and which entries can be used.
type List = (&'static str, &'static str, fn(&RawJson) -> bool);

const PROMPTS: List = ("prompts/list", "prompts", |entry| has_text(entry, "name"));
const RESOURCES: List = ("resources/list", "resources", |entry| has_text(entry, "uri"));
const TEMPLATES: List =
    ("resources/templates/list", "resourceTemplates", |entry| has_text(entry, "uriTemplate"));
const SKILLS: List = ("skills/list", "skills", |entry| SkillEntry::read(entry).is_ok() || is_dynamic(entry));

fn has_text(entry: &RawJson, key: &str) -> bool {
    text_of(entry, key, LONGEST_NAME).is_some_and(|text| !text.is_empty())
}

/// Whether an entry holds what people cannot see. Nobody writes that by accident.
fn hides(value: &Value) -> bool {
    match value {
        Value::String(text) => !hidden_places(text).is_empty(),
        Value::Array(items) => items.iter().any(hides),
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| !hidden_places(key).is_empty() || hides(value))
        }
        _ => false,
    }
}

/// A skill whose files nobody can know beforehand; whoever loads it decides whether to take that.
fn is_dynamic(entry: &RawJson) -> bool {
    let dynamic = field_of(entry, "resources").is_some_and(|said| said.get() == "\"dynamic\"");
    let name = field_of(entry, "frontmatter").and_then(|said| text_of(&said, "name", LONGEST_NAME));
    let address = text_of(entry, "uri", LONGEST_NAME);
    dynamic
        && name.zip(address).is_some_and(|(name, address)| address.ends_with(&format!("/{name}/SKILL.md")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_remembered_is_found_again_as_it_was() {
        let offer = Offer {
            prompts: vec![RawJson::parse(r#"{"name":"a","x":1.50}"#.to_owned()).unwrap()],
            completions: true,
            ..Offer::default()
        };
        let kept = RawJson::from_serialize(&offer).unwrap();
        assert_eq!(kept.read::<Offer>().unwrap(), offer);
        assert_eq!(RawJson::empty_object().read::<Offer>().unwrap(), Offer::default());
    }

    #[test]
    fn entries_without_what_they_are_known_by_are_left_out() {
        let (.., prompts) = PROMPTS;
        assert!(prompts(&json!({"name": "a"}).into()));
        for unusable in [json!({}), json!({"name": ""}), json!({"name": 1}), json!(["name"]), json!(null)] {
            assert!(!prompts(&unusable.into()));
        }
        let (.., skills) = SKILLS;
        let skill = |uri: &str| {
            json!({"uri": uri, "frontmatter": {"name": "a", "description": "d"}, "resources": "dynamic"})
                .into()
        };
        assert!(skills(&skill("skill://x/a/SKILL.md")));
        assert!(!skills(&skill("skill://x/b/SKILL.md")));
        assert!(
            hides(&json!({"name": "a", "description": ["\u{202e}txt"]})) && !hides(&json!({"name": "ä"}))
        );
    }
}
