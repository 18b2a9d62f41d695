//! A cursor that validates JSON text in one pass and takes out parts of it unchanged.

use std::borrow::Cow;

use super::{
    grammar::{after_literal, after_number, after_short_string, after_string, after_whitespace, read_string},
    raw::{RawJson, SharedText},
    skip_index::SkipIndex,
    value::{JsonError, JsonKind, JsonText},
};

/// The deepest nesting a cursor accepts: it keeps one bit per level. serde_json reads no deeper either.
const MAX_DEPTH: usize = 128;

/// A position in JSON text. Everything before it is valid JSON; the rest is not validated yet.
///
/// After [`JsonCursor::next_key`] and [`JsonCursor::next_item`], the value must be consumed exactly once: with
/// [`JsonCursor::next_value`] or [`JsonCursor::string`], or by entering it.
///
/// ```
/// # use toolyard_core::{JsonCursor, JsonError, RawJson, SharedText};
/// let text = SharedText::from(r#"{"id": 1.0, "rows": [ {"b":1,"a":2} ]}"#.to_owned());
/// let mut cursor = JsonCursor::indexing(&text, 16);
/// let mut rows = Vec::new();
/// cursor.enter_object()?;
/// while let Some(key) = cursor.next_key()? {
///     if key == "rows" && cursor.enter_array()? {
///         while cursor.next_item()? {
///             rows.push(text.part(cursor.next_value()?));
///         }
///     } else {
///         cursor.next_value()?;
///     }
/// }
/// cursor.end()?;
/// assert_eq!(rows[0].get(), r#"{"b":1,"a":2}"#);
/// # Ok::<(), JsonError>(())
/// ```
#[derive(Debug, Clone)]
pub struct JsonCursor<'t> {
    text: &'t str,
    rest: &'t [u8],
    /// One bit per open object or array, the innermost lowest; set for an object.
    nesting: u128,
    depth: usize,
    limit: usize,
    /// Whether nothing of the innermost object or array was read yet, so that no comma may follow.
    fresh: bool,
    index: IndexState<'t>,
}

