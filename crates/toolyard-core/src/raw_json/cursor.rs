//! Walks through JSON text in one pass, checks every byte of it once, and takes parts out as they stand.

use std::borrow::Cow;

use super::grammar::{after_blanks, after_number, after_plain, after_string, after_word, unescaped};

/// Nesting deeper than this is never walked: one bit per level, and nobody reads deeper JSON into values anyway.
const MAX_DEPTH: usize = 128;

/// Where a walk through JSON text stands. Whatever it has passed is valid JSON; whatever comes next is not known yet.
///
/// After [`JsonCursor::next_key`] and [`JsonCursor::next_item`] the value must be taken: skipped, read or entered.
///
/// ```
/// # use toolyard_core::{JsonCursor, JsonFault, RawJson, SharedText};
/// let text = SharedText::from(r#"{"id": 1.0, "rows": [ {"b":1,"a":2} ]}"#.to_owned());
/// let mut cursor = JsonCursor::new(text.as_str(), 16);
/// let mut rows = Vec::new();
/// cursor.enter_object()?;
/// while let Some(key) = cursor.next_key()? {
///     if key == "rows" && cursor.enter_array()? {
///         while cursor.next_item()? {
///             rows.push(text.part(cursor.skip()?));
///         }
///     } else {
///         cursor.skip()?;
///     }
/// }
/// cursor.end()?;
/// assert_eq!(rows[0].get(), r#"{"b":1,"a":2}"#);
/// # Ok::<(), JsonFault>(())
/// ```
#[derive(Debug, Clone)]
pub struct JsonCursor<'t> {
    text: &'t str,
    rest: &'t [u8],
    /// One bit per open bracket, the innermost lowest; set for an object.
    open: u128,
    depth: usize,
    limit: usize,
    /// Whether the innermost bracket was opened just now.
    fresh: bool,
}

/// JSON text that a cursor has passed, and that is therefore valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'t>(&'t str);

/// What a JSON value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of JSON")]
pub enum JsonKind {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

/// Why a walk ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// What stands here is not JSON.
    #[error("not JSON at byte {0}")]
    NotJson(usize),
    /// Brackets are nested too deeply.
    #[error("nested more than {0} levels deep")]
    TooDeep(usize),
}

impl<'t> JsonCursor<'t> {
    /// A walk through `text`, whose brackets may be nested `depth` levels deep (never more than 128).
    pub fn new(text: &'t str, depth: usize) -> Self {
        let rest = after_blanks(text.as_bytes());
        Self { text, rest, open: 0, depth: 0, limit: depth.min(MAX_DEPTH), fresh: false }
    }

    /// What the next value is, as far as its first byte tells.
    pub fn kind(&self) -> Option<JsonKind> {
        kind_of(self.rest)
    }

