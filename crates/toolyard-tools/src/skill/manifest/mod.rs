//! The manifest of a skill: the frontmatter of its SKILL.md.

mod frontmatter;

use std::{collections::BTreeMap, io::Read};

use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};

use toolyard_core::sanitize;

pub use frontmatter::FrontmatterError;
pub(super) use frontmatter::{FrontmatterSpan, find_frontmatter};

use crate::text::{MAX_EXCERPT_CHARS, one_line, truncate};

const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 1_024;
const MAX_COMPATIBILITY_CHARS: usize = 500;
const KNOWN_KEYS: [&str; 6] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// The frontmatter of a SKILL.md, as specified by agentskills.io.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manifest {
    /// The name as written.
    pub name: Option<String>,
    /// What the skill does and when to use it; never empty.
    pub description: String,
    /// The license.
    pub license: Option<String>,
    /// Requirements on the environment.
    pub compatibility: Option<String>,
    /// Other properties.
    pub metadata: BTreeMap<String, String>,
    /// Tools that the skill asks to use without approval; ignored.
    pub allowed_tools: Option<String>,
    /// Violations of the Agent Skills specification that are tolerated.
    pub warnings: Vec<String>,
}

/// Why a SKILL.md cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The frontmatter could not be found or read.
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
    /// The frontmatter is not YAML, or its fields have wrong types.
    ///
    /// Remedy: correct the YAML at the place that the text names; quote values with colons.
    #[error("invalid frontmatter: {0}")]
    InvalidYaml(String),
    /// The description, by which agents find the skill, is missing or empty.
    ///
    /// Remedy: add a line `description: …` to the frontmatter of `SKILL.md`.
    #[error("the frontmatter has no description")]
    NoDescription,
}

impl Manifest {
    /// Reads the frontmatter and leaves the instructions unread.
    pub fn read(reader: impl Read) -> Result<Self, ManifestError> {
        Self::parse(&frontmatter::read_frontmatter(reader)?)
    }

    /// Parses the YAML of a frontmatter.
    pub fn parse(yaml: &str) -> Result<Self, ManifestError> {
        match Self::parse_strict(yaml) {
            // The most common mistake is an unquoted value with a colon.
            Err(ManifestError::InvalidYaml(reason)) => {
                let quoted =
                    quote_values_with_colons(yaml).ok_or(ManifestError::InvalidYaml(reason.clone()))?;
                let mut manifest = Self::parse_strict(&quoted).map_err(|error| match error {
                    ManifestError::InvalidYaml(_) => ManifestError::InvalidYaml(reason),
                    other => other,
                })?;
                manifest.warnings.push("a value with a colon should be quoted".to_owned());
                Ok(manifest)
            }
            other => other,
        }
    }

    fn parse_strict(yaml: &str) -> Result<Self, ManifestError> {
        let keys: BTreeMap<String, IgnoredAny> = from_yaml(yaml)?;
        let required: RequiredFields = from_yaml(yaml)?;
        let mut manifest = Self { name: required.name.map(|name| one_line(&name)), ..Self::default() };
        let description = sanitize(&required.description.unwrap_or_default()).0.trim().to_owned();
        if description.is_empty() {
            return Err(ManifestError::NoDescription);
        }
        if description.chars().count() > MAX_DESCRIPTION_CHARS {
            manifest.warn(format!("the description was truncated to {MAX_DESCRIPTION_CHARS} characters"));
        }
        manifest.description = truncate(&description, MAX_DESCRIPTION_CHARS);
        manifest.read_optional_fields(yaml);
        for key in keys.keys().filter(|key| !KNOWN_KEYS.contains(&key.as_str())) {
            manifest.warn(format!("unknown key `{}`", truncate(&one_line(key), MAX_NAME_CHARS)));
        }
        Ok(manifest)
    }

