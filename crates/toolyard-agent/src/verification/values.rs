//! Values of an answer that occur neither in a result nor in the request: numbers, paths and addresses, compared after
//! separators, widths and leading zeros are taken away. What a model computed from results is among them.

use std::ops::Range;

use serde_json::Value;

/// Values that are named at most.
const MAX_NAMED: usize = 8;
/// Values of an answer that are compared at most.
const MAX_COMPARED: usize = 300;
/// Whole numbers below are how people count and number things.
const MIN_NUMBER: f64 = 10.0;
/// Characters that paths and addresses end before.
const ENDS: &str = "，。；：、！？（）()[]{}<>|,;!\"“”「」『』《》'`*";

/// What the values of an answer may be taken from.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// All texts in lower case, without different widths.
    text: String,
    numbers: Vec<f64>,
}

impl Evidence {
    /// Adds a text.
    pub(crate) fn add(&mut self, text: &str) {
        let text = normal(text);
        self.numbers.extend(numbers(&text).into_iter().flat_map(|number| number.readings.concat()));
        self.text.push_str(&text);
        self.text.push('\n');
    }

    /// Adds all texts and numbers of arguments or of a result.
    pub(crate) fn add_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.add_value(item)),
            Value::Object(entries) => entries.iter().for_each(|(name, value)| {
                self.add(name);
                self.add_value(value);
            }),
            Value::Number(number) => self.add(&number.to_string()),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The values of an answer that are not here, as the answer writes them.
    pub(crate) fn missing_from(&self, answer: &str) -> Vec<String> {
        let mut missing: Vec<String> = Vec::new();
        let mut rest = normal(answer);
        for name in names(&rest).into_iter().take(MAX_COMPARED) {
            // The numbers in a name are part of it.
            rest = rest.replace(&name, " ");
            if !self.text.contains(&name) && !missing.contains(&name) {
                missing.push(name);
            }
        }
        for number in numbers(&rest).into_iter().take(MAX_COMPARED) {
            if !self.has_number(&number) && !missing.contains(&number.written) {
                missing.push(number.written);
            }
        }
        missing.truncate(MAX_NAMED);
        missing
    }

    /// Whether a number is here in one of its readings, exactly or with more decimals.
    fn has_number(&self, number: &Number) -> bool {
        let tolerance = 0.5 * 10_f64.powi(-number.decimals) + 1e-9;
        let is_known = |value: &f64| {
            let is_near = |known: &f64| (known - value).abs() <= tolerance;
            *value < MIN_NUMBER && value.fract() == 0.0
                || self.numbers.iter().any(|known| {
                    // A percentage is often a fraction in the result.
                    (known - value).abs() < 1e-9
                        || known.fract() != 0.0 && is_near(known)
                        || number.is_percent && is_near(&(known * 100.0))
                })
        };
        number.readings.iter().any(|reading| reading.iter().all(is_known))
    }
}

/// A number as it is written, and what it may mean: `1.350` is 1350, 1.35, or 1 and 350, as in a date.
#[derive(Debug)]
struct Number {
    written: String,
    readings: Vec<Vec<f64>>,
    /// Digits after the last separator.
    decimals: i32,
    is_percent: bool,
}

/// The text in lower case with ASCII digits and punctuation instead of wide ones.
fn normal(text: &str) -> String {
    let narrow = |letter: char| match letter {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        '\u{a0}' | '\u{202f}' | '\u{3000}' => ' ',
        '’' => '\'',
        other => other,
    };
    text.chars().map(narrow).flat_map(char::to_lowercase).collect()
}

/// The numbers of a text. Digits behind a Latin letter are part of a name: `b2`, `v1`.
fn numbers(text: &str) -> Vec<Number> {
    let letters: Vec<char> = text.chars().collect();
    let at = |index: usize| letters.get(index).copied().unwrap_or(' ');
    let digits_from = |index: usize| {
        letters.get(index..).unwrap_or_default().iter().take_while(|letter| letter.is_ascii_digit()).count()
    };
    let mut found = Vec::new();
    let mut index = 0;
    while index < letters.len() {
        let start = index;
        index += digits_from(start).max(1);
        if !at(start).is_ascii_digit() {
            continue;
        }
        let mut groups: Vec<Range<usize>> = Vec::new();
        groups.push(start..index);
        loop {
            let more = digits_from(index + 1);
            let joins = match at(index) {
                '.' | ',' => more > 0,
                '\'' | ' ' => more == 3,
                _ => false,
            };
            if !joins {
                break;
            }
            groups.push(index + 1..index + 1 + more);
            index += 1 + more;
        }
        let before = if start == 0 { ' ' } else { at(start - 1) };
        // In 2025-05-09t10:00, a letter stands between two numbers.
        let is_in_name =
            before.is_ascii_alphabetic() && !(before == 't' && start > 1 && at(start - 2).is_ascii_digit());
        if !is_in_name && before != '_' {
            let group =
                |range: &Range<usize>| letters.get(range.clone()).unwrap_or_default().iter().collect();
            let groups: Vec<String> = groups.iter().map(group).collect();
            let scale = match at(index) {
                '万' => 1e4,
                '亿' => 1e8,
                _ => 1.0,
            };
            found.push(Number {
                written: letters.get(start..index).unwrap_or_default().iter().collect(),
                decimals: decimals(&groups),
                readings: readings(&groups, scale),
                is_percent: at(index) == '%',
            });
        }
    }
    found
}

