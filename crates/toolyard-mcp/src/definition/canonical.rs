//! The canonical form of a definition, and the hash that identifies it.
//!
//! Two definitions have the same canonical form exactly when they are equal under JSON and JSON Schema:
//!
//! - White space, key order and string escapes do not count. Text counts to the last code point, without Unicode
//!   normalization: a look-alike is a change.
//! - Numbers are compared by exact decimal value, never as floats: `1`, `1.0` and `10e-1` are equal.
//! - Array order counts, except where JSON Schema means a set: `required`, `dependentRequired`, `type` and `enum`. Some
//!   servers build these from sets and send another order at every start. An array called `required` inside a default is
//!   data and keeps its order. The order of `anyOf` counts, because it decides what is shown first.
//! - Every field counts, including unknown ones, `icons` and `_meta`: a client that ignores a field today may show it to
//!   a model tomorrow.

use toolyard_core::ContentHash;

use super::json_tree::{JsonTree, write_between};
use crate::json::push_quoted;

/// Part of the hash, so that another version of these rules produces other hashes.
const HASH_PREFIX: &str = "toolyard tool definition 1\n";

pub(crate) fn definition_hash(definition: &JsonTree) -> ContentHash {
    ContentHash::of_parts([HASH_PREFIX.as_bytes(), canonical(definition).as_bytes()])
}

/// The canonical form of a definition, itself JSON.
pub(crate) fn canonical(definition: &JsonTree) -> String {
    canonical_without(definition, &[])
}

/// The canonical form of a definition without some of its top-level fields.
pub(crate) fn canonical_without(definition: &JsonTree, excluded: &[&str]) -> String {
    let mut out = String::new();
    write_object(
        definition.fields(),
        &mut out,
        |key, value, out| {
            let role = match key {
                "inputSchema" | "outputSchema" => SchemaRole::Schema,
                _ => SchemaRole::Data,
            };
            write_value(value, role, out);
        },
        excluded,
    );
    if !matches!(definition, JsonTree::Object(_)) {
        out.clear();
        write_value(definition, SchemaRole::Data, &mut out);
    }
    out
}

pub(crate) fn canonical_value(value: &JsonTree, role: SchemaRole) -> String {
    let mut out = String::new();
    write_value(value, role, &mut out);
    out
}

/// What a value is in terms of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaRole {
    Data,
    Schema,
    /// An object or array of schemas.
    SchemaCollection,
    /// An array whose order does not count.
    Set,
    /// An object of such arrays.
    SetMap,
}

impl SchemaRole {
    pub(crate) fn of_field(self, key: &str) -> Self {
        match self {
            Self::Schema => role_of_keyword(key),
            Self::SchemaCollection => Self::Schema,
            Self::SetMap => Self::Set,
            Self::Data | Self::Set => Self::Data,
        }
    }

    pub(crate) fn of_items(self) -> Self {
        match self {
            // `items` of older drafts may be an array of schemas.
            Self::Schema | Self::SchemaCollection => Self::Schema,
            Self::Data | Self::Set | Self::SetMap => Self::Data,
        }
    }
}

fn role_of_keyword(key: &str) -> SchemaRole {
    match key {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "allOf"
        | "anyOf" | "oneOf" | "prefixItems" => SchemaRole::SchemaCollection,
        "items"
        | "additionalItems"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => SchemaRole::Schema,
        "required" | "type" | "enum" => SchemaRole::Set,
        "dependentRequired" => SchemaRole::SetMap,
        _ => SchemaRole::Data,
    }
}

fn write_value(value: &JsonTree, role: SchemaRole, out: &mut String) {
    match value {
        JsonTree::Null | JsonTree::Bool(_) | JsonTree::Text(_) => value.write(out),
        JsonTree::Number(literal) => out.push_str(&canonical_number(literal)),
        JsonTree::List(items) if role == SchemaRole::Set => {
            let mut items: Vec<String> =
                items.iter().map(|item| canonical_value(item, SchemaRole::Data)).collect();
            items.sort_unstable();
            write_between(out, ['[', ']'], items, |item, out| out.push_str(&item));
        }
        JsonTree::List(items) => {
            write_between(out, ['[', ']'], items, |item, out| write_value(item, role.of_items(), out));
        }
        JsonTree::Object(fields) => {
            write_object(fields, out, |key, value, out| write_value(value, role.of_field(key), out), &[]);
        }
    }
}

fn write_object(
    fields: &[(String, JsonTree)],
    out: &mut String,
    mut write_field: impl FnMut(&str, &JsonTree, &mut String),
    excluded: &[&str],
) {
    let mut fields: Vec<&(String, JsonTree)> =
        fields.iter().filter(|(key, _)| !excluded.contains(&key.as_str())).collect();
    fields.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    write_between(out, ['{', '}'], fields, |(key, value), out| {
        push_quoted(out, key);
        out.push(':');
        write_field(key, value, out);
    });
}

/// A number as its shortest digits and a power of ten: `1.50` and `15e-1` are both `15e-1`.
fn canonical_number(text: &str) -> String {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros_and_places =
        i64::try_from(digits.len() - significant.len()).ok().zip(i64::try_from(fraction.len()).ok());
    let power = exponent
        .parse::<i64>()
        .ok()
        .zip(zeros_and_places)
        .and_then(|(power, (zeros, places))| power.checked_add(zeros)?.checked_sub(places));
    match (significant.trim_start_matches('0'), power) {
        ("", _) => "0".to_owned(),
        (digits, Some(0)) => format!("{sign}{digits}"),
        (digits, Some(power)) => format!("{sign}{digits}e{power}"),
        // An exponent beyond i64 is kept as written.
        (_, None) => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
