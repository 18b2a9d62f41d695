//! What a server may be called, and how the names of others are made into such names.

use toolyard_core::SourceId;

/// The longest name. Tool names are prefixed with it, and many clients break past 64 letters in all.
pub const LONGEST_NAME: usize = 64;

/// Why something is not a name for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It is too long.
    #[error("it is longer than {LONGEST_NAME} letters")]
    TooLong,
    /// It has letters that are not allowed.
    #[error("it may hold only `a` to `z`, digits, `-` and `_`, and begins with a letter or digit")]
    BadLetter,
    /// It means something else.
    #[error("it is reserved for tools that are built in")]
    Reserved,
}

/// Whether a server may be called this.
pub fn check_name(name: &str) -> Result<(), NameProblem> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if name.is_empty() {
        Err(NameProblem::Empty)
    } else if name.len() > LONGEST_NAME {
        Err(NameProblem::TooLong)
    } else if !name.bytes().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'_'))
        || !name.bytes().next().is_some_and(is_plain)
    {
        Err(NameProblem::BadLetter)
    } else if SourceId::is_native_hint(name) {
        Err(NameProblem::Reserved)
    } else {
        Ok(())
    }
}

/// The nearest valid name: `My Server` becomes `my-server`, and what has no usable letter becomes `server`.
pub fn valid_name(name: &str) -> String {
    let mut valid = String::new();
    for letter in name.chars() {
        if valid.len() >= LONGEST_NAME {
            break;
        }
        let letter = letter.to_ascii_lowercase();
        match letter {
            'a'..='z' | '0'..='9' => valid.push(letter),
            '_' if !valid.is_empty() => valid.push('_'),
            _ if !valid.is_empty() && !valid.ends_with(['-', '_']) => valid.push('-'),
            _ => {}
        }
    }
    valid.truncate(valid.trim_end_matches(['-', '_']).len());
    match check_name(&valid) {
        Ok(()) => valid,
        Err(NameProblem::Reserved) => format!("{valid}-server"),
        Err(_) => "server".to_owned(),
    }
}

/// The name itself, or with the first number at its end that makes it a new one: `excel`, `excel-2`, `excel-3`.
pub fn free_name(wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(wanted) {
        return wanted.to_owned();
    }
    let mut number = 2_u64;
    loop {
        let ending = format!("-{number}");
        let room = LONGEST_NAME.saturating_sub(ending.len());
        let name = wanted.chars().take(room).chain(ending.chars()).collect::<String>();
        if !is_taken(&name) {
            return name;
        }
        number += 1;
    }
}

/// The name of an environment variable made of words: `my-server`, `api key` → `MY_SERVER_API_KEY`.
pub(super) fn variable_name(words: &[&str]) -> String {
    let mut name = String::new();
    for letter in words.join("_").chars().take(100) {
        if letter.is_ascii_alphanumeric() {
            if name.is_empty() && letter.is_ascii_digit() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    name.truncate(name.trim_end_matches('_').len());
    if name.is_empty() { "SECRET".to_owned() } else { name }
}

/// Whether this can name an environment variable in a reference.
pub(super) fn is_variable(name: &str) -> bool {
    !name.bytes().next().is_none_or(|byte| byte.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_made_valid() {
        let made = |name: &str| valid_name(name);
        assert_eq!(made("My Server"), "my-server");
        assert_eq!(made("io.github.user/Excel_MCP"), "io-github-user-excel_mcp");
        assert_eq!(made("--x--"), "x");
        assert_eq!(made("native"), "native-server");
        assert_eq!(made("skill:invoices"), "skill-invoices");
        assert_eq!(made("搜索"), "server");
        assert_eq!(made(""), "server");
    }

    #[test]
    fn reserved_and_odd_names_are_refused() {
        assert_eq!(check_name("native"), Err(NameProblem::Reserved));
        assert_eq!(check_name("appflowy"), Err(NameProblem::Reserved));
        assert_eq!(check_name("skill:x"), Err(NameProblem::BadLetter));
        assert_eq!(check_name("-x"), Err(NameProblem::BadLetter));
        assert_eq!(check_name("GitHub"), Err(NameProblem::BadLetter));
        assert_eq!(check_name(&"x".repeat(65)), Err(NameProblem::TooLong));
        assert_eq!(check_name("excel_2-b"), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn made_names_are_valid_and_stay(name in ".{0,100}") {
            let valid = valid_name(&name);
            prop_assert_eq!(check_name(&valid), Ok(()));
            prop_assert_eq!(valid_name(&valid), valid);
        }

        #[test]
        fn free_names_are_new_and_valid(name in "[a-z][a-z0-9_-]{0,63}", count in 0_usize..12) {
            let mut taken = HashSet::new();
            for _ in 0..count {
                let name = free_name(&valid_name(&name), |name| taken.contains(name));
                prop_assert_eq!(check_name(&name), Ok(()));
                prop_assert!(taken.insert(name));
            }
        }

        #[test]
        fn variables_are_variables(words in proptest::collection::vec(".{0,30}", 0..4)) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            prop_assert!(is_variable(&variable_name(&words)));
        }
    }
}
