//! Merges settings in layers: defaults < user < trusted project. An untrusted project is below the user.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use toml::{Table, Value};
use toolyard_mcp_client::config::Template;

use super::{Settings, SettingsError};

/// The table that an untrusted file may set. It decides neither which call is made nor what it may do. `skills.folders` is the
/// only other key. All others are privileged, also those of later versions.
const UNPRIVILEGED_TABLE: &str = "time";
const SKILLS_TABLE: &str = "skills";
const UNPRIVILEGED_SKILLS_KEY: &str = "folders";

/// Tables that are merged key by key. Any other value replaces that of the layer below as a whole: a key from one file must
/// not be sent to a URL from another.
const MERGED_TABLES: [&str; 15] = [
    "agents",
    "approvals",
    "call",
    "equivalent",
    "hints",
    "hints.*",
    "models",
    "policy",
    "routing",
    "routing.pin",
    "serve",
    "serve.profiles",
    "servers",
    "skills",
    "time",
];

/// Lists that each layer adds to.
pub(super) const ACCUMULATED_LISTS: [&str; 9] = [
    "approvals.allow",
    "approvals.ask",
    "approvals.deny",
    "approvals.public",
    "capability",
    "policy.files",
    "quotas",
    "skills.environment",
    "skills.folders",
];

/// Values that no layer above can relax.
const STRICTEST_VALUES: [(&str, &str); 4] = [
    ("approvals.open_world", "ask"),
    ("audit", "required"),
    ("journal", "always"),
    ("policy.default", "deny"),
];

/// The settings of one file, with the knowledge of which keys are set there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsLayer {
    pub(super) path: PathBuf,
    pub(super) table: Table,
    settings: Settings,
}

impl SettingsLayer {
    /// Parses a file; `path` is only used in error messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, SettingsError> {
        // Parsed from the text, so that errors name the line.
        let settings = Settings::parse(text, path)?;
        let table = toml::from_str(text).map_err(|error| invalid(path, error))?;
        Ok(Self { path: path.to_owned(), table, settings })
    }

    /// The environment variables without a default to which its texts refer.
    pub fn required_variables(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.table.values().for_each(|value| add_variables(value, &mut names));
        names
    }

    /// The settings of this file alone, with defaults for keys that it does not set.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// This layer without the keys that only the operator may set, and the names of the removed keys, sorted. A file that came
    /// with a project could otherwise send secrets elsewhere, declare a destructive tool read-only, steer a model, or hide
    /// its calls.
    pub fn without_privileged_keys(self) -> Result<(Self, Vec<String>), SettingsError> {
        let mut kept = Table::new();
        let mut removed = Vec::new();
        for (key, value) in self.table {
            match value {
                value if key == UNPRIVILEGED_TABLE => {
                    kept.insert(key, value);
                }
                Value::Table(mut skills) if key == SKILLS_TABLE => {
                    let folders = skills.remove(UNPRIVILEGED_SKILLS_KEY);
                    removed.extend(skills.keys().map(|inner| format!("{SKILLS_TABLE}.{inner}")));
                    let folders = folders.map(|folders| (UNPRIVILEGED_SKILLS_KEY.to_owned(), folders));
                    kept.insert(key, Value::Table(folders.into_iter().collect()));
                }
                // A table without keys sets nothing.
                Value::Table(table) if table.is_empty() => {}
                _ => removed.push(key),
            }
        }
        removed.sort();
        Ok((Self::from_table(kept, self.path)?, removed))
    }

    /// The keys in tables that `above` sets to another value, such as `time.zone`, sorted. Lists that accumulate are left out.
    pub fn overridden_keys(&self, above: &Self) -> Vec<String> {
        let mut overridden = Vec::new();
        for (name, value) in &self.table {
            let (Value::Table(inner), Some(Value::Table(other))) = (value, above.table.get(name)) else {
                continue;
            };
            let is_overridden = |(key, value): &(&String, &Value)| {
                other.get(*key).is_some_and(|other| other != *value)
                    && !ACCUMULATED_LISTS.contains(&format!("{name}.{key}").as_str())
            };
            overridden.extend(inner.iter().filter(is_overridden).map(|(key, _)| format!("{name}.{key}")));
        }
        overridden.sort();
        overridden
    }

    /// The settings of several files together, the lowest layer first. Relative paths stay as each file has them.
    pub fn merge<'a>(layers: impl IntoIterator<Item = &'a Self>) -> Result<Settings, SettingsError> {
        let mut merged = Self::default();
        for layer in layers {
            merge_tables(&mut merged.table, layer.table.clone(), "");
            merged.path.clone_from(&layer.path);
        }
        Ok(Self::from_table(merged.table, merged.path)?.settings)
    }

    fn from_table(table: Table, path: PathBuf) -> Result<Self, SettingsError> {
        let settings = table.clone().try_into().map_err(|error| invalid(&path, error))?;
        Ok(Self { path, table, settings })
    }
}

/// Adds the environment variables that the texts of a value need. A name with `:` refers to something else, such as a stored secret.
fn add_variables(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let Ok(template) = Template::parse(text) else { return };
            let needed =
                template.variables().filter(|(name, has_default)| !has_default && !name.contains(':'));
            names.extend(needed.map(|(name, _)| name.to_owned()));
        }
        Value::Array(items) => items.iter().for_each(|item| add_variables(item, names)),
        Value::Table(table) => table.values().for_each(|value| add_variables(value, names)),
        _ => {}
    }
}

fn invalid(path: &Path, error: toml::de::Error) -> SettingsError {
    SettingsError::Invalid { path: path.to_owned(), error: Box::new(error) }
}

fn merge_tables(below: &mut Table, above: Table, path: &str) {
    for (key, value) in above {
        let path = match path {
            "" => key.clone(),
            "hints" => "hints.*".to_owned(),
            outer => format!("{outer}.{key}"),
        };
        if let Some(lower) = below.get_mut(&key) {
            merge_values(lower, value, &path);
        } else {
            below.insert(key, value);
        }
    }
}

fn merge_values(below: &mut Value, above: Value, path: &str) {
    match (below, above) {
        (Value::Table(below), Value::Table(above)) if MERGED_TABLES.contains(&path) => {
            merge_tables(below, above, path);
        }
        (Value::Array(below), Value::Array(above)) if ACCUMULATED_LISTS.contains(&path) => {
            below.extend(above);
        }
        (Value::String(below), _) if STRICTEST_VALUES.contains(&(path, below.as_str())) => {}
        (below, above) => *below = above,
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
