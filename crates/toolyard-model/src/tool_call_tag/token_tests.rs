//! The spellings of tags.

use super::*;

#[test]
fn all_spellings_of_a_tag_are_one() {
    for (text, kind, name) in [
        ("<tool_call>", Kind::Call, None),
        ("<Tool_Call >", Kind::Call, None),
        ("<tool_call id=\"1\" name=\"get_time\">", Kind::Call, Some("get_time")),
        ("<|tool_call|>", Kind::Call, None),
        ("<|tool_call>", Kind::Call, None),
        ("<tool_call|>", Kind::CallEnd, None),
        ("</tool_call>", Kind::CallEnd, None),
        ("<|/tool_call|>", Kind::CallEnd, None),
        ("<｜tool▁calls▁begin｜>", Kind::Call, None),
        ("<|tool calls begin|>", Kind::Call, None),
        ("<｜tool▁call▁end｜>", Kind::CallEnd, None),
        ("<function=get_time>", Kind::Function, Some("get_time")),
        ("<function name='get_time'>", Kind::Function, Some("get_time")),
        ("<minimax:tool_call>", Kind::Call, None),
        ("<｜DSML｜invoke name=\"get_time\">", Kind::Function, Some("get_time")),
        ("</｜DSML｜invoke>", Kind::CallEnd, None),
        ("<parameter=a b>", Kind::Part, Some("a")),
        ("<think>", Kind::Thought, None),
        ("</thinking>", Kind::ThoughtEnd, None),
        ("<tool_response>", Kind::Result, None),
        ("<|im_end|>", Kind::TurnEnd, None),
        ("<!-- x", Kind::Comment, None),
    ] {
        match read_tag(text, true) {
            Tag::Is(token) => {
                assert_eq!((token.kind, token.name.as_deref()), (kind, name), "{text}");
                assert!(kind == Kind::Comment || token.len == text.len(), "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in ["<b>", "</div>", "<user>", "<end>", "< tool call", "<\ntool_call>", "<a<tool_call>", "<"] {
        assert_eq!(read_tag(text, true), Tag::Nothing, "{text}");
    }
}

#[test]
fn what_cannot_become_a_tag_is_not_waited_for() {
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
        assert_eq!(read_tag(text, false), Tag::Wait, "{text}");
    }
    for text in ["< ", "<5", "<tool call", "<a very long word", "<=", "<a\n"] {
        assert_eq!(read_tag(text, false), Tag::Nothing, "{text}");
    }
}
