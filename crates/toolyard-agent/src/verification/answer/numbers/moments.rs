//! Dates and times in texts, in the notations of both languages.

use std::collections::BTreeSet;

/// A month and day, or a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    Day { month: u32, day: u32 },
    Time { hour: u32, minute: u32 },
}

impl Moment {
    /// The minutes of a time of day.
    pub(super) fn minutes(&self) -> Option<f64> {
        match self {
            Self::Time { hour, minute } => Some(f64::from(hour * 60 + minute)),
            Self::Day { .. } => None,
        }
    }
}

/// A date or time in a text.
#[derive(Debug)]
pub(super) struct WrittenMoment {
    pub(super) start: usize,
    pub(super) end: usize,
    /// What it may mean: a time without am or pm may be of the morning or of the afternoon.
    pub(super) readings: Vec<Moment>,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

#[derive(Debug)]
struct Token {
    start: usize,
    end: usize,
    /// A number, a word in lower case, or one other character.
    text: String,
    number: Option<u32>,
}

/// The dates and times of a text. Chinese numerals are read where digits can stand.
pub(super) fn moments(text: &str) -> Vec<WrittenMoment> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let rest = tokens.get(index..).unwrap_or_default();
        let read = read_date(rest).or_else(|| read_time(rest, &tokens, index));
        let Some((length, readings)) = read else {
            index += 1;
            continue;
        };
        let start = rest.first().map_or(0, |token| token.start);
        let end = rest.get(length - 1).map_or(start, |token| token.end);
        found.push(WrittenMoment { start, end, readings });
        index += length;
    }
    found
}

/// All readings of the dates and times of a text.
pub(super) fn all_moments(text: &str) -> BTreeSet<Moment> {
    moments(text).into_iter().flat_map(|moment| moment.readings).collect()
}

fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let kind = |letter: char| match letter {
        _ if letter.is_ascii_digit() => 0,
        _ if letter.is_ascii_alphabetic() => 1,
        _ if "零一二三四五六七八九十两".contains(letter) => 2,
        _ => 3,
    };
    let mut previous = 3;
    for (at, letter) in text.char_indices() {
        let end = at + letter.len_utf8();
        let this = kind(letter);
        match found.last_mut() {
            Some(last) if this == previous && this != 3 && last.end == at => {
                last.end = end;
                last.text.extend(letter.to_lowercase());
            }
            _ if letter == ' ' => {}
            _ => found.push(Token { start: at, end, text: letter.to_lowercase().collect(), number: None }),
        }
        previous = this;
    }
    for token in &mut found {
        token.number = token.text.parse().ok().or_else(|| small_chinese(&token.text));
    }
    found
}

/// The value of a Chinese numeral below 100.
fn small_chinese(text: &str) -> Option<u32> {
    let digit = |letter: char| match letter {
        '两' => Some(2),
        _ => "零一二三四五六七八九"
            .chars()
            .position(|known| known == letter)
            .and_then(|at| u32::try_from(at).ok()),
    };
    match text.chars().collect::<Vec<_>>().as_slice() {
        ['十'] => Some(10),
        [one] => digit(*one),
        ['十', one] => Some(10 + digit(*one)?),
        [tens, '十'] => Some(digit(*tens)? * 10),
        [tens, '十', one] => Some(digit(*tens)? * 10 + digit(*one)?),
        _ => None,
    }
}

/// The value of an hour in words.
fn english_hour(word: &str) -> Option<u32> {
    const HOURS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    HOURS.iter().position(|hour| *hour == word).and_then(|at| u32::try_from(at + 1).ok())
}

fn read_date(rest: &[Token]) -> Option<(usize, Vec<Moment>)> {
    let number = |at: usize| rest.get(at).and_then(|token| token.number);
    let text = |at: usize| rest.get(at).map(|token| token.text.as_str()).unwrap_or_default();
    let month = |at: usize| {
        let word = text(at);
        let is_word = word.len() >= 3 && word.chars().all(|letter| letter.is_ascii_alphabetic());
        let found = MONTHS.iter().position(|month| is_word && word.starts_with(month))?;
        let is_month = word.len() <= 4
            || [
                "january",
                "february",
                "march",
                "april",
                "june",
                "july",
                "august",
                "september",
                "october",
                "november",
                "december",
            ]
            .contains(&word);
        u32::try_from(found + 1).ok().filter(|_| is_month)
    };
    let day = |month: u32, day: u32| {
        ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some(Moment::Day { month, day })
    };
    // 2026-11-10, 2026/11/10
    if let (Some(year), Some(first), Some(second)) = (number(0), number(2), number(4))
        && matches!(text(1), "-" | "/" | ".")
        && text(1) == text(3)
    {
        if year > 31 {
            return Some((5, vec![day(first, second)?]));
        }
        // 10.11.2026, 11/10/2026
        if second > 31 {
            return Some((5, [day(first, year), day(year, first)].into_iter().flatten().collect()));
        }
    }
    // 11月10日
    if let (Some(month), "月", Some(of_month)) = (number(0), text(1), number(2)) {
        let length = if matches!(text(3), "日" | "号") { 4 } else { 3 };
        return Some((length, vec![day(month, of_month)?]));
    }
    let ordinal = |at: usize| usize::from(matches!(text(at), "st" | "nd" | "rd" | "th"));
    // 10 November, 10th of November
    if let Some(of_month) = number(0) {
        let after = 1 + ordinal(1);
        let after = after + usize::from(text(after) == "of");
        if let Some(month) = month(after) {
            return Some((after + 1, vec![day(month, of_month)?]));
        }
    }
    // November 10
    if let (Some(month), Some(of_month)) = (month(0), number(1))
        && of_month <= 31
    {
        return Some((2 + ordinal(2), vec![day(month, of_month)?]));
    }
    None
}