/// What is known about where large values end.
#[derive(Debug, Clone)]
enum IndexState<'t> {
    None,
    /// This cursor records it for later cursors over the same text.
    Recording(Box<SkipIndex>, &'t SharedText),
    /// An earlier cursor recorded it. The number is the offset of this cursor's text in the shared text.
    Recorded(&'t SkipIndex, usize),
}

impl<'t> JsonCursor<'t> {
    /// A cursor at the start of `text`, which may be nested `depth` levels deep (at most 128).
    pub fn new(text: &'t str, depth: usize) -> Self {
        let rest = after_whitespace(text.as_bytes());
        let limit = depth.min(MAX_DEPTH);
        Self { text, rest, nesting: 0, depth: 0, limit, fresh: false, index: IndexState::None }
    }

    /// Like [`JsonCursor::new`] for a shared text: the cursor records where large values end, so that cursors over parts of
    /// the text can skip them without reading them again. The record takes effect at [`JsonCursor::end`].
    pub fn indexing(text: &'t SharedText, depth: usize) -> Self {
        let mut cursor = Self::new(text.as_str(), depth);
        if SkipIndex::is_worthwhile(cursor.text.len()) {
            cursor.index = IndexState::Recording(Box::default(), text);
        }
        cursor
    }

    /// A cursor over JSON that is already valid.
    pub fn of(json: &'t RawJson) -> Self {
        let mut cursor = Self::new(json.get(), MAX_DEPTH);
        if let Some(index) = json.text.skip_index() {
            cursor.index = IndexState::Recorded(index, json.range.start);
        }
        cursor
    }

    /// The kind of the next value, judged by its first byte.
    pub fn kind(&self) -> Option<JsonKind> {
        JsonKind::of(self.rest)
    }

    /// Moves past one value and returns its text.
    #[inline(always)]
    pub fn next_value(&mut self) -> Result<JsonText<'t>, JsonError> {
        let before = self.rest;
        let start = self.offset();
        let after = match before {
            [b'{' | b'[', ..] => match self.known_end(start) {
                Some(after) => after,
                None => self.skip_nested()?,
            },
            _ => after_scalar(before).ok_or_else(|| self.syntax_error())?,
        };
        self.fresh = false;
        self.rest = after_whitespace(after);
        let end = self.text.len() - after.len();
        self.text.get(start..end).map(JsonText).ok_or(JsonError::Syntax(start))
    }

    /// The text after this position.
    pub fn rest(&self) -> &'t str {
        self.text.get(self.offset()..).unwrap_or_default()
    }

    /// The rest after the value that starts here, if its end was recorded.
    fn known_end(&self, start: usize) -> Option<&'t [u8]> {
        match (&self.index, self.rest) {
            (IndexState::Recorded(index, offset), [b'{' | b'[', ..]) => {
                let end = index.end_of(start + offset)? - offset;
                self.text.as_bytes().get(end..)
            }
            _ => None,
        }
    }

    /// Enters an object. Returns false and does not move if the next value is something else.
    #[inline(always)]
    pub fn enter_object(&mut self) -> Result<bool, JsonError> {
        self.enter(b'{')
    }

    /// Enters an array. Returns false and does not move if the next value is something else.
    #[inline(always)]
    pub fn enter_array(&mut self) -> Result<bool, JsonError> {
        self.enter(b'[')
    }

    /// The next key of the innermost object. At its end, leaves the object and returns none.
    #[inline(always)]
    pub fn next_key(&mut self) -> Result<Option<Cow<'t, str>>, JsonError> {
        if !self.advance(b'}')? {
            return Ok(None);
        }
        let (key, after) = self.read_string()?;
        self.rest = after_colon(after).ok_or_else(|| self.syntax_error_at(after))?;
        Ok(Some(key))
    }

    /// Whether the innermost array has another item. At its end, leaves the array.
    #[inline(always)]
    pub fn next_item(&mut self) -> Result<bool, JsonError> {
        self.advance(b']')
    }

    /// Reads a string. Returns none and does not move if the next value is something else.
    #[inline(always)]
    pub fn string(&mut self) -> Result<Option<Cow<'t, str>>, JsonError> {
        let [b'"', ..] = self.rest else { return Ok(None) };
        let (string, after) = self.read_string()?;
        self.rest = after_whitespace(after);
        self.fresh = false;
        Ok(Some(string))
    }

    /// Checks that only whitespace follows.
    pub fn end(self) -> Result<(), JsonError> {
        if !self.rest.is_empty() || self.depth > 0 {
            return Err(self.syntax_error());
        }
        if let IndexState::Recording(index, text) = self.index {
            text.set_skip_index(*index);
        }
        Ok(())
    }

    fn offset(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn syntax_error(&self) -> JsonError {
        self.syntax_error_at(self.rest)
    }

    /// The decoded string that starts here and the rest after it; an error if the next value is not a string.
    #[inline(always)]
    fn read_string(&self) -> Result<(Cow<'t, str>, &'t [u8]), JsonError> {
        let [b'"', inside @ ..] = self.rest else { return Err(self.syntax_error()) };
        let start = self.text.len() - inside.len();
        match after_short_string(inside) {
            Some(after) => {
                // All but the closing quote.
                let string = self.text.get(start..self.text.len() - after.len() - 1);
                string.map(|string| (Cow::Borrowed(string), after)).ok_or_else(|| self.syntax_error())
            }
            None => self.text.get(start..).and_then(read_string).ok_or_else(|| self.syntax_error()),
        }
    }

    #[inline(always)]
    fn enter(&mut self, bracket: u8) -> Result<bool, JsonError> {
        let Some((_, after)) = self.rest.split_first().filter(|(first, _)| **first == bracket) else {
            return Ok(false);
        };
        self.open(bracket == b'{', self.offset())?;
        self.rest = after_whitespace(after);
        self.fresh = true;
        Ok(true)
    }

    /// Moves to the next entry of the innermost object or array, or out of it at its end.
    #[inline(always)]
    fn advance(&mut self, closing: u8) -> Result<bool, JsonError> {
        let is_innermost = self.depth > 0 && self.in_object() == (closing == b'}');
        let (first, after) =
            self.rest.split_first().filter(|_| is_innermost).ok_or_else(|| self.syntax_error())?;
        let fresh = std::mem::replace(&mut self.fresh, false);
        match *first {
            byte if byte == closing => {
                self.close(self.offset() + 1);
                self.rest = after_whitespace(after);
                Ok(false)
            }
            b',' if !fresh => {
                self.rest = after_whitespace(after);
                Ok(true)
            }
            _ if fresh => Ok(true),
            _ => Err(self.syntax_error()),
        }
    }

    /// Skips an object or array without recursion and returns the rest after it. The depth is unchanged afterwards.
    #[inline(never)]
    fn skip_nested(&mut self) -> Result<&'t [u8], JsonError> {
        let floor = self.depth;
        let mut rest = self.rest;
        loop {
            let has_ended;
            (rest, has_ended) = match rest {
                [b'{' | b'[', ..] => self.skip_opening(rest)?,
                _ => (after_scalar(rest).ok_or_else(|| self.syntax_error_at(rest))?, true),
            };
            if has_ended {
                rest = self.skip_closings(rest, floor)?;
                if self.depth == floor {
                    return Ok(rest);
                }
            }
            if self.in_object() {
                rest = after_key(rest).ok_or_else(|| self.syntax_error_at(rest))?;
            }
        }
    }

    /// Opens an object or array; closes it at once and returns true if it is empty.
    #[inline]
    fn skip_opening(&mut self, rest: &'t [u8]) -> Result<(&'t [u8], bool), JsonError> {
        let (bracket, after) = rest.split_first().ok_or_else(|| self.syntax_error_at(rest))?;
        self.open(*bracket == b'{', self.text.len() - rest.len())?;
        let closing = if *bracket == b'{' { b'}' } else { b']' };
        let inside = after_whitespace(after);
        match inside.split_first() {
            Some((byte, after)) if *byte == closing => {
                self.close(self.text.len() - after.len());
                Ok((after, true))
            }
            _ => Ok((inside, false)),
        }
    }

    /// Skips everything from the end of a value to the start of the next value or key, but not out of the object or array
    /// at depth `floor`.
    #[inline]
    fn skip_closings(&mut self, mut rest: &'t [u8], floor: usize) -> Result<&'t [u8], JsonError> {
        while self.depth > floor {
            let closing = if self.in_object() { b'}' } else { b']' };
            match after_whitespace(rest).split_first() {
                Some((b',', after)) => return Ok(after_whitespace(after)),
                Some((byte, after)) if *byte == closing => {
                    self.close(self.text.len() - after.len());
                    rest = after;
                }
                _ => return Err(self.syntax_error_at(rest)),
            }
        }
        Ok(rest)
    }

    #[cold]
    #[inline(never)]
    fn syntax_error_at(&self, rest: &[u8]) -> JsonError {
        JsonError::Syntax(self.text.len() - rest.len())
    }

    fn in_object(&self) -> bool {
        self.nesting & 1 == 1
    }

    fn open(&mut self, is_object: bool, start: usize) -> Result<(), JsonError> {
        if self.depth == self.limit {
            return Err(JsonError::TooDeep(self.limit));
        }
        if let IndexState::Recording(index, _) = &mut self.index {
            index.open(self.depth, start);
        }
        self.depth += 1;
        self.nesting = self.nesting << 1 | u128::from(is_object);
        Ok(())
    }

    fn close(&mut self, end: usize) {
        self.depth -= 1;
        self.nesting >>= 1;
        if let IndexState::Recording(index, _) = &mut self.index {
            index.close(self.depth, end);
        }
    }
}

