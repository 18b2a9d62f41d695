//! Parses JSON with the mistakes that models make: comments, trailing commas, single quotes, Python literals and raw line
//! breaks.
//!
//! Ambiguous text is rejected: an unescaped quote, two values in place of one, an ellipsis. The time is linear in the length
//! of the text.

use serde_json::{Map, Number, Value};

const MAX_DEPTH: usize = 64;
/// Longer documents are not parsed.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;
/// Longer comments are invalid, so that unterminated ones cannot make parsing quadratic.
const MAX_COMMENT_BYTES: usize = 1_000;

/// A text that does not start with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LenientJsonError {
    /// The model ended its reply in the middle of JSON.
    ///
    /// Remedy: raise `max_tokens` of `[models.NAME]`, or use a larger model.
    #[error("unexpected end of JSON")]
    Incomplete,
    /// The model wrote JSON with a mistake.
    ///
    /// Remedy: use a larger model, or set `tool_calling` of `[models.NAME]` to `"schema"` or `"native"`.
    #[error("invalid JSON at byte {0}")]
    Invalid(usize),
}

/// Parses the value at the start of a text. Returns it with the number of bytes used.
pub fn parse_prefix(text: &str) -> Result<(Value, usize), LenientJsonError> {
    Parser::new(text).parse()
}

/// Like [`parse_prefix`], but closes the brackets that are open at the end of the text. An open string stays an error.
pub fn parse_prefix_closing_brackets(text: &str) -> Result<(Value, usize), LenientJsonError> {
    Parser { closes_brackets: true, ..Parser::new(text) }.parse()
}

/// Parses a text that is one object.
pub fn parse_object(text: &str) -> Option<Map<String, Value>> {
    let (value, used) = parse_prefix(text).ok()?;
    match value {
        Value::Object(map) if text.get(used..)?.trim().is_empty() => Some(map),
        _ => None,
    }
}

/// A value parsed by [`parse_document`].
#[derive(Debug, Clone, PartialEq)]
pub struct JsonDocument {
    /// The value.
    pub value: Value,
    /// Whether the text ended before the value did.
    pub is_truncated: bool,
}

/// Parses the object or list at the start of a text, perhaps in a code fence. More lenient than [`parse_prefix`]: bare words
/// are strings, and a truncated value is completed.
pub fn parse_document(text: &str) -> Option<JsonDocument> {
    let text = strip_code_fence(text.trim());
    if text.len() > MAX_DOCUMENT_BYTES || !text.starts_with(['{', '[']) {
        return None;
    }
    // Valid JSON may be nested deeper than the lenient parser allows.
    let mut strict = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(value)) = strict.next() {
        return Some(JsonDocument { value, is_truncated: false });
    }
    let mut parser = Parser { closes_brackets: true, completes_truncated: true, ..Parser::new(text) };
    let value = parser.value().ok()?;
    Some(JsonDocument { value, is_truncated: parser.is_truncated })
}

