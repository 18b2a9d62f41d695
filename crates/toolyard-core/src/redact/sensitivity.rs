//! Decides which keys have secret values, and which values are no secret under any key.

use std::collections::HashSet;

use super::{marker::is_redacted, rules::RULES};

/// Only the beginning of a longer key is read.
const MAX_KEY_CHARS: usize = 256;
/// A longer value without spaces is no word, placeholder or expression.
const MAX_ORDINARY_BYTES: usize = 128;
/// A longer value is not taken for the name of a key.
const MAX_KEY_VALUE_BYTES: usize = 40;
/// Words of a value that are compared with the list of ordinary words.
const MAX_PROSE_WORDS: usize = 12;
/// A shorter value does not look like a secret.
const MIN_SECRET_BYTES: usize = 7;
/// A longer value is no name or version.
const MAX_NAME_BYTES: usize = 512;

/// Whether the value of a key is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sensitivity {
    None,
    /// Only if it looks like one.
    Ambiguous,
    Secret,
}

/// Whether the value of this key is a secret.
pub(super) fn key_sensitivity(key: &str) -> Sensitivity {
    let words = &RULES.words;
    if !key.is_ascii() {
        let holds = |phrase: &&String| !phrase.is_ascii() && key.contains(phrase.as_str());
        return if words.secret.iter().any(|phrase| holds(&phrase)) {
            Sensitivity::Secret
        } else {
            Sensitivity::None
        };
    }
    let split = split_key(key);
    let phrases: Vec<&str> = phrases(&split).collect();
    let has = |set: &HashSet<String>| phrases.iter().any(|phrase| set.contains(*phrase));
    let has_ending = || {
        split.split(' ').any(|word| words.secret_endings.iter().any(|ending| word.ends_with(ending.as_str())))
    };
    let found = match (has(&words.secret) || has_ending(), has(&words.ambiguous)) {
        (true, _) => Sensitivity::Secret,
        (false, true) => Sensitivity::Ambiguous,
        (false, false) => return Sensitivity::None,
    };
    let mut single_words = split.split(' ');
    let first = single_words.next().unwrap_or_default();
    let last = single_words.next_back().unwrap_or(first);
    let is_harmless = words.flag_prefixes.contains(first) && first != last
        || words.metadata_endings.contains(last)
        || has(&words.harmless);
    if is_harmless { Sensitivity::None } else { found }
}

/// Whether a key is harmless although it contains a secret word.
pub(super) fn is_harmless_key(key: &str) -> bool {
    phrases(&split_key(key)).any(|phrase| RULES.words.harmless.contains(phrase))
}

/// `dbPassword`, `DB_PASSWORD` and `db-password2` as `db password`.
fn split_key(key: &str) -> String {
    let mut words = String::with_capacity(key.len() + 4);
    let letters: Vec<char> = key.chars().take(MAX_KEY_CHARS).collect();
    let mut before = ' ';
    for (position, &letter) in letters.iter().enumerate() {
        let after = letters.get(position + 1).copied().unwrap_or(' ');
        let begins_word = letter.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || before.is_ascii_uppercase() && after.is_ascii_lowercase());
        if (begins_word || !letter.is_ascii_alphabetic()) && !words.ends_with(' ') && !words.is_empty() {
            words.push(' ');
        }
        if letter.is_ascii_alphabetic() {
            words.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    words.truncate(words.trim_end().len());
    words
}

/// All runs of one, two or three words.
fn phrases(words: &str) -> impl Iterator<Item = &str> {
    let starts = std::iter::once(0).chain(words.match_indices(' ').map(|(position, _)| position + 1));
    starts.flat_map(move |start| {
        let rest = words.get(start..).unwrap_or_default();
        let ends = rest.match_indices(' ').map(|(position, _)| position).chain([rest.len()]);
        ends.take(3).filter_map(move |end| rest.get(..end))
    })
}

/// Whether a value is no secret under any key: a type, a placeholder, an expression, prose.
pub(super) fn is_ordinary_value(value: &str) -> bool {
    let value = value.trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, '*' | '`'));
    let mut letters = value.chars();
    let Some(first) = letters.next() else {
        return true;
    };
    if letters.all(|letter| letter == first) || !value.contains(|letter: char| letter.is_ascii_alphanumeric())
    {
        return true;
    }
    if value.len() > 3 && value.contains(' ') {
        return is_prose(value) || is_redacted(value);
    }
    if value.len() > MAX_ORDINARY_BYTES {
        return is_redacted(value);
    }
    is_word(value) || is_placeholder(value) || is_expression(value) || is_redacted(value)
}

