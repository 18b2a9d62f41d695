//! Finds numbers in texts: digits, Chinese numerals and English number words.

use super::{super::text::is_chinese, moments::WrittenMoment};

/// A number in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    /// As it is written.
    pub(super) text: String,
    /// Without grouping, sign and trailing zeros.
    pub(super) normal: String,
    /// What it may mean: `1.890` is 1.89 or 1890, and "1.5k" is 1500.
    pub(super) values: Vec<f64>,
    /// Of its last digit: 0.01 for `12.35`, 100 for "1.5k".
    pub(super) precision: f64,
    pub(super) decimals: i32,
    pub(super) form: NumberForm,
    /// Byte offset of its first character.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Number {
    fn scaled(mut self, scale: f64) -> Self {
        if scale != 1.0 {
            self.values.iter_mut().for_each(|value| *value *= scale);
            self.precision *= scale;
            self.normal = plain_text(self.values.first().copied().unwrap_or_default());
        }
        self
    }

    /// Of its last digit that is not zero: 100 for 1,900.
    pub(super) fn rounded_precision(&self) -> f64 {
        let digits: String = self.normal.chars().filter(char::is_ascii_digit).collect();
        let zeros =
            if self.normal.contains('.') { 0 } else { digits.len() - digits.trim_end_matches('0').len() };
        self.precision.max(10_f64.powi(i32::try_from(zeros).unwrap_or(0)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberForm {
    Digits,
    /// Digits with a percent sign.
    Percentage,
    /// "1." at the start of a line.
    ListNumber,
    /// A name of letters and digits such as a hash, `normal` is the whole name in lower case.
    Name,
    /// "three", "三".
    Word,
}

const ENGLISH_NUMBERS: [&str; 20] = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];
const ENGLISH_TENS: [&str; 8] =
    ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const CHINESE_DIGITS: &str = "零一二三四五六七八九";
const CHINESE_UNITS: &str = "十百千万亿";
/// Letters after digits that do not make them a name: units and ordinals.
const SUFFIXES: [&str; 26] = [
    "st", "nd", "rd", "th", "am", "pm", "kb", "mb", "gb", "tb", "km", "kg", "cm", "mm", "ms", "min", "h",
    "s", "m", "k", "g", "d", "x", "b", "px", "t",
];

/// The numbers of a text, in its order. Digits that follow a letter belong to a name: `A1`, `sheet2`.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let mut found = digit_numbers(text);
    found.extend(english_numbers(text));
    found.extend(chinese_numbers(text));
    found.sort_by_key(|number| number.start);
    found
}

fn digit_numbers(text: &str) -> Vec<Number> {
    let characters: Vec<(usize, char)> = text.char_indices().collect();
    let at = |index: usize| characters.get(index).map_or(' ', |(_, letter)| *letter);
    let offset = |index: usize| characters.get(index).map_or(text.len(), |(offset, _)| *offset);
    let mut found = Vec::new();
    let mut index = 0;
    let mut line_is_empty = true;
    while index < characters.len() {
        let character = at(index);
        if !character.is_ascii_digit() {
            line_is_empty =
                character == '\n' || (line_is_empty && (character.is_whitespace() || character == '*'));
            index += 1;
            continue;
        }
        let start = index;
        let is_latin = |letter: char| letter == '_' || letter.is_ascii_alphabetic();
        // `x15` is fifteen times.
        let is_multiple =
            start > 0 && at(start - 1) == 'x' && (start < 2 || !at(start - 2).is_alphanumeric());
        let follows_letter = start > 0 && is_latin(at(start - 1)) && !is_multiple;
        let is_part = |index: usize| {
            at(index).is_ascii_digit() || (matches!(at(index), ',' | '.') && at(index + 1).is_ascii_digit())
        };
        while index < characters.len() && is_part(index) {
            index += 1;
        }
        let mut end = index;
        while at(end).is_ascii_alphanumeric() || at(end) == '_' {
            end += 1;
        }
        let suffix: String = text.get(offset(index)..offset(end)).unwrap_or_default().to_lowercase();
        let written = text.get(offset(start)..offset(index)).unwrap_or_default();
        let is_list_number =
            line_is_empty && matches!(at(index), '.' | ')' | '、') && !at(index + 1).is_ascii_digit();
        line_is_empty = false;
        // A time zone or date such as `2026-11-16T08:15` goes on with a letter and digits.
        let is_date_part =
            suffix.starts_with('t') && suffix.chars().skip(1).all(|letter| letter.is_ascii_digit());
        let is_name = suffix.chars().any(|letter| letter.is_ascii_digit()) && !is_date_part;
        if follows_letter {
            index = end;
            // `v1.2` is a version.
            let is_version = at(start - 1) == 'v' && (start < 2 || !at(start - 2).is_alphanumeric());
            if is_version && written.contains('.') {
                found.push(name_number(&format!("v{written}"), written, offset(start), offset(end)));
            }
            continue;
        }
        if is_name
            || (!suffix.is_empty()
                && !SUFFIXES.contains(&suffix.as_str())
                && written.len() + suffix.len() >= 6)
        {
            index = end;
            let name = text.get(offset(start)..offset(end)).unwrap_or_default();
            found.push(name_number(name, &name.to_lowercase(), offset(start), offset(end)));
            continue;
        }
        let after = if at(index) == ' ' { at(index + 1) } else { at(index) };
        let form = match after {
            _ if is_list_number => NumberForm::ListNumber,
            '%' | '％' => NumberForm::Percentage,
            _ => NumberForm::Digits,
        };
        let (start, end) = (offset(start), offset(index));
        let scale = scale_of(text.get(end..).unwrap_or_default());
        let read = read_number(written, form).into_iter().map(|number| number.scaled(scale));
        found.extend(read.map(|number| Number { start, end, ..number }));
    }
    found
}

/// A name with digits.
fn name_number(text: &str, normal: &str, start: usize, end: usize) -> Number {
    Number {
        text: text.to_owned(),
        normal: normal.to_owned(),
        values: Vec::new(),
        precision: 1.0,
        decimals: 0,
        form: NumberForm::Name,
        start,
        end,
    }
}

/// Reads `1,350.50`, `1.350,50` and `24,90`. A version or date such as `1.2.3` is read as its parts, and so are cells of a
/// table that no space separates: `300,7405.25`.
fn read_number(text: &str, form: NumberForm) -> Vec<Number> {
    let values = readings(text);
    if values.is_empty() {
        let separator = if text.contains(',') { ',' } else { '.' };
        let parts = text.split(separator).filter(|part| !part.is_empty());
        return parts.flat_map(|part| read_number(part, NumberForm::Digits)).collect();
    }
    let first = values.first().map(String::as_str).unwrap_or_default();
    let fraction = first.split_once('.').map_or("", |(_, fraction)| fraction);
    let decimals = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let normal = normal(first);
    let values = values.iter().filter_map(|value| value.parse().ok()).collect();
    let precision = 10_f64.powi(-decimals);
    vec![Number { text: text.to_owned(), normal, values, precision, decimals, form, start: 0, end: 0 }]
}

/// What digits with separators may mean, as decimals with a point.
fn readings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (group, point) in [(',', '.'), ('.', ',')] {
        let (whole, fraction) = text.split_once(point).unwrap_or((text, ""));
        let has_fraction = text.contains(point);
        let groups: Vec<&str> = whole.split(group).collect();
        let is_grouped = groups.iter().enumerate().all(|(at, part)| match at {
            0 => groups.len() == 1 || part.len() <= 3,
            _ => part.len() == 3,
        });
        let is_fraction = fraction.chars().all(|digit| digit.is_ascii_digit())
            && (point == '.' || !has_fraction || fraction.len() <= 2 || groups.len() > 1);
        if is_grouped && is_fraction && has_fraction != fraction.is_empty() {
            let whole = groups.concat();
            found.push(if has_fraction { format!("{whole}.{fraction}") } else { whole });
        }
    }
    found.dedup();
    found
}