fn read_time(rest: &[Token], all: &[Token], index: usize) -> Option<(usize, Vec<Moment>)> {
    let number = |at: usize| rest.get(at).and_then(|token| token.number);
    let text = |at: usize| rest.get(at).map(|token| token.text.as_str()).unwrap_or_default();
    // "half past six", "quarter to 5"
    if let (part @ ("half" | "quarter"), relation @ ("past" | "to"), Some(hour)) =
        (text(0), text(1), number(2).or_else(|| english_hour(text(2))))
    {
        let minute = if part == "half" { 30 } else { 15 };
        let (hour, minute) = if relation == "to" { ((hour + 23) % 24, 60 - minute) } else { (hour, minute) };
        let hours = [hour % 24, (hour + 12) % 24];
        return Some((3, hours.into_iter().map(|hour| Moment::Time { hour, minute }).collect()));
    }
    let is_product =
        all.get(index.wrapping_sub(1)).is_some_and(|token| matches!(token.text.as_str(), "×" | "x"));
    // 多一点 is a bit more.
    let is_bit = text(0) == "一"
        && all
            .get(index.wrapping_sub(1))
            .and_then(|token| token.text.chars().next_back())
            .is_some_and(|letter| "多少有早晚快慢大小高低好差贵远近了".contains(letter));
    let hour = number(0).filter(|_| !is_product && !is_bit)?;
    let starts_word = rest.first()?.text.chars().all(|letter| letter.is_ascii_digit());
    let (mut length, minute) = match (text(1), number(2), text(2)) {
        (":" | "：", Some(minute), _) if rest.get(2)?.text.len() == 2 => {
            let has_seconds = text(3) == ":" && number(4).is_some();
            (if has_seconds { 5 } else { 3 }, minute)
        }
        ("点", _, "半") => (3, 30),
        ("点", Some(1), _) if text(3) == "刻" => (4, 15),
        ("点", Some(3), _) if text(3) == "刻" => (4, 45),
        ("点" | "时", Some(minute), _) if text(3) == "分" => (4, minute),
        ("点", Some(minute), _) if (10..60).contains(&minute) => (3, minute),
        ("点", _, _) => (2, 0),
        ("am" | "pm", _, _) if starts_word => (1, 0),
        _ => return None,
    };
    if hour > 24 || minute > 59 {
        return None;
    }
    let marker = if matches!(text(length), "am" | "pm") {
        length += 1;
        text(length - 1)
    } else {
        ""
    };
    let before: String = all
        .get(index.saturating_sub(3)..index)
        .unwrap_or_default()
        .iter()
        .map(|token| token.text.as_str())
        .collect();
    let is_afternoon = marker == "pm" || ["下午", "晚上", "傍晚"].iter().any(|word| before.ends_with(word));
    let is_morning =
        marker == "am" || ["上午", "早上", "凌晨", "早晨"].iter().any(|word| before.ends_with(word));
    let hours = match hour {
        12 if is_morning => vec![0],
        _ if is_morning || hour > 12 || hour == 0 => vec![hour],
        _ if is_afternoon => vec![hour % 12 + 12],
        _ => vec![hour, (hour + 12) % 24],
    };
    Some((length, hours.into_iter().map(|hour| Moment::Time { hour, minute }).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_of_the_same_moment_agree() {
        for text in ["2026-11-10", "10 November 2026", "Nov 10, 2026", "11 月 10 日", "10th of November"] {
            assert_eq!(all_moments(text), BTreeSet::from([Moment::Day { month: 11, day: 10 }]), "{text}");
        }
        for text in ["14:30", "2:30 PM", "下午 2 点半", "下午两点半", "2026-11-19T14:30:00"] {
            let expected = Moment::Time { hour: 14, minute: 30 };
            assert!(all_moments(text).contains(&expected), "{text}: {:?}", moments(text));
        }
        assert!(all_moments("晚上九点一刻").contains(&Moment::Time { hour: 21, minute: 15 }));
        assert!(moments("3 files and 12 rows").is_empty());
    }
}
