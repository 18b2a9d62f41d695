//! Guesses from a tool's name whether it only reads. The guess is used for repairs and verification, never for permissions.

const READ_WORDS: [&str; 27] = [
    "get", "read", "list", "fetch", "show", "check", "search", "find", "view", "describe", "query", "status",
    "state", "health", "log", "logs", "validate", "lint", "test", "tests", "monitor", "history", "lookup",
    "count", "inspect", "look", "browse",
];
const WRITE_WORDS: [&str; 38] = [
    "write", "create", "send", "delete", "update", "set", "add", "put", "post", "move", "copy", "rename",
    "insert", "append", "apply", "save", "upload", "remove", "run", "execute", "start", "stop", "edit",
    "make", "import", "merge", "replace", "clear", "reset", "cancel", "submit", "publish", "install",
    "format", "commit", "checkout", "unmerge", "push",
];

/// The words of a name in lower case, for `getBuildStatus` and `get_build_status` alike.
pub(crate) fn name_words(tool: &str) -> Vec<String> {
    let mut spaced = String::new();
    for letter in tool.chars() {
        if letter.is_uppercase() {
            spaced.push(' ');
        }
        spaced.extend(letter.to_lowercase());
    }
    let words = spaced.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

pub(crate) fn is_read_only_name(tool: &str) -> bool {
    let words = name_words(tool);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    has(&READ_WORDS) && !has(&WRITE_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_names_are_recognized() {
        for tool in ["get_build_status", "readMail", "read_data_from_excel", "logs.search", "fetch"] {
            assert!(is_read_only_name(tool), "{tool}");
        }
        for tool in ["write_file", "get_or_create_task", "send_message", "calculate", "copyAndRead", ""] {
            assert!(!is_read_only_name(tool), "{tool}");
        }
    }
}
