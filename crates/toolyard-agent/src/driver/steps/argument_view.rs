//! The arguments of a call as approvers see them: every value, long ones with length, hash, beginning and end.
//!
//! The view is JSON in which a long text is written as `"beginning" …(N of M characters omitted; blake3 HASH)… "end"`. What is
//! outside of quotes is never part of a value, so that no value can imitate it. Secrets are redacted, and characters that are
//! invisible or change the direction of text are escaped.

use std::{borrow::Cow, fmt::Write as _};

use serde_json::Value;
use toolyard_core::{ContentHash, RawJson, escape_unsafe, redact, redact_json};

/// Longer texts are shown in part.
const MAX_WHOLE_CHARS: usize = 16 << 10;
/// Characters shown of the beginning and of the end of a long text.
const HEAD_CHARS: usize = 2_000;
const TAIL_CHARS: usize = 1_000;
/// Largest view; arguments with a larger one cannot be approved.
const MAX_VIEW_BYTES: usize = 1 << 20;
/// Encloses the number of an omission within a text. Where arguments contain this noncharacter, it is escaped.
const MARKER: char = '\u{fdd0}';

/// Arguments as an approver sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::driver) struct ArgumentView {
    pub(in crate::driver) text: String,
    /// What is not in the text, for the approver.
    pub(in crate::driver) notes: Vec<String>,
}

/// A call whose arguments a person cannot read must not be approved.
///
/// Remedy: let the agent pass less data, such as a reference or a file name, or allow the tool without approval in
/// `[approvals] allow` if you trust it with any arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the call needs an approval, but its arguments are too large to be shown to an approver: {bytes} bytes, of which more than \
     {} would have to be shown",
    MAX_VIEW_BYTES
)]
pub(in crate::driver) struct ArgumentsTooLarge {
    bytes: usize,
}

impl ArgumentsTooLarge {
    /// Stands for the arguments where every call is approved in advance.
    pub(in crate::driver) fn placeholder(&self) -> ArgumentView {
        let text = format!("({} bytes of arguments, too large to be shown)", self.bytes);
        ArgumentView { text, notes: Vec::new() }
    }
}

/// The omitted middle of a text.
struct Omission {
    omitted_chars: usize,
    all_chars: usize,
    hash: ContentHash,
}

pub(super) fn view_arguments(arguments: &RawJson) -> Result<ArgumentView, ArgumentsTooLarge> {
    let too_large = || ArgumentsTooLarge { bytes: arguments.get().len() };
    let (shortened, omissions) = shorten(arguments.get()).ok_or_else(too_large)?;
    // Only whole strings were replaced, so this is JSON.
    let shortened = RawJson::parse(shortened).map_err(|_| too_large())?;
    let (redacted, is_redacted) = redact_json(&shortened);
    let mut is_shown = vec![false; omissions.len()];
    let text = write_view(redacted.get(), &omissions, &mut is_shown);
    if text.len() > MAX_VIEW_BYTES {
        return Err(too_large());
    }
    let mut notes = Vec::new();
    if is_redacted {
        notes.push("secrets are redacted here; the tool receives them".to_owned());
    }
    for (omission, _) in omissions.iter().zip(&is_shown).filter(|(_, is_shown)| !**is_shown) {
        notes.push(format!("a redacted value has {} characters", omission.all_chars));
    }
    Ok(ArgumentView { text, notes })
}

/// A piece of JSON text: a string with its quotes, or what is between strings.
enum Token<'t> {
    String(&'t str),
    Other(&'t str),
}

fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (token, after) = match rest.strip_prefix('"') {
            Some(inner) => rest.split_at(1 + string_length(inner)),
            None => rest.split_at(rest.find('"').unwrap_or(rest.len())),
        };
        let is_string = rest.starts_with('"');
        rest = after;
        Some(if is_string { Token::String(token) } else { Token::Other(token) })
    })
}

/// Bytes of a string after its opening quote, with its closing quote.
fn string_length(inner: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    inner.len()
}

