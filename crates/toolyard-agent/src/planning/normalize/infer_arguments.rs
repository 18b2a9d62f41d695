//! Infers arguments from a step's description (`_prepare_tool_input` of the specification): an expression, search keywords,
//! a query of the conversation history, a time zone.

use serde_json::{Map, Value, json};
use toolyard_core::{ParamType, RawJson, ToolKind, extract_capabilities};

use super::super::{plan::Step, tool_params::ToolParams};

/// Beginnings of a search step.
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
/// Endings of a search step that are not part of the query.
const SEARCH_SUFFIXES: [&str; 6] =
    ["on the web", "on the internet", "online", "on google", "的信息", "的资料"];
/// Beginnings of a calculation step.
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
/// Words that ask for the user's own messages.
const USER_WORDS: [&str; 6] = ["question", "i asked", "user", "问题", "我问", "用户"];
/// Words that ask for earlier answers.
const ASSISTANT_WORDS: [&str; 5] = ["answer", "reply", "assistant", "回答", "回复"];
/// Words that ask for the last message only.
const LAST_MESSAGE_WORDS: [&str; 6] = ["last ", "previous ", "latest ", "上一", "刚才", "最近一"];
const MAX_INFERRED_CHARS: usize = 400;
/// Words, such as functions and units, that an expression may contain.
const MAX_EXPRESSION_WORDS: usize = 3;

/// Arguments from a step's description, for a step without arguments whose tool needs some. None if they cannot be
/// inferred.
pub(crate) fn prepare_tool_input(step: &Step, input_schema: &RawJson) -> Option<Map<String, Value>> {
    if !step.arguments.is_empty() {
        return None;
    }
    let params = ToolParams::from_schema(input_schema);
    let kind = ToolKind::of(&extract_capabilities(&step.tool_type, ""));
    let description = step.description.trim();
    let inferred = match kind {
        ToolKind::Calculate => {
            string_argument(&params, &["expression", "formula", "input"], expression(description)?)?
        }
        ToolKind::Search => string_argument(
            &params,
            &["query", "keywords", "q", "search_query", "text"],
            search_query(description)?,
        )?,
        ToolKind::History => history_query(&params, description),
        ToolKind::Time => time_zone(&params, description),
        ToolKind::Extract | ToolKind::Other => Map::new(),
    };
    let is_complete = params.required().all(|param| inferred.contains_key(&param.name));
    (is_complete && !params.params.is_empty()).then_some(inferred)
}

/// A string argument under one of the usual names, else under the only required string parameter.
fn string_argument(params: &ToolParams, names: &[&str], text: String) -> Option<Map<String, Value>> {
    let is_string = |name: &str| params.param(name).is_some_and(|param| param.kind == ParamType::String);
    let usual = names.iter().find(|name| is_string(name)).map(|name| (*name).to_owned());
    let only_required = || {
        let mut required = params.required().filter(|param| param.kind == ParamType::String);
        required.next().filter(|_| required.next().is_none()).map(|param| param.name.clone())
    };
    let name = usual.or_else(only_required)?;
    Some(Map::from_iter([(name, Value::String(text))]))
}

/// The expression in a sentence: the text after the verb, else the longest arithmetic part.
fn expression(description: &str) -> Option<String> {
    let after_verb = strip_verb(description, &CALCULATE_VERBS);
    let text = after_verb.trim_end_matches(['?', '.', '。', '？', '=', ':', '：']).trim();
    let has_digit = text.chars().any(|letter| letter.is_ascii_digit());
    let words =
        text.split(|letter: char| !letter.is_alphabetic()).filter(|word| word.chars().count() > 1).count();
    if has_digit
        && words <= MAX_EXPRESSION_WORDS
        && text.chars().count() <= MAX_INFERRED_CHARS
        && text.is_ascii()
    {
        return Some(text.to_owned());
    }
    longest_arithmetic(description)
}

/// The longest part of a text that consists of digits, operators, brackets and spaces.
fn longest_arithmetic(text: &str) -> Option<String> {
    let is_arithmetic_char = |letter: char| letter.is_ascii_digit() || " .,+-*/^()%×÷".contains(letter);
    let is_arithmetic = |run: &&str| {
        let operators = run.chars().skip(1).filter(|letter| "+-*/^%×÷".contains(*letter)).count();
        operators > 0 && run.chars().any(|letter| letter.is_ascii_digit())
    };
    let runs =
        text.split(|letter| !is_arithmetic_char(letter)).map(|run| run.trim().trim_end_matches(['.', ',']));
    let longest = runs.filter(is_arithmetic).max_by_key(|run| run.len())?;
    Some(longest.replace('×', "*").replace('÷', "/"))
}

