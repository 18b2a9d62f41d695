//! Conditions of a request and values of the state before it. Neither asks for anything: in "if less than 50 are left, order 100"
//! no call has the 50, and in "move it from 3pm to 4pm" none has the first time.

use super::text::is_chinese;

/// Words that start a condition.
const CONDITIONS: [&str; 5] = ["if", "unless", "in case", "as long as", "provided"];
const CHINESE_CONDITIONS: [&str; 6] = ["如果", "若", "假如", "要是", "万一", "除非"];
/// What follows 就 where it starts no consequence: 要点就行.
const CHINESE_NO_CONSEQUENCES: [&str; 7] = ["行", "好", "可以", "是", "够", "在", "算"];
/// Words before a number that is a limit.
const ABOVE: [&str; 10] =
    ["above", "over", "more than", "exceed", "greater than", "超过", "高于", "大于", "多于", "超出"];
const BELOW: [&str; 9] =
    ["below", "under", "less than", "fewer than", "低于", "少于", "小于", "不足", "不到"];
const BOUNDS: [&str; 8] = ["at most", "at least", "up to", "within", "不超过", "最多", "至少", "以内"];
/// Verbs after the old value of 从3点改到4点.
const CHINESE_CHANGES: [char; 9] = ['改', '调', '移', '换', '挪', '推', '提', '延', '到'];
/// Words or Chinese characters of an old value at most.
const MAX_OLD_VALUE_LENGTH: usize = 12;

/// Whether a request has a condition.
pub(super) fn has_condition(request: &str) -> bool {
    without(request, condition) != request
}

/// The request without its conditions and without values of the state before it.
pub(super) fn without_conditions(request: &str) -> String {
    without(&without(&without(request, condition), old_value), bound)
}

/// Whether the numbers that were read meet the condition of a request: `None` if only some do, or if it compares no number.
pub(super) fn is_met(request: &str, values: &[f64]) -> Option<bool> {
    let (start, end) = condition(request)?;
    let (limit, direction) = comparison(request.get(start..end)?)?;
    let meets = |value: &f64| match direction {
        Direction::Above => *value > limit,
        Direction::Below => *value < limit,
    };
    let met = values.iter().filter(|value| meets(value)).count();
    match met {
        _ if values.is_empty() => None,
        0 => Some(false),
        _ => (met == values.len()).then_some(true),
    }
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Above,
    Below,
}

fn comparison(text: &str) -> Option<(f64, Direction)> {
    let lower = text.to_lowercase();
    let found = |words: &[&str]| words.iter().filter_map(|word| Some(lower.find(word)? + word.len())).min();
    let (at, direction) = found(&ABOVE)
        .map(|at| (at, Direction::Above))
        .or_else(|| found(&BELOW).map(|at| (at, Direction::Below)))?;
    let digits = lower.get(at..)?.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let end = digits.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(digits.len());
    Some((digits.get(..end)?.trim_end_matches('.').parse().ok()?, direction))
}

/// The place of a bound: "under 25 MB".
fn bound(text: &str) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let bounds = ABOVE.iter().chain(&BELOW).chain(&BOUNDS).filter_map(|word| {
        let at = lower.find(word)?;
        let after = lower.get(at + word.len()..)?;
        let spaces = after.len() - after.trim_start().len();
        let digits =
            after.trim_start().find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | ','));
        let length = digits.unwrap_or(after.trim_start().len());
        (length > 0).then_some((at, at + word.len() + spaces + length))
    });
    bounds.min()
}

fn without(text: &str, find: impl Fn(&str) -> Option<(usize, usize)>) -> String {
    let (mut rest, mut kept) = (text, String::with_capacity(text.len()));
    while let Some((start, end)) = find(rest).filter(|(start, end)| start < end) {
        kept.push_str(rest.get(..start).unwrap_or_default());
        kept.push(' ');
        rest = rest.get(end..).unwrap_or_default();
    }
    kept.push_str(rest);
    kept
}

/// The place of the first condition: up to the end of its clause, or up to 就.
fn condition(text: &str) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let english = CONDITIONS.iter().filter_map(|word| {
        let is_whole = |at: &usize| {
            let before = lower.get(..*at).unwrap_or_default().chars().next_back();
            let after = lower.get(at + word.len()..).unwrap_or_default().chars().next();
            before.is_none_or(|letter| !letter.is_alphanumeric()) && after == Some(' ')
        };
        let at = lower.match_indices(word).map(|(at, _)| at).find(is_whole)?;
        Some((at, end_of_clause(text, at)))
    });
    let chinese = CHINESE_CONDITIONS.iter().filter_map(|word| {
        let at = text.find(word)?;
        Some((at, end_of_clause(text, at)))
    });
    english.chain(chinese).chain(consequence(text)).min()
}

/// What stands before 就 in its clause, or the clause before it: 低于50箱就补货.
fn consequence(text: &str) -> Option<(usize, usize)> {
    text.match_indices('就').find_map(|(at, word)| {
        let after = text.get(at + word.len()..)?;
        let before = text.get(..at)?.trim_end_matches([',', '，', ' ']);
        let start = before.rfind(is_clause_end).map_or(0, |end| {
            end + before.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        let is_consequence =
            !before.is_empty() && !CHINESE_NO_CONSEQUENCES.iter().any(|word| after.starts_with(word));
        is_consequence.then_some((start, at))
    })
}

/// The place of "from 3pm" before "to 4pm".
fn old_value(text: &str) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let english = lower.find(" from ").and_then(|at| {
        let rest = lower.get(at + 6..)?;
        let end = rest.find(" to ")?;
        let value = rest.get(..end)?;
        let is_value =
            value.split(' ').count() <= 4 && value.contains(|letter: char| letter.is_ascii_digit());
        is_value.then_some((at, at + 6 + end))
    });
    let chinese = text.find('从').and_then(|at| {
        let rest = text.get(at..)?;
        let (end, _) = rest
            .char_indices()
            .take(MAX_OLD_VALUE_LENGTH)
            .find(|(_, letter)| CHINESE_CHANGES.contains(letter))?;
        let is_value = rest
            .get(..end)?
            .contains(|letter: char| letter.is_numeric() || "一二三四五六七八九十".contains(letter));
        is_value.then_some((at, at + end))
    });
    english.into_iter().chain(chinese).min()
}

fn is_clause_end(letter: char) -> bool {
    matches!(letter, ',' | '，' | '.' | '。' | ';' | '；' | '?' | '？' | '!' | '！' | '\n' | ':' | '：')
}

fn end_of_clause(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let mut letters = rest.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let is_mark = letters.peek().is_none_or(|(_, next)| next.is_whitespace() || is_chinese(*next));
        if is_clause_end(letter) && (is_mark || !letter.is_ascii()) {
            return start + at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_and_old_values_are_left_out() {
        assert_eq!(without_conditions("多少箱?低于50箱就提交申请"), "多少箱? 就提交申请");
        assert_eq!(
            without_conditions("Is it free, and if it's on loan, place a hold"),
            "Is it free, and  , place a hold"
        );
        assert_eq!(without_conditions("Move it from 3pm to 4pm"), "Move it  to 4pm");
        assert_eq!(without_conditions("把会议从3点改到4点"), "把会议 改到4点");
        assert!(has_condition("超过90%就重启") && !has_condition("起草要点就行,不用保存"));
    }
}
