//! Lossless JSON: numbers keep their digits, and a duplicate key is an error.

use std::collections::HashSet;

use memchr::memchr2;

/// Objects with fewer keys are searched for duplicates without a set.
const MIN_SET_KEYS: usize = 8;

/// A JSON value. `serde_json::Value` reads numbers as floats and keeps only the last of two equal keys; either could hide
/// a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JsonTree {
    Null,
    Bool(bool),
    /// As it was written.
    Number(String),
    Text(String),
    List(Vec<Self>),
    /// In source order, without duplicate keys.
    Object(Vec<(String, Self)>),
}

/// Why a text is not accepted as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonTreeError {
    /// Nested too deeply.
    #[error("nested more than {0} levels deep")]
    TooDeep(usize),
    /// Parsers disagree about which of the values counts.
    #[error("duplicate key {0:?}")]
    DuplicateKey(String),
    /// Not JSON, or a string that is not Unicode.
    #[error("malformed value or text")]
    Malformed,
}

impl JsonTree {
    /// Parses JSON of at most `max_depth` levels.
    pub(crate) fn parse(text: &str, max_depth: usize) -> Result<Self, JsonTreeError> {
        let mut parser = Parser { rest: text, max_depth };
        let tree = parser.value(max_depth)?;
        parser.skip_space();
        if parser.rest.is_empty() { Ok(tree) } else { Err(JsonTreeError::Malformed) }
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

    /// Its JSON type, for messages.
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

    /// Writes the value as JSON, in source order and with the original digits.
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

    pub(crate) fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

/// Writes items between brackets, separated by commas.
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

struct Parser<'a> {
    rest: &'a str,
    max_depth: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Result<JsonTree, JsonTreeError> {
        self.skip_space();
        match self.rest.as_bytes().first() {
            Some(b'{') => self.object(self.descend(depth)?),
            Some(b'[') => self.list(self.descend(depth)?),
            Some(b'"') => Ok(JsonTree::Text(self.text()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.keyword(),
        }
    }

    fn descend(&self, depth: usize) -> Result<usize, JsonTreeError> {
        depth.checked_sub(1).ok_or(JsonTreeError::TooDeep(self.max_depth))
    }

    fn object(&mut self, depth: usize) -> Result<JsonTree, JsonTreeError> {
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
        match duplicate_key(&fields) {
            Some(key) => Err(JsonTreeError::DuplicateKey(key.chars().take(64).collect())),
            None => Ok(JsonTree::Object(fields)),
        }
    }

    fn list(&mut self, depth: usize) -> Result<JsonTree, JsonTreeError> {
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
        Ok(JsonTree::List(items))
    }

    /// A string literal; `serde_json` decodes the escapes.
    fn text(&mut self) -> Result<String, JsonTreeError> {
        let inner = self.rest.strip_prefix('"').ok_or(JsonTreeError::Malformed)?;
        let mut end = 0;
        let mut escapes = false;
        loop {
            let rest = inner.as_bytes().get(end..).ok_or(JsonTreeError::Malformed)?;
            end += memchr2(b'"', b'\\', rest).ok_or(JsonTreeError::Malformed)?;
            if inner.as_bytes().get(end) == Some(&b'"') {
                break;
            }
            escapes = true;
            end += 2;
        }
        let literal = self.split(end + 2)?;
        match literal.get(1..=end) {
            Some(plain) if !escapes && !plain.bytes().any(|byte| byte < b' ') => Ok(plain.to_owned()),
            _ => serde_json::from_str(literal).map_err(|_| JsonTreeError::Malformed),
        }
    }

    fn number(&mut self) -> Result<JsonTree, JsonTreeError> {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = self.rest.bytes().take_while(is_part).count();
        let digits = self.split(length)?;
        serde_json::from_str::<&serde_json::value::RawValue>(digits).map_err(|_| JsonTreeError::Malformed)?;
        Ok(JsonTree::Number(digits.to_owned()))
    }

    fn keyword(&mut self) -> Result<JsonTree, JsonTreeError> {
        for (word, tree) in
            [("true", JsonTree::Bool(true)), ("false", JsonTree::Bool(false)), ("null", JsonTree::Null)]
        {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(tree);
            }
        }
        Err(JsonTreeError::Malformed)
    }

    fn split(&mut self, at: usize) -> Result<&'a str, JsonTreeError> {
        let (part, rest) = self.rest.split_at_checked(at).ok_or(JsonTreeError::Malformed)?;
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

    fn expect(&mut self, sign: char) -> Result<(), JsonTreeError> {
        if self.take(sign) { Ok(()) } else { Err(JsonTreeError::Malformed) }
    }
}

fn duplicate_key(fields: &[(String, JsonTree)]) -> Option<&str> {
    if fields.len() < MIN_SET_KEYS {
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
    fn writing_restores_the_parsed_text() {
        let text =
            r#"{"z":[1.50,-0,1e400,123456789012345678901234567890],"a":{"b":null,"c":[]},"t":"中\"\\"}"#;
        let tree = JsonTree::parse(text, 8).unwrap();
        assert_eq!(tree.to_text(), text);
        let spaced = JsonTree::parse(" { \"a\" : [ 1 , true ] }\n", 8).unwrap();
        assert_eq!(spaced.to_text(), r#"{"a":[1,true]}"#);
    }

    #[test]
    fn ambiguous_and_malformed_text_is_rejected() {
        let parse = |text: &str| JsonTree::parse(text, 3);
        assert_eq!(parse(r#"{"a":1,"\u0061":2}"#), Err(JsonTreeError::DuplicateKey("a".to_owned())));
        let many: Vec<String> = (0..20).map(|index| format!("\"k{}\":0", index % 19)).collect();
        let many = format!("{{{}}}", many.join(","));
        assert_eq!(parse(&many), Err(JsonTreeError::DuplicateKey("k0".to_owned())));
        assert_eq!(parse("[[[[]]]]"), Err(JsonTreeError::TooDeep(3)));
        assert!(parse("[[[]]]").is_ok());
        for text in ["", "{", "[1,]", "{\"a\"}", r#""\ud800""#, "1 2", "nul", "01", "\"", "-", "{\"a\":1,}"] {
            assert_eq!(parse(text), Err(JsonTreeError::Malformed), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn parsing_agrees_with_serde_json(text in r#"[\[\]\{\}:,"\\ 0-9.eE+\-a\ntrulfs]{0,24}"#) {
            let ours = JsonTree::parse(&text, 64);
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match ours {
                Ok(tree) => prop_assert!(
                    theirs.is_err_and(|error| error.to_string().contains("out of range"))
                        || serde_json::from_str::<serde_json::Value>(&tree.to_text()).ok()
                            == serde_json::from_str(&text).ok()
                ),
                Err(JsonTreeError::DuplicateKey(_)) => prop_assert!(theirs.is_ok()),
                Err(_) => prop_assert!(theirs.is_err(), "{}", text),
            }
        }
    }
}
