//! Finds the names somebody may have meant.

/// At most this many are suggested.
const MOST: usize = 3;

/// The names nearest to `wanted`, nearest first; none when nothing is near.
pub(crate) fn did_you_mean<'a>(names: impl Iterator<Item = &'a str>, wanted: &str) -> Vec<&'a str> {
    // A name longer than any tool may have is no typo; comparing it with every name would cost much.
    if wanted.len() > 256 {
        return Vec::new();
    }
    let wanted_folded = folded(wanted);
    let wanted_letters = letters(wanted);
    let allowed = (wanted_folded.chars().count() / 3).clamp(1, 4);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for name in names {
        // Each edit changes at most two letters of the set, so most names are passed over without a comparison.
        let different = (letters(name) ^ wanted_letters).count_ones() as usize;
        if different > 2 * allowed || name.len().abs_diff(wanted.len()) > 8 * allowed {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&folded(name), &wanted_folded);
        if distance <= allowed {
            near.push((distance, name));
        }
    }
    near.sort_unstable();
    near.truncate(MOST);
    near.into_iter().map(|(_, name)| name).collect()
}

/// The name without case and separators: `Get-Time` and `get_time` are the same to a person.
fn folded(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Which letters and digits occur, as a set of bits.
fn letters(name: &str) -> u64 {
    name.bytes().fold(0, |set, byte| match byte.to_ascii_lowercase() {
        letter @ b'a'..=b'z' => set | 1 << (letter - b'a'),
        digit @ b'0'..=b'9' => set | 1 << (26 + digit - b'0'),
        _ => set,
    })
}

/// `a`, `b` or `c` with each in backticks.
pub(crate) fn listed(names: &[&str]) -> String {
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
        did_you_mean(NAMES.into_iter(), wanted)
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
        assert_eq!(listed(&["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(listed(&["a"]), "`a`");
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
