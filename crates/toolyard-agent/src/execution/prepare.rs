//! The seeds' preparation of a tool's input from the words of a step: an expression, keywords, a query of the history.

use serde_json::{Map, Value, json};
use toolyard_core::{ParamType, RawJson, ToolKind, extract_capabilities};

use crate::{Step, plan_check::Takes};

/// Words with which a step of searching begins.
const SEARCH_VERBS: [&str; 16] = [
    "search the web for",
    "search online for",
    "search for",
    "search",
    "look up",
    "look for",
    "find out",
    "find",
    "google",
    "query",
    "research",
    "搜索一下",
    "搜索",
    "查找",
    "查询",
    "检索",
];
/// Words with which it ends.
const SEARCH_ENDS: [&str; 6] = ["on the web", "on the internet", "online", "on google", "的信息", "的资料"];
/// Words with which a step of calculating begins.
const CALCULATE_VERBS: [&str; 12] = [
    "calculate",
    "compute",
    "evaluate",
    "work out",
    "what is",
    "what's",
    "solve",
    "计算一下",
    "计算",
    "求",
    "算一下",
    "算",
];
/// Words by which somebody asks for their own earlier words.
const OWN_WORDS: [&str; 6] = ["question", "i asked", "user", "问题", "我问", "用户"];
/// Words by which somebody asks for earlier answers.
const ANSWER_WORDS: [&str; 5] = ["answer", "reply", "assistant", "回答", "回复"];
/// Words by which somebody asks for the last thing only.
const LAST_WORDS: [&str; 6] = ["last ", "previous ", "latest ", "上一", "刚才", "最近一"];
/// Longer texts are no expressions and no keywords.
const MAX_TEXT: usize = 400;

/// Arguments from a step's description, where the model gave none and the tool needs some. None where they cannot be
/// told; the step is then reasoned out.
pub fn prepare_tool_input(step: &Step, input_schema: &RawJson) -> Option<Map<String, Value>> {
    if !step.arguments.is_empty() {
        return None;
    }
    let takes = Takes::of(input_schema);
    let kind = ToolKind::of(&extract_capabilities(&step.tool_type, ""));
    let description = step.description.trim();
    let prepared = match kind {
        ToolKind::Calculate => {
            one_text(&takes, &["expression", "formula", "input"], expression(description)?)?
        }
        ToolKind::Search => {
            one_text(&takes, &["query", "keywords", "q", "search_query", "text"], keywords(description)?)?
        }
        ToolKind::History => history(&takes, description),
        ToolKind::Time => time(&takes, description),
        ToolKind::Extract | ToolKind::Other => Map::new(),
    };
    let complete =
        takes.params.iter().filter(|param| param.required).all(|param| prepared.contains_key(&param.name));
    (complete && !takes.params.is_empty()).then_some(prepared)
}

/// The text under the name that the tool has for it.
fn one_text(takes: &Takes, names: &[&str], text: String) -> Option<Map<String, Value>> {
    let is_text = |name: &str| takes.param(name).is_some_and(|param| param.kind == ParamType::String);
    let known = names.iter().find(|name| is_text(name)).map(|name| (*name).to_owned());
    let only_needed = || {
        let mut needed =
            takes.params.iter().filter(|param| param.required && param.kind == ParamType::String);
        needed.next().filter(|_| needed.next().is_none()).map(|param| param.name.clone())
    };
    let name = known.or_else(only_needed)?;
    Some(Map::from_iter([(name, Value::String(text))]))
}

/// The expression in a sentence: behind the verb where there is one, else the longest run of signs and digits.
fn expression(description: &str) -> Option<String> {
    let behind = without_verb(description, &CALCULATE_VERBS);
    let text = behind.trim_end_matches(['?', '.', '。', '？', '=', ':', '：']).trim();
    let has_digit = text.chars().any(|letter| letter.is_ascii_digit());
    let words =
        text.split(|letter: char| !letter.is_alphabetic()).filter(|word| word.chars().count() > 1).count();
    if has_digit && words <= 3 && text.chars().count() <= MAX_TEXT && text.is_ascii() {
        return Some(text.to_owned());
    }
    longest_run(description)
}

