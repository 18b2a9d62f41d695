//! The changes that a request asks for.

use super::{
    conditions::has_condition,
    families::{Family, Imperative, families},
    identifiers::identifiers,
    text::{clauses, is_chinese, sentences, without_quotes, words},
};

/// A change that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    /// The clause.
    pub(super) text: String,
    /// Its verb; `None` for one that is not known.
    pub(super) family: Option<&'static Family>,
    pub(super) certainty: Certainty,
    /// The words of its object, as far as they name something.
    pub(super) object: Vec<String>,
    /// The verb, if no family has it.
    pub(super) unknown_verb: Option<String>,
}

/// How certain it is that a request asks for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Certain,
    /// Only under a condition: "if it can be merged, merge it".
    Conditional,
    /// Perhaps only a text is wanted: "translate the first line".
    Possible,
}

/// Words before an imperative.
const FILLERS: [&str; 24] = [
    "please", "kindly", "now", "then", "also", "just", "first", "finally", "can", "could", "would", "you",
    "help", "me", "us", "and", "let's", "hey", "hi", "ok", "next", "to", "go", "ahead",
];
/// Words before which "to" starts what the user wants: "I want you to delete it".
const WISHES: [&str; 6] = ["you", "want", "need", "like", "going", "us"];
/// Words that start a question: its verbs are no imperatives.
const QUESTION_WORDS: [&str; 30] = [
    "how", "what", "what's", "who", "who's", "whom", "when", "where", "which", "why", "did", "does", "do",
    "is", "are", "was", "were", "has", "have", "had", "should", "will", "whose", "explain", "am", "may",
    "might", "how's", "where's", "many",
];
/// Verbs that ask for information.
const READ_VERBS: &str = "show list read find search look give get fetch count calculate compute compare check see describe \
    explain summarize summarise tell display print view analyze analyse verify review estimate identify determine name \
    recommend suggest sum add total average convert translate help let make think guess define spell quote report inspect \
    examine query say answer know work figure measure rank predict browse download open ensure solve outline proofread \
    interpret note mind walk pull grab retrieve lookup scan use try visit follow repeat write create extract collect gather pick detect locate discover research investigate evaluate \
    assess test monitor track trace match classify categorize group detail point provide present return output prepare plan \
    brainstorm propose rephrase paraphrase simplify decode encode hash parse diff benchmark score rate study learn watch listen \
    hear break map chart plot draw sketch generate keep leave";
/// Nouns for what is stored somewhere.
const STORED_NOUNS: &str = "file files folder folders directory sheet sheets worksheet workbook spreadsheet table database \
    row rows column columns cell cells range chart repo repository branch branches tag issue issues ticket tickets pull pr \
    note notes memory calendar event events appointment document doc page pages task tasks todo record records entry \
    entries entity entities relation observation channel meeting reminder key config configuration setting settings option \
    status account user users permission permissions contact contacts draft label project playlist form invoice order \
    orders version header headers readme script variable backlog board card inbox mail mails email emails message \
    messages wiki slot invitation list desktop bucket queue job deployment service alarm timer light lights";
/// Chinese nouns for what is stored somewhere.
const CHINESE_STORED_NOUNS: &str = "文件 文件夹 目录 工作表 工作簿 表格 表头 数据库 行 列 单元格 图表 仓库 分支 标签 笔记 日历 日程 文档 \
    页面 任务 记录 实体 区域 待办 邮件 会议 配置 设置 草稿 频道 联系人 账户 订单 表单 记忆 清单 列表 PR";
/// Words after a verb in the imperative.
const DETERMINERS: [&str; 23] = [
    "the",
    "a",
    "an",
    "my",
    "our",
    "your",
    "this",
    "that",
    "these",
    "those",
    "all",
    "every",
    "each",
    "it",
    "them",
    "any",
    "both",
    "his",
    "her",
    "their",
    "its",
    "everything",
    "some",
];
/// Wishes that are no imperatives.
const INDIRECT_WISHES: [&str; 9] = [
    "would be great if",
    "would be nice if",
    "would be good if",
    "would be lovely if",
    "would be helpful if",
    "i wish",
    "needs to be",
    "need to be",
    "i'd love",
];
const CHINESE_INDIRECT_WISHES: [&str; 8] =
    ["就好了", "希望", "最好", "应该改", "应该是", "得改", "需要改", "想让"];
