//! What a definition says once its spelling is taken away, and the hash that names it.
//!
//! Two definitions have one canonical form exactly when nobody who follows JSON and JSON Schema can tell them apart:
//!
//! - White space, the order of keys and the way a string is escaped do not count. Text does, to the last code point:
//!   no normalization, for a look-alike is a change.
//! - Numbers are compared by their exact decimal value, never as floats: `1`, `1.0` and `10e-1` are one number, as JSON
//!   Schema says and as every other JSON library rewrites them, and two numbers that only a float confuses are two.
//! - The order of arrays counts, except where a JSON Schema means a set: `required`, `dependentRequired`, `type` and
//!   `enum`. Some servers build these from sets and send another order at every start. Only schemas are read in this
//!   way; an array called `required` inside a default is data and keeps its order. The order of `anyOf` and its kin
//!   counts, because it decides which words are shown first.
//! - Every field is covered, unknown ones, `icons` and `_meta` among them: a client that ignores a field today may show
//!   it to a model tomorrow. Nothing is taken for volatile.

use toolyard_core::ContentHash;

use super::tree::{Tree, write_between, write_text};

/// Written before the form, so that another version of these rules makes other hashes.
const VERSION: &str = "toolyard tool definition 1\n";

/// The hash of the canonical form of a definition.
pub(crate) fn hash(definition: &Tree) -> ContentHash {
    ContentHash::of_parts([VERSION.as_bytes(), canonical(definition).as_bytes()])
}

/// The canonical form of a whole definition, itself JSON.
pub(crate) fn canonical(definition: &Tree) -> String {
    canonical_without(definition, &[])
}

/// The canonical form of a definition as if these of its fields were not there.
pub(crate) fn canonical_without(definition: &Tree, fields: &[&str]) -> String {
    let mut out = String::new();
    write_object(
        definition.fields(),
        &mut out,
        |key, value, out| {
            let reading = match key {
                "inputSchema" | "outputSchema" => Reading::Schema,
                _ => Reading::Data,
            };
            write(value, reading, out);
        },
        fields,
    );
    if !matches!(definition, Tree::Object(_)) {
        out.clear();
        write(definition, Reading::Data, &mut out);
    }
    out
}

/// The canonical form of one value.
pub(crate) fn canonical_value(value: &Tree, reading: Reading) -> String {
    let mut out = String::new();
    write(value, reading, &mut out);
    out
}

/// How a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As it is.
    Data,
    /// As a JSON Schema.
    Schema,
    /// As an object or array of schemas.
    Schemas,
    /// As an array whose order says nothing.
    Set,
    /// As an object of such arrays.
    Sets,
}

impl Reading {
    /// How the value under a key is read, inside a value read like this.
    pub(crate) fn of_field(self, key: &str) -> Self {
        match self {
            Self::Schema => keyword(key),
            Self::Schemas => Self::Schema,
            Self::Sets => Self::Set,
            Self::Data | Self::Set => Self::Data,
        }
    }

    /// How the items of an array are read.
    pub(crate) fn of_items(self) -> Self {
        match self {
            // `items` of older drafts may be an array of schemas.
            Self::Schema | Self::Schemas => Self::Schema,
            Self::Data | Self::Set | Self::Sets => Self::Data,
        }
    }
}

fn keyword(key: &str) -> Reading {
    match key {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "allOf"
        | "anyOf" | "oneOf" | "prefixItems" => Reading::Schemas,
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
        | "contentSchema" => Reading::Schema,
        "required" | "type" | "enum" => Reading::Set,
        "dependentRequired" => Reading::Sets,
        _ => Reading::Data,
    }
}

fn write(value: &Tree, reading: Reading, out: &mut String) {
    match value {
        Tree::Null | Tree::Bool(_) | Tree::Text(_) => value.write(out),
        Tree::Number(digits) => out.push_str(&exact(digits)),
        Tree::List(items) if reading == Reading::Set => {
            let mut items: Vec<String> =
                items.iter().map(|item| canonical_value(item, Reading::Data)).collect();
            items.sort_unstable();
            write_between(out, ['[', ']'], items, |item, out| out.push_str(&item));
        }
        Tree::List(items) => {
            write_between(out, ['[', ']'], items, |item, out| write(item, reading.of_items(), out));
        }
        Tree::Object(fields) => {
            write_object(fields, out, |key, value, out| write(value, reading.of_field(key), out), &[]);
        }
    }
}

fn write_object(
    fields: &[(String, Tree)],
    out: &mut String,
    mut write: impl FnMut(&str, &Tree, &mut String),
    without: &[&str],
) {
    let mut fields: Vec<&(String, Tree)> =
        fields.iter().filter(|(key, _)| !without.contains(&key.as_str())).collect();
    fields.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    write_between(out, ['{', '}'], fields, |(key, value), out| {
        write_text(key, out);
        out.push(':');
        write(key, value, out);
    });
}

/// A number as its shortest digits and a power of ten: `1.50` and `15e-1` are both `15e-1`.
fn exact(spelled: &str) -> String {
    let (sign, unsigned) = match spelled.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", spelled),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let shift = i64::try_from(digits.len() - significant.len()).ok().zip(i64::try_from(fraction.len()).ok());
    let power = exponent
        .parse::<i64>()
        .ok()
        .zip(shift)
        .and_then(|(power, (zeros, places))| power.checked_add(zeros)?.checked_sub(places));
    match (significant.trim_start_matches('0'), power) {
        ("", _) => "0".to_owned(),
        (digits, Some(0)) => format!("{sign}{digits}"),
        (digits, Some(power)) => format!("{sign}{digits}e{power}"),
        // An exponent beyond all sense is kept as it is spelled.
        (_, None) => spelled.to_owned(),
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
