//! Syntax of single configured values: names of variables and headers, URLs.

/// An environment variable name made of words: `my-server`, `api key` → `MY_SERVER_API_KEY`.
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

/// Whether a reference can name this variable.
pub(super) fn is_variable_name(name: &str) -> bool {
    !name.bytes().next().is_none_or(|byte| byte.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(super) fn is_http_url(text: &str) -> bool {
    let begins = |start: &str| text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
    begins("http://") || begins("https://")
}

pub(super) fn is_environment_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Whether this is a token of RFC 9110.
pub(super) fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn generated_variable_names_are_valid(words in proptest::collection::vec(".{0,30}", 0..4)) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            prop_assert!(is_variable_name(&variable_name(&words)));
        }
    }
}
