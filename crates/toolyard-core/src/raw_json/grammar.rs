//! The grammar of JSON on bytes: what is left of a text after one blank, string, number or word.
//!
//! It takes exactly what serde_json takes; a property test holds both side by side.

const ONES: u64 = u64::MAX / 255;

/// What follows after blanks.
#[inline]
pub(super) fn after_blanks(mut rest: &[u8]) -> &[u8] {
    while let [b' ' | b'\n' | b'\t' | b'\r', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// What follows after the characters of a string that stand for themselves: something begins here that needs a look.
#[inline]
pub(super) fn after_plain(mut rest: &[u8]) -> &[u8] {
    while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
        let special = special_bytes(u64::from_le_bytes(*chunk));
        if special != 0 {
            let plain = (special.trailing_zeros() / 8) as usize;
            return chunk_rest(rest, plain);
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

#[inline]
fn chunk_rest(rest: &[u8], plain: usize) -> &[u8] {
    rest.get(plain..).unwrap_or_default()
}

/// The high bit of each byte that is a quote, a backslash or a control character. Only the lowest such bit is exact:
/// a borrow may set others above it.
#[inline]
fn special_bytes(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quotes = word ^ (ONES * 0x22);
    let backslashes = word ^ (ONES * 0x5c);
    let quote = quotes.wrapping_sub(ONES) & !quotes;
    let backslash = backslashes.wrapping_sub(ONES) & !backslashes;
    (control | quote | backslash) & (ONES << 7)
}

/// What follows after a string whose opening quote was taken already.
#[inline]
pub(super) fn after_string(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = match after_plain(rest) {
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', after @ ..] => after,
            [b'\\', b'u', a, b, c, d, after @ ..]
                if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                after
            }
            _ => return None,
        };
    }
}

/// What follows after a number.
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

/// What follows after `true`, `false` or `null`.
#[inline]
pub(super) fn after_word(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b't', b'r', b'u', b'e', after @ ..] => Some(after),
        [b'f', b'a', b'l', b's', b'e', after @ ..] => Some(after),
        [b'n', b'u', b'l', b'l', after @ ..] => Some(after),
        _ => None,
    }
}

/// The characters between the quotes of a string that passed [`after_string`], without their escapes. A surrogate
/// without its other half, which no Rust text can hold, becomes the replacement character.
pub(super) fn unescaped(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        output.push_str(plain);
        let mut letters = escape.chars();
        let letter = match letters.next() {
            Some('u') => {
                rest = push_unicode(&mut output, letters.as_str());
                continue;
            }
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            other => other.unwrap_or('\\'),
        };
        output.push(letter);
        rest = letters.as_str();
    }
    output.push_str(rest);
    output
}

/// Writes the character whose `\u` stood before `rest`, and returns what follows it.
fn push_unicode<'t>(output: &mut String, rest: &'t str) -> &'t str {
    let Some((first, after)) = hex_unit(rest) else {
        output.push(char::REPLACEMENT_CHARACTER);
        return rest;
    };
    let second = after.strip_prefix("\\u").and_then(hex_unit);
    let pair = [first, second.map_or(0, |(unit, _)| unit)];
    match (char::from_u32(first.into()), char::decode_utf16(pair).next(), second) {
        (Some(letter), ..) => output.push(letter),
        (None, Some(Ok(letter)), Some((_, behind))) => {
            output.push(letter);
            return behind;
        }
        _ => output.push(char::REPLACEMENT_CHARACTER),
    }
    after
}

fn hex_unit(text: &str) -> Option<(u16, &str)> {
    let (digits, after) = text.split_at_checked(4)?;
    Some((u16::from_str_radix(digits, 16).ok()?, after))
}