/// The rest after a value that is neither object nor array.
#[inline(always)]
fn after_scalar(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b'"', inside @ ..] => after_string(inside),
        [b'-' | b'0'..=b'9', ..] => after_number(rest),
        _ => after_literal(rest),
    }
}

/// The rest after a key and its colon.
#[inline(always)]
fn after_key(rest: &[u8]) -> Option<&[u8]> {
    let [b'"', inside @ ..] = rest else { return None };
    after_colon(after_string(inside)?)
}

/// The rest after a colon and the whitespace around it.
#[inline(always)]
fn after_colon(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b':', after @ ..] => Some(after_whitespace(after)),
        _ => match after_whitespace(rest) {
            [b':', after @ ..] => Some(after_whitespace(after)),
            _ => None,
        },
    }
}

impl RawJson {
    /// The items of a JSON array, as parts of its text.
    pub fn items(array: String) -> Result<Vec<Self>, JsonError> {
        let text = SharedText::from(array);
        let mut cursor = JsonCursor::new(text.as_str(), usize::MAX);
        let mut items = Vec::new();
        if !cursor.enter_array()? {
            return Err(JsonError::Syntax(0));
        }
        while cursor.next_item()? {
            items.push(cursor.next_value()?);
        }
        cursor.end().map(|()| text.parts(&items))
    }
}