/// Chinese words of questions and of reports about the past.
const CHINESE_QUESTIONS: [&str; 17] = [
    "如何",
    "怎么",
    "怎样",
    "谁",
    "什么",
    "哪",
    "是否",
    "吗",
    "多少",
    "为什么",
    "几",
    "有没有",
    "何时",
    "最近",
    "上次",
    "是不是",
    "呢",
];
/// Chinese words of requests for information or for a text.
const CHINESE_INQUIRIES: [&str; 42] = [
    "查",
    "看",
    "统计",
    "总结",
    "搜",
    "比较",
    "列",
    "告诉",
    "分析",
    "算",
    "找",
    "读",
    "问",
    "介绍",
    "解释",
    "说明",
    "翻译",
    "推荐",
    "估",
    "预测",
    "描述",
    "对比",
    "汇总",
    "检查",
    "确认",
    "了解",
    "显示",
    "天气",
    "概括",
    "评",
    "想知道",
    "讲",
    "写",
    "念",
    "帮我想",
    "摘要",
    "怎",
    "简述",
    "区别",
    "意思",
    "最近",
    "译",
];
/// What follows a Chinese verb in a report about the past.
const CHINESE_PAST: [&str; 3] = ["了", "过", "的"];
/// After these, a clause says what a message contains.
const CHINESE_CONTENT: [&str; 6] = ["说", "告诉他", "告诉她", "内容是", "内容为", "写着"];
const ENGLISH_CONTENT: [&str; 5] = ["that", "saying", "says", "reading", "asking"];

/// The changes that a request asks for.
pub(super) fn wishes(question: &str) -> Vec<Wish> {
    let mut found = Vec::new();
    for sentence in sentences(&without_quotes(question)) {
        found.extend(english_wishes(sentence));
        found.extend(chinese_wishes(sentence));
    }
    found
}

fn english_wishes(sentence: &str) -> Vec<Wish> {
    let lower = sentence.to_lowercase().replace('’', "'");
    if !lower.chars().any(|letter| letter.is_ascii_alphabetic()) {
        return Vec::new();
    }
    let sentence_words = words(sentence);
    let skipped = ["and", "so", "ok", "hi", "hello", "hey", "well", "also", "but"];
    let first = sentence_words.iter().find(|word| !skipped.contains(&word.as_str()));
    // "Can the header be bold?" may ask for it.
    let asks_whether =
        first.is_some_and(|word| matches!(word.as_str(), "can" | "could")) && lower.contains(" be ");
    let is_question = first.is_some_and(|word| QUESTION_WORDS.contains(&word.as_str()));
    let is_conditional = sentence_words
        .iter()
        .any(|word| matches!(word.as_str(), "if" | "unless" | "ensure" | "sure" | "otherwise"));
    let mut found = Vec::new();
    if !is_question {
        let mut is_content = false;
        for clause in clauses(sentence) {
            if is_content {
                break;
            }
            let (requests, leads_to_content) = english_clause(clause, sentence);
            found.extend(requests);
            is_content = leads_to_content;
        }
    }
    let has = |words: &[&str]| words.iter().any(|word| sentence_words.iter().any(|known| known == word));
    let is_wish = INDIRECT_WISHES.iter().any(|wish| lower.contains(wish))
        || has(&["should", "must", "ought"])
        || (["i'd like", "i would like", "i want", "i need"].iter().any(|start| lower.contains(start))
            && lower.contains(" to be "));
    let asks_to_tell = ["tell me", "show me", "let me know", "know", "explain", "find out"];
    if found.is_empty() && is_wish && !is_question && !asks_to_tell.iter().any(|words| lower.contains(words))
    {
        found.push(wish(sentence, None, Certainty::Certain));
    } else if found.is_empty() && asks_whether {
        found.push(wish(sentence, None, Certainty::Possible));
    } else if is_conditional {
        for wish in found.iter_mut().filter(|wish| wish.certainty == Certainty::Certain) {
            wish.certainty = Certainty::Conditional;
        }
    }
    found
}