/// The content of the code fence that a text starts with, or the text.
fn strip_code_fence(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```") else { return text };
    let inner = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    inner.split_once("```").map_or(inner, |(inside, _)| inside).trim()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Whether brackets that are open at the end of the text are closed.
    closes_brackets: bool,
    /// Whether a truncated string is closed and bare words are strings.
    completes_truncated: bool,
    is_truncated: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            closes_brackets: false,
            completes_truncated: false,
            is_truncated: false,
        }
    }

    fn parse(mut self) -> Result<(Value, usize), LenientJsonError> {
        self.skip_whitespace()?;
        let value = self.value()?;
        Ok((value, self.at))
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn invalid<T>(&self) -> Result<T, LenientJsonError> {
        Err(LenientJsonError::Invalid(self.at))
    }

    fn skip(&mut self, character: char) {
        self.at += character.len_utf8();
    }

    /// Skips whitespace and comments; returns whether a line ended.
    fn skip_whitespace(&mut self) -> Result<bool, LenientJsonError> {
        let mut line_ended = false;
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            let skipped = rest.len() - trimmed.len();
            line_ended |= rest.get(..skipped).is_some_and(|skipped| skipped.contains('\n'));
            let comment = if trimmed.starts_with("//") || trimmed.starts_with('#') {
                comment_length(trimmed, "\n")
            } else if trimmed.starts_with("/*") {
                comment_length(trimmed.get(2..).unwrap_or_default(), "*/").map(|length| length + 2)
            } else if trimmed == "/" && !self.closes_brackets {
                return Err(LenientJsonError::Incomplete);
            } else {
                self.at += skipped;
                return Ok(line_ended);
            };
            let is_unfinished = trimmed.len() <= MAX_COMMENT_BYTES;
            self.at += skipped;
            match comment {
                Some(length) => self.at += length,
                None if is_unfinished && self.completes_truncated => self.at = self.text.len(),
                None if is_unfinished => return Err(LenientJsonError::Incomplete),
                None => return self.invalid(),
            }
            line_ended = true;
        }
    }

    fn value(&mut self) -> Result<Value, LenientJsonError> {
        match self.peek() {
            None => Err(LenientJsonError::Incomplete),
            Some('{') => self.nested(Self::object),
            Some('[') => self.nested(Self::array),
            Some('"' | '\'' | '“' | '‘') => self.string().map(Value::String),
            Some('-' | '+' | '.' | '0'..='9') => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.literal(),
            Some(c) if self.completes_truncated && (c.is_alphabetic() || c == '_') => self.literal(),
            Some(_) => self.invalid(),
        }
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Value, LenientJsonError>,
    ) -> Result<Value, LenientJsonError> {
        if self.depth >= MAX_DEPTH {
            return self.invalid();
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, LenientJsonError> {
        let mut map = Map::new();
        loop {
            self.skip_whitespace()?;
            if self.accept_end('}')? {
                return Ok(Value::Object(map));
            }
            let key = self.key()?;
            self.skip_whitespace()?;
            match self.peek() {
                None => return Err(LenientJsonError::Incomplete),
                Some(colon @ (':' | '：')) => self.skip(colon),
                Some(_) => return self.invalid(),
            }
            self.skip_whitespace()?;
            let value = self.value()?;
            map.insert(key, value);
            if self.read_separator('}')? {
                return Ok(Value::Object(map));
            }
        }
    }

    fn array(&mut self) -> Result<Value, LenientJsonError> {
        let mut items = Vec::new();
        loop {
            self.skip_whitespace()?;
            if self.accept_end(']')? {
                return Ok(Value::Array(items));
            }
            items.push(self.value()?);
            if self.read_separator(']')? {
                return Ok(Value::Array(items));
            }
        }
    }

    /// Whether the container ends here.
    fn accept_end(&mut self, close: char) -> Result<bool, LenientJsonError> {
        match self.peek() {
            None if self.closes_brackets => {
                self.is_truncated = true;
                Ok(true)
            }
            None => Err(LenientJsonError::Incomplete),
            Some(c) if c == close => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
        }
    }

    /// Parses what follows an item; returns true at the end of the container.
    fn read_separator(&mut self, close: char) -> Result<bool, LenientJsonError> {
        let line_ended = self.skip_whitespace()?;
        if self.accept_end(close)? {
            return Ok(true);
        }
        match self.peek() {
            Some(comma @ (',' | '，')) => self.skip(comma),
            // A missing comma at the end of a line.
            Some('"') if line_ended && close == '}' => {}
            _ => return self.invalid(),
        }
        Ok(false)
    }

    fn key(&mut self) -> Result<String, LenientJsonError> {
        match self.peek() {
            Some('"' | '\'' | '“' | '‘') => self.string(),
            Some(c) if c.is_alphabetic() || matches!(c, '_' | '$') => {
                let is_key_char = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
                let end = self.rest().find(|c| !is_key_char(c)).ok_or(LenientJsonError::Incomplete)?;
                let key = self.rest().get(..end).unwrap_or_default().to_owned();
                self.at += end;
                Ok(key)
            }
            _ => self.invalid(),
        }
    }

    fn string(&mut self) -> Result<String, LenientJsonError> {
        let close = match self.rest() {
            rest if rest.starts_with("\"\"\"") => "\"\"\"",
            rest if rest.starts_with("'''") => "'''",
            // More text may make these a triple quote.
            "\"\"" | "''" if !self.closes_brackets => return Err(LenientJsonError::Incomplete),
            rest if rest.starts_with('"') => "\"",
            rest if rest.starts_with('“') => "”",
            rest if rest.starts_with('‘') => "’",
            _ => "'",
        };
        // Opening and closing quote are equally long.
        self.at += close.len();
        let mut string = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with(close) {
                self.at += close.len();
                return Ok(string);
            }
            let first = close.chars().next().unwrap_or('"');
            let plain = match rest.find(['\\', first]) {
                Some(plain) => plain,
                None if self.completes_truncated => {
                    string.push_str(rest);
                    self.at = self.text.len();
                    self.is_truncated = true;
                    return Ok(string);
                }
                None => return Err(LenientJsonError::Incomplete),
            };
            if plain > 0 {
                string.push_str(rest.get(..plain).unwrap_or_default());
                self.at += plain;
            } else if rest == "\\" && self.completes_truncated {
                self.at += 1;
            } else if rest.starts_with('\\') {
                self.escape(&mut string)?;
            } else {
                // One of three quotes.
                string.push(first);
                self.skip(first);
            }
        }
    }

    fn escape(&mut self, string: &mut String) -> Result<(), LenientJsonError> {
        self.at += 1;
        let escaped = self.peek().ok_or(LenientJsonError::Incomplete)?;
        self.skip(escaped);
        let plain = match escaped {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\'' | '\\' | '/' | '`' => escaped,
            'u' => return self.unicode_escape(string),
            // Not an escape: a regular expression or a Windows path.
            _ => {
                string.push('\\');
                escaped
            }
        };
        string.push(plain);
        Ok(())
    }

    /// The four digits after `\u`, and those of the second half of a surrogate pair.
    fn unicode_escape(&mut self, string: &mut String) -> Result<(), LenientJsonError> {
        let first = self.hex_digits()?;
        let rest = self.rest();
        let is_pair = (0xD800..0xDC00).contains(&first);
        if is_pair && "\\u".starts_with(rest.get(..rest.len().min(2)).unwrap_or("x")) {
            let after_first = self.at;
            self.at += rest.len().min(2);
            let second = self.hex_digits()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                string.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return Ok(());
            }
            self.at = after_first;
        }
        string.push(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    fn hex_digits(&mut self) -> Result<u32, LenientJsonError> {
        let rest = self.rest();
        let present = rest.bytes().take(4).take_while(u8::is_ascii_hexdigit).count();
        if present < 4 {
            return if present == rest.len() { Err(LenientJsonError::Incomplete) } else { self.invalid() };
        }
        let code = rest.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.ok_or(LenientJsonError::Invalid(self.at))
    }

    fn number(&mut self) -> Result<Value, LenientJsonError> {
        let is_number_char = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let rest = self.rest();
        let end = match rest.find(|c| !is_number_char(c)) {
            Some(end) => end,
            None if self.closes_brackets => rest.len(),
            None => return Err(LenientJsonError::Incomplete),
        };
        let literal = rest.get(..end).unwrap_or_default();
        let literal = literal.strip_prefix('+').unwrap_or(literal);
        let normalized = if literal.starts_with('.') { format!("0{literal}") } else { literal.to_owned() };
        let normalized = normalized.strip_suffix('.').unwrap_or(&normalized);
        let Some(number) = exact_number(normalized) else { return self.invalid() };
        self.at += end;
        Ok(Value::Number(number))
    }

    fn literal(&mut self) -> Result<Value, LenientJsonError> {
        let rest = self.rest();
        let is_word = |c: char| {
            c == '_' || if self.completes_truncated { c.is_alphanumeric() } else { c.is_ascii_alphanumeric() }
        };
        let end = match rest.find(|c| !is_word(c)) {
            Some(end) => end,
            None if self.closes_brackets => rest.len(),
            None => return Err(LenientJsonError::Incomplete),
        };
        let value = match rest.get(..end).unwrap_or_default() {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            "undefined" if self.completes_truncated => Value::Null,
            word if self.completes_truncated => Value::String(word.to_owned()),
            _ => return self.invalid(),
        };
        self.at += end;
        Ok(value)
    }
}

/// Parses a number. `str::parse` rounds fractions correctly, which serde_json does not promise.
fn exact_number(normalized: &str) -> Option<Number> {
    let number: Number = serde_json::from_str(normalized).ok()?;
    if !number.is_f64() {
        return Some(number);
    }
    Number::from_f64(normalized.parse().ok()?)
}

/// The length of a comment with its end, or `None` if the end is missing or too far away.
fn comment_length(text: &str, end: &str) -> Option<usize> {
    let limit = text.len().min(MAX_COMMENT_BYTES);
    let limit = (limit..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    text.get(..limit)?.find(end).map(|at| at + end.len())
}

#[cfg(test)]
#[path = "lenient_json_tests.rs"]
mod tests;
