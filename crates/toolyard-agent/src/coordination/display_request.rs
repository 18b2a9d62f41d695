//! Recognizes requests that only ask to see a result.

use std::collections::BTreeSet;

/// Words that ask to see something.
const DISPLAY_WORDS: [&str; 14] = [
    "read",
    "show",
    "list",
    "display",
    "print",
    "open",
    "读取",
    "读一下",
    "查看",
    "显示",
    "列出",
    "打开",
    "看看",
    "读出",
];
/// Words that ask for more than to see something.
const NON_DISPLAY_WORDS: [&str; 72] = [
    "?",
    "？",
    "how",
    "which",
    "what",
    "who",
    "why",
    "when",
    "where",
    "sum",
    "total",
    "average",
    "mean",
    "max",
    "min",
    "maximum",
    "minimum",
    "highest",
    "lowest",
    "most",
    "least",
    "compare",
    "count",
    "tell",
    "find",
    "explain",
    "translate",
    "check",
    "summarize",
    "summarise",
    "calculate",
    "add",
    "write",
    "save",
    "and",
    "then",
    "delete",
    "remove",
    "send",
    "sort",
    "sorted",
    "newest",
    "latest",
    "oldest",
    "first",
    "last",
    "top",
    "where",
    "only",
    "except",
    "filter",
    "多少",
    "哪",
    "几",
    "最",
    "总",
    "平均",
    "求",
    "比较",
    "统计",
    "分析",
    "告诉",
    "翻译",
    "检查",
    "写",
    "并",
    "然后",
    "删",
    "发",
    "按",
    "前",
    "只",
];

/// Whether showing the result of a tool fulfils a request.
pub(super) fn is_display_request(question: &str) -> bool {
    let text = question.to_lowercase();
    let words: BTreeSet<&str> = text.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let is_ascii_word = |word: &str| word.bytes().all(|letter| letter.is_ascii_alphabetic());
    let has_any = |known: &[&str]| {
        known.iter().any(|word| if is_ascii_word(word) { words.contains(word) } else { text.contains(word) })
    };
    has_any(&DISPLAY_WORDS) && !has_any(&NON_DISPLAY_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_display_requests_are_recognized() {
        for question in ["帮我读取 test.xlsx 的 Sheet1 工作表", "Read Sheet1 of test.xlsx", "Show the orders"]
        {
            assert!(is_display_request(question), "{question}");
        }
        for question in [
            "Which month sold most in test.xlsx?",
            "读取 test.xlsx 并告诉我最高的销售额",
            "Hello",
            "Read it and sum it",
            "Show the 5 newest orders",
            "Read x.csv and delete row 1",
        ] {
            assert!(!is_display_request(question), "{question}");
        }
    }
}
