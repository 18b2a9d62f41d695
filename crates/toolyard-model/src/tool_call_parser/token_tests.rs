//! Spellings of tags.

use super::*;

#[test]
fn all_spellings_of_a_tag_match() {
    for (text, kind, name) in [
        ("<tool_call>", TokenKind::Call, None),
        ("<Tool_Call >", TokenKind::Call, None),
        ("<tool_call id=\"1\" name=\"get_time\">", TokenKind::Call, Some("get_time")),
        ("<|tool_call|>", TokenKind::Call, None),
        ("<|tool_call>", TokenKind::Call, None),
        ("<tool_call|>", TokenKind::CallEnd, None),
        ("</tool_call>", TokenKind::CallEnd, None),
        ("<|/tool_call|>", TokenKind::CallEnd, None),
        ("<｜tool▁calls▁begin｜>", TokenKind::Call, None),
        ("<|tool calls begin|>", TokenKind::Call, None),
        ("<｜tool▁call▁end｜>", TokenKind::CallEnd, None),
        ("<function=get_time>", TokenKind::Function, Some("get_time")),
        ("<function name='get_time'>", TokenKind::Function, Some("get_time")),
        ("<minimax:tool_call>", TokenKind::Call, None),
        ("<｜DSML｜invoke name=\"get_time\">", TokenKind::Function, Some("get_time")),
        ("</｜DSML｜invoke>", TokenKind::CallEnd, None),
        ("<parameter=a b>", TokenKind::CallPart, Some("a")),
        ("<think>", TokenKind::Reasoning, None),
        ("</thinking>", TokenKind::ReasoningEnd, None),
        ("<tool_response>", TokenKind::Result, None),
        ("<|im_end|>", TokenKind::TurnEnd, None),
        ("<!-- x", TokenKind::Comment, None),
    ] {
        match match_tag(text, true) {
            TagMatch::Token(token) => {
                assert_eq!((token.kind, token.name.as_deref()), (kind, name), "{text}");
                assert!(kind == TokenKind::Comment || token.len == text.len(), "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in ["<b>", "</div>", "<user>", "<end>", "< tool call", "<\ntool_call>", "<a<tool_call>", "<"] {
        assert_eq!(match_tag(text, true), TagMatch::Unknown, "{text}");
    }
}

#[test]
fn only_possible_tags_are_incomplete() {
    for text in [
        "<",
        "</",
        "<|",
        "<tool",
        "<｜",
        "</｜",
        "<function=get",
        "<|tool_call",
        "<!-",
        "<minimax:t",
        "<invoke name=\"a",
    ] {
        assert_eq!(match_tag(text, false), TagMatch::Incomplete, "{text}");
    }
    for text in ["< ", "<5", "<tool call", "<a very long word", "<=", "<a\n"] {
        assert_eq!(match_tag(text, false), TagMatch::Unknown, "{text}");
    }
}
