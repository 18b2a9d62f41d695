//! Accepted mistakes, rejected ambiguities and limits.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(text: &str) -> Option<Value> {
    let (value, used) = parse_prefix(text).ok()?;
    text.get(used..)?.trim().is_empty().then_some(value)
}

#[test]
fn common_mistakes_are_accepted() {
    for (text, expected) in [
        (r#"{"a": 1, "b": [true, null, "x"]}"#, json!({"a": 1, "b": [true, null, "x"]})),
        (r#"{"a": 1, "b": [1, 2,],}"#, json!({"a": 1, "b": [1, 2]})),
        (
            r"{'a': 'it is', 'b': True, 'c': None, 'd': False}",
            json!({"a": "it is", "b": true, "c": null, "d": false}),
        ),
        ("{a: 1, b_c: 2}", json!({"a": 1, "b_c": 2})),
        ("{\"a\": \"two\nlines\tand a tab\"}", json!({"a": "two\nlines\tand a tab"})),
        ("{\"a\": 1 // one\n, /* two */ \"b\": 2 # three\n}", json!({"a": 1, "b": 2})),
        (
            r#"{"path": "C:\Users\data", "pattern": "\d+\.\w"}"#,
            json!({"path": "C:\\Users\\data", "pattern": "\\d+\\.\\w"}),
        ),
        (r#"{"a": "é你\ud83d\ude00 \ud83d!"}"#, json!({"a": "é你😀 \u{fffd}!"})),
        ("{\"code\": \"\"\"say \"hi\"\nnow\"\"\"}", json!({"code": "say \"hi\"\nnow"})),
        ("{“a”：“b”，“c”：1}", json!({"a": "b", "c": 1})),
        ("{\"a\": 1\n \"b\": 2}", json!({"a": 1, "b": 2})),
        ("{\"a\": .5, \"b\": +1, \"c\": 1., \"d\": 1e3}", json!({"a": 0.5, "b": 1, "c": 1.0, "d": 1000.0})),
        ("{\"n\": 123456789012345678901234567890}", json!({"n": 123456789012345678901234567890_f64})),
    ] {
        let value = parse(text);
        let is_equal = value.as_ref() == Some(&expected)
            || value.as_ref().map(Value::to_string) == Some(expected.to_string().replace("1.0,", "1,"));
        assert!(is_equal, "{text}: {value:?}");
    }
}

#[test]
fn ambiguous_text_is_rejected() {
    for text in [
        r#"{"formula": "=SUM("A1:A3")"}"#,
        "{'a': 'it's'}",
        "{\"a\": ...}",
        "{\"a\": 1, ...}",
        "[1 2]",
        "{\"a\" 1}",
        "{\"a\": <value>}",
        "{\"a\": 007}",
        "{\"a\": 1e999}",
        "{\"a\": undefined}",
        "{\"a\": 1]",
        "{\"a\": x}",
    ] {
        assert!(
            matches!(parse_prefix(text), Err(LenientJsonError::Invalid(_))) || parse(text).is_none(),
            "{text}"
        );
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn truncated_text_is_incomplete() {
    let text = r#"{"name": "get_time", "arguments": {"a": [1, -2.5e1, true, "x\u00e9\n"], b: 'y'}} "#;
    let end = text.trim_end().len();
    for cut in 1..end {
        let Some(start) = text.get(..cut) else { continue };
        assert_eq!(parse_prefix(start).unwrap_err(), LenientJsonError::Incomplete, "{start}");
    }
    assert!(parse(text).is_some());
    // Only brackets are closed, not strings.
    let closed = |text: &str| parse_prefix_closing_brackets(text).ok().map(|(value, _)| value);
    assert_eq!(closed("{\"a\": {\"b\": [1, 2"), Some(json!({"a": {"b": [1, 2]}})));
    assert_eq!(closed("{\"a\": \"b"), None);
    assert_eq!(closed("{\"a\": "), None);
    assert_eq!(closed("{\"a\""), None);
}

#[test]
fn a_document_may_be_fenced_truncated_or_have_bare_words() {
    let expected = json!({"a": [1, true, null], "b": "it's \"x\"\n"});
    for text in [
        "{\"a\": [1, true, null,], \"b\": \"it's \\\"x\\\"\\n\",}",
        "```json\n{'a': [1, True, None], 'b': 'it\\'s \"x\"\n'}\n```",
        "{a: [1, true, null], // a comment\n b: \"it's \\\"x\\\"\n\"}  and more words",
        "{“a”: [1, true, undefined], /* so */ “b”: \"it's \\\"x\\\"\\n\"}",
    ] {
        let document = JsonDocument { value: expected.clone(), is_truncated: false };
        assert_eq!(parse_document(text), Some(document), "{text}");
    }
    assert_eq!(parse_document("{\"n\": 1e5, }").unwrap().value, json!({"n": 1e5}));
    assert!(parse_document("{\"a\": [1, 2").unwrap().is_truncated);
    assert_eq!(parse_document("no JSON"), None);
    assert_eq!(parse_document(""), None);
    let truncated = parse_document("{\"verified\": yes, \"issues\": [\"the to\\").unwrap();
    assert_eq!(
        truncated,
        JsonDocument { value: json!({"verified": "yes", "issues": ["the to"]}), is_truncated: true }
    );
}

#[test]
fn depth_and_comments_have_limits() {
    assert!(matches!(parse_prefix(&"[".repeat(1_000_000)), Err(LenientJsonError::Invalid(64))));
    assert!(parse(&format!("{}1{}", "[".repeat(60), "]".repeat(60))).is_some());
    let comment = format!("{{/*{}*/ \"a\": 1}}", "x".repeat(5_000));
    assert!(matches!(parse_prefix(&comment), Err(LenientJsonError::Invalid(_))));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1.0e9..1.0e9).prop_map(|number: f64| Value::from(number)),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".*", inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn valid_json_is_parsed_exactly(value in any_json()) {
        let value = serde_json::json!([value]);
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert_eq!(parse(&text), Some(value.clone()), "{}", text);
        }
    }

    #[test]
    fn no_document_causes_a_panic(text in "[{\\[]?[\\[\\]{}\"'“”,:\\\\/*a-z0-9 \n\u{e9}`]{0,60}") {
        let _ = parse_document(&text);
    }

    #[test]
    fn a_document_of_valid_json_is_parsed_as_serde_json_does(value in any_json()) {
        let text = serde_json::json!([value]).to_string();
        let expected = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(parse_document(&text), Some(JsonDocument { value: expected, is_truncated: false }));
    }

    #[test]
    fn no_text_causes_a_panic(text in ".{0,200}") {
        for (_, used) in [parse_prefix(&text), parse_prefix_closing_brackets(&text)].into_iter().flatten() {
            prop_assert!(text.is_char_boundary(used));
        }
    }
}