/// The longest part of a text that could be arithmetic: digits, signs, brackets, spaces between them.
fn longest_run(text: &str) -> Option<String> {
    let belongs = |letter: char| letter.is_ascii_digit() || " .,+-*/^()%×÷".contains(letter);
    let is_arithmetic = |run: &&str| {
        let signs = run.chars().skip(1).filter(|letter| "+-*/^%×÷".contains(*letter)).count();
        signs > 0 && run.chars().any(|letter| letter.is_ascii_digit())
    };
    let runs = text.split(|letter| !belongs(letter)).map(|run| run.trim().trim_end_matches(['.', ',']));
    let longest = runs.filter(is_arithmetic).max_by_key(|run| run.len())?;
    Some(longest.replace('×', "*").replace('÷', "/"))
}

/// What is searched for in a sentence: what is quoted, else what stands behind the verb.
fn keywords(description: &str) -> Option<String> {
    if let Some(quoted) = quoted(description) {
        return Some(quoted.to_owned());
    }
    let mut text = without_verb(description, &SEARCH_VERBS);
    for begin in ["information about", "information on", "关于"] {
        text = without_start(text, begin).unwrap_or(text);
    }
    for end in SEARCH_ENDS {
        let shorter = text.len().checked_sub(end.len()).and_then(|at| text.get(..at).zip(text.get(at..)));
        text = shorter
            .filter(|(_, tail)| tail.eq_ignore_ascii_case(end))
            .map_or(text, |(head, _)| head.trim_end());
    }
    let text = text.trim_end_matches(['.', '?', '。', '？', '!', '！']).trim();
    (!text.is_empty() && text.chars().count() <= MAX_TEXT).then(|| text.to_owned())
}

/// What stands in quotation marks.
fn quoted(text: &str) -> Option<&str> {
    let pairs = [('"', '"'), ('“', '”'), ('「', '」'), ('\'', '\''), ('《', '》')];
    pairs.iter().find_map(|(open, close)| {
        let (_, behind) = text.split_once(*open)?;
        let (inside, _) = behind.split_once(*close)?;
        (inside.chars().count() > 1).then_some(inside)
    })
}

/// What stands behind the first verb, where the text begins with one.
fn without_verb<'a>(text: &'a str, verbs: &[&str]) -> &'a str {
    let text = without_start(text.trim(), "please").unwrap_or(text.trim());
    let text = text.trim_start_matches(['请', '帮', '我']);
    verbs.iter().find_map(|verb| without_start(text, verb)).unwrap_or(text)
}

/// What follows a beginning, whatever its case; a word must end there.
fn without_start<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let (head, rest) = text.get(..start.len()).zip(text.get(start.len()..))?;
    let ends = !start.is_ascii() || !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    (head.eq_ignore_ascii_case(start) && ends).then(|| rest.trim_start_matches([' ', ':', '：']).trim())
}

/// What is asked of a conversation: whose words, which words, how many.
fn history(takes: &Takes, description: &str) -> Map<String, Value> {
    let said = description.to_lowercase();
    let holds = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let mut query = Map::new();
    if takes.param("role").is_some() && holds(&OWN_WORDS) {
        query.insert("role".to_owned(), json!("user"));
    } else if takes.param("role").is_some() && holds(&ANSWER_WORDS) {
        query.insert("role".to_owned(), json!("assistant"));
    }
    if let Some(text) = quoted(description).filter(|_| takes.param("query").is_some()) {
        query.insert("query".to_owned(), json!(text));
    }
    if takes.param("limit").is_some() && holds(&LAST_WORDS) {
        query.insert("limit".to_owned(), json!(1));
    }
    query
}

/// The time zone that a sentence names, where the tool takes one.
fn time(takes: &Takes, description: &str) -> Map<String, Value> {
    let is_zone = |word: &&str| {
        word.split_once('/').is_some_and(|(area, place)| {
            let begins = |part: &str| part.starts_with(|letter: char| letter.is_ascii_uppercase());
            begins(area) && begins(place)
        })
    };
    let names = ["timezone", "time_zone", "tz", "zone"];
    let known = names.iter().find(|name| takes.param(name).is_some());
    let trimmed =
        |word: &'_ str| word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()).to_owned();
    let zone = description.split_whitespace().find(is_zone).map(trimmed);
    let utc = || {
        description
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(|word| word == "UTC")
            .then(|| "UTC".to_owned())
    };
    match (known, zone.or_else(utc)) {
        (Some(name), Some(zone)) => Map::from_iter([((*name).to_owned(), Value::String(zone))]),
        _ => Map::new(),
    }
}
