//! Names of servers.

use toolyard_core::SourceId;

/// Tool names are prefixed with server names, and many clients fail beyond 64 characters.
pub const MAX_NAME_LENGTH: usize = 64;

/// Why a server name is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name of a server is empty.
    ///
    /// Remedy: give it a name, such as `files`.
    #[error("empty")]
    Empty,
    /// The name of a server is too long.
    ///
    /// Remedy: choose a shorter name.
    #[error("longer than {MAX_NAME_LENGTH} characters")]
    TooLong,
    /// The name of a server has other characters, such as capitals, spaces or dots.
    ///
    /// Remedy: use lowercase letters, digits, `-` and `_`.
    #[error("only `a` to `z`, digits, `-` and `_` are allowed, starting with a letter or digit")]
    InvalidCharacter,
    /// `native` and some other names are those of built-in tools.
    ///
    /// Remedy: choose another name.
    #[error("reserved for built-in tools")]
    Reserved,
}

/// Checks a server name.
pub fn check_server_name(name: &str) -> Result<(), NameError> {
    let is_letter_or_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if name.is_empty() {
        Err(NameError::Empty)
    } else if name.len() > MAX_NAME_LENGTH {
        Err(NameError::TooLong)
    } else if !name.bytes().all(|byte| is_letter_or_digit(byte) || matches!(byte, b'-' | b'_'))
        || !name.bytes().next().is_some_and(is_letter_or_digit)
    {
        Err(NameError::InvalidCharacter)
    } else if SourceId::is_native_hint(name) {
        Err(NameError::Reserved)
    } else {
        Ok(())
    }
}

/// The nearest valid name: `My Server` becomes `my-server`; a name without any valid character becomes `server`.
pub fn suggest_server_name(name: &str) -> String {
    let mut suggestion = String::new();
    for character in name.chars() {
        if suggestion.len() >= MAX_NAME_LENGTH {
            break;
        }
        let character = character.to_ascii_lowercase();
        match character {
            'a'..='z' | '0'..='9' => suggestion.push(character),
            '_' if !suggestion.is_empty() => suggestion.push('_'),
            _ if !suggestion.is_empty() && !suggestion.ends_with(['-', '_']) => suggestion.push('-'),
            _ => {}
        }
    }
    suggestion.truncate(suggestion.trim_end_matches(['-', '_']).len());
    match check_server_name(&suggestion) {
        Ok(()) => suggestion,
        Err(NameError::Reserved) => format!("{suggestion}-server"),
        Err(_) => "server".to_owned(),
    }
}

/// The name, with a number appended if it is taken: `excel`, `excel-2`, `excel-3`.
pub fn unique_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(name) {
        return name.to_owned();
    }
    let mut number = 2_u64;
    loop {
        let suffix = format!("-{number}");
        let room = MAX_NAME_LENGTH.saturating_sub(suffix.len());
        let candidate = name.chars().take(room).chain(suffix.chars()).collect::<String>();
        if !is_taken(&candidate) {
            return candidate;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_names_get_a_valid_suggestion() {
        let suggest = |name: &str| suggest_server_name(name);
        assert_eq!(suggest("My Server"), "my-server");
        assert_eq!(suggest("io.github.user/Excel_MCP"), "io-github-user-excel_mcp");
        assert_eq!(suggest("--x--"), "x");
        assert_eq!(suggest("native"), "native-server");
        assert_eq!(suggest("skill:invoices"), "skill-invoices");
        assert_eq!(suggest("搜索"), "server");
        assert_eq!(suggest(""), "server");
    }

    #[test]
    fn reserved_and_invalid_names_are_rejected() {
        assert_eq!(check_server_name("native"), Err(NameError::Reserved));
        assert_eq!(check_server_name("appflowy"), Err(NameError::Reserved));
        assert_eq!(check_server_name("skill:x"), Err(NameError::InvalidCharacter));
        assert_eq!(check_server_name("-x"), Err(NameError::InvalidCharacter));
        assert_eq!(check_server_name("GitHub"), Err(NameError::InvalidCharacter));
        assert_eq!(check_server_name(&"x".repeat(65)), Err(NameError::TooLong));
        assert_eq!(check_server_name("excel_2-b"), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn suggestions_are_valid_and_stable(name in ".{0,100}") {
            let valid = suggest_server_name(&name);
            prop_assert_eq!(check_server_name(&valid), Ok(()));
            prop_assert_eq!(suggest_server_name(&valid), valid);
        }

        #[test]
        fn unique_names_are_unique_and_valid(name in "[a-z][a-z0-9_-]{0,63}", count in 0_usize..12) {
            let mut taken = HashSet::new();
            for _ in 0..count {
                let name = unique_name(&suggest_server_name(&name), |name| taken.contains(name));
                prop_assert_eq!(check_server_name(&name), Ok(()));
                prop_assert!(taken.insert(name));
            }
        }
    }
}
