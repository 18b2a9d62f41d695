//! Calls, text that is not a call, and streaming.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn is_tool(name: &str) -> bool {
    ["get_time", "calculate", "read_data_from_excel", "write_data_to_excel"].contains(&name)
}

fn parse(text: &str) -> ParsedText {
    parse_tool_calls(text, &is_tool)
}

/// The calls of a text as `name {arguments}`.
fn calls(text: &str) -> Vec<String> {
    parse(text).calls.iter().map(|call| format!("{} {}", call.name, json!(call.arguments))).collect()
}

const TOKYO_CALL: &str = r#"get_time {"timezone":"Asia/Tokyo"}"#;

#[test]
fn the_format_of_the_specification_is_parsed() {
    let parsed = parse(
        "<tool_call>\n{\n  \"id\": \"call_001\",\n  \"tool_name\": \"read_data_from_excel\",\n  \"arguments\": {\n    \
         \"filepath\": \"test.xlsx\",\n    \"sheet_name\": \"Sheet1\"\n  }\n}\n</tool_call>",
    );
    let call = &parsed.calls[0];
    assert_eq!(call.id.as_deref(), Some("call_001"));
    assert_eq!(call.name, "read_data_from_excel");
    assert_eq!(json!(call.arguments), json!({"filepath": "test.xlsx", "sheet_name": "Sheet1"}));
    assert_eq!((parsed.text.as_str(), parsed.truncated, parsed.calls.len()), ("", false, 1));
}

#[test]
fn tagged_calls_count_with_text_before_them() {
    for text in [
        r#"<tool_call>{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}</tool_call>"#,
        "  <tool_call>\n\n  {\"tool_name\": \"get_time\", \"arguments\": {\"timezone\": \"Asia/Tokyo\"}}\r\n</tool_call>",
        r#"<tool_call>{"name": "get_time", "arguments": "{\"timezone\": \"Asia/Tokyo\"}"}</tool_call>"#,
        r#"<tool_call>[{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}]</tool_call>"#,
        r#"<tool_call>{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}</tool_call><|im_end|>"#,
        // A server may cut the end tag off.
        r#"<tool_call>{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}"#,
    ] {
        for before in ["", "<think>I call `get_time`.</think>\n", "hm</think>"] {
            assert_eq!(calls(&format!("{before}{text}")), [TOKYO_CALL], "{before}{text}");
        }
        let parsed = parse(&format!("One moment.\n\n{text}\n"));
        assert_eq!((parsed.calls.len(), parsed.text.as_str()), (1, "One moment."), "{text}");
        assert!(!parsed.truncated && parsed.malformed.is_empty(), "{text}");
    }
}

#[test]
fn json_without_tags_counts_as_the_whole_reply_only() {
    let call = r#"{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}"#;
    for text in [
        call.to_owned(),
        format!("[{call}]"),
        format!("{call}<|im_end|>"),
        format!("```json\n{call}\n```"),
        format!("```\n{call}\n```\n"),
        format!("```json {call} ```"),
        format!("```json\n{call}"),
        format!("<think>hm</think>\n\n{call}"),
        format!("hm</think>\n{call}"),
    ] {
        assert_eq!(calls(&text), [TOKYO_CALL], "{text}");
    }
    assert_eq!(calls(&format!("{call}\n{call}\n")), [TOKYO_CALL, TOKYO_CALL]);
    for text in [
        format!("One moment: {call}"),
        format!("One moment:\n```json\n{call}\n```"),
        format!("{call}\nDone."),
        format!("```json\n{call}\n```\nDone."),
        format!("```python\n{call}\n```"),
        format!("{call}, {{\"a\": 1}}"),
        format!("{call} {}", call.replace("get_time", "delete_all")),
        call.replace("get_time", "delete_all"),
        call.replace("arguments", "parameters"),
        r#"{"name": "get_time"}"#.to_owned(),
    ] {
        let parsed = parse(&text);
        assert_eq!((parsed.calls.len(), parsed.text.as_str()), (0, text.trim()));
        assert!(!parsed.truncated && parsed.malformed.is_empty(), "{text}");
    }
}

