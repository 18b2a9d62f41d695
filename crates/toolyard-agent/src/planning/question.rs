//! Recognizes requests that only ask something, so that a small model is not shown tools that change something.

use super::tool_name::is_changing_name;
use crate::prompt::PromptTool;

/// Words that ask for a change, in lower case; other forms of a verb begin with it.
const ENGLISH_ACTIONS: [&str; 37] = [
    "add",
    "append",
    "apply",
    "change",
    "clear",
    "clean",
    "commit the",
    "copy",
    "correct",
    "create",
    "delete",
    "edit",
    "enter",
    "fill",
    "fix",
    "format",
    "insert",
    "make a",
    "merge",
    "move",
    "note",
    "put",
    "record",
    "remember",
    "remove",
    "rename",
    "replace",
    "save",
    "send",
    "set",
    "sort",
    "store",
    "switch",
    "translate",
    "update",
    "upload",
    "write",
];
const CHINESE_ACTIONS: [&str; 34] = [
    "写",
    "新建",
    "创建",
    "建立",
    "保存",
    "存到",
    "存入",
    "删",
    "添加",
    "加上",
    "增加",
    "修改成",
    "改成",
    "改为",
    "改名",
    "重命名",
    "移动",
    "移到",
    "复制",
    "插入",
    "更新",
    "替换",
    "设置",
    "设为",
    "提交这",
    "提交所",
    "记住",
    "记下",
    "记录",
    "切换",
    "合并",
    "翻译",
    "发送",
    "上传",
];
const ENGLISH_QUESTIONS: [&str; 17] = [
    "who", "whom", "whose", "what", "when", "where", "which", "why", "how", "is", "are", "was", "were",
    "does", "do", "did", "has",
];
const CHINESE_QUESTIONS: [&str; 14] = [
    "谁",
    "什么",
    "哪",
    "多少",
    "几",
    "吗",
    "怎么",
    "怎样",
    "为什么",
    "是否",
    "有没有",
    "何时",
    "告诉我",
    "查一下",
];

/// Whether a request asks something and nothing else.
pub(super) fn is_plain_question(request: &str) -> bool {
    let text = request.trim().to_lowercase();
    let words: Vec<&str> =
        text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let asks = text.ends_with(['?', '？'])
        || words.first().is_some_and(|first| ENGLISH_QUESTIONS.contains(first))
        || CHINESE_QUESTIONS.iter().any(|word| text.contains(word));
    let acts = |action: &&str| match action.split_once(' ') {
        Some(_) => text.contains(*action),
        None => words.contains(action),
    };
    asks && !ENGLISH_ACTIONS.iter().any(acts) && !CHINESE_ACTIONS.iter().any(|action| text.contains(action))
}

/// Whether a tool changes something, as far as its trusted hints and its name tell.
pub(super) fn changes_something(tool: &PromptTool) -> bool {
    !tool.is_known_read_only() && is_changing_name(tool.name())
}

#[cfg(test)]
mod tests {
    use toolyard_core::ToolSpec;

    use super::*;

    #[test]
    fn questions_are_told_from_requests_for_a_change() {
        for question in [
            "Which month has the highest sales in sales.xlsx?",
            "who made the last commit, and what was it about",
            "How many orders have an amount over 100?",
            "What is the setting of the door code?",
            "哪个月的销售额最高？",
            "打开 http://a/b.html，告诉我明天的最高气温",
            "我的仓库里有哪些还没有提交的修改？",
        ] {
            assert!(is_plain_question(question), "{question}");
        }
        for request in [
            "Can you rename report.txt to final.txt?",
            "Which month is best? Write it into B2",
            "Rename report.txt",
            "Read the page and save the hours in hours.txt",
            "哪个月最高？把它写入 B2",
            "能把 report.txt 改名为 final.txt 吗？",
            "Hello",
            "",
        ] {
            assert!(!is_plain_question(request), "{request}");
        }
    }

    #[test]
    fn tools_that_change_something_are_known_by_their_names() {
        let tool = |name: &str| PromptTool::new(&ToolSpec::new(name, ""));
        for changing in
            ["git_commit", "delete_sheet_rows", "write_file", "createBranch", "git_checkout", "edit_file"]
        {
            assert!(changes_something(&tool(changing)), "{changing}");
        }
        for reading in
            ["git_log", "read_query", "convert_time", "calculate", "fetch", "get_workbook_metadata"]
        {
            assert!(!changes_something(&tool(reading)), "{reading}");
        }
    }
}
