//! The one line of a server's stderr that an error message quotes.

/// Lines from the end that are searched for one that names an error.
const MAX_SEARCHED_LINES: usize = 30;
const MAX_LINE_CHARS: usize = 200;

/// `: LINE` with the line that most likely says why the server failed, at most 200 characters: the last one that names an
/// error (a stack trace or a version may follow it), else the last one. Empty if there is no line.
pub(crate) fn stderr_suffix(stderr: &str) -> String {
    let lines =
        || stderr.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(MAX_SEARCHED_LINES);
    let names_error =
        |line: &&str| ["error:", "panicked", "fatal"].iter().any(|word| contains_ignoring_case(line, word));
    let Some(line) = lines().find(names_error).or_else(|| lines().next()) else { return String::new() };
    let mut letters = line.chars();
    let shown: String = letters.by_ref().take(MAX_LINE_CHARS).collect();
    let ellipsis = if letters.next().is_some() { "…" } else { "" };
    format!(": {shown}{ellipsis}")
}

fn contains_ignoring_case(line: &str, word: &str) -> bool {
    line.as_bytes().windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_line_that_names_the_error_is_quoted() {
        let python = "Traceback (most recent call last):\n  File \"x.py\", line 1\nModuleNotFoundError: No module named 'mcp'\n";
        assert_eq!(stderr_suffix(python), ": ModuleNotFoundError: No module named 'mcp'");
        let node = "throw err;\nError: Cannot find module 'x'\n    at f (a.js:1)\n    at g (b.js:2)\n\nNode.js v22.1.0\n";
        assert_eq!(stderr_suffix(node), ": Error: Cannot find module 'x'");
        assert_eq!(stderr_suffix("starting\nno API key given\n\n"), ": no API key given");
        assert_eq!(stderr_suffix(" \n\n"), "");
    }

    proptest! {
        #[test]
        fn one_short_line_whatever_the_server_writes(stderr in r"(\PC|[\n\r\t]){0,3000}") {
            let suffix = stderr_suffix(&stderr);
            prop_assert!(suffix.chars().count() <= MAX_LINE_CHARS + 3 && !suffix.contains('\n'));
            prop_assert_eq!(suffix.is_empty(), stderr.trim().is_empty());
        }
    }
}
