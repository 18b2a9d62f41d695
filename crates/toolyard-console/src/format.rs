//! Numbers, durations, times and paths as text for people.

use std::borrow::Cow;

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text as one segment of a path or one value of a query.
pub(crate) fn url_encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Unix milliseconds as an RFC 3339 time in UTC, for `<time datetime>`; a script turns it into local time.
pub(crate) fn rfc3339(milliseconds: i64) -> String {
    match Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.to_string(),
        Err(_) => String::new(),
    }
}

/// Unix milliseconds for people without JavaScript: `2026-11-17 05:04:16 UTC`.
pub(crate) fn time(milliseconds: i64) -> String {
    match Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => "—".to_owned(),
    }
}

/// A duration with two or three significant digits: `48 ms`, `1.9 s`, `3 min 5 s`, `2 h 10 min`.
pub(crate) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
        3_600_000..86_400_000 => {
            format!("{} h {} min", milliseconds / 3_600_000, milliseconds % 3_600_000 / 60_000)
        }
        _ => format!("{} d {} h", milliseconds / 86_400_000, milliseconds % 86_400_000 / 3_600_000),
    }
}

/// A count with thousands separated by thin spaces: `12 345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A fraction as a percentage with one digit after the point, without a needless `.0`.
pub(crate) fn percent(fraction: f64) -> String {
    let text = format!("{:.1}", fraction.clamp(0.0, 1.0) * 100.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// JSON with indentation.
pub(crate) fn pretty_json(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The first characters of a text, with `…` if others follow.
pub(crate) fn shorten(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default().trim_end())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_counts_and_percentages_are_short() {
        assert_eq!(duration(48), "48 ms");
        assert_eq!(duration(1_960), "1.9 s");
        assert_eq!(duration(185_000), "3 min 5 s");
        assert_eq!(duration(7_800_000), "2 h 10 min");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(123), "123");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.985), "98.5 %");
        assert_eq!(shorten("héllo", 3), "hél…");
        assert_eq!(time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(time(i64::MAX), "—");
    }
}
