//! The settings in effect as a flat list, with the origin of each value and without secrets.

use serde_json::{Map, Value};
use toolyard_core::redact;
use toolyard_gateway::{SettingOrigin, SettingValue, SettingsReport};
use toolyard_mcp_client::config::ServerSettings;

use super::{Settings, SettingsError, SettingsLayer, layers::ACCUMULATED_LISTS};

/// Settings whose values are secrets, or may be. `*` stands for one name, `**` at the end for everything below.
const SECRET_KEYS: [&str; 8] = [
    "serve.token",
    "web_search.key",
    "models.*.key",
    "models.*.headers.**",
    "models.*.extra_body.**",
    "servers.*.env.**",
    "servers.*.headers.**",
    "telemetry.metrics_token",
];
/// Settings that are URLs and may have a password.
const URL_KEYS: [&str; 4] = ["cluster.nats", "store", "telemetry.otlp_endpoint", "models.*.url"];

impl SettingsLayer {
    /// The settings of several files together, the lowest layer first, each with its origin. Literal secrets are left out.
    pub fn report<'a>(layers: impl IntoIterator<Item = &'a Self>) -> Result<SettingsReport, SettingsError> {
        let layers: Vec<&Self> = layers.into_iter().collect();
        let settings = Self::merge(layers.iter().copied())?;
        let mut leaves = Vec::new();
        flatten(&to_json(&settings), &mut Vec::new(), &mut leaves);
        let secrets = literal_secrets(&settings);
        let own: Vec<(&Self, Value)> =
            layers.iter().map(|layer| (*layer, to_json(layer.settings()))).collect();
        let mut values: Vec<SettingValue> = leaves
            .into_iter()
            .map(|(path, value)| {
                let layer = origin(&path, &value, &own);
                let key = key_text(&path);
                let secret = is_secret(&path) || secrets.contains(&key) || is_secret_url(&path, &value);
                let value = if secret { reference_or_null(value) } else { redacted(value) };
                let origin = layer.map_or(SettingOrigin::Default, |_| SettingOrigin::File);
                let file = layer.map(|layer| layer.path.display().to_string());
                SettingValue { key, value, origin, file, secret, takes_effect_after_restart: false }
            })
            .collect();
        values.sort_by(|one, other| one.key.cmp(&other.key));
        let files = layers.iter().filter(|layer| !layer.path.as_os_str().is_empty());
        Ok(SettingsReport { files: files.map(|layer| layer.path.display().to_string()).collect(), values })
    }
}

/// Settings always serialize: their keys are strings.
fn to_json(settings: &Settings) -> Value {
    serde_json::to_value(settings).unwrap_or_default()
}

/// The values with their paths. Empty tables set nothing.
fn flatten(value: &Value, path: &mut Vec<String>, leaves: &mut Vec<(Vec<String>, Value)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                path.push(key.clone());
                flatten(value, path, leaves);
                path.pop();
            }
        }
        value => leaves.push((path.clone(), value.clone())),
    }
}

/// The layer that a value comes from: the highest one that sets it, and sets it to this value; a layer below may forbid to
/// relax it, and one above may replace the table around it.
fn origin<'a>(
    path: &[String],
    value: &Value,
    layers: &[(&'a SettingsLayer, Value)],
) -> Option<&'a SettingsLayer> {
    let is_accumulated = ACCUMULATED_LISTS.contains(&path.join(".").as_str());
    let is_origin = |(layer, own): &&(&SettingsLayer, Value)| {
        sets(layer, path) && (is_accumulated || find(own, path) == Some(value))
    };
    layers.iter().rev().find(is_origin).map(|(layer, _)| *layer)
}

/// Whether a file has a key.
fn sets(layer: &SettingsLayer, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    let mut found = layer.table.get(first);
    for key in rest {
        found = found.and_then(|value| value.get(key));
    }
    found.is_some()
}

fn find<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The path as it is written in TOML: `servers.files.env."A B"`.
fn key_text(path: &[String]) -> String {
    let is_bare = |key: &str| {
        !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
    };
    let keys =
        path.iter().map(|key| if is_bare(key) { key.clone() } else { Value::from(key.as_str()).to_string() });
    keys.collect::<Vec<_>>().join(".")
}

fn is_secret(path: &[String]) -> bool {
    SECRET_KEYS.iter().any(|pattern| matches(path, pattern))
}

fn matches(path: &[String], pattern: &str) -> bool {
    let mut parts = pattern.split('.');
    let is_below = pattern.ends_with(".**");
    let matches =
        path.iter().zip(parts.by_ref()).all(|(key, part)| part == "*" || part == "**" || part == key);
    let length = pattern.split('.').count();
    matches && if is_below { path.len() >= length } else { path.len() == length }
}

/// Whether a value has a URL with a password, or of a database, which may have one in its parameters, too.
fn is_secret_url(path: &[String], value: &Value) -> bool {
    let is_url = |text: &str| match text.split_once("://") {
        Some((_, rest)) => {
            path == ["store"] || rest.split(['/', '?', '#']).next().unwrap_or(rest).contains('@')
        }
        None => false,
    };
    URL_KEYS.iter().any(|pattern| matches(path, pattern))
        && value.as_str().is_some_and(|text| text.split(',').any(is_url))
}

/// The fields of servers with literal secrets, such as `servers.files.args`.
fn literal_secrets(settings: &Settings) -> Vec<String> {
    let fields = |(name, server): (&String, &ServerSettings)| {
        let (_, fields) = server.without_secrets(name);
        let field = |field: String| {
            let path = field.split(['.', '[']).map(str::to_owned).next().unwrap_or_default();
            let path = if field.starts_with("oauth.") { field } else { path };
            let mut full = vec!["servers".to_owned(), name.clone()];
            full.extend(path.split('.').map(str::to_owned));
            key_text(&full)
        };
        fields.into_iter().map(field).collect::<Vec<_>>()
    };
    settings.servers.iter().flat_map(fields).collect()
}

/// A reference to a variable, or a list of references; otherwise null.
fn reference_or_null(value: Value) -> Value {
    let is_reference = |text: &str| {
        let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        name.is_some_and(|name| {
            !name.is_empty()
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_:-".contains(letter))
                && !name.contains(":-")
        })
    };
    match &value {
        Value::String(text) if is_reference(text) => value,
        Value::Array(items)
            if items.iter().all(|item| item.as_str().is_some_and(is_reference)) && !items.is_empty() =>
        {
            value
        }
        _ => Value::Null,
    }
}

/// A value without secrets of known formats.
fn redacted(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(&text).into_owned()),
        Value::Array(items) => Value::Array(items.into_iter().map(redacted).collect()),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(key, value)| (key, redacted(value))).collect::<Map<_, _>>(),
        ),
        value => value,
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
