//! Finds references in text and parses their paths.

/// Further path segments are treated as text.
const MAX_SEGMENTS: usize = 64;
/// File name extensions: `$name.xlsx` is the value followed by `.xlsx`.
const FILE_EXTENSIONS: [&str; 34] = [
    "txt", "md", "csv", "tsv", "xls", "xlsx", "xlsm", "json", "jsonl", "pdf", "png", "jpg", "jpeg", "gif",
    "svg", "webp", "html", "htm", "xml", "yaml", "yml", "toml", "py", "rs", "js", "ts", "sh", "log", "doc",
    "docx", "ppt", "pptx", "zip", "sql",
];

/// A reference to the value of a step, or to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) step: String,
    /// The path within the step's value; empty for the whole value.
    pub(super) path: Vec<PathSegment>,
    /// Whether the argument consists of this reference only, so that the value keeps its type.
    pub(crate) is_whole_argument: bool,
    /// The reference as written in the argument.
    pub(crate) written: String,
    /// Whether unsupported syntax follows the path, such as a function call.
    pub(crate) has_unsupported_suffix: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathSegment {
    /// `.key` or `["key"]`.
    Key(String),
    /// `[0]`, or `[-1]` from the end.
    Index(i64),
    /// `[*]`: every item.
    All,
    /// `[1:]`, `[1:5]`, `[:-1]`: a range of items.
    Slice(Option<i64>, Option<i64>),
}

impl Reference {
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.path.iter().filter_map(|segment| match segment {
            PathSegment::Key(key) => Some(key.as_str()),
            _ => None,
        })
    }

    /// Whether this can be plain text when no step has the name: an amount of money, a ticker symbol, a shell variable.
    pub(crate) fn may_be_text(&self) -> bool {
        let has_no_lowercase = !self.step.chars().any(|letter| letter.is_ascii_lowercase());
        let is_amount = self.step.starts_with(|first: char| first.is_ascii_digit());
        is_amount
            || (has_no_lowercase && self.path.is_empty())
            || (!self.is_whole_argument && self.path.is_empty())
    }
}

pub(super) fn is_file_extension(word: &str) -> bool {
    FILE_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// A part of an argument text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fragment {
    Text(String),
    Reference(Reference),
}

pub(super) fn parse_fragments(text: &str) -> Vec<Fragment> {
    let trimmed = text.trim();
    if let Some((mut reference, "")) = parse_reference(trimmed) {
        reference.is_whole_argument = true;
        return vec![Fragment::Reference(reference)];
    }
    let mut fragments = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('$') {
        plain.push_str(before);
        let here = rest.get(before.len()..).unwrap_or_default();
        if let Some(after) = here.strip_prefix("$$") {
            plain.push('$');
            rest = after;
        } else if let Some((found, after)) = parse_reference(here) {
            if !plain.is_empty() {
                fragments.push(Fragment::Text(std::mem::take(&mut plain)));
            }
            fragments.push(Fragment::Reference(found));
            rest = after;
        } else {
            plain.push('$');
            rest = here.get(1..).unwrap_or_default();
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        fragments.push(Fragment::Text(plain));
    }
    fragments
}

/// Parses a reference at the start of a text; returns it and the remaining text.
fn parse_reference(text: &str) -> Option<(Reference, &str)> {
    let after = text.strip_prefix('$')?;
    let braced = after.strip_prefix('{');
    let inner = braced.map_or(after, |inner| inner.trim_start().trim_start_matches('$'));
    let (step, mut rest) = take_word(inner, |letter| letter.is_ascii_alphanumeric() || letter == '_')?;
    let mut path = Vec::new();
    while path.len() < MAX_SEGMENTS
        && let Some((segment, after)) = parse_segment(rest)
    {
        path.push(segment);
        rest = after;
    }
    let has_unsupported_suffix = rest.starts_with('(') || (rest.starts_with('[') && !path.is_empty());
    if braced.is_some() {
        rest = rest.trim_start().strip_prefix('}')?;
    }
    let written = text.get(..text.len() - rest.len())?.to_owned();
    let step = step.to_owned();
    Some((Reference { step, path, is_whole_argument: false, written, has_unsupported_suffix }, rest))
}

/// Splits the leading characters that belong to a word from a text.
fn take_word(text: &str, is_word_char: impl Fn(char) -> bool) -> Option<(&str, &str)> {
    let end = text.find(|letter| !is_word_char(letter)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn parse_segment(text: &str) -> Option<(PathSegment, &str)> {
    if let Some(after) = text.strip_prefix('.') {
        if after.starts_with('[') {
            return parse_bracket(after);
        }
        if let Some(rest) = after.strip_prefix('*') {
            return Some((PathSegment::All, rest));
        }
        return parse_key(after);
    }
    parse_bracket(text)
}

/// Parses an unquoted key. A key is either all ASCII or all non-ASCII, because Chinese prose continues without a space.
fn parse_key(text: &str) -> Option<(PathSegment, &str)> {
    let first = text.chars().next()?;
    let (word, rest) = if first.is_ascii() {
        take_word(text, |letter| letter.is_ascii_alphanumeric() || letter == '_')?
    } else {
        take_word(text, |letter| letter.is_alphanumeric() && !letter.is_ascii())?
    };
    match word.parse::<i64>() {
        Ok(index) => Some((PathSegment::Index(index), rest)),
        Err(_) => Some((PathSegment::Key(word.to_owned()), rest)),
    }
}

fn parse_bracket(text: &str) -> Option<(PathSegment, &str)> {
    let inner = text.strip_prefix('[')?.trim_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = inner.strip_prefix(quote) {
            let (key, rest) = quoted.split_once(quote)?;
            return Some((PathSegment::Key(key.to_owned()), rest.trim_start().strip_prefix(']')?));
        }
    }
    let (inner, rest) = inner.split_once(']')?;
    let inner = inner.trim();
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let bound = |text: &str| if text.trim().is_empty() { Some(None) } else { number(text).map(Some) };
    let segment = match inner.split_once(':') {
        _ if inner.is_empty() || inner == "*" => PathSegment::All,
        Some((from, to)) => PathSegment::Slice(bound(from)?, bound(to)?),
        None => match number(inner) {
            Some(index) => PathSegment::Index(index),
            None if inner.chars().all(|letter| letter.is_alphanumeric() || letter == '_') => {
                PathSegment::Key(inner.to_owned())
            }
            None => return None,
        },
    };
    Some((segment, rest))
}
