//! The tags and control tokens that models write around calls, reasoning and turns, in all their spellings.

/// Longer tags have no meaning here.
const MAX_TAG_BYTES: usize = 240;

/// Longer words before a colon are not namespaces.
const MAX_NAMESPACE_BYTES: usize = 15;

/// What a `<` starts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TagMatch {
    /// More text is needed to decide.
    Incomplete,
    Unknown,
    Token(Token),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub len: usize,
    pub kind: TokenKind,
    /// The tag's name, lowercase, without namespace, bars and slash.
    pub tag: String,
    /// The name of a tool or parameter in the tag: `get_time` of `<function=get_time>` and of `<invoke name="get_time">`.
    pub name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Call,
    CallEnd,
    /// The start of a call that names its tool in the tag.
    Function,
    /// A part of a call: a parameter, its end or a separator.
    CallPart,
    Reasoning,
    ReasoningEnd,
    /// A tool result that the model wrote itself.
    Result,
    ResultEnd,
    TurnEnd,
    /// A token to remove.
    Ignored,
    /// The header of a GPT-OSS message.
    Channel,
    Comment,
}

const CALL_TAGS: [&str; 17] = [
    "tool_call",
    "tool_calls",
    "toolcall",
    "tools",
    "function_call",
    "function_calls",
    "functioncall",
    "tool_use",
    "tool_call_start",
    "tool_calls_start",
    "tool_call_begin",
    "tool_calls_begin",
    "tool_calls_section_begin",
    "start_function_call",
    "start_action",
    "python_tag",
    "function_call_begin",
];
const CALL_END_TAGS: [&str; 9] = [
    "tool_call_end",
    "tool_calls_end",
    "tool_calls_section_end",
    "end_tool_call",
    "end_tool_calls",
    "end_function_call",
    "end_action",
    "function_call_end",
    "call",
];
const FUNCTION_TAGS: [&str; 2] = ["function", "invoke"];
const CALL_PART_TAGS: [&str; 8] = [
    "parameter",
    "arg_key",
    "arg_value",
    "tool_sep",
    "tool_call_argument_begin",
    "escape",
    "message",
    "constrain",
];
const REASONING_TAGS: [&str; 7] =
    ["think", "thinking", "thought", "thoughts", "reasoning", "scratchpad", "scratch_pad"];
const RESULT_TAGS: [&str; 12] = [
    "tool_response",
    "tool_responses",
    "tool_result",
    "tool_results",
    "tool_output",
    "tool_outputs",
    "function_response",
    "function_result",
    "function_results",
    "observation",
    "tool_output_begin",
    "tool_outputs_begin",
];
const TURN_END_TAGS: [&str; 13] = [
    "im_end",
    "im_start",
    "eot_id",
    "eom_id",
    "endoftext",
    "end_of_turn",
    "start_of_turn",
    "end_of_sentence",
    "end_of_text",
    "user",
    "system",
    "tool",
    "start_header_id",
];
/// These are tokens only in the spelling with bars.
const ONLY_WITH_BARS: [&str; 10] =
    ["user", "system", "tool", "call", "message", "constrain", "channel", "start", "end", "return"];
const CHANNEL_TAGS: [&str; 2] = ["channel", "start"];
const IGNORED_TAGS: [&str; 4] = ["end", "return", "assistant", "begin_of_text"];

/// Matches the token at the front of a text that starts with `<`.
pub(super) fn match_tag(text: &str, is_final: bool) -> TagMatch {
    if text.starts_with("<!--") {
        let token = Token { len: 4, kind: TokenKind::Comment, tag: String::new(), name: None };
        return TagMatch::Token(token);
    }
    let mut prefix = text.len().min(MAX_TAG_BYTES);
    while !text.is_char_boundary(prefix) {
        prefix -= 1;
    }
    let prefix = text.get(1..prefix).unwrap_or_default();
    let end = prefix.find(['>', '<', '\n']);
    match end.and_then(|end| Some((end, prefix.get(end..=end)?))) {
        Some((end, ">")) => classify(prefix.get(..end).unwrap_or_default(), end + 2),
        Some(_) => TagMatch::Unknown,
        None if !is_final && text.len() < MAX_TAG_BYTES && may_become_tag(prefix) => TagMatch::Incomplete,
        None => TagMatch::Unknown,
    }
}

fn classify(inner: &str, len: usize) -> TagMatch {
    let is_complete = true;
    let Some(spelling) = Spelling::parse(inner, is_complete) else { return TagMatch::Unknown };
    let tag = spelling.tag.as_str();
    let is_one_of = |tags: &[&str]| tags.contains(&tag);
    if !spelling.has_bars && is_one_of(&ONLY_WITH_BARS) {
        return TagMatch::Unknown;
    }
    let kind = match spelling.is_end {
        true if is_one_of(&CALL_TAGS) || is_one_of(&FUNCTION_TAGS) => TokenKind::CallEnd,
        true if is_one_of(&CALL_PART_TAGS) => TokenKind::CallPart,
        true if is_one_of(&REASONING_TAGS) => TokenKind::ReasoningEnd,
        true if is_one_of(&RESULT_TAGS) => TokenKind::ResultEnd,
        true => return TagMatch::Unknown,
        false if is_one_of(&CALL_TAGS) => TokenKind::Call,
        false if is_one_of(&CALL_END_TAGS) => TokenKind::CallEnd,
        false if is_one_of(&FUNCTION_TAGS) => TokenKind::Function,
        false if is_one_of(&CALL_PART_TAGS) => TokenKind::CallPart,
        false if is_one_of(&REASONING_TAGS) => TokenKind::Reasoning,
        false if is_one_of(&RESULT_TAGS) => TokenKind::Result,
        false if is_one_of(&TURN_END_TAGS) => TokenKind::TurnEnd,
        false if is_one_of(&CHANNEL_TAGS) => TokenKind::Channel,
        false if is_one_of(&IGNORED_TAGS) && spelling.has_bars => TokenKind::Ignored,
        false => return TagMatch::Unknown,
    };
    TagMatch::Token(Token { len, kind, name: spelling.name(), tag: spelling.tag })
}

