//! A definition read into a tree that loses nothing: numbers keep their digits, and a key that comes twice is an error.

use std::collections::HashSet;

use memchr::memchr2;

/// Objects with fewer keys than this are searched for duplicates without a set.
const FEW_KEYS: usize = 8;

/// JSON as a tree. `serde_json::Value` would read numbers into floats and keep only the last of two equal keys, and
/// either can hide a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    /// As it was spelled.
    Number(String),
    Text(String),
    List(Vec<Self>),
    /// In the order in which it came; no key twice.
    Object(Vec<(String, Self)>),
}

/// Why a text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Nested too deeply.
    #[error("it is nested more than {0} levels deep")]
    TooDeep(usize),
    /// Two values under one key: which of them counts depends on who reads it.
    #[error("the key {0:?} comes twice in one object")]
    DuplicateKey(String),
    /// Not JSON, or a text that is no Unicode.
    #[error("it holds a text that cannot be read")]
    Malformed,
}

impl Tree {
    /// Reads JSON text of at most this many levels.
    pub(crate) fn read(text: &str, depth: usize) -> Result<Self, TreeError> {
        let mut reader = Reader { rest: text, limit: depth };
        let tree = reader.value(depth)?;
        reader.skip_space();
        if reader.rest.is_empty() { Ok(tree) } else { Err(TreeError::Malformed) }
    }

    /// The value under a key of an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.fields().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The fields of an object; none for anything else.
    pub(crate) fn fields(&self) -> &[(String, Self)] {
        match self {
            Self::Object(fields) => fields,
            _ => &[],
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// Writes it as JSON, in its own order and with its own digits.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(digits) => out.push_str(digits),
            Self::Text(text) => write_text(text, out),
            Self::List(items) => {
                write_between(out, ['[', ']'], items, Self::write);
            }
            Self::Object(fields) => write_between(out, ['{', '}'], fields, |(key, value), out| {
                write_text(key, out);
                out.push(':');
                value.write(out);
            }),
        }
    }

    /// It as JSON text.
    pub(crate) fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

/// Writes items between brackets, with commas.
pub(crate) fn write_between<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut String),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(close);
}