fn decimals(groups: &[String]) -> i32 {
    groups.get(1..).and_then(<[String]>::last).map_or(0, |last| i32::try_from(last.len()).unwrap_or(i32::MAX))
}

/// What groups of digits may mean: one number with thousands, one with decimals, several numbers.
fn readings(groups: &[String], scale: f64) -> Vec<Vec<f64>> {
    let scaled = |text: String| text.parse::<f64>().ok().map(|value| vec![value * scale]);
    let mut readings = Vec::new();
    let rest = groups.get(1..).unwrap_or_default();
    if rest.iter().all(|group| group.len() == 3) {
        readings.extend(scaled(groups.concat()));
    }
    if let Some((last, whole)) = groups.split_last().filter(|(_, whole)| !whole.is_empty()) {
        readings.extend(scaled(format!("{}.{last}", whole.concat())));
        readings.push(groups.iter().filter_map(|group| group.parse().ok()).collect());
    }
    readings
}

/// The paths, file names, mail and web addresses of a text.
fn names(text: &str) -> Vec<String> {
    let is_end = |letter: char| letter.is_whitespace() || ENDS.contains(letter) || is_han(letter);
    let words = text.split(is_end).map(|word| word.trim_matches(['.', ':', '-', '=', '?', '#', '~']));
    words.filter(|word| is_name(word)).map(str::to_owned).collect()
}

fn is_name(word: &str) -> bool {
    let has_letter = word.chars().any(char::is_alphabetic);
    let is_address = word.contains("://") || word.split_once('@').is_some_and(|(_, host)| host.contains('.'));
    let is_path = word.starts_with('/') && word.len() > 2 || word.contains(":\\") || word.starts_with("./");
    let is_file = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        stem.chars().count() > 1
            && (2..=5).contains(&extension.len())
            && extension.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && extension.chars().all(|letter| letter.is_ascii_alphanumeric())
    });
    has_letter && (is_address || is_path || is_file)
}

fn is_han(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn missing(evidence: &str, answer: &str) -> Vec<String> {
        let mut all = Evidence::default();
        all.add(evidence);
        all.missing_from(answer)
    }

    #[test]
    fn the_same_value_in_another_notation_is_found() {
        for (evidence, answer) in [
            (r#"{"total": 1350}"#, "The total is 1,350.00."),
            ("1,350", "共１３５０元"),
            ("2025-05-09T10:00:00Z", "On 9.5.2025 at 10:00"),
            ("2025-05-09", "2025年5月9日"),
            ("3.14159", "about 3.14"),
            ("119.7", "roughly 120"),
            ("0.125", "12.5%"),
            (r"C:\data\a.xlsx", r"Saved as C:\data\a.xlsx"),
            ("/home/li/plan.md", "在 /home/li/plan.md。"),
            ("ann@example.org", "Sent to <Ann@example.org>."),
            ("1845022", "1.845.022 bytes"),
            ("1350", "1 350 €, 1.350,00 €"),
            ("412.75", "412,75 kWh"),
            ("1284000", "128.4万元"),
            ("", "3 files in 2 folders, e.g. v1.2"),
        ] {
            assert_eq!(missing(evidence, answer), [""; 0], "{answer}");
        }
    }

    #[test]
    fn values_from_nowhere_are_named_as_written() {
        for (evidence, answer, expected) in [
            ("1350", "It is 1,530.", vec!["1,530"]),
            ("2025-05-09", "on 2025-05-19", vec!["19"]),
            ("9,4", "It is 94.", vec!["94"]),
            ("sales.xlsx", "saved as sums.xlsx", vec!["sums.xlsx"]),
            ("ann@example.org", "bob@example.org", vec!["bob@example.org"]),
            ("https://a.example/x", "https://a.example/y?id=77", vec!["https://a.example/y?id=77"]),
            ("17", "71 and 71", vec!["71"]),
        ] {
            assert_eq!(missing(evidence, answer), expected, "{answer}");
        }
    }

    proptest! {
        #[test]
        fn what_is_in_the_evidence_is_never_named(text in r"[0-9a-z .,:/@%\\年月，。-]{0,60}") {
            prop_assert_eq!(missing(&text, &text), Vec::<String>::new());
        }

        #[test]
        fn no_text_causes_a_panic(evidence in any::<String>(), answer in any::<String>()) {
            let _ = missing(&evidence, &answer);
        }
    }
}