/// Whether a value is a listed word, the name of a key, or a small number.
fn is_word(value: &str) -> bool {
    let bare = value.trim_matches(|letter: char| !letter.is_alphanumeric()).to_ascii_lowercase();
    let is_small_number =
        bare.len() <= 3 && bare.bytes().all(|byte| byte.is_ascii_digit()) || is_number(&bare);
    let is_name = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, '_' | '-' | '.');
    let is_key = value.len() <= MAX_KEY_VALUE_BYTES
        && value.chars().all(is_name)
        && key_sensitivity(value) != Sensitivity::None;
    is_small_number || is_key || RULES.words.ordinary_values.contains(&bare)
}

/// Whether a value is a number as code writes it: `0x1f`, `12u32`.
fn is_number(value: &str) -> bool {
    let hexadecimal = |digits: &str| digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let suffix = value.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
    value.strip_prefix("0x").is_some_and(hexadecimal)
        || suffix.len() < value.len()
            && matches!(
                suffix,
                "u8" | "u16" | "u32" | "u64" | "i8" | "i16" | "i32" | "i64" | "usize" | "isize"
            )
}

/// Whether a value is a placeholder: `${TOKEN}`, `$TOKEN`, `%TOKEN%`, `{token}`, `<token>`, `your-token`.
fn is_placeholder(value: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte))
    };
    let is_words = |name: &str| is_name(name) && !name.bytes().any(|byte| byte.is_ascii_digit());
    let is_uppercase = |name: &str| is_name(name) && !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let between = |start: &str, end: &str| value.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    let is_between = |(start, end): &(&str, &str), is_name: &dyn Fn(&str) -> bool| {
        between(start, end).is_some_and(|name| is_name(name.trim()))
    };
    [("${", "}"), ("{{", "}}"), ("$(", ")")].iter().any(|pair| is_between(pair, &is_name))
        || [("{", "}"), ("<", ">"), ("[", "]")].iter().any(|pair| is_between(pair, &is_words))
        || value.strip_prefix('$').is_some_and(is_uppercase)
        || between("%", "%").is_some_and(is_uppercase)
        || RULES.words.placeholder_prefixes.iter().any(|start| {
            value.get(..start.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
        })
}

/// Whether a value is code that fetches a secret: `get_token()`, `os.environ["TOKEN"]`, `self.token`.
fn is_expression(value: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let rest = value.trim_start_matches(is_name);
    let name = value.get(..value.len() - rest.len()).unwrap_or_default();
    if name.is_empty() {
        return false;
    }
    let is_member = rest.starts_with(['.', '-', ':', '?', '[']) && RULES.words.secret_owners.contains(name);
    // The text between the brackets was cut off at the first space, comma or quote.
    let is_path = |letter: char| is_name(letter) || matches!(letter, '.' | '?' | '!');
    let called = value.trim_start_matches(is_path);
    let is_inner =
        |letter: char| is_path(letter) || matches!(letter, '(' | ')' | '[' | ']' | '&' | '*' | ':');
    let is_qualified = rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).starts_with("::");
    is_member || is_qualified || called.starts_with(['(', '[']) && called.chars().all(is_inner)
}

/// Whether a value is several words of which one is listed: a passphrase does not contain `the`.
fn is_prose(value: &str) -> bool {
    let bare = |word: &str| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_ascii_lowercase();
    let is_listed = |word: &str| {
        let word = bare(word);
        word.chars().all(char::is_alphabetic) && RULES.words.ordinary_values.contains(&word)
    };
    value.split_whitespace().take(MAX_PROSE_WORDS).any(is_listed)
}

/// Whether a value without spaces looks like a secret: it mixes letters and digits, or is longer than any name.
pub(super) fn looks_secret(value: &str) -> bool {
    if value.len() < MIN_SECRET_BYTES || value.contains(char::is_whitespace) {
        return false;
    }
    value.len() > MAX_NAME_BYTES
        || value.bytes().any(|byte| byte.is_ascii_digit())
            && value.bytes().any(|byte| byte.is_ascii_alphabetic())
            && !is_constant(value)
            && !is_ordinary_value(value)
}

/// Whether a value is the name of a constant: `DOT11_AUTH_OPEN`.
fn is_constant(value: &str) -> bool {
    value.contains('_')
        && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}
