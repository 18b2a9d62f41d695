//! Syntax of single configured values: names of variables, URLs.

/// Longer names are truncated.
const MAX_VARIABLE_NAME_CHARS: usize = 100;

/// An environment variable name made of words: `my-server`, `api key` → `MY_SERVER_API_KEY`.
pub(super) fn to_variable_name(words: &[&str]) -> String {
    let mut name = String::new();
    for character in words.join("_").chars().take(MAX_VARIABLE_NAME_CHARS) {
        if character.is_ascii_alphanumeric() {
            if name.is_empty() && character.is_ascii_digit() {
                name.push('_');
            }
            name.push(character.to_ascii_uppercase());
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
    let has_prefix =
        |prefix: &str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    has_prefix("http://") || has_prefix("https://")
}

/// Whether the system allows an environment variable of this name.
pub(super) fn is_environment_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}
