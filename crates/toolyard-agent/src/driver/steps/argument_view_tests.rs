//! Tests of what approvers see of arguments.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn view(arguments: &Value) -> ArgumentView {
    view_arguments(&RawJson::from_value(arguments)).unwrap()
}

#[test]
fn short_values_are_shown_whole() {
    assert_eq!(view(&json!({"x": 1})), ArgumentView { text: r#"{"x":1}"#.to_owned(), notes: Vec::new() });
    let long = "a".repeat(MAX_WHOLE_CHARS);
    assert!(view(&json!({"text": long})).text.contains(&long));
}

#[test]
fn a_long_value_is_shown_with_length_hash_beginning_and_end() {
    let text = format!("BEGIN{}END", "x".repeat(3 << 20));
    let shown = view(&json!({"text": text, "then": "rm -rf /"})).text;
    let expected = format!("of {} characters omitted; blake3 {})…", text.len(), ContentHash::of(&text));
    assert!(shown.starts_with(r#"{"text":"BEGINxxx"#) && shown.contains(&expected), "{shown}");
    assert!(shown.contains(r#"xxxEND","then":"rm -rf /"}"#), "{shown}");
    assert!(shown.len() < 4_000, "{}", shown.len());
    assert_eq!(redact(&shown), shown, "stores redact the text; the hash must survive");
}

#[test]
fn every_value_behind_much_else_is_shown() {
    // The attack: 64 KB, or 2 MB, of harmless arguments before the one that matters.
    for (count, size) in [(70_000, 1), (120, 15_000), (6, 500_000)] {
        let harmless: Vec<String> = (0..count).map(|_| "h".repeat(size)).collect();
        let shown =
            view_arguments(&RawJson::from_value(&json!({"a": harmless, "b": {"command": "rm -rf /"}})));
        match shown {
            Ok(view) => assert!(view.text.ends_with(r#""b":{"command":"rm -rf /"}}"#), "{count} × {size}"),
            Err(error) => assert_eq!((count, size), (120, 15_000), "{error}"),
        }
    }
}

#[test]
fn arguments_that_cannot_be_shown_are_refused() {
    let many: Vec<u32> = (0..300_000).collect();
    let error = view_arguments(&RawJson::from_value(&json!({"rows": many}))).unwrap_err();
    assert!(error.to_string().contains("too large to be shown"), "{error}");
}

#[test]
fn a_value_cannot_imitate_an_omission() {
    let fake = r#"a" …(1 of 2 characters omitted; blake3 00)… "b"#;
    assert_eq!(view(&json!({"x": fake})).text, format!(r#"{{"x":{}}}"#, Value::from(fake)));
    let marked = format!("{MARKER}0{MARKER}");
    let shown = view(&json!({"x": marked, "y": "z".repeat(20_000)})).text;
    assert!(shown.starts_with(r#"{"x":"\\u{fdd0}0\\u{fdd0}","y":"zzz"#), "{shown}");
    assert_eq!(shown.matches("characters omitted").count(), 1, "{shown}");
}

#[test]
fn invisible_characters_are_escaped_and_disguised_letters_are_not() {
    let shown = view(&json!({"path": "a\u{202e}txt.exe\u{200b}\u{1b}[2J"})).text;
    assert_eq!(shown, r#"{"path":"a\u{202e}txt.exe\u{200b}\u001b[2J"}"#);
    let escaped = RawJson::parse(r#"{"command": "\u0072m -rf"}"#.to_owned()).unwrap();
    assert_eq!(view_arguments(&escaped).unwrap().text, r#"{"command":"rm -rf"}"#);
}

#[test]
fn long_keys_and_exact_numbers_are_shown() {
    let numbers = RawJson::parse(r#"{"n": 12345678901234567890123, "m": 1.0}"#.to_owned()).unwrap();
    assert_eq!(view_arguments(&numbers).unwrap().text, r#"{"n":12345678901234567890123,"m":1.0}"#);
    let shown = view(&json!({ "k".repeat(20_000): 1 })).text;
    assert!(shown.contains("of 20000 characters omitted") && shown.ends_with("k\":1}"), "{shown}");
}

#[test]
fn redacted_values_are_mentioned() {
    let shown = view(&json!({"password": "hunter2-hunter2", "user": "ada"}));
    assert_eq!(shown.text, r#"{"password":"[redacted:assignment]","user":"ada"}"#);
    assert_eq!(shown.notes, ["secrets are redacted here; the tool receives them"]);
    let long = view(&json!({"password": "x".repeat(20_000)}));
    assert_eq!(long.notes.last().unwrap(), "a redacted value has 20000 characters");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z \"\\\\{}\\[\\],:é中\n…()]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map("[f-l]{1,6}", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_view_without_long_values_is_the_arguments_themselves(arguments in any_json()) {
        let shown = view(&json!({"all": arguments}));
        prop_assume!(shown.notes.is_empty());
        prop_assert_eq!(serde_json::from_str::<Value>(&shown.text).unwrap(), json!({"all": arguments}));
    }

    #[test]
    fn a_view_never_fails_or_hides_its_last_value(arguments in any_json(), size in 0_usize..40_000, text in any::<String>()) {
        let shown = view(&json!({"a": arguments, "b": "b".repeat(size), "c": text, "last": "the end"}));
        prop_assert!(shown.text.ends_with(r#""last":"the end"}"#), "{}", shown.text);
        prop_assert_eq!(shown.text.contains("omitted; blake3"), size > MAX_WHOLE_CHARS);
    }
}