/// The wishes of a clause, and whether what follows is the content of a message.
fn english_clause(clause: &str, sentence: &str) -> (Vec<Wish>, bool) {
    let words = words(clause);
    let word = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
    let mut found = Vec::new();
    for at in 0..words.len() {
        let before = words.get(..at).unwrap_or_default();
        let is_content = |word: &String| ENGLISH_CONTENT.contains(&word.as_str());
        let sends = |wish: &Wish| wish.family.is_some_and(|family| family.is_named("send"));
        if before.iter().any(is_content) && found.iter().any(sends) {
            return (found, true);
        }
        if !is_imperative(before) {
            continue;
        }
        let rest = words.get(at + 1..).unwrap_or_default();
        let verbs =
            families().iter().filter_map(|family| Some((family, family.imperative(word(at), word(at + 1))?)));
        // A verb of two words is more telling than its first word alone.
        let verb = verbs.max_by_key(|(_, (base, _))| base.len());
        if let Some((family, (base, imperative))) = verb {
            if let Some(certainty) = certainty(base, imperative, rest, sentence) {
                found.push(Wish { object: object_words(rest), ..wish(clause, Some(family), certainty) });
            }
        } else if looks_like_change(word(at), word(at + 1), clause) {
            let (unknown_verb, object) = (Some(word(at).to_owned()), object_words(rest));
            found.push(Wish { unknown_verb, object, ..wish(clause, None, Certainty::Certain) });
        }
    }
    (found, false)
}

fn wish(text: &str, family: Option<&'static Family>, certainty: Certainty) -> Wish {
    Wish { text: text.to_owned(), family, certainty, object: Vec::new(), unknown_verb: None }
}

/// The words of an object that name something, up to the next verb.
fn object_words(rest: &[String]) -> Vec<String> {
    let is_verb =
        |word: &str, next: &str| families().iter().any(|family| family.imperative(word, next).is_some());
    let mut found = Vec::new();
    for (at, word) in rest.iter().enumerate() {
        let next = rest.get(at + 1).map(String::as_str).unwrap_or_default();
        let after = rest.get(at + 2).map(String::as_str).unwrap_or_default();
        if matches!(word.as_str(), "and" | "then") && is_verb(next, after) {
            break;
        }
        let is_name = word.len() > 2
            && word.chars().all(char::is_alphanumeric)
            && !DETERMINERS.contains(&word.as_str())
            && !PREPOSITIONS.contains(&word.as_str())
            && !is_listed("called named please new one two three each", word);
        if is_name {
            found.push(word.clone());
        }
    }
    found
}

fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// An unknown verb with an object, at the start of a clause.
fn looks_like_change(word: &str, next: &str, clause: &str) -> bool {
    let is_word = word.len() > 2 && word.chars().all(|letter| letter.is_ascii_alphabetic());
    let is_other = is_listed(READ_VERBS, word)
        || QUESTION_WORDS.contains(&word)
        || FILLERS.contains(&word)
        || DETERMINERS.contains(&word)
        || word.ends_with("ing")
        || PREPOSITIONS.contains(&word);
    // A word that is part of a name is not found alone: `#general`.
    let mut parts = clause.split_whitespace().skip_while(|part| part.to_lowercase() != word);
    let is_found = parts.next().is_some();
    let object = parts.next().unwrap_or_default();
    let has_determiner = DETERMINERS.contains(&next) && next != "that";
    is_word && is_found && !is_other && (has_determiner || !identifiers(object).is_empty())
}

const PREPOSITIONS: [&str; 30] = [
    "for", "with", "from", "into", "onto", "about", "after", "before", "under", "over", "between", "during",
    "per", "via", "and", "but", "not", "than", "because", "while", "since", "until", "within", "without",
    "there", "only", "all", "if", "when", "like",
];

