//! References as they are written: finds them in texts and takes them apart.

/// The longest path that is read; nobody's values are nested deeper.
const MAX_PARTS: usize = 64;
/// Endings of files' names.
const EXTENSIONS: [&str; 34] = [
    "txt", "md", "csv", "tsv", "xls", "xlsx", "xlsm", "json", "jsonl", "pdf", "png", "jpg", "jpeg", "gif",
    "svg", "webp", "html", "htm", "xml", "yaml", "yml", "toml", "py", "rs", "js", "ts", "sh", "log", "doc",
    "docx", "ppt", "pptx", "zip", "sql",
];

/// A reference to the value of a step, or to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The step.
    pub step: String,
    /// The way to the part that is meant; empty for all of it.
    pub path: Vec<Part>,
    /// Whether the argument is nothing else, so that the value keeps its type.
    pub whole: bool,
    /// As it stands in the argument.
    pub written: String,
    /// Whether something follows that belongs to it and cannot be read, such as a call of a function.
    pub unread: bool,
}

/// One step on the way into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// `.key` or `["key"]`.
    Key(String),
    /// `[0]`, or `[-1]` from the end.
    Index(i64),
    /// `[*]`: all items, each on its own.
    All,
    /// `[1:]`, `[1:5]`, `[:-1]`: some of the items.
    Slice(Option<i64>, Option<i64>),
}

impl Reference {
    /// The names on the way to the part that is meant.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.path.iter().filter_map(|part| match part {
            Part::Key(key) => Some(key.as_str()),
            _ => None,
        })
    }

    /// Whether this may be ordinary text where no step has the name: an amount of money, a ticker, a variable of a shell.
    pub fn may_be_text(&self) -> bool {
        let plain_word = !self.step.chars().any(|letter| letter.is_ascii_lowercase());
        let money = self.step.starts_with(|first: char| first.is_ascii_digit());
        money || (plain_word && self.path.is_empty()) || (!self.whole && self.path.is_empty())
    }
}

/// Whether a word ends the name of a file.
pub(super) fn is_extension(word: &str) -> bool {
    EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reference(Reference),
}

/// A text as its pieces; neighbouring plain texts are one.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let trimmed = text.trim();
    if let Some((mut reference, "")) = reference(trimmed) {
        reference.whole = true;
        return vec![Piece::Reference(reference)];
    }
    let mut all = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('$') {
        plain.push_str(before);
        let here = rest.get(before.len()..).unwrap_or_default();
        if let Some(after) = here.strip_prefix("$$") {
            plain.push('$');
            rest = after;
        } else if let Some((found, after)) = reference(here) {
            if !plain.is_empty() {
                all.push(Piece::Text(std::mem::take(&mut plain)));
            }
            all.push(Piece::Reference(found));
            rest = after;
        } else {
            plain.push('$');
            rest = here.get(1..).unwrap_or_default();
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        all.push(Piece::Text(plain));
    }
    all
}

/// A reference at the beginning of a text, and what follows it.
pub(super) fn reference(text: &str) -> Option<(Reference, &str)> {
    let after = text.strip_prefix('$')?;
    let braced = after.strip_prefix('{');
    let inner = braced.map_or(after, |inner| inner.trim_start().trim_start_matches('$'));
    let (step, mut rest) = word(inner, |letter| letter.is_ascii_alphanumeric() || letter == '_')?;
    let mut path = Vec::new();
    while path.len() < MAX_PARTS
        && let Some((part, after)) = part(rest)
    {
        path.push(part);
        rest = after;
    }
    let unread = rest.starts_with('(') || (rest.starts_with('[') && !path.is_empty());
    if braced.is_some() {
        rest = rest.trim_start().strip_prefix('}')?;
    }
    let written = text.get(..text.len() - rest.len())?.to_owned();
    Some((Reference { step: step.to_owned(), path, whole: false, written, unread }, rest))
}

/// The letters at the beginning of a text that belong to a word, and what follows.
fn word(text: &str, belongs: impl Fn(char) -> bool) -> Option<(&str, &str)> {
    let end = text.find(|letter| !belongs(letter)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn part(text: &str) -> Option<(Part, &str)> {
    if let Some(after) = text.strip_prefix('.') {
        if after.starts_with('[') {
            return bracket(after);
        }
        if let Some(rest) = after.strip_prefix('*') {
            return Some((Part::All, rest));
        }
        return key(after);
    }
    bracket(text)
}

/// A key without quotes. One that begins with an ASCII letter has no others: in Chinese, the sentence goes on at once.
fn key(text: &str) -> Option<(Part, &str)> {
    let first = text.chars().next()?;
    let (word, rest) = if first.is_ascii() {
        word(text, |letter| letter.is_ascii_alphanumeric() || letter == '_')?
    } else {
        word(text, |letter| letter.is_alphanumeric() && !letter.is_ascii())?
    };
    match word.parse::<i64>() {
        Ok(index) => Some((Part::Index(index), rest)),
        Err(_) => Some((Part::Key(word.to_owned()), rest)),
    }
}

fn bracket(text: &str) -> Option<(Part, &str)> {
    let inner = text.strip_prefix('[')?.trim_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = inner.strip_prefix(quote) {
            let (key, rest) = quoted.split_once(quote)?;
            return Some((Part::Key(key.to_owned()), rest.trim_start().strip_prefix(']')?));
        }
    }
    let (inner, rest) = inner.split_once(']')?;
    let inner = inner.trim();
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let bound = |text: &str| if text.trim().is_empty() { Some(None) } else { number(text).map(Some) };
    let part = match inner.split_once(':') {
        _ if inner.is_empty() || inner == "*" => Part::All,
        Some((from, to)) => Part::Slice(bound(from)?, bound(to)?),
        None => match number(inner) {
            Some(index) => Part::Index(index),
            None if inner.chars().all(|letter| letter.is_alphanumeric() || letter == '_') => {
                Part::Key(inner.to_owned())
            }
            None => return None,
        },
    };
    Some((part, rest))
}
