//! Suggests similar names for a name that does not exist.

use std::collections::BinaryHeap;

/// Suggestions per unknown name.
const MAX_SUGGESTIONS: usize = 3;
/// Names compared by edit distance: those whose signatures differ least.
const MAX_COMPARED_NAMES: usize = 2_000;
/// A longer name is not a typo, and comparing it would be expensive.
const MAX_NAME_BYTES: usize = 256;

/// Cheap summary of a name: which letters and digits occur, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameSignature {
    letters: u64,
    length: usize,
}

impl NameSignature {
    /// The signature of a name.
    pub fn of(name: &str) -> Self {
        let mut shape = Self { letters: 0, length: 0 };
        for letter in fold_name(name) {
            shape.length += 1;
            shape.letters |= match letter {
                'a'..='z' => 1 << (u32::from(letter) - u32::from('a')),
                '0'..='9' => 1 << (26 + u32::from(letter) - u32::from('0')),
                _ => 0,
            };
        }
        shape
    }
}

/// The names most similar to `wanted`, best first. Independent of the order of `names`.
pub fn did_you_mean<'a>(names: impl Iterator<Item = (&'a str, NameSignature)>, wanted: &str) -> Vec<&'a str> {
    if wanted.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let shape = NameSignature::of(wanted);
    let allowed = (shape.length / 3).clamp(1, 4);
    let wanted: String = fold_name(wanted).collect();
    let distance = |name: &str| strsim::osa_distance(&fold_name(name).collect::<String>(), &wanted);
    let likely = most_likely(names, shape, allowed).into_iter().map(|(_, _, name)| (distance(name), name));
    let mut near: Vec<(usize, &str)> = likely.filter(|(distance, _)| *distance <= allowed).collect();
    near.sort_unstable();
    near.truncate(MAX_SUGGESTIONS);
    near.into_iter().map(|(_, name)| name).collect()
}

/// The names that can be similar by their signatures, at most [`MAX_COMPARED_NAMES`] of them: each edit changes the length by at
/// most one and the set of letters by at most two.
fn most_likely<'a>(
    names: impl Iterator<Item = (&'a str, NameSignature)>,
    wanted: NameSignature,
    allowed: usize,
) -> BinaryHeap<(usize, usize, &'a str)> {
    let mut likely = BinaryHeap::new();
    for (name, shape) in names {
        let different = (shape.letters ^ wanted.letters).count_ones() as usize;
        let longer = shape.length.abs_diff(wanted.length);
        if different > 2 * allowed || longer > allowed {
            continue;
        }
        let rank = (different, longer, name);
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

    fn suggested(wanted: &str) -> Vec<&str> {
        did_you_mean(NAMES.into_iter().map(|name| (name, NameSignature::of(name))), wanted)
    }

    #[test]
    fn typos_case_and_separators_are_forgiven() {
        assert_eq!(suggested("calcualte"), ["calculate"]);
        assert_eq!(suggested("GetTime"), ["get_time"]);
        assert_eq!(suggested("read_data_from_exel"), ["read_data_from_excel"]);
        assert_eq!(suggested("search-the-web"), ["search_web"]);
    }

    #[test]
    fn what_is_far_is_not_suggested() {
        assert!(suggested("send_email").is_empty());
        assert!(suggested("").is_empty());
        assert!(suggested(&"x".repeat(100_000)).is_empty());
    }

    #[test]
    fn several_are_listed_as_a_person_would() {
        assert_eq!(join_names(&["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(join_names(&["a"]), "`a`");
    }

    /// Ten thousand names with the same letters: far more than are compared.
    #[test]
    fn the_nearest_of_very_many_are_found_whatever_their_order() {
        let mut names: Vec<String> = (0..10_000).map(|at| format!("read_document_{at}_0123456789")).collect();
        names.push("send_mail".to_owned());
        let near = |names: &[String], wanted: &str| -> Vec<String> {
            let shaped = names.iter().map(|name| (name.as_str(), NameSignature::of(name)));
            did_you_mean(shaped, wanted).into_iter().map(str::to_owned).collect()
        };
        let forwards = near(&names, "read_documnt_77_0123456789");
        names.reverse();
        assert_eq!(near(&names, "read_documnt_77_0123456789"), forwards);
        assert_eq!(forwards.len(), 3);
        assert_eq!(near(&names, "send_mial"), ["send_mail"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn any_single_edit_of_a_name_finds_it(which in 0..NAMES.len(), at: proptest::sample::Index, letter in "[a-z]") {
            let name = NAMES[which];
            let mut wrong: Vec<char> = name.chars().collect();
            let place = at.index(wrong.len());
            wrong[place] = letter.chars().next().unwrap();
            let wrong: String = wrong.into_iter().collect();
            prop_assert!(suggested(&wrong).contains(&name), "{wrong}");
        }
    }
}