    /// Passes over one value.
    pub fn skip(&mut self) -> Result<JsonText<'t>, JsonFault> {
        let start = self.at();
        self.pass_value()?;
        self.fresh = false;
        let end = self.at();
        self.rest = after_blanks(self.rest);
        self.text.get(start..end).map(JsonText).ok_or(JsonFault::NotJson(start))
    }

    /// Goes into an object. False, and nothing has happened, if the next value is something else.
    pub fn enter_object(&mut self) -> Result<bool, JsonFault> {
        self.enter(b'{')
    }

    /// Goes into an array. False, and nothing has happened, if the next value is something else.
    pub fn enter_array(&mut self) -> Result<bool, JsonFault> {
        self.enter(b'[')
    }

    /// The next key of the object that was entered last; none at its end, which is left then.
    pub fn next_key(&mut self) -> Result<Option<Cow<'t, str>>, JsonFault> {
        if !self.advance(b'}')? {
            return Ok(None);
        }
        let key = self.string()?.ok_or_else(|| self.fault())?;
        let [b':', after @ ..] = self.rest else { return Err(self.fault()) };
        self.rest = after_blanks(after);
        Ok(Some(key))
    }

    /// Whether the array that was entered last has one more item; it is left at its end.
    pub fn next_item(&mut self) -> Result<bool, JsonFault> {
        self.advance(b']')
    }

    /// Reads a string. None, and nothing has happened, if the next value is something else.
    pub fn string(&mut self) -> Result<Option<Cow<'t, str>>, JsonFault> {
        let [b'"', inside @ ..] = self.rest else { return Ok(None) };
        let start = self.at() + 1;
        let plain = after_plain(inside);
        let after = after_string(plain).ok_or_else(|| self.fault())?;
        let end = self.text.len() - after.len() - 1;
        let inner = self.text.get(start..end).ok_or_else(|| self.fault())?;
        self.rest = after_blanks(after);
        self.fresh = false;
        let is_plain = plain.first() == Some(&b'"');
        Ok(Some(if is_plain { Cow::Borrowed(inner) } else { Cow::Owned(unescaped(inner)) }))
    }

    /// That nothing but blanks follows.
    pub fn end(&self) -> Result<(), JsonFault> {
        if self.rest.is_empty() && self.depth == 0 { Ok(()) } else { Err(self.fault()) }
    }

    fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn fault(&self) -> JsonFault {
        JsonFault::NotJson(self.at())
    }

    fn enter(&mut self, bracket: u8) -> Result<bool, JsonFault> {
        let Some((_, after)) = self.rest.split_first().filter(|(first, _)| **first == bracket) else {
            return Ok(false);
        };
        self.open(bracket == b'{')?;
        self.rest = after_blanks(after);
        self.fresh = true;
        Ok(true)
    }

    /// To the next entry of the innermost bracket, or out of it.
    fn advance(&mut self, closing: u8) -> Result<bool, JsonFault> {
        let is_right = self.depth > 0 && self.in_object() == (closing == b'}');
        let (first, after) = self.rest.split_first().filter(|_| is_right).ok_or_else(|| self.fault())?;
        let fresh = std::mem::replace(&mut self.fresh, false);
        match *first {
            byte if byte == closing => {
                self.close();
                self.rest = after_blanks(after);
                Ok(false)
            }
            b',' if !fresh => {
                self.rest = after_blanks(after);
                Ok(true)
            }
            _ if fresh => Ok(true),
            _ => Err(self.fault()),
        }
    }

    /// Passes over one value without recursion. The brackets it opens are closed when it returns.
    fn pass_value(&mut self) -> Result<(), JsonFault> {
        let floor = self.depth;
        loop {
            self.pass_opening()?;
            // A value has ended here, and with it perhaps what it stands in.
            loop {
                if self.depth == floor {
                    return Ok(());
                }
                let in_object = self.in_object();
                match after_blanks(self.rest) {
                    [b',', after @ ..] => {
                        self.rest = after_blanks(after);
                        if in_object {
                            self.pass_key()?;
                        }
                        break;
                    }
                    [b'}', after @ ..] if in_object => self.leave(after),
                    [b']', after @ ..] if !in_object => self.leave(after),
                    _ => return Err(self.fault()),
                }
            }
        }
    }

    /// Passes over everything up to the end of the first value that has no values in it.
    fn pass_opening(&mut self) -> Result<(), JsonFault> {
        loop {
            let after = match self.rest {
                [b'"', after @ ..] => after_string(after),
                [b'{', after @ ..] => {
                    self.open(true)?;
                    self.rest = after_blanks(after);
                    if let [b'}', after @ ..] = self.rest {
                        self.leave(after);
                        return Ok(());
                    }
                    self.pass_key()?;
                    continue;
                }
                [b'[', after @ ..] => {
                    self.open(false)?;
                    self.rest = after_blanks(after);
                    if let [b']', after @ ..] = self.rest {
                        self.leave(after);
                        return Ok(());
                    }
                    continue;
                }
                [b'-' | b'0'..=b'9', ..] => after_number(self.rest),
                _ => after_word(self.rest),
            };
            self.rest = after.ok_or_else(|| self.fault())?;
            return Ok(());
        }
    }

    fn pass_key(&mut self) -> Result<(), JsonFault> {
        let [b'"', inside @ ..] = self.rest else { return Err(self.fault()) };
        let after = after_string(inside).ok_or_else(|| self.fault())?;
        let [b':', after @ ..] = after_blanks(after) else { return Err(self.fault()) };
        self.rest = after_blanks(after);
        Ok(())
    }

    fn in_object(&self) -> bool {
        self.open & 1 == 1
    }

    fn open(&mut self, is_object: bool) -> Result<(), JsonFault> {
        if self.depth == self.limit {
            return Err(JsonFault::TooDeep(self.limit));
        }
        self.depth += 1;
        self.open = self.open << 1 | u128::from(is_object);
        Ok(())
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.open >>= 1;
    }

    fn leave(&mut self, after: &'t [u8]) {
        self.close();
        self.rest = after;
    }
}

impl<'t> JsonText<'t> {
    /// The text itself.
    pub fn get(self) -> &'t str {
        self.0
    }

    /// What it is.
    pub fn kind(self) -> JsonKind {
        kind_of(self.0.as_bytes()).unwrap_or(JsonKind::Null)
    }

    /// What a string says.
    pub fn string(self) -> Option<Cow<'t, str>> {
        JsonCursor::new(self.0, 0).string().ok().flatten()
    }

    /// Whether it is `true` or `false`.
    pub fn boolean(self) -> Option<bool> {
        self.0.parse().ok()
    }

    /// A number, or something else, as whatever number type holds it as it is spelt.
    pub fn number<N: std::str::FromStr>(self) -> Option<N> {
        (self.kind() == JsonKind::Number).then(|| self.0.parse().ok())?
    }
}

fn kind_of(rest: &[u8]) -> Option<JsonKind> {
    Some(match rest.first()? {
        b'{' => JsonKind::Object,
        b'[' => JsonKind::Array,
        b'"' => JsonKind::String,
        b'-' | b'0'..=b'9' => JsonKind::Number,
        b't' | b'f' => JsonKind::Boolean,
        b'n' => JsonKind::Null,
        _ => return None,
    })
}
