//! Whether the words before or after a block say that it is an example.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// Words that say it outright.
const OUTRIGHT: [&str; 34] = [
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
/// Words that say it of something that is set off from the text.
const OF_A_BLOCK: [&str; 23] = [
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
/// What makes a thing of it that only has that name: an example file is a file.
const THINGS: [&str; 12] = [
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
/// Headings that put everything below them among the examples.
const HEADINGS: [&str; 10] = [
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
/// Words that point back.
const BACK: [&str; 9] =
    ["above", "this is", "that is", "that was", "these are", "以上", "上面", "上述", "这是"];

static SAID_OUTRIGHT: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| finder(&OUTRIGHT));
static SAID_OF_A_BLOCK: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| finder(&OF_A_BLOCK));

/// Whether words before a tagged call, those of its own sentence, say that it is an example.
pub(super) fn introduces_tagged(before: &str) -> bool {
    says(last_sentence(before), &SAID_OUTRIGHT) || is_heading(last_line(before))
}

/// Whether words before something that is set off from the text, or untagged, say so.
pub(super) fn introduces_block(before: &str) -> bool {
    says(before, &SAID_OUTRIGHT)
        || says(last_sentence(before), &SAID_OF_A_BLOCK)
        || is_heading(last_line(before))
}

/// Whether the line after a block says so.
pub(super) fn points_back(after: &str) -> bool {
    let start: String = after.chars().take(200).collect();
    let lower = start.to_lowercase();
    // What a call would do, it does not do.
    let would = ["this would ", "that would ", "it would "].iter().any(|word| lower.starts_with(word));
    would || (BACK.iter().any(|word| lower.contains(word)) && says(&start, &SAID_OUTRIGHT))
}

/// Whether a heading puts what follows among the examples.
pub(super) fn is_heading(line: &str) -> bool {
    let bare = line.trim().trim_matches(|c: char| matches!(c, '#' | '*' | ':' | '：' | '_' | ' '));
    let bare = bare.trim_end_matches(|c: char| c.is_ascii_digit()).trim().to_lowercase();
    HEADINGS.contains(&bare.as_str())
}

fn says(text: &str, words: &LazyLock<Option<AhoCorasick>>) -> bool {
    words.iter().flat_map(|words| words.find_overlapping_iter(text)).any(|found| {
        let word = text.get(found.range()).unwrap_or_default();
        let before = text.get(..found.start()).and_then(|before| before.chars().next_back());
        let begins = !word.is_ascii() || before.is_none_or(|c| !c.is_alphanumeric());
        let after = text.get(found.end()..).unwrap_or_default();
        begins && (word.ends_with(['.', ':']) || !names_a_thing(after))
    })
}

/// Finds any of these words, in capital letters or not.
fn finder(words: &[&str]) -> Option<AhoCorasick> {
    // A few dozen short words always fit.
    AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
}

/// Whether what follows the word makes it part of a name: `example.xlsx`, `an example file`.
fn names_a_thing(after: &str) -> bool {
    let mut characters = after.chars();
    match characters.next() {
        Some('.') => characters.next().is_some_and(char::is_alphanumeric),
        Some('_' | '/' | '\\' | '-') => true,
        Some(c) if c.is_ascii_alphanumeric() => !c.eq_ignore_ascii_case(&'s'),
        _ => THINGS
            .iter()
            .any(|thing| after.get(..thing.len()).is_some_and(|start| start.eq_ignore_ascii_case(thing))),
    }
}

fn last_sentence(text: &str) -> &str {
    let text = text.trim_end();
    // The mark that ends the text ends the sentence itself.
    let body = text.trim_end_matches(['.', '。', '!', '！', ':', '：']);
    let ends = |(at, c): &(usize, char)| match c {
        '。' | '！' | '？' | '\n' => true,
        // `e.g.` ends no sentence.
        '.' if body.get(..=*at).is_some_and(|start| start.ends_with("e.g.")) => false,
        '.' | '!' | '?' => body.get(at + 1..).is_some_and(|rest| rest.starts_with(char::is_whitespace)),
        _ => false,
    };
    match body.char_indices().rev().find(ends) {
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
    fn words_that_introduce_an_example() {
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
            assert!(introduces_tagged(before), "{before}");
            assert!(introduces_block(before), "{before}");
        }
        for before in [
            "Every call has the syntax",
            "调用格式如下：",
            "Fill in this template:",
            "To call it, you would send this:",
        ] {
            assert!(!introduces_tagged(before), "{before}");
            assert!(introduces_block(before), "{before}");
        }
    }

    #[test]
    fn words_that_only_sound_like_it() {
        for before in [
            "",
            "I will read the example file:",
            "Reading example.xlsx now:",
            "Fetching https://example.com/a",
            "我来读取示例文件：",
            "Let me look that up:",
            "Calling the tool like this:",
        ] {
            assert!(!introduces_tagged(before), "{before}");
            assert!(!introduces_block(before), "{before}");
        }
        // Another sentence of the same paragraph speaks of something else.
        assert!(!introduces_tagged("Files, for example, are read first. I do that now:"));
    }

    #[test]
    fn words_that_come_after() {
        assert!(points_back("The above is an example of a call."));
        assert!(points_back("以上是一个示例。"));
        assert!(points_back("This would return the sum."));
        assert!(!points_back("This will return the sum."));
        assert!(!points_back("This is the time in Tokyo."));
        assert!(!points_back("For example, you could ask for the weather next."));
    }
}
