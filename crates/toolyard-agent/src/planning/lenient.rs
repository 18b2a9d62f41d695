//! JSON as models write it: with commas too many, other quotes, Python's words, comments, line ends within texts.

use serde_json::Value;

/// Longer texts are no plans.
const MAX_TEXT: usize = 1 << 20;

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Read {
    pub(crate) value: Value,
    /// Whether brackets had to be closed at the end: something is missing.
    pub(crate) cut_off: bool,
}

/// Reads a text that is one JSON value, perhaps in a fence.
pub(crate) fn read(text: &str) -> Option<Read> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let text = unfenced(text.trim());
    if !text.starts_with(['{', '[']) {
        return None;
    }
    if let Ok(value) = serde_json::from_str(text) {
        return Some(Read { value, cut_off: false });
    }
    // Something may follow the value.
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(value)) = stream.next() {
        return Some(Read { value, cut_off: false });
    }
    let (mended, cut_off) = mended(text);
    serde_json::from_str(&mended).ok().map(|value| Read { value, cut_off })
}

/// What stands within the fence that a text begins with.
fn unfenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```") else { return text };
    let inner = inner.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
    inner.split_once("```").map_or(inner, |(inside, _)| inside).trim()
}

/// The text as JSON has it, and whether brackets were missing at its end.
fn mended(text: &str) -> (String, bool) {
    let mut out = String::with_capacity(text.len() + 8);
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        rest = match letter {
            '"' | '\'' | '“' => quoted(after, letter, &mut out),
            '{' | '[' => {
                open.push(if letter == '{' { '}' } else { ']' });
                out.push(letter);
                after
            }
            '}' | ']' => {
                without_comma(&mut out);
                open.pop();
                out.push(letter);
                if open.is_empty() {
                    return (out, false);
                }
                after
            }
            '/' if after.starts_with('/') => after.split_once('\n').map_or("", |(_, next)| next),
            '/' if after.starts_with('*') => after.split_once("*/").map_or("", |(_, next)| next),
            letter if letter.is_alphabetic() || letter == '_' => bare_word(rest, &mut out),
            letter => {
                out.push(letter);
                after
            }
        };
    }
    let cut_off = !open.is_empty();
    without_comma(&mut out);
    out.extend(open.into_iter().rev());
    (out, cut_off)
}

fn without_comma(out: &mut String) {
    let kept = out.trim_end().trim_end_matches(',').len();
    out.truncate(kept);
}

/// A text in any quotes, written in JSON's; what follows it.
fn quoted<'a>(text: &'a str, quote: char, out: &mut String) -> &'a str {
    let end = if quote == '“' { '”' } else { quote };
    out.push('"');
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            letter if letter == end => {
                out.push('"');
                return text.get(at + letter.len_utf8()..).unwrap_or_default();
            }
            '\\' => match letters.next() {
                Some((_, '\'')) => out.push('\''),
                Some((_, next)) => {
                    out.push('\\');
                    out.push(next);
                }
                None => {}
            },
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter => out.push(letter),
        }
    }
    out.push('"');
    ""
}

/// A word without quotes: a value of JSON or Python, or a name.
fn bare_word<'a>(text: &'a str, out: &mut String) -> &'a str {
    let end = text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    // The exponent of a number is no word.
    if out.ends_with(|last: char| last.is_ascii_digit() || last == '.') {
        out.push_str(word);
        return rest;
    }
    match word {
        "true" | "True" => out.push_str("true"),
        "false" | "False" => out.push_str("false"),
        "null" | "None" | "undefined" => out.push_str("null"),
        word => {
            out.push('"');
            out.push_str(word);
            out.push('"');
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_models_write_is_read() {
        let expected = json!({"a": [1, true, null], "b": "it's \"x\"\n"});
        for text in [
            "{\"a\": [1, true, null,], \"b\": \"it's \\\"x\\\"\\n\",}",
            "```json\n{'a': [1, True, None], 'b': 'it\\'s \"x\"\n'}\n```",
            "{a: [1, true, null], // a comment\n b: \"it's \\\"x\\\"\n\"}  and more words",
            "{“a”: [1, true, undefined], /* so */ “b”: \"it's \\\"x\\\"\\n\"}",
        ] {
            assert_eq!(read(text), Some(Read { value: expected.clone(), cut_off: false }), "{text}");
        }
        assert_eq!(read("{\"n\": 1e5, }").unwrap().value, json!({"n": 1e5}));
        assert!(read("{\"a\": [1, 2").unwrap().cut_off);
        assert_eq!(read("no JSON"), None);
        assert_eq!(read(""), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[{\\[]?[\\[\\]{}\"'“”,:\\\\/*a-z0-9 \n\u{e9}`]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn proper_json_means_what_it_says(value in crate::reference::any_value()) {
            let value = json!([value]);
            prop_assert_eq!(read(&value.to_string()).map(|read| read.value.to_string()), Some(value.to_string()));
        }
    }
}
