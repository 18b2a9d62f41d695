//! What the name of a tool says about it, where nothing else is known. It only ever makes things stricter.

/// Words of tools that only look.
const READING: [&str; 27] = [
    "get", "read", "list", "fetch", "show", "check", "search", "find", "view", "describe", "query", "status",
    "state", "health", "log", "logs", "validate", "lint", "test", "tests", "monitor", "history", "lookup",
    "count", "inspect", "look", "browse",
];
/// Words of tools that do more than that.
const CHANGING: [&str; 34] = [
    "write", "create", "send", "delete", "update", "set", "add", "put", "post", "move", "copy", "rename",
    "insert", "append", "apply", "save", "upload", "remove", "run", "execute", "start", "stop", "edit",
    "make", "import", "merge", "replace", "clear", "reset", "cancel", "submit", "publish", "install",
    "format",
];

/// The words of a name, in lower case: of `getBuildStatus` as of `get_build_status`.
pub(crate) fn words(tool: &str) -> Vec<String> {
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

/// Whether a name says that the tool looks and does nothing else.
pub(crate) fn only_reads(tool: &str) -> bool {
    let words = words(tool);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    has(&READING) && !has(&CHANGING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_only_looks() {
        for tool in ["get_build_status", "readMail", "read_data_from_excel", "logs.search", "fetch"] {
            assert!(only_reads(tool), "{tool}");
        }
        for tool in ["write_file", "get_or_create_task", "send_message", "calculate", "copyAndRead", ""] {
            assert!(!only_reads(tool), "{tool}");
        }
    }
}
