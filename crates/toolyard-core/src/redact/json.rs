//! Redacts JSON text without parsing it into values, and without recursion, so that no nesting is too deep.

use std::borrow::Cow;

use super::{
    assignment::is_secret_option,
    marker::{ASSIGNMENT, is_redacted, push_marker, without_markers},
    rules::RULES,
    sensitivity::{Sensitivity, key_sensitivity, looks_secret},
    text::redact,
};
use crate::{
    RawJson,
    json::grammar::{after_string, read_string},
};

/// [`redact`] for JSON text, which stays valid JSON. Also returns whether anything was replaced.
///
/// Replaced whole, with the marker of an assignment such as `password=…`:
/// - values of secret keys (`password`, `apiKey`, `X-Auth-Token`, …);
/// - strings of ambiguous keys that look secret;
/// - a `value` after a secret `name`: `{"name": "password", "value": "…"}`;
/// - the element after a secret option in a list: `["--password", "…"]`.
///
/// [`redact`] is applied to every other string and to every key. Order, number spelling and spacing survive. So do booleans,
/// `null` and empty values, and the JSON Schema of a property with a secret name: of it, only known keywords are kept, and of
/// these not `default`, `const`, `enum` and `examples`.
///
/// ```
/// # use toolyard_core::{RawJson, redact_json};
/// let arguments = RawJson::parse(r#"{"user":"ann","apiKey":"hunter2","limit":1.0}"#.to_owned())?;
/// let (safe, changed) = redact_json(&arguments);
/// assert_eq!(safe.get(), r#"{"user":"ann","apiKey":"[redacted:assignment]","limit":1.0}"#);
/// assert!(changed);
/// # Ok::<(), toolyard_core::InvalidJson>(())
/// ```
pub fn redact_json(json: &RawJson) -> (RawJson, bool) {
    let mut walker = Walker { text: json.get(), output: String::new(), copied: 0, levels: Vec::new() };
    walker.walk();
    if walker.copied == 0 {
        return (json.clone(), false);
    }
    walker.output.push_str(walker.text.get(walker.copied..).unwrap_or_default());
    // Only whole strings and values were replaced, so this is JSON. If it were not, none of it would get out.
    let safe =
        RawJson::parse(walker.output).unwrap_or_else(|_| RawJson::from_value(&serde_json::Value::Null));
    (safe, true)
}

/// Reads the text from left to right and copies what is not secret.
struct Walker<'t> {
    text: &'t str,
    output: String,
    /// The position up to which the text was copied.
    copied: usize,
    levels: Vec<NestingLevel>,
}

/// An open object or array.
#[derive(Debug, Clone, Copy)]
struct NestingLevel {
    is_object: bool,
    /// Whether the next string is a key.
    expects_key: bool,
    /// Whether this looks like the `properties` of a JSON Schema.
    is_properties: bool,
    /// Whether this is the schema of a property with a secret name.
    describes_secret: bool,
    /// How the next value is treated.
    next: Treatment,
    /// Whether the `name` of this object is a secret key, so that a `value` after it is secret.
    has_secret_name: bool,
}

/// How a value is treated; known before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    Anything,
    /// An object whose members are the JSON Schemas of properties.
    Properties,
    /// The value names the key of another value, as in `{"name": "password", "value": "…"}`.
    Name,
    /// A secret if it looks like one.
    Ambiguous,
    /// A secret, unless it is the schema of one.
    SecretOrSchema,
    Secret,
}

