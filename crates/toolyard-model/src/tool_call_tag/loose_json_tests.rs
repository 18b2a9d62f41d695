//! What is read of nearly JSON, what is refused, and that it ends.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(text: &str) -> Option<Value> {
    let (value, used) = read_value(text, Brackets::Closed).ok()?;
    text.get(used..)?.trim().is_empty().then_some(value)
}

#[test]
fn what_models_write_is_read() {
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
        let value = read(text);
        let same = value.as_ref() == Some(&expected)
            || value.as_ref().map(Value::to_string) == Some(expected.to_string().replace("1.0,", "1,"));
        assert!(same, "{text}: {value:?}");
    }
}

#[test]
fn what_could_mean_two_things_is_refused() {
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
            matches!(read_value(text, Brackets::Closed), Err(Fault::Invalid(_))) || read(text).is_none(),
            "{text}"
        );
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn what_is_cut_off_is_known_to_be() {
    let text = r#"{"name": "get_time", "arguments": {"a": [1, -2.5e1, true, "x\u00e9\n"], b: 'y'}} "#;
    let end = text.trim_end().len();
    for cut in 1..end {
        let Some(start) = text.get(..cut) else { continue };
        assert_eq!(read_value(start, Brackets::Closed).unwrap_err(), Fault::Incomplete, "{start}");
    }
    assert!(read(text).is_some());
    // Only brackets may be missing, and only where they may.
    let lenient = |text: &str| read_value(text, Brackets::MayBeMissing).ok().map(|(value, _)| value);
    assert_eq!(lenient("{\"a\": {\"b\": [1, 2"), Some(json!({"a": {"b": [1, 2]}})));
    assert_eq!(lenient("{\"a\": \"b"), None);
    assert_eq!(lenient("{\"a\": "), None);
    assert_eq!(lenient("{\"a\""), None);
}

#[test]
fn depth_and_comments_have_limits() {
    assert!(matches!(read_value(&"[".repeat(1_000_000), Brackets::Closed), Err(Fault::Invalid(64))));
    assert!(read(&format!("{}1{}", "[".repeat(60), "]".repeat(60))).is_some());
    let comment = format!("{{/*{}*/ \"a\": 1}}", "x".repeat(5_000));
    assert!(matches!(read_value(&comment, Brackets::Closed), Err(Fault::Invalid(_))));
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
    fn all_json_is_read_as_what_it_is(value in any_json()) {
        let value = serde_json::json!([value]);
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert_eq!(read(&text), Some(value.clone()), "{}", text);
        }
    }

    #[test]
    fn nothing_does_harm(text in ".{0,200}") {
        for brackets in [Brackets::Closed, Brackets::MayBeMissing] {
            if let Ok((_, used)) = read_value(&text, brackets) {
                prop_assert!(text.is_char_boundary(used));
            }
        }
    }
}
