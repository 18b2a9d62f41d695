//! Recognizes lines that announce an example.

/// Phrases that announce an example, lowercase.
const PHRASES: [&str; 17] = [
    "example",
    "for instance",
    "e.g.",
    "sample call",
    "sample output",
    "hypothetical",
    "would look like",
    "might look like",
    "could look like",
    "例如",
    "比如",
    "譬如",
    "举例",
    "示例",
    "例子",
    "范例",
    "样例",
];
/// Nouns that make the word before them part of a name: an example file is a file.
const NAMED_NOUNS: [&str; 12] = [
    " file",
    " sheet",
    " workbook",
    " document",
    " folder",
    " table",
    " data",
    " page",
    "文件",
    "表",
    "数据",
    "文档",
];

/// Whether a line contains one of the phrases as whole words that are not part of a name, or is the heading of a sample.
pub(super) fn announces_example(line: &str) -> bool {
    let line = line.to_lowercase();
    let heading = line.trim_matches(|c: char| !c.is_alphabetic());
    heading == "sample"
        || PHRASES.iter().any(|phrase| {
            line.match_indices(phrase).any(|(at, _)| {
                let before = line.get(..at).and_then(|before| before.chars().next_back());
                let is_word_start = !phrase.is_ascii() || before.is_none_or(|c| !c.is_alphanumeric());
                let after = line.get(at + phrase.len()..).unwrap_or_default();
                is_word_start && (phrase.ends_with('.') || !is_part_of_name(after))
            })
        })
}

/// Whether the text after the phrase makes it part of a name: `example.xlsx`, `an example file`.
fn is_part_of_name(after: &str) -> bool {
    let mut characters = after.chars();
    match characters.next() {
        Some('.') => characters.next().is_some_and(char::is_alphanumeric),
        Some('_' | '/' | '\\' | '-') => true,
        Some(c) if c.is_ascii_alphanumeric() => c != 's',
        _ => NAMED_NOUNS.iter().any(|noun| after.starts_with(noun)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_recognized() {
        for line in [
            "For example:",
            "You can call it, e.g. like so:",
            "Here is an example of a call:",
            "Files, for example, are read first. I do that now:",
            "A call would look like:",
            "## Example",
            "**Example 2:**",
            "### Sample",
            "Usage examples",
            "例如：",
            "下面是一个调用示例：",
        ] {
            assert!(announces_example(line), "{line}");
        }
    }

    #[test]
    fn names_and_other_words_announce_nothing() {
        for line in [
            "",
            "I will read the example file:",
            "Reading example.xlsx now:",
            "Fetching https://example.com/a",
            "我来读取示例文件：",
            "Let me look that up:",
            "A counterexample:",
        ] {
            assert!(!announces_example(line), "{line}");
        }
    }
}
