//! Detects whether the text around a call or code block presents it as an example.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

const EXAMPLE_PHRASES: [&str; 34] = [
    "for example",
    "for instance",
    "e.g.",
    "an example",
    "as example",
    "another example",
    "following example",
    "this example",
    "usage example",
    "example:",
    "examples:",
    "example call",
    "example usage",
    "example of",
    "example tool",
    "example format",
    "example output",
    "example request",
    "example response",
    "example json",
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
/// Phrases that introduce the example of a format, before code blocks and untagged calls only.
const FORMAT_PHRASES: [&str; 23] = [
    "the format is",
    "the format of",
    "format for",
    "the syntax",
    "syntax is",
    "of this form",
    "in the form",
    "template",
    "should look like",
    "must look like",
    "looks like this",
    "general form",
    "placeholder",
    "you would",
    "you'd",
    "would be",
    "would call",
    "would use",
    "would send",
    "格式如下",
    "格式为",
    "格式是",
    "模板",
];
/// Nouns that make the word `example` before them part of a name: an example file is a file.
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
const EXAMPLE_HEADINGS: [&str; 10] = [
    "example",
    "examples",
    "usage example",
    "example usage",
    "sample",
    "示例",
    "例子",
    "用法示例",
    "使用示例",
    "举例",
];
/// Characters of the line after a code block that are searched.
const MAX_SEARCHED_CHARS: usize = 200;
/// Phrases that refer to the text before.
const BACK_REFERENCES: [&str; 9] =
    ["above", "this is", "that is", "that was", "these are", "以上", "上面", "上述", "这是"];

static EXAMPLE_MATCHER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| build_matcher(&EXAMPLE_PHRASES));
static FORMAT_MATCHER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| build_matcher(&FORMAT_PHRASES));

/// Whether the text before a tagged call presents it as an example.
pub(super) fn introduces_tagged_example(before: &str) -> bool {
    contains_phrase(last_sentence(before), &EXAMPLE_MATCHER) || is_example_heading(last_line(before))
}

/// Whether the text before a code block or untagged call presents it as an example.
pub(super) fn introduces_block_example(before: &str) -> bool {
    contains_phrase(before, &EXAMPLE_MATCHER)
        || contains_phrase(last_sentence(before), &FORMAT_MATCHER)
        || is_example_heading(last_line(before))
}

/// Whether the line after a code block presents the block as an example.
pub(super) fn refers_back_to_example(after: &str) -> bool {
    let start: String = after.chars().take(MAX_SEARCHED_CHARS).collect();
    let lower = start.to_lowercase();
    let is_hypothetical =
        ["this would ", "that would ", "it would "].iter().any(|phrase| lower.starts_with(phrase));
    is_hypothetical
        || (BACK_REFERENCES.iter().any(|phrase| lower.contains(phrase))
            && contains_phrase(&start, &EXAMPLE_MATCHER))
}

pub(super) fn is_example_heading(line: &str) -> bool {
    let bare = line.trim().trim_matches(|c: char| matches!(c, '#' | '*' | ':' | '：' | '_' | ' '));
    let bare = bare.trim_end_matches(|c: char| c.is_ascii_digit()).trim().to_lowercase();
    EXAMPLE_HEADINGS.contains(&bare.as_str())
}

/// Whether the text contains one of the phrases as whole words that are not part of a name.
fn contains_phrase(text: &str, matcher: &LazyLock<Option<AhoCorasick>>) -> bool {
    matcher.iter().flat_map(|matcher| matcher.find_overlapping_iter(text)).any(|found| {
        let phrase = text.get(found.range()).unwrap_or_default();
        let before = text.get(..found.start()).and_then(|before| before.chars().next_back());
        let is_word_start = !phrase.is_ascii() || before.is_none_or(|c| !c.is_alphanumeric());
        let after = text.get(found.end()..).unwrap_or_default();
        is_word_start && (phrase.ends_with(['.', ':']) || !is_part_of_name(after))
    })
}

/// Matches any of these phrases, ignoring case.
fn build_matcher(phrases: &[&str]) -> Option<AhoCorasick> {
    // A few dozen short phrases always fit.
    AhoCorasick::builder().ascii_case_insensitive(true).build(phrases).ok()
}

/// Whether the text after the phrase makes it part of a name: `example.xlsx`, `an example file`.
fn is_part_of_name(after: &str) -> bool {
    let mut characters = after.chars();
    match characters.next() {
        Some('.') => characters.next().is_some_and(char::is_alphanumeric),
        Some('_' | '/' | '\\' | '-') => true,
        Some(c) if c.is_ascii_alphanumeric() => !c.eq_ignore_ascii_case(&'s'),
        _ => NAMED_NOUNS
            .iter()
            .any(|noun| after.get(..noun.len()).is_some_and(|start| start.eq_ignore_ascii_case(noun))),
    }
}

fn last_sentence(text: &str) -> &str {
    let text = text.trim_end();
    // Punctuation at the end belongs to the last sentence.
    let body = text.trim_end_matches(['.', '。', '!', '！', ':', '：']);
    let ends_sentence = |(at, c): &(usize, char)| match c {
        '。' | '！' | '？' | '\n' => true,
        // `e.g.` does not end a sentence.
        '.' if body.get(..=*at).is_some_and(|start| start.ends_with("e.g.")) => false,
        '.' | '!' | '?' => body.get(at + 1..).is_some_and(|rest| rest.starts_with(char::is_whitespace)),
        _ => false,
    };
    match body.char_indices().rev().find(ends_sentence) {
        Some((at, c)) => text.get(at + c.len_utf8()..).unwrap_or_default(),
        None => text,
    }
}

fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_that_introduce_an_example_are_recognized() {
        for before in [
            "For example:",
            "You can call it, e.g. like so:",
            "Here is an example of a call:\n",
            "A call would look like:",
            "## Example",
            "**Example 2:**",
            "例如：",
            "下面是一个调用示例：",
        ] {
            assert!(introduces_tagged_example(before), "{before}");
            assert!(introduces_block_example(before), "{before}");
        }
        for before in [
            "Every call has the syntax",
            "调用格式如下：",
            "Fill in this template:",
            "To call it, you would send this:",
        ] {
            assert!(!introduces_tagged_example(before), "{before}");
            assert!(introduces_block_example(before), "{before}");
        }
    }

    #[test]
    fn similar_phrases_introduce_no_example() {
        for before in [
            "",
            "I will read the example file:",
            "Reading example.xlsx now:",
            "Fetching https://example.com/a",
            "我来读取示例文件：",
            "Let me look that up:",
            "Calling the tool like this:",
        ] {
            assert!(!introduces_tagged_example(before), "{before}");
            assert!(!introduces_block_example(before), "{before}");
        }
        // The phrase is in another sentence of the same paragraph.
        assert!(!introduces_tagged_example("Files, for example, are read first. I do that now:"));
    }

    #[test]
    fn phrases_that_refer_back_to_an_example_are_recognized() {
        assert!(refers_back_to_example("The above is an example of a call."));
        assert!(refers_back_to_example("以上是一个示例。"));
        assert!(refers_back_to_example("This would return the sum."));
        assert!(!refers_back_to_example("This will return the sum."));
        assert!(!refers_back_to_example("This is the time in Tokyo."));
        assert!(!refers_back_to_example("For example, you could ask for the weather next."));
    }
}
