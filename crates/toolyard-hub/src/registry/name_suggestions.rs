//! Suggests similar names for a name that does not exist.

use std::collections::BinaryHeap;

const MAX_SUGGESTIONS: usize = 3;
/// Names compared by edit distance: those whose summaries differ least.
const MAX_COMPARED_NAMES: usize = 2_000;
/// A longer name is not a typo, and comparing it would be expensive.
const MAX_NAME_BYTES: usize = 256;

/// Cheap summary of a name: which letters and digits occur, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameSummary {
    /// One bit for each of `a`–`z` and `0`–`9` that occurs.
    letters: u64,
    length: usize,
}

impl NameSummary {
    /// The summary of a name.
    pub fn of(name: &str) -> Self {
        let mut summary = Self { letters: 0, length: 0 };
        for letter in fold_name(name) {
            summary.length += 1;
            summary.letters |= match letter {
                'a'..='z' => 1 << (u32::from(letter) - u32::from('a')),
                '0'..='9' => 1 << (26 + u32::from(letter) - u32::from('0')),
                _ => 0,
            };
        }
        summary
    }
}

/// The names most similar to `unknown`, best first. Independent of the order of `names`.
pub fn did_you_mean<'a>(names: impl Iterator<Item = (&'a str, NameSummary)>, unknown: &str) -> Vec<&'a str> {
    if unknown.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let summary = NameSummary::of(unknown);
    let max_distance = (summary.length / 3).clamp(1, 4);
    let unknown: String = fold_name(unknown).collect();
    let distance = |name: &str| strsim::osa_distance(&fold_name(name).collect::<String>(), &unknown);
    let likely =
        most_likely(names, summary, max_distance).into_iter().map(|(_, _, name)| (distance(name), name));
    let mut similar: Vec<(usize, &str)> = likely.filter(|(distance, _)| *distance <= max_distance).collect();
    similar.sort_unstable();
    similar.truncate(MAX_SUGGESTIONS);
    similar.into_iter().map(|(_, name)| name).collect()
}

/// The names that can be similar by their summaries, at most [`MAX_COMPARED_NAMES`] of them: each edit changes the length by at
/// most one and the set of letters by at most two.
fn most_likely<'a>(
    names: impl Iterator<Item = (&'a str, NameSummary)>,
    unknown: NameSummary,
    max_distance: usize,
) -> BinaryHeap<(usize, usize, &'a str)> {
    let mut likely = BinaryHeap::new();
    for (name, summary) in names {
        let letter_difference = (summary.letters ^ unknown.letters).count_ones() as usize;
        let length_difference = summary.length.abs_diff(unknown.length);
        if letter_difference > 2 * max_distance || length_difference > max_distance {
            continue;
        }
        let rank = (letter_difference, length_difference, name);
        if likely.len() < MAX_COMPARED_NAMES {
            likely.push(rank);
        } else if let Some(mut worst) = likely.peek_mut()
            && rank < *worst
        {
            *worst = rank;
        }
    }
    likely
}

/// The name without case and separators: `Get-Time` equals `get_time`.
fn fold_name(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// `a`, `b` or `c` with each in backticks.
pub fn join_names(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 6] =
        ["calculate", "get_time", "search_web", "read_result", "read_data_from_excel", "get_weather"];

    fn suggested(unknown: &str) -> Vec<&str> {
        did_you_mean(NAMES.into_iter().map(|name| (name, NameSummary::of(name))), unknown)
    }

    #[test]
    fn typos_case_and_separators_are_forgiven() {
        assert_eq!(suggested("calcualte"), ["calculate"]);
        assert_eq!(suggested("GetTime"), ["get_time"]);
        assert_eq!(suggested("read_data_from_exel"), ["read_data_from_excel"]);
        assert_eq!(suggested("search-the-web"), ["search_web"]);
    }

    #[test]
    fn a_dissimilar_name_is_not_suggested() {
        assert!(suggested("send_email").is_empty());
        assert!(suggested("").is_empty());
        assert!(suggested(&"x".repeat(100_000)).is_empty());
    }

    #[test]
    fn several_names_are_joined_with_or() {
        assert_eq!(join_names(&["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(join_names(&["a"]), "`a`");
    }

    /// Ten thousand names with the same letters: far more than are compared.
    #[test]
    fn the_nearest_of_very_many_are_found_whatever_their_order() {
        let mut names: Vec<String> = (0..10_000).map(|at| format!("read_document_{at}_0123456789")).collect();
        names.push("send_mail".to_owned());
        let suggestions = |names: &[String], unknown: &str| -> Vec<String> {
            let shaped = names.iter().map(|name| (name.as_str(), NameSummary::of(name)));
            did_you_mean(shaped, unknown).into_iter().map(str::to_owned).collect()
        };
        let in_order = suggestions(&names, "read_documnt_77_0123456789");
        names.reverse();
        assert_eq!(suggestions(&names, "read_documnt_77_0123456789"), in_order);
        assert_eq!(in_order.len(), 3);
        assert_eq!(suggestions(&names, "send_mial"), ["send_mail"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn any_single_edit_of_a_name_finds_it(which in 0..NAMES.len(), at: proptest::sample::Index, letter in "[a-z]") {
            let name = NAMES[which];
            let mut wrong: Vec<char> = name.chars().collect();
            let position = at.index(wrong.len());
            wrong[position] = letter.chars().next().unwrap();
            let wrong: String = wrong.into_iter().collect();
            prop_assert!(suggested(&wrong).contains(&name), "{wrong}");
        }
    }
}
