//! JSON text without its secrets: read as it stands, without recursion, so that no nesting is too deep.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

use super::{
    ASSIGNMENT,
    assignment::is_telling_option,
    is_redacted, push_marker, redact,
    rules::RULE_BOOK,
    telling::{Telling, looks_secret, telling},
    without_markers,
};
use crate::RawJson;

/// The same as [`redact`] for JSON text, which stays valid JSON; says whether anything was replaced.
///
/// Values under telling keys (`password`, `apiKey`, `X-Auth-Token`, …) are replaced whole; every other string and
/// every key runs through [`redact`]. Order, number spelling and spacing survive. So do booleans, `null` and empty
/// values, and what a JSON Schema says about a property of such a name, except its `default`, `const`, `enum`,
/// `examples`.
///
/// ```
/// # use toolyard_core::{RawJson, redact_json};
/// let arguments = RawJson::parse(r#"{"user":"ann","apiKey":"hunter2","limit":1.0}"#.to_owned())?;
/// let (safe, changed) = redact_json(&arguments);
/// assert_eq!(safe.get(), r#"{"user":"ann","apiKey":"[redacted:assignment]","limit":1.0}"#);
/// assert!(changed);
/// # Ok::<(), toolyard_core::NotJson>(())
/// ```
pub fn redact_json(json: &RawJson) -> (RawJson, bool) {
    let mut walker = Walker { text: json.get(), output: String::new(), copied: 0, frames: Vec::new() };
    walker.walk();
    if walker.copied == 0 {
        return (json.clone(), false);
    }
    walker.output.push_str(walker.text.get(walker.copied..).unwrap_or_default());
    // Only whole strings and values were replaced, so this is JSON; if it ever were not, nothing of it gets out.
    let safe =
        RawJson::parse(walker.output).unwrap_or_else(|_| RawJson::from_value(&serde_json::Value::Null));
    (safe, true)
}

/// Reads the text from left to right and copies what may stay.
struct Walker<'t> {
    text: &'t str,
    output: String,
    /// Up to where the text is in the output.
    copied: usize,
    frames: Vec<Frame>,
}

/// An object or array that is being read.
#[derive(Debug, Clone, Copy)]
struct Frame {
    is_object: bool,
    /// Whether the next string is a key.
    expects_key: bool,
    /// Whether this is the `properties` of a JSON Schema, or looks like it.
    is_properties: bool,
    /// Whether this describes a property with a telling name.
    describes_secret: bool,
    /// What is known about the next value.
    next: Next,
    /// Whether the `name` of this object is telling, so that its `value` is secret.
    has_telling_name: bool,
}

