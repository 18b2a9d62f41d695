//! The head of a SKILL.md: what a skill is called and when to use it.

use std::{collections::BTreeMap, io::Read};

use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};

use super::frontmatter::{self, FrontmatterError};
use crate::text::{one_line, shortened, without_controls};

const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;
const MAX_COMPATIBILITY: usize = 500;
const KNOWN_KEYS: [&str; 6] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// What the frontmatter of a SKILL.md says, by the rules of agentskills.io.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manifest {
    /// The name as it was written, if it was.
    pub name: Option<String>,
    /// What the skill does and when to use it; never empty.
    pub description: String,
    /// Under which terms it may be used.
    pub license: Option<String>,
    /// What it needs to work.
    pub compatibility: Option<String>,
    /// Anything else its author wrote down.
    pub metadata: BTreeMap<String, String>,
    /// Tools it would like to use without being asked; not acted upon.
    pub allowed_tools: Option<String>,
    /// What does not follow the rules and was accepted all the same.
    pub warnings: Vec<String>,
}

/// Why a SKILL.md cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The frontmatter could not be found or read.
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
    /// The frontmatter is not YAML, or not of the right shape.
    #[error("the frontmatter cannot be understood: {0}")]
    NotUnderstood(String),
    /// Nobody could know when to use it.
    #[error("the frontmatter has no description")]
    NoDescription,
}

impl Manifest {
    /// Reads the frontmatter and nothing more: instructions stay unread until they are used.
    pub fn read(reader: impl Read) -> Result<Self, ManifestError> {
        Self::parse(&frontmatter::read(reader)?)
    }

    /// Understands a frontmatter that was read already.
    pub fn parse(yaml: &str) -> Result<Self, ManifestError> {
        match Self::parse_strictly(yaml) {
            // The commonest mistake by far is a colon in a value without quotes.
            Err(ManifestError::NotUnderstood(reason)) => {
                let quoted = with_quotes(yaml).ok_or(ManifestError::NotUnderstood(reason.clone()))?;
                let mut manifest = Self::parse_strictly(&quoted).map_err(|error| match error {
                    ManifestError::NotUnderstood(_) => ManifestError::NotUnderstood(reason),
                    other => other,
                })?;
                manifest.warnings.push("a value with a colon should stand in quotes".to_owned());
                Ok(manifest)
            }
            other => other,
        }
    }

    fn parse_strictly(yaml: &str) -> Result<Self, ManifestError> {
        let keys: BTreeMap<String, IgnoredAny> = from_yaml(yaml)?;
        let head: Head = from_yaml(yaml)?;
        let mut manifest = Self { name: head.name.map(|name| one_line(&name)), ..Self::default() };
        let description = without_controls(&head.description.unwrap_or_default()).trim().to_owned();
        if description.is_empty() {
            return Err(ManifestError::NoDescription);
        }
        if description.chars().count() > MAX_DESCRIPTION {
            manifest.warn(format!("the description was cut to {MAX_DESCRIPTION} characters"));
        }
        manifest.description = shortened(&description, MAX_DESCRIPTION);
        manifest.read_extras(yaml);
        for key in keys.keys().filter(|key| !KNOWN_KEYS.contains(&key.as_str())) {
            manifest.warn(format!("the key `{}` is not known", shortened(&one_line(key), MAX_NAME)));
        }
        Ok(manifest)
    }

    /// The rest is worth a warning when it is wrong, never the skill.
    fn read_extras(&mut self, yaml: &str) {
        match from_yaml::<Terms>(yaml) {
            Ok(terms) => {
                self.license = terms.license;
                self.compatibility = terms.compatibility;
            }
            Err(_) => self.warn("license and compatibility must be text"),
        }
        if self
            .compatibility
            .as_ref()
            .is_some_and(|text| !(1..=MAX_COMPATIBILITY).contains(&text.chars().count()))
        {
            self.warn(format!("compatibility must have 1 to {MAX_COMPATIBILITY} characters"));
        }
        match from_yaml::<Metadata>(yaml) {
            Ok(found) => self.metadata = found.metadata.unwrap_or_default(),
            Err(_) => self.warn("metadata must map text to text"),
        }
        match (from_yaml::<AllowedText>(yaml), from_yaml::<AllowedList>(yaml)) {
            (Ok(found), _) => self.allowed_tools = found.allowed_tools,
            (Err(_), Ok(found)) => {
                self.allowed_tools = found.allowed_tools.map(|tools| tools.join(" "));
                self.warn("allowed-tools must be text with spaces between the tools");
            }
            (Err(_), Err(_)) => self.warn("allowed-tools must be text"),
        }
    }

    fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// The name the skill goes by, and what is wrong with the one its author wrote.
    ///
    /// A name that breaks the rules is replaced by the nearest one that does not; `None` if there is none.
    pub fn usable_name(&self, folder_name: &str) -> (Option<String>, Vec<String>) {
        let Some(written) = &self.name else {
            return (slug(folder_name), vec!["the name is missing; the folder's name is used".to_owned()]);
        };
        let mut warnings = Vec::new();
        if written != folder_name {
            warnings.push(format!("the name `{}` is not the folder's name", shortened(written, MAX_NAME)));
        }
        if is_name(written) {
            return (Some(written.clone()), warnings);
        }
        let name = slug(written).or_else(|| slug(folder_name));
        warnings.push(format!(
            "the name `{}` is not made of lowercase letters, digits and single hyphens (1 to {MAX_NAME})",
            shortened(written, MAX_NAME)
        ));
        (name, warnings)
    }
}

/// Lowercase letters and digits of any script, single hyphens between them, at most 64.
fn is_name(name: &str) -> bool {
    let fits = |letter: char| letter == '-' || (letter.is_alphanumeric() && !letter.is_uppercase());
    (1..=MAX_NAME).contains(&name.chars().count())
        && name.chars().all(fits)
        && name.split('-').all(|part| !part.is_empty())
}

/// The nearest name that follows the rules.
fn slug(name: &str) -> Option<String> {
    let lowercase = name.to_lowercase();
    let parts = lowercase.split(|letter: char| !letter.is_alphanumeric()).filter(|part| !part.is_empty());
    let joined = parts.collect::<Vec<_>>().join("-");
    let short: String = joined.chars().take(MAX_NAME).collect();
    Some(short.trim_end_matches('-').to_owned()).filter(|name| is_name(name))
}

#[derive(Deserialize)]
struct Head {
    name: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Terms {
    license: Option<String>,
    compatibility: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct AllowedText {
    #[serde(rename = "allowed-tools")]
    allowed_tools: Option<String>,
}

#[derive(Deserialize)]
struct AllowedList {
    #[serde(rename = "allowed-tools")]
    allowed_tools: Option<Vec<String>>,
}

/// The parser's own budget bounds nesting, aliases and nodes.
fn from_yaml<T: DeserializeOwned>(yaml: &str) -> Result<T, ManifestError> {
    serde_saphyr::from_str(yaml).map_err(|error| {
        let first_line = error.to_string().lines().next().map(one_line).unwrap_or_default();
        ManifestError::NotUnderstood(shortened(&first_line, 200))
    })
}

/// The same YAML with quotes around top-level values that hold a colon; `None` if there is no such value.
fn with_quotes(yaml: &str) -> Option<String> {
    let mut changed = false;
    let lines: Vec<String> = yaml
        .lines()
        .map(|line| {
            let quoted = quoted_line(line);
            changed |= quoted.is_some();
            quoted.unwrap_or_else(|| line.to_owned())
        })
        .collect();
    changed.then(|| lines.join("\n"))
}

fn quoted_line(line: &str) -> Option<String> {
    let (key, value) = line.split_once(':')?;
    let plain_key =
        !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let value = value.trim();
    let plain_value = !value.starts_with(['"', '\'', '|', '>', '[', '{', '&', '*', '!']);
    if !plain_key || !plain_value || !value.contains(':') {
        return None;
    }
    Some(format!("{key}: '{}'", value.replace('\'', "''")))
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