/// A decimal without leading and trailing zeros.
fn normal(text: &str) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

fn plain_text(value: f64) -> String {
    normal(&format!("{value:.6}"))
}

/// What the word after a number multiplies it by: 万, "k", "million".
fn scale_of(rest: &str) -> f64 {
    const SCALES: [(&str, f64); 13] = [
        ("hundred", 1e2),
        ("万亿", 1e12),
        ("万", 1e4),
        ("亿", 1e8),
        ("千", 1e3),
        ("百", 1e2),
        ("k", 1e3),
        ("thousand", 1e3),
        ("m", 1e6),
        ("mn", 1e6),
        ("million", 1e6),
        ("bn", 1e9),
        ("billion", 1e9),
    ];
    let is_attached = !rest.starts_with(' ');
    let rest = rest.trim_start_matches(' ');
    let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
    let found = SCALES.iter().find(|(name, _)| match *name {
        // "5 m" are metres.
        "m" => is_attached && word == "M",
        "k" => is_attached && word.eq_ignore_ascii_case("k"),
        _ if name.is_ascii() => word.eq_ignore_ascii_case(name),
        _ => rest.starts_with(name),
    });
    found.map_or(1.0, |(_, scale)| *scale)
}

fn english_numbers(text: &str) -> Vec<Number> {
    let mut found: Vec<Number> = Vec::new();
    let mut start = None;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, letter.is_ascii_alphabetic() || letter == '-') {
            (None, true) => start = Some(at),
            (Some(first), false) => {
                start = None;
                let word = text.get(first..at).unwrap_or_default();
                let is_part =
                    text.get(at..).is_some_and(|rest| rest.starts_with(|next: char| next.is_alphanumeric()));
                // "270 thousand" is one number.
                let before = text.get(..first).unwrap_or_default().trim_end();
                if is_part || (before.ends_with(|letter: char| letter.is_ascii_digit()) && word.len() > 4) {
                    continue;
                }
                let scale = match word.to_lowercase().as_str() {
                    "hundred" => Some(100),
                    "thousand" => Some(1_000),
                    "dozen" => Some(12),
                    _ => None,
                };
                let value = english_value(&word.to_lowercase());
                let last = found.last().map(|last| (last.start, last.end, last.values.first().copied()));
                match (scale, value, last) {
                    // "three hundred" follows "three".
                    (Some(scale), _, Some((first, end, _)))
                        if text.get(end..at).is_some_and(|gap| gap.trim_start().len() == word.len()) =>
                    {
                        let Some(small) = found.pop().and_then(|number| number.normal.parse::<u64>().ok())
                        else {
                            continue;
                        };
                        found.push(word_number(
                            text.get(first..at).unwrap_or_default(),
                            small * scale,
                            first,
                            at,
                        ));
                    }
                    (Some(scale), ..)
                        if scale != 12 || text.get(..first).is_some_and(|before| before.ends_with("a ")) =>
                    {
                        found.push(word_number(word, scale, first, at));
                    }
                    (None, Some(value), _) => found.push(word_number(word, value, first, at)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    found
}

/// The value of "seven" or "twenty-one".
fn english_value(word: &str) -> Option<u64> {
    let index = |words: &[&str], word: &str| words.iter().position(|known| *known == word);
    let small = |word: &str| index(&ENGLISH_NUMBERS, word).and_then(|at| u64::try_from(at + 1).ok());
    let tens = |word: &str| index(&ENGLISH_TENS, word).and_then(|at| u64::try_from((at + 2) * 10).ok());
    small(word).or_else(|| tens(word)).or_else(|| match word.split_once('-') {
        Some((left, right)) => Some(tens(left)? + small(right).filter(|value| *value < 10)?),
        None => None,
    })
}

fn chinese_numbers(text: &str) -> Vec<Number> {
    let is_numeral = |letter: char| {
        letter == '两' || letter == '〇' || CHINESE_DIGITS.contains(letter) || CHINESE_UNITS.contains(letter)
    };
    let mut found = Vec::new();
    let mut start: Option<usize> = None;
    let mut skip_until = 0;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        if text.get(at..).is_some_and(|rest| rest.starts_with("百分之")) {
            skip_until = at + "百分之".len();
        }
        if is_numeral(letter) && at >= skip_until {
            start = start.or(Some(at));
            continue;
        }
        let Some(first) = start.take() else { continue };
        let word = text.get(first..at).unwrap_or_default();
        let before = text.get(..first).unwrap_or_default();
        // 第二名 counts nothing, and 48 万 is one number.
        if before.ends_with('第') || before.trim_end().ends_with(|letter: char| letter.is_ascii_digit()) {
            continue;
        }
        let Some(value) = chinese_value(word) else { continue };
        let number = word_number(word, value, first, at);
        found.push(match letter {
            _ if before.ends_with("百分之") => Number { form: NumberForm::Percentage, ..number },
            // 七成 is 70 %.
            '成' if value <= 10 => Number {
                normal: (value * 10).to_string(),
                values: vec![value as f64 * 10.0],
                precision: 10.0,
                form: NumberForm::Percentage,
                ..number
            },
            _ => number,
        });
    }
    found
}

/// The value of 一千八百九十 or 二〇二六.
fn chinese_value(word: &str) -> Option<u64> {
    let digit = |letter: char| match letter {
        '两' => Some(2),
        '〇' => Some(0),
        _ => CHINESE_DIGITS.chars().position(|known| known == letter).and_then(|at| u64::try_from(at).ok()),
    };
    if word.chars().count() > 1 && word.chars().all(|letter| digit(letter).is_some()) {
        return word
            .chars()
            .try_fold(0_u64, |value, letter| value.checked_mul(10)?.checked_add(digit(letter)?));
    }
    let (mut total, mut section, mut last) = (0_u64, 0_u64, 0_u64);
    for letter in word.chars() {
        if let Some(value) = digit(letter) {
            last = value;
            continue;
        }
        let unit = match letter {
            '十' => 10,
            '百' => 100,
            '千' => 1_000,
            '万' => 10_000,
            _ => 100_000_000,
        };
        if unit >= 10_000 {
            total = total.checked_add((section + last).max(1).checked_mul(unit)?)?;
            section = 0;
        } else {
            section = section.checked_add(last.max(1).checked_mul(unit)?)?;
        }
        last = 0;
    }
    total.checked_add(section)?.checked_add(last)
}

fn word_number(word: &str, value: u64, start: usize, end: usize) -> Number {
    Number {
        text: word.to_owned(),
        normal: value.to_string(),
        values: vec![value as f64],
        precision: 1.0,
        decimals: 0,
        form: NumberForm::Word,
        start,
        end,
    }
}

/// Whether a number is part of a date or time.
pub(super) fn is_in_moment(number: &Number, moments: &[WrittenMoment]) -> bool {
    moments.iter().any(|moment| moment.start <= number.start && number.end <= moment.end)
}

/// The first character after a number that is no space.
pub(super) fn next_letter(text: &str, number: &Number) -> Option<char> {
    text.get(number.end..)?.chars().find(|letter| !letter.is_whitespace())
}

/// Whether a Chinese numeral counts something, so that it is not part of a word such as 一些 or 三明治.
pub(super) fn has_measure(text: &str, number: &Number) -> bool {
    const MEASURES: &str =
        "个条封项张份行列件次名位元块天月日号点分年时篇本台种处笔组页家人节场段倍成折级层列栏格组套只家%％小";
    !number.text.chars().all(is_chinese)
        || next_letter(text, number).is_some_and(|letter| MEASURES.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_forms_are_read() {
        let normals = |text: &str| numbers(text).into_iter().map(|number| number.normal).collect::<Vec<_>>();
        assert_eq!(normals("1,350.50 in A1, 3 pm"), ["1350.5", "3"]);
        assert_eq!(normals("twenty-one of Three"), ["21", "3"]);
        assert_eq!(normals("一千八百九十元，十七条，二〇二六年，百分之三十"), ["1890", "17", "2026", "30"]);
        assert_eq!(normals("as 8f3b21c, 12.4 MB"), ["8f3b21c", "12.4"]);
    }
}
