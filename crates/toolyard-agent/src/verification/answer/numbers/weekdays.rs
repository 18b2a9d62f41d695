//! Days of the week in texts, by name and by date.

use std::collections::BTreeSet;

use super::super::text::words;

const NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const CHINESE_DAYS: &str = "一二三四五六日";

/// The days of the week that a text names; Monday is 0.
pub(super) fn weekdays(text: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for word in words(text) {
        let name = word.trim_end_matches("'s").trim_end_matches('s').to_owned();
        let is_name = |full: &str| {
            let full = full.to_lowercase();
            name == full.trim_end_matches('s')
                || (name.len() == 3 && full.starts_with(&name) && name != "sun" && name != "sat")
        };
        found.extend(NAMES.iter().position(|full| is_name(full)).and_then(|at| u32::try_from(at).ok()));
    }
    for prefix in ["周", "星期", "礼拜"] {
        for (at, _) in text.match_indices(prefix) {
            let next = text.get(at + prefix.len()..).and_then(|rest| rest.chars().next());
            let day = next.and_then(|next| match next {
                '天' => Some(6),
                _ => CHINESE_DAYS.chars().position(|day| day == next),
            });
            found.extend(day.and_then(|day| u32::try_from(day).ok()));
        }
    }
    found
}

pub(super) fn weekday_name(day: u32) -> Option<&'static str> {
    NAMES.get(usize::try_from(day).ok()?).copied()
}

/// The days of the week of the dates of a text that have a year: `2026-11-16` is a Monday.
pub(super) fn weekdays_of_dates(text: &str) -> BTreeSet<u32> {
    let parts: Vec<&str> =
        text.split(|letter: char| !(letter.is_ascii_digit() || matches!(letter, '-' | '/'))).collect();
    let dates = parts.into_iter().filter_map(|part| {
        let mut numbers = part.split(['-', '/']).map(|number| (number.len(), number.parse::<u32>().ok()));
        let ((4, Some(year)), (_, Some(month)), (_, Some(day))) =
            (numbers.next()?, numbers.next()?, numbers.next()?)
        else {
            return None;
        };
        ((1..=12).contains(&month) && (1..=31).contains(&day)).then(|| weekday(year, month, day))
    });
    dates.collect()
}

/// Sakamoto's method, with Monday as 0.
fn weekday(year: u32, month: u32, day: u32) -> u32 {
    const OFFSETS: [u32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    let year = if month < 3 { year - 1 } else { year };
    let offset = usize::try_from(month - 1).ok().and_then(|at| OFFSETS.get(at)).copied().unwrap_or_default();
    (year + year / 4 - year / 100 + year / 400 + offset + day + 6) % 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_dates_agree() {
        for text in ["on Thursday", "Thu, 19 Nov", "周四", "星期四下午"] {
            assert_eq!(weekdays(text), BTreeSet::from([3]), "{text}");
        }
        assert_eq!(weekdays_of_dates("2026-11-19T14:00 and 2026/11/16"), BTreeSet::from([0, 3]));
    }
}
