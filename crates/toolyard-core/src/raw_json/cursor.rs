//! Walks through JSON text in one pass, checks every byte of it once, and takes parts out as they stand.

use std::borrow::Cow;

use super::{
    RawJson, SharedText,
    grammar::{after_blanks, after_number, after_short_string, after_string, after_word, read_string},
    jumps::Jumps,
};

/// Nesting deeper than this is never walked: one bit per level, and nobody reads deeper JSON into values anyway.
const MAX_DEPTH: usize = 128;

/// Where a walk through JSON text stands. Whatever it has passed is valid JSON; whatever comes next is not known yet.
///
/// After [`JsonCursor::next_key`] and [`JsonCursor::next_item`] the value must be taken: skipped, read or entered.
///
/// ```
/// # use toolyard_core::{JsonCursor, JsonFault, RawJson, SharedText};
/// let text = SharedText::from(r#"{"id": 1.0, "rows": [ {"b":1,"a":2} ]}"#.to_owned());
/// let mut cursor = JsonCursor::over(&text, 16);
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
    memory: Memory<'t>,
}

/// What is known about the text, or about to be.
#[derive(Debug, Clone)]
enum Memory<'t> {
    None,
    /// Its large values are being written down for whoever walks here again.
    Writes(Box<Jumps>, &'t SharedText),
    /// All of it was walked over once, from so many bytes before this walk began.
    Knows(&'t Jumps, usize),
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
        let limit = depth.min(MAX_DEPTH);
        Self { text, rest, open: 0, depth: 0, limit, fresh: false, memory: Memory::None }
    }

    /// The same through a text that others hold parts of: once it was walked to its end, walks through these parts need
    /// not go into large values to find their ends.
    pub fn over(text: &'t SharedText, depth: usize) -> Self {
        let mut cursor = Self::new(text.as_str(), depth);
        if Jumps::are_worth(cursor.text.len()) {
            cursor.memory = Memory::Writes(Box::default(), text);
        }
        cursor
    }

    /// A walk through JSON that is valid already.
    pub fn of(json: &'t RawJson) -> Self {
        let mut cursor = Self::new(json.get(), MAX_DEPTH);
        if let Some(jumps) = json.whole.jumps() {
            cursor.memory = Memory::Knows(jumps, json.range.start);
        }
        cursor
    }

    /// What the next value is, as far as its first byte tells.
    pub fn kind(&self) -> Option<JsonKind> {
        kind_of(self.rest)
    }

    /// Passes over one value.
    #[inline]
    pub fn skip(&mut self) -> Result<JsonText<'t>, JsonFault> {
        let before = self.rest;
        let start = self.at();
        let after = match before {
            [b'{' | b'[', ..] => match self.known_end(start) {
                Some(after) => after,
                None => self.pass_bracket()?,
            },
            _ => after_scalar(before).ok_or_else(|| self.fault())?,
        };
        self.fresh = false;
        self.rest = after_blanks(after);
        let end = self.text.len() - after.len();
        self.text.get(start..end).map(JsonText).ok_or(JsonFault::NotJson(start))
    }

    /// What was not walked over yet.
    pub fn rest(&self) -> &'t str {
        self.text.get(self.at()..).unwrap_or_default()
    }

    /// What follows after the value that begins here, if that is known.
    fn known_end(&self, start: usize) -> Option<&'t [u8]> {
        match (&self.memory, self.rest) {
            (Memory::Knows(jumps, before), [b'{' | b'[', ..]) => {
                let end = jumps.end_of(start + before)? - before;
                self.text.as_bytes().get(end..)
            }
            _ => None,
        }
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
    #[inline(always)]
    pub fn next_key(&mut self) -> Result<Option<Cow<'t, str>>, JsonFault> {
        if !self.advance(b'}')? {
            return Ok(None);
        }
        let (key, after) = self.read_string()?;
        self.rest = after_colon(after).ok_or_else(|| self.fault_at(after))?;
        Ok(Some(key))
    }

    /// Whether the array that was entered last has one more item; it is left at its end.
    pub fn next_item(&mut self) -> Result<bool, JsonFault> {
        self.advance(b']')
    }

    /// Reads a string. None, and nothing has happened, if the next value is something else.
    pub fn string(&mut self) -> Result<Option<Cow<'t, str>>, JsonFault> {
        let [b'"', ..] = self.rest else { return Ok(None) };
        let (said, after) = self.read_string()?;
        self.rest = after_blanks(after);
        self.fresh = false;
        Ok(Some(said))
    }

    /// That nothing but blanks follows.
    pub fn end(self) -> Result<(), JsonFault> {
        if !self.rest.is_empty() || self.depth > 0 {
            return Err(self.fault());
        }
        if let Memory::Writes(jumps, text) = self.memory {
            text.remember(*jumps);
        }
        Ok(())
    }

    fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn fault(&self) -> JsonFault {
        self.fault_at(self.rest)
    }

    /// What a string says, and what follows it; anything else is a fault.
    #[inline(always)]
    fn read_string(&self) -> Result<(Cow<'t, str>, &'t [u8]), JsonFault> {
        let [b'"', inside @ ..] = self.rest else { return Err(self.fault()) };
        let start = self.text.len() - inside.len();
        match after_short_string(inside) {
            Some(after) => {
                // All but the closing quote.
                let said = self.text.get(start..self.text.len() - after.len() - 1);
                said.map(|said| (Cow::Borrowed(said), after)).ok_or_else(|| self.fault())
            }
            None => self.text.get(start..).and_then(read_string).ok_or_else(|| self.fault()),
        }
    }

    #[inline]
    fn enter(&mut self, bracket: u8) -> Result<bool, JsonFault> {
        let Some((_, after)) = self.rest.split_first().filter(|(first, _)| **first == bracket) else {
            return Ok(false);
        };
        self.open(bracket == b'{', self.at())?;
        self.rest = after_blanks(after);
        self.fresh = true;
        Ok(true)
    }

    /// To the next entry of the innermost bracket, or out of it.
    #[inline(always)]
    fn advance(&mut self, closing: u8) -> Result<bool, JsonFault> {
        let is_right = self.depth > 0 && self.in_object() == (closing == b'}');
        let (first, after) = self.rest.split_first().filter(|_| is_right).ok_or_else(|| self.fault())?;
        let fresh = std::mem::replace(&mut self.fresh, false);
        match *first {
            byte if byte == closing => {
                self.close(self.at() + 1);
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

    /// Passes over an object or an array without recursion: what follows it. The brackets it opens are closed then.
    #[inline(never)]
    fn pass_bracket(&mut self) -> Result<&'t [u8], JsonFault> {
        let floor = self.depth;
        let mut rest = self.rest;
        loop {
            let has_ended;
            (rest, has_ended) = match rest {
                [b'{' | b'[', ..] => self.pass_opening(rest)?,
                _ => (after_scalar(rest).ok_or_else(|| self.fault_at(rest))?, true),
            };
            if has_ended {
                rest = self.pass_closings(rest, floor)?;
                if self.depth == floor {
                    return Ok(rest);
                }
            }
            if self.in_object() {
                rest = after_key(rest).ok_or_else(|| self.fault_at(rest))?;
            }
        }
    }

    /// Opens a bracket, and closes it at once if nothing is in it, which is said.
    #[inline]
    fn pass_opening(&mut self, rest: &'t [u8]) -> Result<(&'t [u8], bool), JsonFault> {
        let (bracket, after) = rest.split_first().ok_or_else(|| self.fault_at(rest))?;
        self.open(*bracket == b'{', self.text.len() - rest.len())?;
        let closing = if *bracket == b'{' { b'}' } else { b']' };
        let inside = after_blanks(after);
        match inside.split_first() {
            Some((byte, after)) if *byte == closing => {
                self.close(self.text.len() - after.len());
                Ok((after, true))
            }
            _ => Ok((inside, false)),
        }
    }

    /// Passes over everything between the end of a value and the beginning of the next, or of its key; no further than
    /// to where only so many brackets are open.
    #[inline]
    fn pass_closings(&mut self, mut rest: &'t [u8], floor: usize) -> Result<&'t [u8], JsonFault> {
        while self.depth > floor {
            let closing = if self.in_object() { b'}' } else { b']' };
            match after_blanks(rest).split_first() {
                Some((b',', after)) => return Ok(after_blanks(after)),
                Some((byte, after)) if *byte == closing => {
                    self.close(self.text.len() - after.len());
                    rest = after;
                }
                _ => return Err(self.fault_at(rest)),
            }
        }
        Ok(rest)
    }

    #[cold]
    #[inline(never)]
    fn fault_at(&self, rest: &[u8]) -> JsonFault {
        JsonFault::NotJson(self.text.len() - rest.len())
    }

    fn in_object(&self) -> bool {
        self.open & 1 == 1
    }

    fn open(&mut self, is_object: bool, start: usize) -> Result<(), JsonFault> {
        if self.depth == self.limit {
            return Err(JsonFault::TooDeep(self.limit));
        }
        if let Memory::Writes(jumps, _) = &mut self.memory {
            jumps.open(self.depth, start);
        }
        self.depth += 1;
        self.open = self.open << 1 | u128::from(is_object);
        Ok(())
    }

    fn close(&mut self, end: usize) {
        self.depth -= 1;
        self.open >>= 1;
        if let Memory::Writes(jumps, _) = &mut self.memory {
            jumps.close(self.depth, end);
        }
    }
}

/// What follows after a value that has no values in it.
#[inline(always)]
fn after_scalar(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b'"', inside @ ..] => after_string(inside),
        [b'-' | b'0'..=b'9', ..] => after_number(rest),
        _ => after_word(rest),
    }
}

/// What follows after a key and its colon.
#[inline(always)]
fn after_key(rest: &[u8]) -> Option<&[u8]> {
    let [b'"', inside @ ..] = rest else { return None };
    after_colon(after_string(inside)?)
}

/// What follows after a colon, around which there may be blanks.
#[inline(always)]
fn after_colon(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b':', after @ ..] => Some(after_blanks(after)),
        _ => match after_blanks(rest) {
            [b':', after @ ..] => Some(after_blanks(after)),
            _ => None,
        },
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