/// Writes a JSON string.
pub(crate) fn write_text(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        out.push_str(&serde_json::Value::from(text).to_string());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

struct Reader<'a> {
    rest: &'a str,
    limit: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Tree, TreeError> {
        self.skip_space();
        match self.rest.as_bytes().first() {
            Some(b'{') => self.object(self.inside(depth)?),
            Some(b'[') => self.list(self.inside(depth)?),
            Some(b'"') => Ok(Tree::Text(self.text()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn inside(&self, depth: usize) -> Result<usize, TreeError> {
        depth.checked_sub(1).ok_or(TreeError::TooDeep(self.limit))
    }

    fn object(&mut self, depth: usize) -> Result<Tree, TreeError> {
        let mut fields = Vec::new();
        self.expect('{')?;
        if !self.take('}') {
            loop {
                self.skip_space();
                let key = self.text()?;
                self.expect(':')?;
                fields.push((key, self.value(depth)?));
                if !self.take(',') {
                    break self.expect('}')?;
                }
            }
        }
        match duplicate(&fields) {
            Some(key) => Err(TreeError::DuplicateKey(key.chars().take(64).collect())),
            None => Ok(Tree::Object(fields)),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Tree, TreeError> {
        let mut items = Vec::new();
        self.expect('[')?;
        if !self.take(']') {
            loop {
                items.push(self.value(depth)?);
                if !self.take(',') {
                    break self.expect(']')?;
                }
            }
        }
        Ok(Tree::List(items))
    }

    /// A string literal. Its end is looked for here; what escapes mean is left to `serde_json`.
    fn text(&mut self) -> Result<String, TreeError> {
        let inner = self.rest.strip_prefix('"').ok_or(TreeError::Malformed)?;
        let mut end = 0;
        let mut escapes = false;
        loop {
            let rest = inner.as_bytes().get(end..).ok_or(TreeError::Malformed)?;
            end += memchr2(b'"', b'\\', rest).ok_or(TreeError::Malformed)?;
            if inner.as_bytes().get(end) == Some(&b'"') {
                break;
            }
            escapes = true;
            end += 2;
        }
        let literal = self.split(end + 2)?;
        match literal.get(1..=end) {
            Some(plain) if !escapes && !plain.bytes().any(|byte| byte < b' ') => Ok(plain.to_owned()),
            _ => serde_json::from_str(literal).map_err(|_| TreeError::Malformed),
        }
    }

    fn number(&mut self) -> Result<Tree, TreeError> {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = self.rest.bytes().take_while(is_part).count();
        let digits = self.split(length)?;
        serde_json::from_str::<&serde_json::value::RawValue>(digits).map_err(|_| TreeError::Malformed)?;
        Ok(Tree::Number(digits.to_owned()))
    }

    fn word(&mut self) -> Result<Tree, TreeError> {
        for (word, tree) in [("true", Tree::Bool(true)), ("false", Tree::Bool(false)), ("null", Tree::Null)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(tree);
            }
        }
        Err(TreeError::Malformed)
    }

    fn split(&mut self, at: usize) -> Result<&'a str, TreeError> {
        let (part, rest) = self.rest.split_at_checked(at).ok_or(TreeError::Malformed)?;
        self.rest = rest;
        Ok(part)
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
    }

    fn take(&mut self, sign: char) -> bool {
        self.skip_space();
        self.rest.strip_prefix(sign).inspect(|rest| self.rest = rest).is_some()
    }

    fn expect(&mut self, sign: char) -> Result<(), TreeError> {
        if self.take(sign) { Ok(()) } else { Err(TreeError::Malformed) }
    }
}

fn duplicate(fields: &[(String, Tree)]) -> Option<&str> {
    if fields.len() < FEW_KEYS {
        let mut keys = fields.iter().enumerate();
        return keys
            .find(|(index, (key, _))| fields.iter().take(*index).any(|(earlier, _)| earlier == key))
            .map(|(_, (key, _))| key.as_str());
    }
    let mut seen = HashSet::with_capacity(fields.len());
    fields.iter().map(|(key, _)| key.as_str()).find(|key| !seen.insert(*key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_lost() {
        let text =
            r#"{"z":[1.50,-0,1e400,123456789012345678901234567890],"a":{"b":null,"c":[]},"t":"中\"\\"}"#;
        let tree = Tree::read(text, 8).unwrap();
        assert_eq!(tree.to_text(), text);
        let spaced = Tree::read(" { \"a\" : [ 1 , true ] }\n", 8).unwrap();
        assert_eq!(spaced.to_text(), r#"{"a":[1,true]}"#);
    }

    #[test]
    fn what_is_read_in_two_ways_is_refused() {
        let read = |text: &str| Tree::read(text, 3);
        assert_eq!(read(r#"{"a":1,"\u0061":2}"#), Err(TreeError::DuplicateKey("a".to_owned())));
        let many: Vec<String> = (0..20).map(|index| format!("\"k{}\":0", index % 19)).collect();
        let many = format!("{{{}}}", many.join(","));
        assert_eq!(read(&many), Err(TreeError::DuplicateKey("k0".to_owned())));
        assert_eq!(read("[[[[]]]]"), Err(TreeError::TooDeep(3)));
        assert!(read("[[[]]]").is_ok());
        for text in ["", "{", "[1,]", "{\"a\"}", r#""\ud800""#, "1 2", "nul", "01", "\"", "-", "{\"a\":1,}"] {
            assert_eq!(read(text), Err(TreeError::Malformed), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn anything_is_read_as_serde_json_reads_it(text in r#"[\[\]\{\}:,"\\ 0-9.eE+\-a\ntrulfs]{0,24}"#) {
            let ours = Tree::read(&text, 64);
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match ours {
                Ok(tree) => prop_assert!(
                    theirs.is_err_and(|error| error.to_string().contains("out of range"))
                        || serde_json::from_str::<serde_json::Value>(&tree.to_text()).ok()
                            == serde_json::from_str(&text).ok()
                ),
                Err(TreeError::DuplicateKey(_)) => prop_assert!(theirs.is_ok()),
                Err(_) => prop_assert!(theirs.is_err(), "{}", text),
            }
        }
    }
}
