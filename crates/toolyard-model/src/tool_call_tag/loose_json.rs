//! Reads JSON as models write it: with comments, trailing commas, single quotes, words of Python and raw line breaks.
//!
//! What could be meant in two ways is refused: an unescaped quote, two values where one belongs, an ellipsis.

use serde_json::{Map, Number, Value};

/// Deeper than any arguments are; a text of brackets alone ends here.
const DEEPEST: usize = 64;
/// A longer comment is none, so that no text is read over and over again for comments that never end.
const LONGEST_COMMENT: usize = 1_000;

/// Why a text is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It ends before the value does.
    Incomplete,
    /// It is none, from here on.
    Invalid(usize),
}

/// Whether brackets must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brackets {
    /// All of them.
    Closed,
    /// Those that are still open where the text ends may be missing; strings may not.
    MayBeMissing,
}

/// Reads one value off the front of a text; gives it with the number of bytes it took.
pub(super) fn read_value(text: &str, brackets: Brackets) -> Result<(Value, usize), Fault> {
    let mut reader = Reader { text, at: 0, depth: 0, lenient: brackets == Brackets::MayBeMissing };
    reader.blanks()?;
    let value = reader.value()?;
    Ok((value, reader.at))
}

/// Reads a whole text as one object.
pub(super) fn read_object(text: &str, brackets: Brackets) -> Option<Map<String, Value>> {
    let (value, used) = read_value(text, brackets).ok()?;
    match value {
        Value::Object(map) if text.get(used..)?.trim().is_empty() => Some(map),
        _ => None,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    lenient: bool,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn invalid<T>(&self) -> Result<T, Fault> {
        Err(Fault::Invalid(self.at))
    }

    fn skip(&mut self, character: char) {
        self.at += character.len_utf8();
    }

    /// Skips blanks and comments; tells whether a line ended.
    fn blanks(&mut self) -> Result<bool, Fault> {
        let mut broke = false;
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            let skipped = rest.len() - trimmed.len();
            broke |= rest.get(..skipped).is_some_and(|blank| blank.contains('\n'));
            let comment = if trimmed.starts_with("//") || trimmed.starts_with('#') {
                length_until(trimmed, "\n")
            } else if trimmed.starts_with("/*") {
                length_until(trimmed.get(2..).unwrap_or_default(), "*/").map(|length| length + 2)
            } else if trimmed == "/" && !self.lenient {
                return Err(Fault::Incomplete);
            } else {
                self.at += skipped;
                return Ok(broke);
            };
            let unfinished = trimmed.len() <= LONGEST_COMMENT;
            self.at += skipped;
            match comment {
                Some(length) => self.at += length,
                None if unfinished => return Err(Fault::Incomplete),
                None => return self.invalid(),
            }
            broke = true;
        }
    }

    fn value(&mut self) -> Result<Value, Fault> {
        match self.peek() {
            None => Err(Fault::Incomplete),
            Some('{') => self.nested(Self::object),
            Some('[') => self.nested(Self::array),
            Some('"' | '\'' | '“' | '‘') => self.string().map(Value::String),
            Some('-' | '+' | '.' | '0'..='9') => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.word(),
            Some(_) => self.invalid(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Fault>) -> Result<Value, Fault> {
        if self.depth >= DEEPEST {
            return self.invalid();
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, Fault> {
        let mut map = Map::new();
        loop {
            self.blanks()?;
            match self.peek() {
                None if self.lenient => return Ok(Value::Object(map)),
                None => return Err(Fault::Incomplete),
                Some('}') => {
                    self.at += 1;
                    return Ok(Value::Object(map));
                }
                Some(_) => {}
            }
            let key = self.key()?;
            self.blanks()?;
            match self.peek() {
                None => return Err(Fault::Incomplete),
                Some(colon @ (':' | '：')) => self.skip(colon),
                Some(_) => return self.invalid(),
            }
            self.blanks()?;
            let value = self.value()?;
            map.insert(key, value);
            if self.separator('}')? {
                return Ok(Value::Object(map));
            }
        }
    }

    fn array(&mut self) -> Result<Value, Fault> {
        let mut items = Vec::new();
        loop {
            self.blanks()?;
            match self.peek() {
                None if self.lenient => return Ok(Value::Array(items)),
                None => return Err(Fault::Incomplete),
                Some(']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                Some(_) => items.push(self.value()?),
            }
            if self.separator(']')? {
                return Ok(Value::Array(items));
            }
        }
    }

    /// What stands after an item; true at the end of the list.
    fn separator(&mut self, close: char) -> Result<bool, Fault> {
        let broke = self.blanks()?;
        match self.peek() {
            None if self.lenient => Ok(true),
            None => Err(Fault::Incomplete),
            Some(comma @ (',' | '，')) => {
                self.skip(comma);
                Ok(false)
            }
            Some(c) if c == close => {
                self.at += 1;
                Ok(true)
            }
            // A comma that was forgotten at the end of a line.
            Some('"') if broke && close == '}' => Ok(false),
            Some(_) => self.invalid(),
        }
    }

    fn key(&mut self) -> Result<String, Fault> {
        match self.peek() {
            Some('"' | '\'' | '“' | '‘') => self.string(),
            Some(c) if c.is_alphabetic() || matches!(c, '_' | '$') => {
                let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
                let end = self.rest().find(|c| !fits(c)).ok_or(Fault::Incomplete)?;
                let key = self.rest().get(..end).unwrap_or_default().to_owned();
                self.at += end;
                Ok(key)
            }
            _ => self.invalid(),
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let close = match self.rest() {
            rest if rest.starts_with("\"\"\"") => "\"\"\"",
            rest if rest.starts_with("'''") => "'''",
            // More may follow that makes these a triple quote.
            "\"\"" | "''" if !self.lenient => return Err(Fault::Incomplete),
            rest if rest.starts_with('"') => "\"",
            rest if rest.starts_with('“') => "”",
            rest if rest.starts_with('‘') => "’",
            _ => "'",
        };
        // Both quotes of a kind are equally long.
        self.at += close.len();
        let mut string = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with(close) {
                self.at += close.len();
                return Ok(string);
            }
            let first = close.chars().next().unwrap_or('"');
            let plain = rest.find(['\\', first]).ok_or(Fault::Incomplete)?;
            if plain > 0 {
                string.push_str(rest.get(..plain).unwrap_or_default());
                self.at += plain;
            } else if rest.starts_with('\\') {
                self.escape(&mut string)?;
            } else {
                // One quote of three.
                string.push(first);
                self.skip(first);
            }
        }
    }

    fn escape(&mut self, string: &mut String) -> Result<(), Fault> {
        self.at += 1;
        let escaped = self.peek().ok_or(Fault::Incomplete)?;
        self.skip(escaped);
        let plain = match escaped {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\'' | '\\' | '/' | '`' => escaped,
            'u' => return self.code_unit(string),
            // No escape at all: a pattern, or a path of Windows.
            _ => {
                string.push('\\');
                escaped
            }
        };
        string.push(plain);
        Ok(())
    }

    /// The four digits after `\u`, and those of the other half of a pair.
    fn code_unit(&mut self, string: &mut String) -> Result<(), Fault> {
        let first = self.four_digits()?;
        let rest = self.rest();
        let is_pair = (0xD800..0xDC00).contains(&first);
        if is_pair && "\\u".starts_with(rest.get(..rest.len().min(2)).unwrap_or("x")) {
            let before = self.at;
            self.at += rest.len().min(2);
            let second = self.four_digits()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                string.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return Ok(());
            }
            self.at = before;
        }
        string.push(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    fn four_digits(&mut self) -> Result<u32, Fault> {
        let rest = self.rest();
        let present = rest.bytes().take(4).take_while(u8::is_ascii_hexdigit).count();
        if present < 4 {
            return if present == rest.len() { Err(Fault::Incomplete) } else { self.invalid() };
        }
        let number = rest.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        number.ok_or(Fault::Invalid(self.at))
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let fits = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let rest = self.rest();
        let end = match rest.find(|c| !fits(c)) {
            Some(end) => end,
            None if self.lenient => rest.len(),
            None => return Err(Fault::Incomplete),
        };
        let digits = rest.get(..end).unwrap_or_default();
        let digits = digits.strip_prefix('+').unwrap_or(digits);
        let spelled = if digits.starts_with('.') { format!("0{digits}") } else { digits.to_owned() };
        let spelled = spelled.strip_suffix('.').unwrap_or(&spelled);
        let Some(number) = exact(spelled) else { return self.invalid() };
        self.at += end;
        Ok(Value::Number(number))
    }

    fn word(&mut self) -> Result<Value, Fault> {
        let rest = self.rest();
        let end = match rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            Some(end) => end,
            None if self.lenient => rest.len(),
            None => return Err(Fault::Incomplete),
        };
        let value = match rest.get(..end).unwrap_or_default() {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            _ => return self.invalid(),
        };
        self.at += end;
        Ok(value)
    }
}

/// A number of JSON; fractions are the nearest there is, which is more than quick readers promise.
fn exact(spelled: &str) -> Option<Number> {
    let number: Number = serde_json::from_str(spelled).ok()?;
    if !number.is_f64() {
        return Some(number);
    }
    Number::from_f64(spelled.parse().ok()?)
}

/// How long a comment is, its end included; none if its end is not there or too far.
fn length_until(text: &str, end: &str) -> Option<usize> {
    let near = text.len().min(LONGEST_COMMENT);
    let near = (near..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    text.get(..near)?.find(end).map(|at| at + end.len())
}

#[cfg(test)]
#[path = "loose_json_tests.rs"]
mod tests;