/// Whether a verb after these words is an imperative.
fn is_imperative(before: &[String]) -> bool {
    if before.iter().all(|word| FILLERS.contains(&word.as_str())) {
        return true;
    }
    match before {
        [.., wish, to] if to == "to" => WISHES.contains(&wish.as_str()),
        [.., last] => matches!(last.as_str(), "and" | "then" | "please"),
        [] => true,
    }
}

/// How certainly an imperative asks for a change; `None` if it asks for none.
fn certainty(base: &str, imperative: Imperative, rest: &[String], sentence: &str) -> Option<Certainty> {
    let next = rest.first().map(String::as_str).unwrap_or_default();
    let is_for_user = matches!(next, "me" | "us");
    let has_noun = |nouns: &[&str]| rest.iter().any(|word| nouns.contains(&word.as_str()));
    let is_idiom = match base {
        // "Add up" is a calculation, "make sure" an idiom, "note that" a remark.
        "add" => next == "up" || next == "together",
        "make" => next == "sure",
        // "Push it back" postpones something.
        "push" if has_noun(&["back"]) => return Some(Certainty::Possible),
        "note" | "set" | "put" if next == "that" || next == "out" => true,
        "tell" | "send" | "answer" | "ask" | "text" if is_for_user => true,
        "do" | "process" | "handle" | "perform" | "complete" | "finish" | "start" => true,
        "open" => !has_noun(&["issue", "issues", "ticket", "pr", "pull", "account"]),
        _ => false,
    };
    if is_idiom {
        return None;
    }
    // The place may follow a list: "add eggs, milk and flour to my list".
    let is_stored =
        words(sentence).iter().any(|word| is_listed(STORED_NOUNS, word)) || !identifiers(sentence).is_empty();
    match imperative {
        Imperative::Change => Some(Certainty::Certain),
        Imperative::Stored => is_stored.then_some(Certainty::Certain),
        Imperative::Ambiguous => is_stored.then_some(Certainty::Possible),
    }
}

fn chinese_wishes(sentence: &str) -> Vec<Wish> {
    if !sentence.chars().any(is_chinese) {
        return Vec::new();
    }
    let is_question = sentence.ends_with(['?', '？', '没'])
        || sentence.ends_with("没有")
        || CHINESE_QUESTIONS.iter().any(|word| sentence.contains(word));
    let is_conditional =
        has_condition(sentence) || ["的话", "确保"].iter().any(|word| sentence.contains(word));
    let is_indirect = CHINESE_INDIRECT_WISHES.iter().any(|wish| sentence.contains(wish));
    let mut found = Vec::new();
    let asks_politely =
        ["能不能", "可以", "能否", "麻烦", "请", "帮我", "把"].iter().any(|word| sentence.contains(word));
    // 看看谁逾期了,发短信催一下: the clauses of a question may ask for a change.
    let has_mark = sentence.ends_with(['?', '？']);
    if !has_mark || asks_politely {
        for clause in
            clauses(sentence).into_iter().filter(|clause| !only_reads(clause)).flat_map(chinese_parts)
        {
            let is_content = CHINESE_CONTENT.iter().any(|word| clause.trim_start().starts_with(word));
            if is_content && !found.is_empty() {
                break;
            }
            found.extend(chinese_clause(clause));
        }
    }
    // A request that neither asks nor reads may ask for a change with a verb that is not known.
    let is_statement = sentence.chars().filter(|letter| is_chinese(*letter)).count() >= 4
        && !CHINESE_INQUIRIES.iter().any(|word| sentence.contains(word));
    // 不够就补到 100: what is to be done under a condition.
    let is_consequence = sentence.contains('就') && sentence.contains(['不', '没', '若', '果', '是']);
    if found.is_empty() && is_indirect && !is_question {
        found.push(wish(sentence, None, Certainty::Certain));
    } else if found.is_empty() && (is_consequence || is_statement) && !is_question {
        found.push(wish(sentence, None, Certainty::Possible));
    } else if is_conditional && !is_indirect {
        for wish in found.iter_mut().filter(|wish| wish.certainty == Certainty::Certain) {
            wish.certainty = Certainty::Conditional;
        }
    }
    found
}

