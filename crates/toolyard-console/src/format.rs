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

/// A path with the parameters that are not empty.
pub(crate) fn with_query<'a>(path: &str, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut url = path.to_owned();
    let mut separator = if path.contains('?') { '&' } else { '?' };
    for (name, value) in parameters.into_iter().filter(|(_, value)| !value.is_empty()) {
        url.push(separator);
        url.push_str(&url_encode(name));
        url.push('=');
        url.push_str(&url_encode(value));
        separator = '&';
    }
    url
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

/// A duration in the two largest units that matter: `48 ms`, `1.9 s`, `12 s`, `3 min 5 s`, `2 h`.
pub(crate) fn duration(milliseconds: u64) -> String {
    let two_units = |large: u64, large_name: &str, small: u64, small_name: &str| {
        let small_count = milliseconds % large / small;
        let large_text = format!("{} {large_name}", milliseconds / large);
        if small_count == 0 { large_text } else { format!("{large_text} {small_count} {small_name}") }
    };
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..10_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        10_000..60_000 => format!("{} s", milliseconds / 1_000),
        60_000..3_600_000 => two_units(60_000, "min", 1_000, "s"),
        3_600_000..86_400_000 => two_units(3_600_000, "h", 60_000, "min"),
        _ => two_units(86_400_000, "d", 3_600_000, "h"),
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

/// JSON with indentation; text that is JSON is indented, too. `None` for null and an empty text.
pub(crate) fn pretty_json_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            serde_json::from_str::<Value>(text).map_or_else(|_| text.clone(), |value| pretty_json(&value))
        }
        Value::String(text) => text.clone(),
        value => pretty_json(value),
    };
    (!text.is_empty()).then_some(text)
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
        assert_eq!(duration(12_300), "12 s");
        assert_eq!(duration(7_200_000), "2 h");
        assert_eq!(duration(7_800_000), "2 h 10 min");
        assert_eq!(duration(90_000_000), "1 d 1 h");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(123), "123");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.985), "98.5 %");
        assert_eq!(shorten("héllo", 3), "hél…");
        assert_eq!(time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(time(i64::MAX), "—");
    }
}