    /// Reads the optional fields; a wrong one is a warning.
    fn read_optional_fields(&mut self, yaml: &str) {
        match from_yaml::<LicenseAndCompatibility>(yaml) {
            Ok(fields) => {
                self.license = fields.license;
                self.compatibility = fields.compatibility;
            }
            Err(_) => self.warn("license and compatibility must be text"),
        }
        if self
            .compatibility
            .as_ref()
            .is_some_and(|text| !(1..=MAX_COMPATIBILITY_CHARS).contains(&text.chars().count()))
        {
            self.warn(format!("compatibility must have 1 to {MAX_COMPATIBILITY_CHARS} characters"));
        }
        match from_yaml::<MetadataField>(yaml) {
            Ok(found) => self.metadata = found.metadata.unwrap_or_default(),
            Err(_) => self.warn("metadata must map text to text"),
        }
        match (from_yaml::<AllowedToolsText>(yaml), from_yaml::<AllowedToolsList>(yaml)) {
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

    /// The name that the skill gets, and warnings about the written one.
    ///
    /// An invalid name is replaced by the nearest valid one, a missing one by the folder's name; `None` if neither can be
    /// made valid.
    pub fn usable_name(&self, folder_name: &str) -> (Option<String>, Vec<String>) {
        let Some(written) = &self.name else {
            return (slug(folder_name), vec!["the name is missing; using the folder's name".to_owned()]);
        };
        let mut warnings = Vec::new();
        if written != folder_name {
            warnings
                .push(format!("the name `{}` is not the folder's name", truncate(written, MAX_NAME_CHARS)));
        }
        if is_valid_name(written) {
            return (Some(written.clone()), warnings);
        }
        let name = slug(written).or_else(|| slug(folder_name));
        warnings.push(format!(
            "the name `{}` is not made of lowercase letters, digits and single hyphens (1 to {MAX_NAME_CHARS})",
            truncate(written, MAX_NAME_CHARS)
        ));
        (name, warnings)
    }
}

/// Whether a name has 1 to 64 lowercase letters and digits of any script with single hyphens between them.
fn is_valid_name(name: &str) -> bool {
    let is_allowed = |letter: char| letter == '-' || (letter.is_alphanumeric() && !letter.is_uppercase());
    (1..=MAX_NAME_CHARS).contains(&name.chars().count())
        && name.chars().all(is_allowed)
        && name.split('-').all(|part| !part.is_empty())
}

/// The nearest valid name: lowercase, with a hyphen in place of other characters.
fn slug(name: &str) -> Option<String> {
    let lowercase = name.to_lowercase();
    let parts = lowercase.split(|letter: char| !letter.is_alphanumeric()).filter(|part| !part.is_empty());
    let joined = parts.collect::<Vec<_>>().join("-");
    let short: String = joined.chars().take(MAX_NAME_CHARS).collect();
    Some(short.trim_end_matches('-').to_owned()).filter(|name| is_valid_name(name))
}

#[derive(Deserialize)]
struct RequiredFields {
    name: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct LicenseAndCompatibility {
    license: Option<String>,
    compatibility: Option<String>,
}

#[derive(Deserialize)]
struct MetadataField {
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct AllowedToolsText {
    #[serde(rename = "allowed-tools")]
    allowed_tools: Option<String>,
}

#[derive(Deserialize)]
struct AllowedToolsList {
    #[serde(rename = "allowed-tools")]
    allowed_tools: Option<Vec<String>>,
}

/// Parses YAML; the parser limits nesting, aliases and nodes.
fn from_yaml<T: DeserializeOwned>(yaml: &str) -> Result<T, ManifestError> {
    serde_saphyr::from_str(yaml).map_err(|error| {
        let first_line = error.to_string().lines().next().map(one_line).unwrap_or_default();
        ManifestError::InvalidYaml(truncate(&first_line, MAX_EXCERPT_CHARS))
    })
}

/// Quotes top-level values that contain a colon; `None` if there is no such value.
fn quote_values_with_colons(yaml: &str) -> Option<String> {
    let mut changed = false;
    let lines: Vec<String> = yaml
        .lines()
        .map(|line| {
            let quoted = quote_line(line);
            changed |= quoted.is_some();
            quoted.unwrap_or_else(|| line.to_owned())
        })
        .collect();
    changed.then(|| lines.join("\n"))
}

fn quote_line(line: &str) -> Option<String> {
    let (key, value) = line.split_once(':')?;
    let is_plain_key =
        !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let value = value.trim();
    let is_plain_value = !value.starts_with(['"', '\'', '|', '>', '[', '{', '&', '*', '!']);
    if !is_plain_key || !is_plain_value || !value.contains(':') {
        return None;
    }
    Some(format!("{key}: '{}'", value.replace('\'', "''")))
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