/// What is known about a value before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Anything,
    /// The members of this object are described properties.
    Properties,
    /// The value names what another value is for.
    Name,
    /// A secret if it looks like one.
    Weak,
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
                    self.frames.pop();
                    position + 1
                }
                b',' => {
                    if let Some(frame) = self.frames.last_mut() {
                        frame.expects_key = frame.is_object;
                    }
                    position + 1
                }
                b'-' | b'0'..=b'9' => self.number(position),
                _ => position + 1,
            };
        }
    }

    /// What is known about the value that begins here. An array says it of one element only.
    fn take_next(&mut self) -> Next {
        self.frames
            .last_mut()
            .map_or(Next::Anything, |frame| std::mem::replace(&mut frame.next, Next::Anything))
    }

    fn open(&mut self, start: usize, is_object: bool) -> usize {
        let next = self.take_next();
        let parent = self.frames.last().copied();
        if next == Next::Secret || next == Next::SecretOrSchema && !is_object {
            let end = container_end(self.text, start);
            let inner = self.text.get(start + 1..end.saturating_sub(1)).unwrap_or_default();
            if !inner.trim().is_empty() {
                self.replace(start, end, &marker());
            }
            return end;
        }
        let inherited = parent.is_some_and(|parent| parent.describes_secret);
        self.frames.push(Frame {
            is_object,
            expects_key: is_object,
            is_properties: is_object && next == Next::Properties,
            describes_secret: next == Next::SecretOrSchema || inherited,
            next: Next::Anything,
            has_telling_name: false,
        });
        start + 1
    }

    fn number(&mut self, start: usize) -> usize {
        let rest = self.text.get(start..).unwrap_or_default();
        let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        let end = start + rest.bytes().position(|byte| !is_number(byte)).unwrap_or(rest.len());
        if matches!(self.take_next(), Next::Secret | Next::SecretOrSchema) {
            self.replace(start, end, &marker());
        }
        end
    }

    fn string(&mut self, start: usize) -> usize {
        let end = string_end(self.text, start);
        let decoded = decode(self.text.get(start..end).unwrap_or_default());
        let clean = redact(&decoded);
        // The name of what was taken away is no word of a key.
        let name = without_markers(&clean);
        let is_key = self.frames.last().is_some_and(|frame| frame.expects_key);
        let next = if is_key { Next::Anything } else { self.take_next() };
        let secret = match next {
            Next::Secret | Next::SecretOrSchema => !decoded.is_empty() && !is_redacted(&decoded),
            Next::Weak => looks_secret(&decoded),
            Next::Anything | Next::Properties | Next::Name => false,
        };
        if secret {
            self.replace(start, end, &marker());
        } else if let Cow::Owned(clean) = &clean {
            self.replace(start, end, clean);
        }
        match self.frames.last_mut() {
            Some(frame) if is_key => frame.read_key(&name),
            Some(frame) if frame.is_object => {
                frame.has_telling_name |= next == Next::Name && telling(&name) == Telling::Yes;
            }
            Some(frame) if is_telling_option(&name) => frame.next = Next::Secret,
            Some(_) | None => {}
        }
        end
    }

    /// Puts a string in the place of a piece of the text.
    fn replace(&mut self, start: usize, end: usize, string: &str) {
        self.output.push_str(self.text.get(self.copied..start).unwrap_or_default());
        self.output.push_str(RawJson::from_value(&string.into()).get());
        self.copied = end;
    }
}

impl Frame {
    /// Notes what a key says about its value.
    fn read_key(&mut self, key: &str) {
        self.expects_key = false;
        let is_schema = self.describes_secret && !self.is_properties;
        self.next = match telling(key) {
            _ if key == "properties" => Next::Properties,
            _ if is_schema && RULE_BOOK.words.schema.contains(key) => Next::Anything,
            _ if is_schema => Next::Secret,
            Telling::Yes if self.is_properties => Next::SecretOrSchema,
            Telling::Yes => Next::Secret,
            Telling::Weak => Next::Weak,
            Telling::No => match key {
                "value" | "Value" if self.has_telling_name => Next::Secret,
                "name" | "Name" | "key" | "Key" | "header" | "field" | "variable" => Next::Name,
                _ => Next::Anything,
            },
        };
    }
}

fn marker() -> String {
    let mut marker = String::new();
    push_marker(&mut marker, ASSIGNMENT);
    marker
}

/// Where the string that begins at `start` ends.
fn string_end(text: &str, start: usize) -> usize {
    let mut escaped = false;
    let bytes = text.as_bytes().get(start + 1..).unwrap_or_default();
    let closing = bytes.iter().position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    closing.map_or(text.len(), |length| start + length + 2)
}

/// Where the object or array that begins at `start` ends.
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

/// What a JSON string says. Halves of surrogate pairs, which JSON allows and Unicode does not, become `�`.
fn decode(string: &str) -> Cow<'_, str> {
    let inner = string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(string);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let Ok(Lossy(bytes)) = serde_json::from_str(string) else {
        return Cow::Borrowed(inner);
    };
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// The bytes of a JSON string: asked for bytes, the reader lets half surrogate pairs pass.
struct Lossy(Vec<u8>);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(LossyVisitor)
    }
}

struct LossyVisitor;

impl Visitor<'_> for LossyVisitor {
    type Value = Lossy;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Lossy, E> {
        Ok(Lossy(bytes.to_vec()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Lossy, E> {
        Ok(Lossy(text.as_bytes().to_vec()))
    }
}
