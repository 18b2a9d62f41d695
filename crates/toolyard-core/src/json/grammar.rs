//! The grammar of JSON on bytes. Each `after_*` function consumes one token and returns the rest.
//!
//! Accepts exactly what serde_json accepts; property tests compare both.

use std::borrow::Cow;

/// The value 1 in each of eight bytes.
const ONES: u64 = u64::MAX / 255;

/// The rest after whitespace, of which there is mostly none.
#[inline(always)]
pub(super) fn after_whitespace(rest: &[u8]) -> &[u8] {
    match rest {
        [0..=b' ', ..] => after_some_whitespace(rest),
        _ => rest,
    }
}

fn after_some_whitespace(mut rest: &[u8]) -> &[u8] {
    while let [b' ' | b'\n' | b'\t' | b'\r', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// The rest after the plain characters of a string: it starts with a quote, a backslash or a control character, or is empty.
#[inline]
pub(super) fn after_plain(mut rest: &[u8]) -> &[u8] {
    while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
        let special = special_bytes(u64::from_le_bytes(*chunk));
        if special != 0 {
            return rest.get(first_of(special)..).unwrap_or_default();
        }
        rest = after;
    }
    while let [byte, after @ ..] = rest {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        rest = after;
    }
    rest
}

/// The high bit of each byte that is a quote, a backslash or a control character. Only the lowest such bit is exact:
/// a borrow may set others above it.
#[inline(always)]
fn special_bytes(word: u64) -> u64 {
    // With its second bit flipped, a quote becomes a space and control characters stay below it: one comparison for both.
    let quote_or_control = (word ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
    (quote_or_control | backslash) & !word & (ONES << 7)
}

#[inline(always)]
fn first_of(special: u64) -> usize {
    (special.trailing_zeros() / 8) as usize
}

/// The rest after a string whose opening quote was consumed.
#[inline(always)]
pub(crate) fn after_string(rest: &[u8]) -> Option<&[u8]> {
    match after_short_string(rest) {
        Some(after) => Some(after),
        None => after_long_string(rest),
    }
}

/// The same for a string of at most seven bytes without escapes, as most are; none for any other.
#[inline(always)]
pub(super) fn after_short_string(rest: &[u8]) -> Option<&[u8]> {
    let special = special_bytes(u64::from_le_bytes(*rest.first_chunk::<8>()?));
    match rest.get(first_of(special)..)? {
        [b'"', after @ ..] if special != 0 => Some(after),
        _ => None,
    }
}

#[inline(never)]
fn after_long_string(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = match after_plain(rest) {
            [b'"', after @ ..] => return Some(after),
            [b'\\', escape @ ..] => after_escape(escape)?,
            _ => return None,
        };
    }
}

/// The rest after an escape whose backslash was consumed.
#[inline]
fn after_escape(escape: &[u8]) -> Option<&[u8]> {
    match escape {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', after @ ..] => Some(after),
        [b'u', a, b, c, d, after @ ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => {
            Some(after)
        }
        _ => None,
    }
}

#[inline]
pub(super) fn after_number(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.strip_prefix(b"-").unwrap_or(rest);
    let mut rest = match rest {
        [b'0', after @ ..] => after,
        [b'1'..=b'9', after @ ..] => after_digits(after),
        _ => return None,
    };
    if let [b'.', after @ ..] = rest {
        rest = after_some_digits(after)?;
    }
    if let [b'e' | b'E', b'+' | b'-', after @ ..] | [b'e' | b'E', after @ ..] = rest {
        rest = after_some_digits(after)?;
    }
    Some(rest)
}

fn after_some_digits(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b'0'..=b'9', after @ ..] => Some(after_digits(after)),
        _ => None,
    }
}

#[inline]
fn after_digits(mut rest: &[u8]) -> &[u8] {
    while let [b'0'..=b'9', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// The rest after `true`, `false` or `null`.
#[inline]
pub(super) fn after_literal(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b't', b'r', b'u', b'e', after @ ..] => Some(after),
        [b'f', b'a', b'l', b's', b'e', after @ ..] => Some(after),
        [b'n', b'u', b'l', b'l', after @ ..] => Some(after),
        _ => None,
    }
}

/// Decodes a string whose opening quote was consumed, and returns the rest after it. A lone surrogate, which no Rust string
/// can hold, becomes the replacement character.
#[inline(never)]
pub(crate) fn read_string(inside: &str) -> Option<(Cow<'_, str>, &[u8])> {
    let bytes = inside.as_bytes();
    let mut rest = after_plain(bytes);
    let mut plain = inside.get(..bytes.len() - rest.len())?;
    if let [b'"', after @ ..] = rest {
        return Some((Cow::Borrowed(plain), after));
    }
    let mut output = String::with_capacity(plain.len() * 2);
    loop {
        output.push_str(plain);
        rest = match rest {
            [b'"', after @ ..] => {
                // Grown by doubling, the buffer may be much larger than needed.
                output.shrink_to(output.len() + output.len() / 4);
                return Some((Cow::Owned(output), after));
            }
            [b'\\', escape @ ..] => push_escaped(&mut output, escape)?,
            _ => return None,
        };
        let start = bytes.len() - rest.len();
        rest = after_plain(rest);
        plain = inside.get(start..bytes.len() - rest.len())?;
    }
}

/// Decodes an escape whose backslash was consumed, and returns the rest after it.
#[inline]
fn push_escaped<'t>(output: &mut String, escape: &'t [u8]) -> Option<&'t [u8]> {
    let (letter, after) = escape.split_first()?;
    output.push(match letter {
        b'"' | b'\\' | b'/' => char::from(*letter),
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return push_unicode(output, after),
        _ => return None,
    });
    Some(after)
}

/// Decodes a character whose `\u` was consumed, and returns the rest after it.
fn push_unicode<'t>(output: &mut String, rest: &'t [u8]) -> Option<&'t [u8]> {
    let (first, after) = hex_unit(rest)?;
    let second = after.strip_prefix(b"\\u").and_then(hex_unit);
    let pair = [first, second.map_or(0, |(unit, _)| unit)];
    match (char::from_u32(first.into()), char::decode_utf16(pair).next(), second) {
        (Some(letter), ..) => output.push(letter),
        (None, Some(Ok(letter)), Some((_, after_pair))) => {
            output.push(letter);
            return Some(after_pair);
        }
        _ => output.push(char::REPLACEMENT_CHARACTER),
    }
    Some(after)
}

fn hex_unit(rest: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, after) = rest.split_first_chunk::<4>()?;
    let unit = digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))?;
    Some((u16::try_from(unit).ok()?, after))
}