/// The search query in a sentence: the quoted part, else the text after the verb.
fn search_query(description: &str) -> Option<String> {
    if let Some(quoted) = quoted_part(description) {
        return Some(quoted.to_owned());
    }
    let mut text = strip_verb(description, &SEARCH_VERBS);
    for prefix in ["information about", "information on", "关于"] {
        text = strip_words(text, prefix).unwrap_or(text);
    }
    for suffix in SEARCH_SUFFIXES {
        let split = text.len().checked_sub(suffix.len()).and_then(|at| text.get(..at).zip(text.get(at..)));
        text = split
            .filter(|(_, tail)| tail.eq_ignore_ascii_case(suffix))
            .map_or(text, |(head, _)| head.trim_end());
    }
    let text = text.trim_end_matches(['.', '?', '。', '？', '!', '！']).trim();
    (!text.is_empty() && text.chars().count() <= MAX_INFERRED_CHARS).then(|| text.to_owned())
}

fn quoted_part(text: &str) -> Option<&str> {
    let pairs = [('"', '"'), ('“', '”'), ('「', '」'), ('\'', '\''), ('《', '》')];
    pairs.iter().find_map(|(open, close)| {
        let (_, behind) = text.split_once(*open)?;
        let (inside, _) = behind.split_once(*close)?;
        (inside.chars().count() > 1).then_some(inside)
    })
}

/// The text after the verb it begins with, if any.
fn strip_verb<'a>(text: &'a str, verbs: &[&str]) -> &'a str {
    let text = strip_words(text.trim(), "please").unwrap_or(text.trim());
    let text = text.trim_start_matches(['请', '帮', '我']);
    verbs.iter().find_map(|verb| strip_words(text, verb)).unwrap_or(text)
}

/// The text after a prefix of whole words, ignoring case.
fn strip_words<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.get(..prefix.len()).zip(text.get(prefix.len()..))?;
    let is_word_end = !prefix.is_ascii() || !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    (head.eq_ignore_ascii_case(prefix) && is_word_end)
        .then(|| rest.trim_start_matches([' ', ':', '：']).trim())
}

/// A query of the conversation history: role, text, limit.
fn history_query(params: &ToolParams, description: &str) -> Map<String, Value> {
    let lowercase = description.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lowercase.contains(word));
    let mut query = Map::new();
    if params.param("role").is_some() && has(&USER_WORDS) {
        query.insert("role".to_owned(), json!("user"));
    } else if params.param("role").is_some() && has(&ASSISTANT_WORDS) {
        query.insert("role".to_owned(), json!("assistant"));
    }
    if let Some(text) = quoted_part(description).filter(|_| params.param("query").is_some()) {
        query.insert("query".to_owned(), json!(text));
    }
    if params.param("limit").is_some() && has(&LAST_MESSAGE_WORDS) {
        query.insert("limit".to_owned(), json!(1));
    }
    query
}

/// The time zone named in a sentence.
fn time_zone(params: &ToolParams, description: &str) -> Map<String, Value> {
    let is_zone = |word: &&str| {
        word.split_once('/').is_some_and(|(area, city)| {
            let is_capitalized = |part: &str| part.starts_with(|letter: char| letter.is_ascii_uppercase());
            is_capitalized(area) && is_capitalized(city)
        })
    };
    let names = ["timezone", "time_zone", "tz", "zone"];
    let param_name = names.iter().find(|name| params.param(name).is_some());
    let trim_punctuation =
        |word: &'_ str| word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()).to_owned();
    let zone = description.split_whitespace().find(is_zone).map(trim_punctuation);
    let find_utc = || {
        description
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(|word| word == "UTC")
            .then(|| "UTC".to_owned())
    };
    match (param_name, zone.or_else(find_utc)) {
        (Some(name), Some(zone)) => Map::from_iter([((*name).to_owned(), Value::String(zone))]),
        _ => Map::new(),
    }
}