fn may_become_tag(inner: &str) -> bool {
    if "!--".starts_with(inner) || inner.chars().all(|c| matches!(c, '/' | '|' | '｜')) {
        return true;
    }
    let is_complete = false;
    let Some(spelling) = Spelling::parse(inner, is_complete) else { return false };
    let tag_lists: [&[&str]; 9] = [
        &CALL_TAGS,
        &CALL_END_TAGS,
        &FUNCTION_TAGS,
        &CALL_PART_TAGS,
        &REASONING_TAGS,
        &RESULT_TAGS,
        &TURN_END_TAGS,
        &CHANNEL_TAGS,
        &IGNORED_TAGS,
    ];
    let tag = spelling.tag.as_str();
    if !spelling.attributes.is_empty() {
        let is_tag = spelling.has_bars || !ONLY_WITH_BARS.contains(&tag);
        return is_tag && tag_lists.iter().any(|list| list.contains(&tag));
    }
    tag_lists.iter().any(|list| list.iter().any(|known| known.starts_with(tag)))
        // Other text may be a namespace.
        || is_namespace(inner.trim_start_matches('/'))
        // `<|DSML|`
        || "dsml".starts_with(tag)
}

fn is_namespace(text: &str) -> bool {
    text.len() <= MAX_NAMESPACE_BYTES
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// The content of a tag without the differences of spelling.
struct Spelling {
    tag: String,
    is_end: bool,
    has_bars: bool,
    /// What follows the tag's name.
    attributes: String,
}

impl Spelling {
    fn parse(inner: &str, is_complete: bool) -> Option<Self> {
        if inner.starts_with(char::is_whitespace) {
            return None;
        }
        let normalized = inner.replace('｜', "|").replace('▁', "_");
        let inner = normalized.trim();
        let (is_end, inner) = strip_char(inner, '/');
        let (front_bar, inner) = strip_char(inner, '|');
        let (is_end_inside, inner) = strip_char(inner, '/');
        // A bar at the end of an incomplete text may not be the last character of the tag.
        let without_bar = inner.strip_suffix('|');
        let (back_bar, inner) = without_bar.map_or((false, inner), |inner| (is_complete, inner));
        let has_bars = front_bar || back_bar;
        let inner = match inner.strip_prefix("DSML|") {
            // `<|DSML|invoke …>`
            Some(inner) => inner.to_owned(),
            None if front_bar => inner.replace(' ', "_"),
            None => inner.to_owned(),
        };
        let end = inner.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(inner.len());
        let (tag, attributes) = inner.split_at(end);
        let tag = match tag.split_once(':') {
            Some((namespace, tag)) if !front_bar && is_namespace(namespace) => tag,
            _ => tag,
        };
        let tag = tag.to_ascii_lowercase();
        if !tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
            return None;
        }
        // `<tool_call|>` ends what `<|tool_call>` starts.
        let is_end = is_end || is_end_inside || (back_bar && !front_bar);
        Some(Self { tag, is_end, has_bars, attributes: attributes.to_owned() })
    }

    fn name(&self) -> Option<String> {
        let attributes = self.attributes.trim();
        let value = match attributes.strip_prefix('=') {
            Some(value) => value,
            None => attributes.split_once("name=")?.1,
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let name = match quote {
            Some(quote) => value.get(1..)?.split(quote).next()?,
            None => value.split_whitespace().next()?,
        };
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    }
}

fn strip_char(text: &str, first: char) -> (bool, &str) {
    text.strip_prefix(first).map_or((false, text), |rest| (true, rest))
}

/// The end of the call whose content the text starts with: the position and length of its end tag, or the position of the next
/// call, turn or result.
pub(super) fn find_call_end(text: &str) -> Option<(usize, usize)> {
    find_token(text, |token| match token.kind {
        TokenKind::CallEnd => Some(token.len),
        TokenKind::Call | TokenKind::Function | TokenKind::TurnEnd | TokenKind::Result => Some(0),
        _ => None,
    })
}

/// The position of the first token that `select` accepts, and what it returned.
pub(super) fn find_token<T>(text: &str, select: impl Fn(&Token) -> Option<T>) -> Option<(usize, T)> {
    let is_final = true;
    memchr::memchr_iter(b'<', text.as_bytes()).find_map(|at| match match_tag(text.get(at..)?, is_final) {
        TagMatch::Token(token) => select(&token).map(|selected| (at, selected)),
        TagMatch::Incomplete | TagMatch::Unknown => None,
    })
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
