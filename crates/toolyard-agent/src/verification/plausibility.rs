//! Finds impossible numbers and dates in a value.

use serde_json::Value;

/// Values visited per result.
const MAX_VISITS: usize = 2_000;
/// Issues reported per check.
const MAX_ISSUES: usize = 3;
const FIELD_RANGES: [(&str, f64, f64); 14] = [
    ("latitude", -90.0, 90.0),
    ("lat", -90.0, 90.0),
    ("longitude", -180.0, 180.0),
    ("lon", -180.0, 180.0),
    ("lng", -180.0, 180.0),
    ("humidity", 0.0, 100.0),
    ("probability", 0.0, 100.0),
    ("month", 1.0, 12.0),
    ("hour", 0.0, 24.0),
    ("minute", 0.0, 60.0),
    ("age", 0.0, 150.0),
    ("status_code", 100.0, 599.0),
    ("port", 0.0, 65_535.0),
    ("day_of_week", 0.0, 7.0),
];
const INVALID_NUMBERS: [&str; 8] = ["nan", "inf", "-inf", "infinity", "-infinity", "∞", "-∞", "undefined"];

/// Strings such as `NaN` in place of a number.
pub(super) fn invalid_numbers(value: &Value) -> Vec<String> {
    let mut found = false;
    visit(value, &mut |_, value| {
        let is_invalid = |text: &str| INVALID_NUMBERS.contains(&text.trim().to_lowercase().as_str());
        found |= value.as_str().is_some_and(is_invalid);
    });
    found.then(|| "it holds something that is not a number".to_owned()).into_iter().collect()
}

/// Numbers outside of the range that their field name implies.
pub(super) fn out_of_range_numbers(value: &Value) -> Vec<String> {
    let mut issues = Vec::new();
    visit(value, &mut |name, value| {
        let issue = value.as_f64().and_then(|number| range_issue(name, number));
        issues.extend(issue.filter(|_| issues.len() < MAX_ISSUES));
    });
    issues
}

fn range_issue(name: &str, number: f64) -> Option<String> {
    let name = name.to_lowercase();
    let (known, low, high) = FIELD_RANGES.iter().find(|(known, _, _)| *known == name)?;
    (!(*low..=*high).contains(&number)).then(|| format!("`{known}` is {number}, which cannot be"))
}

pub(super) fn impossible_dates(value: &Value) -> Vec<String> {
    let mut issues = Vec::new();
    visit(value, &mut |_, value| {
        if let Value::String(text) = value
            && issues.len() < MAX_ISSUES
            && let Some(date) = impossible_date(text)
        {
            issues.push(format!("the date {date} cannot be"));
        }
    });
    issues
}

/// The ISO date at the start of a text, if it does not exist.
fn impossible_date(text: &str) -> Option<&str> {
    let date = text.trim().get(..10)?;
    let rest = text.trim().get(10..).unwrap_or_default();
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let is_date = year.len() == 4 && month.len() == 2 && day.len() == 2 && parts.next().is_none();
    let is_end = rest.is_empty() || rest.starts_with(['T', ' ', 't']);
    let number = |text: &str| {
        text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten()
    };
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    (is_date && is_end && !exists_in_calendar(year, month, day)).then_some(date)
}

fn exists_in_calendar(year: u32, month: u32, day: u32) -> bool {
    let is_leap_year = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Whether a text contains something like a time of day, a date or a year.
pub(super) fn looks_like_time(text: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    let mut words = text.split(|letter: char| letter.is_whitespace() || "\"',{}T".contains(letter));
    words.any(|word| {
        let has_numbers_around = |separator: char| {
            let mut parts = word.trim_matches(|letter: char| !letter.is_ascii_digit()).split(separator);
            parts.next().is_some_and(is_digits)
                && parts.next().is_some_and(|part| part.starts_with(|l: char| l.is_ascii_digit()))
        };
        has_numbers_around(':')
            || has_numbers_around('-')
            || has_numbers_around('/')
            || (word.len() == 4 && is_digits(word))
            || word.contains(['年', '点', '时'])
    }) || text.trim().parse::<f64>().is_ok()
}

/// Visits every value with its field name, up to a limit.
fn visit(value: &Value, visitor: &mut dyn FnMut(&str, &Value)) {
    let mut pending = vec![("", value)];
    let mut visits = 0;
    while let Some((name, value)) = pending.pop() {
        visits += 1;
        if visits > MAX_VISITS {
            return;
        }
        visitor(name, value);
        let room = MAX_VISITS.saturating_sub(pending.len());
        match value {
            Value::Array(items) => pending.extend(items.iter().take(room).map(|item| (name, item))),
            Value::Object(entries) => {
                pending.extend(entries.iter().take(room).map(|(name, value)| (name.as_str(), value)));
            }
            _ => {}
        }
    }
}
