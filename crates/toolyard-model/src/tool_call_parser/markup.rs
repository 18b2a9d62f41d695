//! The tags and control tokens that models write around reasoning, tool results and turns.

/// Longer tags have no meaning here.
pub(super) const MAX_TAG_BYTES: usize = 64;

/// What a tag means besides its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagKind {
    Call,
    Reasoning,
    ReasoningEnd,
    /// A tool result that the model wrote itself.
    Result,
    ResultEnd,
    TurnEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub kind: TagKind,
    pub len: usize,
}

const CALL_TAG: &str = "<tool_call>";
const REASONING_NAMES: [&str; 7] =
    ["think", "thinking", "thought", "thoughts", "reasoning", "scratchpad", "scratch_pad"];
const RESULT_NAMES: [&str; 12] = [
    "tool_response",
    "tool_responses",
    "tool_result",
    "tool_results",
    "tool_output",
    "tool_outputs",
    "tool_output_begin",
    "tool_outputs_begin",
    "function_response",
    "function_result",
    "function_results",
    "observation",
];
const TURN_END_NAMES: [&str; 10] = [
    "im_end",
    "im_start",
    "eot_id",
    "eom_id",
    "endoftext",
    "end_of_turn",
    "start_of_turn",
    "end_of_sentence",
    "end_of_text",
    "start_header_id",
];
/// These end a turn only in the spelling with bars.
const TURN_END_NAMES_IN_BARS: [&str; 3] = ["user", "system", "tool"];

/// The tag at the start of a text that starts with `<`, if it has a meaning.
pub(super) fn tag_at(text: &str) -> Option<Tag> {
    if text.starts_with(CALL_TAG) {
        return Some(Tag { kind: TagKind::Call, len: CALL_TAG.len() });
    }
    if !text.starts_with('<') {
        return None;
    }
    let end = text.char_indices().skip(1).take_while(|(at, _)| *at < MAX_TAG_BYTES);
    let (end, _) = end.take_while(|(_, c)| !matches!(c, '<' | '\n')).find(|(_, c)| *c == '>')?;
    let inner = text.get(1..end)?.replace('｜', "|").replace('▁', "_").to_ascii_lowercase();
    let is_end = inner.trim_start_matches('|').starts_with('/');
    let has_bars = inner.contains('|');
    let name = inner.trim_matches(['/', '|']);
    let name = name.split([' ', '=']).next().unwrap_or_default();
    // A namespace may stand before the name.
    let name = name.rsplit(':').next().unwrap_or_default();
    let kind = match (is_end, name) {
        (false, name) if REASONING_NAMES.contains(&name) => TagKind::Reasoning,
        (true, name) if REASONING_NAMES.contains(&name) => TagKind::ReasoningEnd,
        (false, name) if RESULT_NAMES.contains(&name) => TagKind::Result,
        (true, name) if RESULT_NAMES.contains(&name) => TagKind::ResultEnd,
        (_, name) if TURN_END_NAMES.contains(&name) => TagKind::TurnEnd,
        (_, name) if has_bars && TURN_END_NAMES_IN_BARS.contains(&name) => TagKind::TurnEnd,
        _ => return None,
    };
    Some(Tag { kind, len: end + 1 })
}

/// The position after the first tag of this kind.
pub(super) fn find_tag_end(text: &str, kind: TagKind) -> Option<usize> {
    memchr::memchr_iter(b'<', text.as_bytes()).find_map(|at| {
        let tag = tag_at(text.get(at..)?).filter(|tag| tag.kind == kind)?;
        Some(at + tag.len)
    })
}

/// Whether more text may complete a tag at the start of a text.
pub(super) fn may_become_tag(text: &str) -> bool {
    text.len() < MAX_TAG_BYTES && !text.get(1..).is_some_and(|inner| inner.contains(['<', '>', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_recognized_in_several_spellings() {
        for (text, kind) in [
            ("<tool_call>{", TagKind::Call),
            ("<think>", TagKind::Reasoning),
            ("<THINK>", TagKind::Reasoning),
            ("</think> a", TagKind::ReasoningEnd),
            ("<|/think|>", TagKind::ReasoningEnd),
            ("<tool_response>", TagKind::Result),
            ("<tool_result id=\"1\">", TagKind::Result),
            ("</ai:function_results>", TagKind::ResultEnd),
            ("<|im_end|>", TagKind::TurnEnd),
            ("<｜end▁of▁sentence｜>", TagKind::TurnEnd),
            ("<|user|>", TagKind::TurnEnd),
        ] {
            let tag = tag_at(text).unwrap();
            assert_eq!((tag.kind, tag.len), (kind, text.find('>').unwrap() + 1), "{text}");
        }
        for text in [
            "",
            "think>",
            "xthink>",
            "<",
            "<p>",
            "<user>",
            "<tool_calls>",
            "</tool_call>",
            "<think",
            "<a <think>",
            "<\nthink>",
        ] {
            assert_eq!(tag_at(text), None, "{text}");
        }
    }

    #[test]
    fn an_incomplete_tag_may_become_one() {
        assert!(may_become_tag("<tool_c") && may_become_tag("<") && may_become_tag("<｜end"));
        assert!(
            !may_become_tag("<p>")
                && !may_become_tag("< a\n")
                && !may_become_tag(&format!("<{}", "a".repeat(80)))
        );
    }
}
