//! The tags and control tokens that models put around calls, thoughts and turns, in all their spellings.

/// No tag that means anything is longer.
const LONGEST: usize = 240;

/// What a `<` begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tag {
    /// It cannot be told yet.
    Wait,
    /// Nothing that means anything here.
    Nothing,
    /// A token of this many bytes.
    Is(Token),
}

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub len: usize,
    pub kind: Kind,
    /// The tag's own name, lowercase, without namespace or slash.
    pub word: String,
    /// `get_time` of `<function=get_time>` and of `<invoke name="get_time">`.
    pub name: Option<String>,
}

/// What a token means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call begins.
    Call,
    /// A call ends.
    CallEnd,
    /// A call begins and names its tool.
    Function,
    /// A parameter or its end, a separator: parts of calls.
    Part,
    Thought,
    ThoughtEnd,
    /// What a tool answered, in the words of the model.
    Result,
    ResultEnd,
    /// The model's turn is over.
    TurnEnd,
    /// A token without a meaning for us.
    Noise,
    /// The header of a message within an answer.
    Channel,
    Comment,
}

const CALLS: [&str; 17] = [
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
const CALL_ENDS: [&str; 9] = [
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
const FUNCTIONS: [&str; 2] = ["function", "invoke"];
const PARTS: [&str; 8] = [
    "parameter",
    "arg_key",
    "arg_value",
    "tool_sep",
    "tool_call_argument_begin",
    "escape",
    "message",
    "constrain",
];
const THOUGHTS: [&str; 7] =
    ["think", "thinking", "thought", "thoughts", "reasoning", "scratchpad", "scratch_pad"];
const RESULTS: [&str; 12] = [
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
const TURN_ENDS: [&str; 13] = [
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
/// Of these only the spelling with bars is a token.
const ONLY_WITH_BARS: [&str; 10] =
    ["user", "system", "tool", "call", "message", "constrain", "channel", "start", "end", "return"];
const CHANNELS: [&str; 2] = ["channel", "start"];
const NOISE: [&str; 4] = ["end", "return", "assistant", "begin_of_text"];

/// Reads the token at the front of a text that begins with `<`.
pub(super) fn read_tag(text: &str, is_final: bool) -> Tag {
    if text.starts_with("<!--") {
        let token = Token { len: 4, kind: Kind::Comment, word: String::new(), name: None };
        return Tag::Is(token);
    }
    let mut near = text.len().min(LONGEST);
    while !text.is_char_boundary(near) {
        near -= 1;
    }
    let near = text.get(1..near).unwrap_or_default();
    let end = near.find(['>', '<', '\n']);
    match end.and_then(|end| Some((end, near.get(end..=end)?))) {
        Some((end, ">")) => complete(near.get(..end).unwrap_or_default(), end + 2),
        Some(_) => Tag::Nothing,
        None if !is_final && text.len() < LONGEST && may_begin(near) => Tag::Wait,
        None => Tag::Nothing,
    }
}

fn complete(inner: &str, len: usize) -> Tag {
    let Some(spelling) = Spelling::of(inner, true) else { return Tag::Nothing };
    let word = spelling.word.as_str();
    let is = |words: &[&str]| words.contains(&word);
    if !spelling.has_bars && is(&ONLY_WITH_BARS) {
        return Tag::Nothing;
    }
    let kind = match spelling.is_end {
        true if is(&CALLS) || is(&FUNCTIONS) => Kind::CallEnd,
        true if is(&PARTS) => Kind::Part,
        true if is(&THOUGHTS) => Kind::ThoughtEnd,
        true if is(&RESULTS) => Kind::ResultEnd,
        true => return Tag::Nothing,
        false if is(&CALLS) => Kind::Call,
        false if is(&CALL_ENDS) => Kind::CallEnd,
        false if is(&FUNCTIONS) => Kind::Function,
        false if is(&PARTS) => Kind::Part,
        false if is(&THOUGHTS) => Kind::Thought,
        false if is(&RESULTS) => Kind::Result,
        false if is(&TURN_ENDS) => Kind::TurnEnd,
        false if is(&CHANNELS) => Kind::Channel,
        false if is(&NOISE) && spelling.has_bars => Kind::Noise,
        false => return Tag::Nothing,
    };
    Tag::Is(Token { len, kind, name: spelling.name(), word: spelling.word })
}

/// Whether more text may make a token of this.
fn may_begin(inner: &str) -> bool {
    if "!--".starts_with(inner) || inner.chars().all(|c| matches!(c, '/' | '|' | '｜')) {
        return true;
    }
    let Some(spelling) = Spelling::of(inner, false) else { return false };
    let lists: [&[&str]; 9] =
        [&CALLS, &CALL_ENDS, &FUNCTIONS, &PARTS, &THOUGHTS, &RESULTS, &TURN_ENDS, &CHANNELS, &NOISE];
    let word = spelling.word.as_str();
    if spelling.has_rest {
        let is_word = spelling.has_bars || !ONLY_WITH_BARS.contains(&word);
        return is_word && lists.iter().any(|list| list.contains(&word));
    }
    lists.iter().any(|list| list.iter().any(|known| known.starts_with(word)))
        // What is no beginning of a word may be a namespace.
        || is_namespace(inner.trim_start_matches('/'))
        // `<|DSML|`
        || "dsml".starts_with(word)
}

fn is_namespace(text: &str) -> bool {
    text.len() < 16
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// The inside of a tag, taken apart.
struct Spelling {
    word: String,
    is_end: bool,
    has_bars: bool,
    /// Whether something follows the word.
    has_rest: bool,
    rest: String,
}

impl Spelling {
    fn of(inner: &str, is_whole: bool) -> Option<Self> {
        if inner.starts_with(char::is_whitespace) {
            return None;
        }
        let same_bars = inner.replace('｜', "|").replace('▁', "_");
        let inner = same_bars.trim();
        let (is_end, inner) = strip(inner, '/');
        let (front_bar, inner) = strip(inner, '|');
        let (is_end_inside, inner) = strip(inner, '/');
        // At the end of a text that goes on, a bar is not known to be the last.
        let back = inner.strip_suffix('|');
        let (back_bar, inner) = back.map_or((false, inner), |inner| (is_whole, inner));
        let has_bars = front_bar || back_bar;
        let inner = match inner.strip_prefix("DSML|") {
            // `<|DSML|invoke …>`
            Some(inner) => inner.to_owned(),
            None if front_bar => inner.replace(' ', "_"),
            None => inner.to_owned(),
        };
        let end = inner.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(inner.len());
        let (word, rest) = inner.split_at(end);
        let word = match word.split_once(':') {
            Some((namespace, word)) if !front_bar && is_namespace(namespace) => word,
            _ => word,
        };
        let word = word.to_ascii_lowercase();
        if !word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
            return None;
        }
        // `<tool_call|>` ends what `<|tool_call>` began.
        let is_end = is_end || is_end_inside || (back_bar && !front_bar);
        Some(Self { word, is_end, has_bars, has_rest: !rest.is_empty(), rest: rest.to_owned() })
    }

    /// The name that the tag carries.
    fn name(&self) -> Option<String> {
        let rest = self.rest.trim();
        let value = match rest.strip_prefix('=') {
            Some(value) => value,
            None => rest.split_once("name=")?.1,
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

fn strip(text: &str, first: char) -> (bool, &str) {
    text.strip_prefix(first).map_or((false, text), |rest| (true, rest))
}

/// Where the call that a text is the inside of ends: before its end tag (with that tag's length), or before the next call.
pub(super) fn find_call_end(text: &str) -> Option<(usize, usize)> {
    find(text, |token| match token.kind {
        Kind::CallEnd => Some(token.len),
        Kind::Call | Kind::Function | Kind::TurnEnd | Kind::Result => Some(0),
        _ => None,
    })
}

/// The first token that `is` accepts: where it begins, and what `is` made of it.
pub(super) fn find<T>(text: &str, is: impl Fn(&Token) -> Option<T>) -> Option<(usize, T)> {
    memchr::memchr_iter(b'<', text.as_bytes()).find_map(|at| match read_tag(text.get(at..)?, true) {
        Tag::Is(token) => is(&token).map(|found| (at, found)),
        Tag::Wait | Tag::Nothing => None,
    })
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