/// Whether a clause asks for information and nothing else: its first verb reads, and no other one is joined to it.
fn only_reads(clause: &str) -> bool {
    const FILLERS: [&str; 10] = ["请", "帮我", "麻烦", "你", "再", "先", "我想", "给我", "帮忙", "能不能"];
    const READING: [&str; 16] = [
        "查",
        "看",
        "找",
        "统计",
        "算",
        "列",
        "总结",
        "搜",
        "读",
        "告诉我",
        "分析",
        "对比",
        "比较",
        "汇总",
        "问",
        "检查",
    ];
    const JOINTS: [&str; 10] = ["并", "然后", "接着", "同时", "再", "之后", "后", "把", "将", "给"];
    let mut rest = clause.trim_start();
    while let Some(shorter) = FILLERS.iter().find_map(|filler| rest.strip_prefix(filler)) {
        rest = shorter.trim_start();
    }
    READING.iter().any(|verb| rest.starts_with(verb)) && !JOINTS.iter().any(|joint| rest.contains(joint))
}

/// The parts of a clause with one verb each: 压缩成 app.zip 并删除原文件.
fn chinese_parts(clause: &str) -> Vec<&str> {
    const JOINTS: [&str; 8] = ["并且", "并", "然后", "接着", "同时", "再", "、", "之后"];
    let joint = JOINTS.iter().filter_map(|joint| {
        let at = clause.match_indices(joint).map(|(at, _)| at).find(|at| {
            let before = clause.get(..*at).unwrap_or_default();
            !before.is_empty() && !before.ends_with('合')
        })?;
        Some((at, joint.len()))
    });
    let Some((at, length)) = joint.min_by_key(|(at, length)| (*at, usize::MAX - *length)) else {
        return vec![clause];
    };
    let mut parts = vec![clause.get(..at).unwrap_or_default()];
    parts.extend(chinese_parts(clause.get(at + length..).unwrap_or_default()));
    parts
}

fn chinese_clause(clause: &str) -> Option<Wish> {
    let is_condition = ["如果", "若", "假如"].iter().any(|word| clause.trim_start().starts_with(word));
    // 把最近10张照片放进去 asks nothing.
    let asks = |word: &str| clause.contains(word) && !(word == "最近" && clause.contains('把'));
    // 把会议号发我: the answer itself tells it.
    const CHANNELS: [&str; 8] = ["邮", "微信", "短信", "钉钉", "飞书", "手机", "群", "QQ"];
    let tells_user =
        ["发我", "发给我", "告诉我", "报给我"].iter().any(|end| clause.trim_end().ends_with(end))
            && !CHANNELS.iter().any(|channel| clause.contains(channel));
    if is_condition || tells_user || CHINESE_QUESTIONS.iter().any(|word| asks(word)) {
        return None;
    }
    let is_stored = || {
        CHINESE_STORED_NOUNS.split_whitespace().any(|noun| clause.contains(noun))
            || !identifiers(clause).is_empty()
    };
    let verbs = families().iter().flat_map(|family| family.chinese.iter().map(move |verb| (family, verb)));
    let found = verbs.filter_map(|(family, (verb, imperative))| {
        let at = clause.find(verb)?;
        let (before, after) = (clause.get(..at)?, clause.get(at + verb.len()..)?);
        let is_past = CHINESE_PAST.iter().any(|word| after.starts_with(word)) && !after.starts_with("的话")
            || before.ends_with(['已', '被'])
            || before.ends_with("已经");
        // 合并请求 is a pull request, 共享盘 in 放到共享盘 a place.
        let is_noun = after.starts_with("请求")
            || after.starts_with("记录")
            || before.ends_with(['到', '在', '从', '的', '里']);
        let is_refused =
            ["不用", "不要", "别", "无需", "不必", "先不"].iter().any(|word| before.ends_with(word));
        if is_past || is_noun || is_refused || family.is_named("do") {
            return None;
        }
        let certainty = match imperative {
            Imperative::Change => Certainty::Certain,
            Imperative::Stored if is_stored() => Certainty::Certain,
            Imperative::Ambiguous
                if before.contains(['把', '将']) && (is_stored() || !family.is_named("update")) =>
            {
                Certainty::Certain
            }
            Imperative::Ambiguous if is_stored() => Certainty::Possible,
            _ => return None,
        };
        let object = pairs_of_characters(after);
        Some((at, usize::MAX - verb.len(), Wish { object, ..wish(clause, Some(family), certainty) }))
    });
    // The verb of 把 follows its object, which may contain another: 把预订取消.
    let is_last = clause.contains('把');
    let place = |at: usize| if is_last { usize::MAX - at } else { at };
    let first = found.min_by_key(|(at, length, _)| (place(*at), *length));
    first.map(|(_, _, wish)| wish).or_else(|| {
        let object = pairs_of_characters(clause.split_once('把').map_or("", |(_, object)| object));
        object_is_changed(clause).then(|| Wish { object, ..wish(clause, None, Certainty::Certain) })
    })
}