impl Walker<'_> {
    fn walk(&mut self) {
        let bytes = self.text.as_bytes();
        let mut position = 0;
        while let Some(&byte) = bytes.get(position) {
            position = match byte {
                b'"' => self.string(position),
                b'{' | b'[' => self.open(position, byte == b'{'),
                b'}' | b']' => {
                    self.levels.pop();
                    position + 1
                }
                b',' => {
                    if let Some(level) = self.levels.last_mut() {
                        level.expects_key = level.is_object;
                    }
                    position + 1
                }
                b'-' | b'0'..=b'9' => self.number(position),
                _ => position + 1,
            };
        }
    }

    /// The treatment of the value that starts here. In an array it applies to one element only.
    fn take_next(&mut self) -> Treatment {
        self.levels
            .last_mut()
            .map_or(Treatment::Anything, |level| std::mem::replace(&mut level.next, Treatment::Anything))
    }

    fn open(&mut self, start: usize, is_object: bool) -> usize {
        let next = self.take_next();
        let parent = self.levels.last().copied();
        if next == Treatment::Secret || next == Treatment::SecretOrSchema && !is_object {
            let end = container_end(self.text, start);
            let inner = self.text.get(start + 1..end.saturating_sub(1)).unwrap_or_default();
            if !inner.trim().is_empty() {
                self.replace(start, end, &marker());
            }
            return end;
        }
        let inherited = parent.is_some_and(|parent| parent.describes_secret);
        self.levels.push(NestingLevel {
            is_object,
            expects_key: is_object,
            is_properties: is_object && next == Treatment::Properties,
            describes_secret: next == Treatment::SecretOrSchema || inherited,
            next: Treatment::Anything,
            has_secret_name: false,
        });
        start + 1
    }

    fn number(&mut self, start: usize) -> usize {
        let rest = self.text.get(start..).unwrap_or_default();
        let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        let end = start + rest.bytes().position(|byte| !is_number(byte)).unwrap_or(rest.len());
        if matches!(self.take_next(), Treatment::Secret | Treatment::SecretOrSchema) {
            self.replace(start, end, &marker());
        }
        end
    }

    fn string(&mut self, start: usize) -> usize {
        let end = string_end(self.text, start);
        let decoded = decode(self.text.get(start..end).unwrap_or_default());
        let clean = redact(&decoded);
        // A redacted key contains `[redacted:KIND]`. A KIND such as `token` must not make the key look secret.
        let name = without_markers(&clean);
        let is_key = self.levels.last().is_some_and(|level| level.expects_key);
        let next = if is_key { Treatment::Anything } else { self.take_next() };
        let is_secret = match next {
            Treatment::Secret | Treatment::SecretOrSchema => !decoded.is_empty() && !is_redacted(&decoded),
            // What remains beside a redacted part may look like a secret of its own.
            Treatment::Ambiguous => looks_secret(&decoded) || looks_secret(&clean),
            Treatment::Anything | Treatment::Properties | Treatment::Name => false,
        };
        if is_secret {
            self.replace(start, end, &marker());
        } else if let Cow::Owned(clean) = &clean {
            self.replace(start, end, clean);
        }
        match self.levels.last_mut() {
            Some(level) if is_key => level.read_key(&name),
            Some(level) if level.is_object => {
                level.has_secret_name |=
                    next == Treatment::Name && key_sensitivity(&name) == Sensitivity::Secret;
            }
            // In a list of command-line arguments the value follows the option: `["--password", "x"]`.
            Some(level) if is_secret_option(&name) => level.next = Treatment::Secret,
            Some(_) | None => {}
        }
        end
    }

    fn replace(&mut self, start: usize, end: usize, string: &str) {
        self.output.push_str(self.text.get(self.copied..start).unwrap_or_default());
        self.output.push_str(RawJson::from_value(&string.into()).get());
        self.copied = end;
    }
}

impl NestingLevel {
    /// Derives from a key how its value is treated.
    fn read_key(&mut self, key: &str) {
        self.expects_key = false;
        let is_schema = self.describes_secret && !self.is_properties;
        self.next = match key_sensitivity(key) {
            _ if key == "properties" => Treatment::Properties,
            _ if is_schema && RULES.words.schema_keywords.contains(key) => Treatment::Anything,
            _ if is_schema => Treatment::Secret,
            Sensitivity::Secret if self.is_properties => Treatment::SecretOrSchema,
            Sensitivity::Secret => Treatment::Secret,
            Sensitivity::Ambiguous => Treatment::Ambiguous,
            Sensitivity::None => match key {
                "value" | "Value" if self.has_secret_name => Treatment::Secret,
                "name" | "Name" | "key" | "Key" | "header" | "field" | "variable" => Treatment::Name,
                _ => Treatment::Anything,
            },
        };
    }
}

fn marker() -> String {
    let mut marker = String::new();
    push_marker(&mut marker, ASSIGNMENT);
    marker
}

/// The end of the string that starts at `start`.
fn string_end(text: &str, start: usize) -> usize {
    let inside = text.as_bytes().get(start + 1..).unwrap_or_default();
    after_string(inside).map_or(text.len(), |after| text.len() - after.len())
}

/// The end of the object or array that starts at `start`.
fn container_end(text: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    let mut position = start;
    while let Some(&byte) = text.as_bytes().get(position) {
        position = if byte == b'"' { string_end(text, position) } else { position + 1 };
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    position
}

/// Decodes a JSON string. Lone surrogates, which JSON allows and Unicode does not, become `�`.
fn decode(string: &str) -> Cow<'_, str> {
    let inside = string.strip_prefix('"').unwrap_or(string);
    read_string(inside).map_or(Cow::Borrowed(inside), |(decoded, _)| decoded)
}