#[test]
fn quotations_and_examples_are_not_calls() {
    let call = r#"{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}"#;
    let tagged = format!("<tool_call>{call}</tool_call>");
    for text in [
        format!("Write `{tagged}` for that."),
        format!("Write ``{tagged}`` for that."),
        format!("> {tagged}"),
        format!("You said:\n> {tagged}\n> and more"),
        format!("For example:\n{tagged}"),
        format!("For example:\n\n```json\n{call}\n```"),
        format!("A call would look like this:\n\n```xml\n{tagged}\n```\n"),
        format!("例如：\n{tagged}"),
        format!("## Example\n\n```json\n{call}\n```"),
        format!("```json\n{call}\n```\n\nThe above is an example of a call."),
        format!("```rust\nlet call = r#\"{call}\"#;\n```"),
        format!("```markdown\n# How to call\n{tagged}\n```"),
        format!("<think>\nI could call {tagged}\n</think>\nNo need."),
        format!("<think>{tagged}"),
        format!("{tagged}\n</think>\nNo need."),
        format!("The text \"{tagged}\" is what you asked for."),
        format!("<!-- {tagged} -->"),
        format!("As code:\n\n    {tagged}\n\nThat is all."),
        format!("<tool_response>{tagged}</tool_response>"),
        r#"{"example": {"name": "get_time", "arguments": {}}}"#.to_owned(),
        r#"{"name": "delete_all", "arguments": {}}"#.to_owned(),
        r#"[{"name": "get_time"}, {"name": "calculate"}]"#.to_owned(),
        r#"<tools>[{"type": "function", "function": {"name": "get_time", "description": "Tell the time", "parameters": {"type": "object", "properties": {"timezone": {"type": "string"}}}}}]</tools>"#.to_owned(),
        r#"<tool_call>{"id": "call_1", "tool_name": "NAME", "arguments": {"PARAMETER": "VALUE"}}</tool_call>"#.to_owned(),
        r#"<tool_call>{"name": "get_time", "arguments": {"timezone": "..."}}</tool_call>"#.to_owned(),
        r#"<tool_call>{"name": <function-name>, "arguments": <args-json-object>}</tool_call>"#.to_owned(),
        "Use the <tool_call> tag to call a tool.".to_owned(),
        format!("{tagged}\n</think>\nNo need. `{tagged}"),
        format!("Let me look: {tagged}"),
        format!("Write `\n{tagged}` for that."),
        format!("Text: ```rust\n\n{tagged}\n```"),
        format!("~~~\n{tagged}\n~~~"),
        format!("For example:\n{tagged}\n{tagged}"),
        format!("For example:\n<think>hm</think>\n{tagged}"),
        format!("## Example\n\nSome words.\n\n{tagged}"),
    ] {
        assert_eq!(calls(&text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn truncated_calls_are_not_returned() {
    for text in [
        r#"<tool_call>{"name": "get_time", "arguments": {"timezone": "Asia/"#,
        r#"<tool_call>{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}"#,
        r#"<tool_call>"#,
        r#"{"name": "get_time", "arguments": {"#,
        "```json\n{\"name\": \"get_time\", \"arguments\": {\"timezone\": \"Asia",
        r#"[{"name": "get_time", "arguments": {}}, {"name": "calc"#,
    ] {
        let parsed = parse(text);
        assert!(parsed.truncated && parsed.calls.is_empty() && parsed.text.is_empty(), "{text}: {parsed:?}");
    }
    let parsed =
        parse(r#"<tool_call>{"name": "get_time", "arguments": {}}</tool_call><tool_call>{"name": "c"#);
    assert!(parsed.truncated && parsed.calls.len() == 1);
}

#[test]
fn malformed_calls_are_reported() {
    for content in [
        r#"{"name": "get_time", "arguments": {"timezone": "a"b"}}"#,
        "{'name': 'get_time', 'arguments': {}}",
        r#"{"name": "get_time", "timezone": "Asia/Tokyo"}"#,
        "<function=get_time></function>",
        "get_time(timezone=\"Asia/Tokyo\")",
    ] {
        let call = format!("<tool_call>{content}</tool_call>");
        let parsed = parse(&format!("Look:\n{call}\nDone."));
        assert_eq!((parsed.calls.len(), parsed.malformed), (0, vec![call]));
        assert_eq!(parsed.text, "Look:\n\nDone.");
    }
}

#[test]
fn several_calls_with_text_around_them_are_parsed() {
    let text = "First the time.\n<tool_call>{\"name\":\"get_time\",\"arguments\":{}}</tool_call>\nThen the sum.\n\
        <tool_call>{\"name\":\"calculate\",\"arguments\":{\"expression\":\"1+1\"}}</tool_call>\n\
        <tool_call>{\"name\":\"calculate\",\"arguments\":{\"expression\":\"2+2\"}}</tool_call>\nThat is all.";
    assert_eq!(
        calls(text),
        ["get_time {}", "calculate {\"expression\":\"1+1\"}", "calculate {\"expression\":\"2+2\"}"]
    );
    assert_eq!(parse(text).text, "First the time.\n\nThen the sum.\n\nThat is all.");
}

#[test]
fn text_after_an_invented_result_does_not_count() {
    let call = r#"<tool_call>{"name": "get_time", "arguments": {}}</tool_call>"#;
    for invented in
        ["<tool_response>noon</tool_response>", "Observation: noon", "<|im_end|>\n<|im_start|>user\nthanks"]
    {
        let text = format!("Let me see.\n{call}\n{invented}\nIt is noon.\n{call}");
        let parsed = parse(&text);
        assert_eq!((parsed.calls.len(), parsed.text.as_str()), (1, "Let me see."), "{invented}");
    }
}

#[test]
fn strings_may_contain_tags() {
    let text = r#"<tool_call>{"name": "write_data_to_excel", "arguments": {"data": [["</tool_call>", "```", "<tool_call>"]]}}</tool_call>"#;
    assert_eq!(calls(text).len(), 1);
    assert_eq!(parse(text).text, "");
}

/// Parses the text in pieces.
fn parse_in_pieces(text: &str, cuts: &[usize]) -> (String, ParsedText) {
    let mut parser = StreamingParser::new(is_tool);
    let mut shown = String::new();
    let mut from = 0;
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    for cut in cuts {
        if text.is_char_boundary(cut) && cut >= from {
            shown.push_str(&parser.push(text.get(from..cut).unwrap()));
            from = cut;
        }
    }
    shown.push_str(&parser.push(text.get(from..).unwrap()));
    let (last, parsed) = parser.finish();
    (shown + &last, parsed)
}

/// Fragments of ambiguous texts.
fn fragments() -> impl Strategy<Value = Vec<&'static str>> {
    let fragments = vec![
        "<tool_call>",
        "</tool_call>",
        "<tools>",
        "</tools>",
        "<function=get_time>",
        "</function>",
        "<think>",
        "</think>",
        "{\"name\": \"get_time\", \"arguments\": {}}",
        "{\"name\": \"get_time\"",
        ", \"arguments\": {\"a\": 1}}",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        "`",
        "```",
        "```json\n",
        "\n```",
        "\n",
        "\n\n",
        "> ",
        "    ",
        "For example:",
        "例如：",
        "a word ",
        "Action: get_time\n",
        "Action Input: {\"a\": 1}",
        "[TOOL_CALLS]",
        "[get_time(a=1)]",
        "<|python_tag|>",
        "<|im_end|>",
        "<invoke name=\"get_time\">",
        "<parameter name=\"a\">",
        "</parameter>",
        "</invoke>",
        "// c\n",
        "/*",
        "\\",
        "\\u12",
        ",",
        ":",
        "é",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "function",
        "get_time",
        "<!--",
        "-->",
        "~~~\n",
        "Observation:",
        "<tool_response>",
        "</tool_response>",
        "(",
        ")",
        "=",
        "1",
        "<|channel|>",
        "<|message|>",
        "to=functions.get_time",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "/",
        "#",
        "A",
        "O",
        "\"\"\"",
        "tool_call",
        "## Example\n",
    ];
    prop::collection::vec(prop::sample::select(fragments), 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn chunk_boundaries_do_not_matter(fragments in fragments(), cuts in prop::collection::vec(0_usize..400, 0..12)) {
        let text = fragments.concat();
        let whole = parse(&text);
        let (shown, parsed) = parse_in_pieces(&text, &cuts);
        prop_assert_eq!(&parsed, &whole, "{:?}", text);
        prop_assert_eq!(&shown, &whole.text, "{:?}", text);
        let characters: Vec<usize> = (0..text.len()).collect();
        prop_assert_eq!(parse_in_pieces(&text, &characters), (whole.text.clone(), whole), "{:?}", text);
    }

    #[test]
    fn quoted_text_is_never_a_call(fragments in fragments()) {
        let inside = fragments.concat().replace('`', "").replace('\n', " ");
        prop_assert_eq!(calls(&format!("Write ``{inside}`` for that.")), Vec::<String>::new());
        prop_assert_eq!(calls(&format!("> {inside}")), Vec::<String>::new());
        prop_assert_eq!(calls(&format!("```rust\n{inside}\n```\n")), Vec::<String>::new());
    }

    #[test]
    fn untagged_text_calls_known_tools_only(fragments in fragments()) {
        let text = fragments.concat().replace("get_time", "no_such_tool");
        if !text.contains('<') {
            prop_assert_eq!(calls(&text), Vec::<String>::new());
        }
    }
}