/// The object of a Chinese verb, as pairs of its characters: 会议室 is 会议 and 议室.
fn pairs_of_characters(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let pairs = letters.windows(2).filter(|pair| pair.iter().all(|letter| is_chinese(*letter)));
    pairs.map(|pair| pair.iter().collect()).collect()
}

/// Whether 把 or 将 marks the object of a verb that does something to it: 把它放到桌面上, not 把它读给我听.
fn object_is_changed(clause: &str) -> bool {
    const READING: [&str; 18] = [
        "告诉", "列出", "读", "念", "看", "显示", "总结", "解释", "翻译", "算", "找", "查", "比较", "统计",
        "分析", "描述", "给我", "概括",
    ];
    let marker = clause.find('把').filter(|at| !clause.get(..*at).unwrap_or_default().ends_with('一'));
    marker.is_some() && !READING.iter().any(|verb| clause.contains(verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imperatives_and_wishes_ask_for_changes() {
        for request in [
            "Delete old.txt",
            "please rename report.txt to final.txt",
            "Find the largest file and delete it",
            "Can you save the total as total.txt?",
            "I want you to remove the empty rows",
            "Create a sheet called Summary",
            "Add up column C and put the total in cell C20",
            "Get rid of the mails from Bob",
            "Tell #general that we are done",
            "It would be great if the header row of a.xlsx were in German.",
            "Reticulate my splines",
            "I'd like the title of slide 3 to be 'Next'.",
            "Every row without an email should go.",
            "Resize logo.png to 512x512.",
            "Play some jazz",
            "把report.txt改名为final.txt",
            "把C列加起来，把合计写在下面",
            "请删除第三行",
            "给 a@b.cn 发封邮件，说会议改到周四",
            "要是 config.toml 里的语言是中文就好了。",
            "能不能把这两行删掉？",
        ] {
            assert!(wishes(request).iter().any(|wish| wish.certainty == Certainty::Certain), "{request}");
        }
    }

    #[test]
    fn questions_and_texts_ask_for_no_change() {
        for request in [
            "How do I delete a file and move another?",
            "Who changed the code recently and why",
            "When was report.txt created?",
            "Write a poem about the sea",
            "Add up the numbers 1 and 2",
            "What did Anna commit last week?",
            "Translate 'good morning' into German",
            "List the files that were deleted",
            "Show me the open issues",
            "Weather in Berlin",
            "Tell me what changed",
            "最近谁改了代码",
            "这个文件是什么时候创建的",
            "怎么删除一行",
            "上周改了哪些东西？",
            "我有哪些未读邮件？",
            "北京明天的天气",
        ] {
            assert_eq!(wishes(request), [], "{request}");
        }
    }

    #[test]
    fn a_condition_makes_a_wish_conditional() {
        let wish = &wishes("如果 88 号 PR 可以合并，就把它合并掉。")[0];
        assert_eq!(wish.certainty, Certainty::Conditional);
        assert_eq!(wishes("把 app.log 压缩成 app.zip 并删除原文件。").len(), 2);
        let object = &wishes("Create a branch called fix and open a pull request for it")[1].object;
        assert_eq!(object, &["pull", "request"]);
        let request = "translate the header row A1:D1 of sheet Sales in sales.xlsx into German";
        assert_eq!(wishes(request)[0].certainty, Certainty::Possible);
    }
}