/// Replaces the middle of long strings by a marker. `None` if the rest is still too large.
fn shorten(text: &str) -> Option<(String, Vec<Omission>)> {
    let (mut shortened, mut omissions) = (String::new(), Vec::new());
    for token in tokens(text) {
        match token {
            Token::Other(other) => shortened.extend(other.chars().filter(|letter| !letter.is_whitespace())),
            Token::String(string) => shortened.push_str(&shorten_string(string, &mut omissions)),
        }
        if shortened.len() > MAX_VIEW_BYTES {
            return None;
        }
    }
    Some((shortened, omissions))
}

fn shorten_string<'t>(quoted: &'t str, omissions: &mut Vec<Omission>) -> Cow<'t, str> {
    let may_have_marker = quoted.contains(MARKER) || quoted.contains("\\u");
    if quoted.len() <= MAX_WHOLE_CHARS && !may_have_marker {
        return Cow::Borrowed(quoted);
    }
    let text: String = serde_json::from_str(quoted).unwrap_or_default();
    let all_chars = text.chars().count();
    if all_chars <= MAX_WHOLE_CHARS {
        return Cow::Owned(quote(&without_markers(&text)));
    }
    // More than is shown is redacted, so that truncation does not hide that something is a secret.
    let head: String = text.chars().take(4 * HEAD_CHARS).collect();
    let head: String = redact(&head).chars().take(HEAD_CHARS).collect();
    let tail: String = text.chars().skip(all_chars - 4 * TAIL_CHARS).collect();
    let tail = redact(&tail);
    let tail: String = tail.chars().skip(tail.chars().count().saturating_sub(TAIL_CHARS)).collect();
    let (head, tail) = (without_markers(&head), without_markers(&tail));
    let number = omissions.len();
    omissions.push(Omission {
        omitted_chars: all_chars - HEAD_CHARS - TAIL_CHARS,
        all_chars,
        hash: ContentHash::of(&text),
    });
    Cow::Owned(quote(&format!("{head}{MARKER}{number}{MARKER}{tail}")))
}

fn without_markers(text: &str) -> Cow<'_, str> {
    if !text.contains(MARKER) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(MARKER, "\\u{fdd0}"))
}

fn quote(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// Writes JSON with visible characters only, and with the omissions outside of quotes.
fn write_view(json: &str, omissions: &[Omission], is_shown: &mut [bool]) -> String {
    let mut view = String::with_capacity(json.len());
    for token in tokens(json) {
        match token {
            Token::Other(other) => view.push_str(other),
            Token::String(string) if string.contains(MARKER) => {
                let text: String = serde_json::from_str(string).unwrap_or_default();
                let mut parts = text.split(MARKER);
                view.push_str(&escape_unsafe(&quote(parts.next().unwrap_or_default())));
                while let (Some(number), Some(after)) = (parts.next(), parts.next()) {
                    let number = number.parse().unwrap_or(usize::MAX);
                    if let (Some(omission), Some(is_shown)) =
                        (omissions.get(number), is_shown.get_mut(number))
                    {
                        *is_shown = true;
                        let Omission { omitted_chars, all_chars, hash } = omission;
                        // Writing to a string cannot fail.
                        let _ = write!(
                            view,
                            " …({omitted_chars} of {all_chars} characters omitted; blake3 {hash})… "
                        );
                    }
                    view.push_str(&escape_unsafe(&quote(after)));
                }
            }
            Token::String(string) => {
                // Written anew, so that escapes do not disguise plain letters.
                let text: Option<String> =
                    string.contains("\\u").then(|| serde_json::from_str(string).ok()).flatten();
                let written = text.map_or(Cow::Borrowed(string), |text| Cow::Owned(quote(&text)));
                view.push_str(&escape_unsafe(&written));
            }
        }
    }
    view
}

#[cfg(test)]
#[path = "argument_view_tests.rs"]
mod tests;
