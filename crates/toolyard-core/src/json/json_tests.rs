//! Guarantees of raw JSON: bytes stay unchanged, parts are not copied, small parts do not keep large texts alive, and the cursor
//! accepts exactly what serde_json accepts.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json, value::RawValue};
use std::borrow::Cow;

use super::{
    cursor::JsonCursor,
    raw::{RawJson, SharedText},
    value::{JsonError, JsonText},
};

#[test]
fn text_survives_byte_for_byte() {
    let text = r#"{"z":1.0,  "a":1e400,"z":"中文"}"#;
    let raw = RawJson::parse(text.to_owned()).unwrap();
    assert_eq!(raw.get(), text);
    assert_eq!(serde_json::to_string(&raw).unwrap(), text);
}

#[test]
fn the_empty_object_is_an_object() {
    assert_eq!(RawJson::empty_object().get(), "{}");
}

#[test]
fn invalid_json_is_rejected() {
    assert!(RawJson::parse("{".to_owned()).is_err());
}

/// The value of the only key of an object.
fn only_value(text: &str) -> JsonText<'_> {
    let mut cursor = JsonCursor::new(text, 128);
    assert!(cursor.enter_object().unwrap());
    cursor.next_key().unwrap().unwrap();
    let value = cursor.next_value().unwrap();
    assert_eq!(cursor.next_key().unwrap(), None);
    cursor.end().unwrap();
    value
}

#[test]
fn a_part_shares_the_bytes_of_its_text() {
    let inner = r#"{"z":1.0,  "a":1e400,"中":"\u00e9"}"#;
    let text = SharedText::from(format!(" {{\"result\" : {inner} }}\n"));
    let part = text.part(only_value(text.as_str()));
    assert_eq!(part.get(), inner);
    assert!(text.as_str().as_bytes().as_ptr_range().contains(&part.get().as_ptr()));
    assert_eq!(serde_json::to_string(&part).unwrap(), inner);
    let deeper = part.part(only_value(r#"{"a":[1]}"#));
    assert_eq!(deeper.get(), "[1]");
}

#[test]
fn parts_of_parsed_json_share_it_too() {
    let raw = RawJson::parse(r#"{"a":{"b":[1,2,3]}}"#.to_owned()).unwrap();
    let part = raw.part(only_value(raw.get()));
    let deeper = part.part(only_value(part.get()));
    assert_eq!(deeper.get(), "[1,2,3]");
    assert!(raw.get().as_bytes().as_ptr_range().contains(&deeper.get().as_ptr()));
    assert_eq!(json!({"part": deeper}), json!({"part": [1, 2, 3]}));
}

#[test]
fn a_small_part_does_not_keep_a_large_text_alive() {
    let is_shared = |part: usize, whole: usize| {
        let item = format!("\"{}\"", "x".repeat(part - 2));
        let mut text = format!("[{item},\"{}\"]", "y".repeat(whole - part - 5));
        text.shrink_to_fit();
        assert_eq!(text.len(), whole);
        let text = SharedText::from(text);
        let mut cursor = JsonCursor::new(text.as_str(), 1);
        cursor.enter_array().unwrap();
        cursor.next_item().unwrap();
        let raw = text.part(cursor.next_value().unwrap());
        assert_eq!(raw.get(), item);
        text.as_str().as_bytes().as_ptr_range().contains(&raw.get().as_ptr())
    };
    assert!(is_shared(10, 64 << 10), "small texts are always shared");
    assert!(!is_shared(1_000, 1 << 20), "a thousandth of a large text is copied");
    assert!(is_shared(128 << 10, 1 << 20) && !is_shared((128 << 10) - 1, 1 << 20), "an eighth is the limit");
}

#[test]
fn items_of_a_large_list_share_texts_of_bounded_size() {
    let item = |size: usize| format!("\"{}\"", "x".repeat(size - 2));
    let sizes = [500, 300, 70_000, 20, 60_000, 6_000, 4, 900_000].into_iter().chain([640; 300]);
    let expected: Vec<String> = sizes.map(item).collect();
    let items = RawJson::items(format!("[{}]", expected.join(", "))).unwrap();
    assert_eq!(items.iter().map(RawJson::get).collect::<Vec<_>>(), expected);
    let held = |item: &RawJson| item.text.as_str().len();
    let small = items.iter().filter(|item| item.get().len() < 1_000);
    assert!(small.clone().all(|item| held(item) <= 64 << 10), "a small item keeps no large text alive");
    let texts: std::collections::BTreeSet<usize> =
        small.map(|item| item.text.as_str().as_ptr().addr()).collect();
    assert!(texts.len() < 10, "300 small items have {} texts", texts.len());
}

#[test]
fn raw_json_is_no_larger_than_a_string() {
    assert_eq!(size_of::<RawJson>(), size_of::<String>());
    assert_eq!(size_of::<Option<RawJson>>(), size_of::<String>());
}

#[test]
fn depth_counts_entered_and_skipped_values() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let skip = |text: &str, limit| JsonCursor::new(text, limit).next_value().map(JsonText::get).map(str::len);
    assert_eq!(skip(&nested(7), 7), Ok(14));
    assert_eq!(skip(&nested(8), 7), Err(JsonError::TooDeep(7)));
    assert_eq!(skip(&nested(128), usize::MAX), Ok(256));
    assert_eq!(skip(&nested(129), usize::MAX), Err(JsonError::TooDeep(128)));
    assert_eq!(skip(&"[{\"a\":".repeat(1_000_000), 128), Err(JsonError::TooDeep(128)));
    let text = nested(3);
    let mut cursor = JsonCursor::new(&text, 2);
    assert!(cursor.enter_array().unwrap() && cursor.next_item().unwrap());
    assert_eq!(cursor.next_value(), Err(JsonError::TooDeep(2)));
}

#[test]
fn a_lone_surrogate_becomes_the_replacement_character() {
    let read = |text: &str| JsonCursor::new(text, 0).string().unwrap().map(Cow::into_owned);
    assert_eq!(read(r#""\ud83d\ude00!""#).unwrap(), "\u{1f600}!");
    assert_eq!(read(r#""a\ud83d!""#).unwrap(), "a\u{fffd}!");
    assert_eq!(read(r#""\ude00\ud83d\u0041""#).unwrap(), "\u{fffd}\u{fffd}A");
    assert_eq!(read(r#""\ud83d\ud83d\ude00""#).unwrap(), "\u{fffd}\u{1f600}");
}

#[test]
fn a_key_is_decoded_before_it_is_compared() {
    let text = r#"{"t\u006fols":[]}"#;
    let mut cursor = JsonCursor::new(text, 2);
    cursor.enter_object().unwrap();
    assert_eq!(cursor.next_key().unwrap().unwrap(), "tools");
}

/// All values of a text down to this depth, in the order of the cursor.
fn collect_parts(cursor: &mut JsonCursor<'_>, json: &RawJson, depth: usize, found: &mut Vec<RawJson>) {
    found.push(json.part(cursor.clone().next_value().unwrap()));
    if depth == 0 {
        cursor.next_value().unwrap();
    } else if cursor.enter_object().unwrap() {
        while cursor.next_key().unwrap().is_some() {
            collect_parts(cursor, json, depth - 1, found);
        }
    } else if cursor.enter_array().unwrap() {
        while cursor.next_item().unwrap() {
            collect_parts(cursor, json, depth - 1, found);
        }
    } else {
        cursor.next_value().unwrap();
    }
}

#[test]
fn a_text_that_was_not_read_to_its_end_has_no_index() {
    let item = format!("[{}1]", "1,".repeat(400));
    for (text, is_valid) in [(format!("[{item},{item}]"), true), (format!("[{item},{item}}}"), false)] {
        let text = SharedText::from(text);
        let mut cursor = JsonCursor::indexing(&text, 8);
        assert_eq!(cursor.next_value().is_ok(), is_valid);
        assert_eq!(cursor.end().is_ok(), is_valid);
        assert_eq!(text.skip_index().is_some(), is_valid);
    }
}

/// Any JSON value, with any characters in its strings.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z \"\\\\\n中]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((".{0,8}", inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// JSON with up to three bytes inserted, replaced or removed.
fn nearly_json() -> impl Strategy<Value = String> {
    let byte = prop::sample::select(b"{}[]\",:\\u0e+-. \n\ttfn19\x01\x1f\x7f".to_vec());
    let damage = (any::<prop::sample::Index>(), prop::option::of(byte), 0..3_u8);
    (any_json(), any::<bool>(), vec(damage, 0..4)).prop_map(|(value, pretty, damages)| {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let mut bytes = text.unwrap().into_bytes();
        for (index, byte, kind) in damages {
            let index = index.index(bytes.len() + 1);
            match (kind, byte) {
                (0, Some(byte)) => bytes.insert(index, byte),
                (1, Some(byte)) if index < bytes.len() => bytes[index] = byte,
                _ if index < bytes.len() => drop(bytes.remove(index)),
                _ => {}
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The value of a text, read by entering every object and array.
fn read_value(cursor: &mut JsonCursor<'_>) -> Result<Value, JsonError> {
    if cursor.enter_object()? {
        let mut fields = serde_json::Map::new();
        while let Some(key) = cursor.next_key()? {
            fields.insert(key.into_owned(), read_value(cursor)?);
        }
        return Ok(Value::Object(fields));
    }
    if cursor.enter_array()? {
        let mut items = Vec::new();
        while cursor.next_item()? {
            items.push(read_value(cursor)?);
        }
        return Ok(Value::Array(items));
    }
    if let Some(text) = cursor.string()? {
        return Ok(Value::from(text.into_owned()));
    }
    Ok(serde_json::from_str(cursor.next_value()?.get()).unwrap_or(json!("a number too large")))
}

fn is_accepted(text: &str) -> bool {
    let mut cursor = JsonCursor::new(text, 128);
    cursor.next_value().is_ok() && cursor.end().is_ok()
}

#[test]
fn edge_cases_of_the_grammar_match_serde_json() {
    let texts = [
        "",
        " ",
        "-",
        "-0",
        "00",
        "01",
        "1.",
        ".1",
        "1.e1",
        "1e",
        "1e+",
        "1E-07",
        "0.0e0",
        "tru",
        "truefalse",
        "null ",
        "nul",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\t\"",
        "\"\u{7f}\"",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "[}",
        "{]",
        "[1}",
        "{\"a\":1]",
        "[]]",
        "{}{}",
        "\u{feff}1",
        "\u{a0}1",
        "[ ]",
        "{ }",
        " [ 1 , 2 ] ",
        "{ \"a\" : 1 , \"b\" : [ ] } ",
        "\"12345678\\\"12345678\"",
        "\"1234567\u{1}\"",
        "'a'",
        "NaN",
        "+1",
        "1_000",
        "[\"\\\\\"]",
    ];
    for text in texts {
        assert_eq!(is_accepted(text), serde_json::from_str::<&RawValue>(text).is_ok(), "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, ..ProptestConfig::default() })]

    #[test]
    fn the_cursor_accepts_what_serde_json_accepts(text in nearly_json()) {
        let raw = serde_json::from_str::<&RawValue>(&text);
        prop_assert_eq!(is_accepted(&text), raw.is_ok(), "{}", text);
        if let Ok(raw) = raw {
            prop_assert_eq!(JsonCursor::new(&text, 128).next_value().unwrap().get(), raw.get());
        }
    }

    #[test]
    fn the_cursor_reads_what_serde_json_reads(text in nearly_json()) {
        let mut cursor = JsonCursor::new(&text, 128);
        let by_cursor = read_value(&mut cursor).and_then(|value| cursor.end().map(|()| value));
        match (by_cursor, serde_json::from_str::<Value>(&text)) {
            (Ok(by_cursor), Ok(by_serde)) => prop_assert_eq!(by_cursor, by_serde),
            (by_cursor, Err(_)) if is_accepted(&text) => prop_assert!(by_cursor.is_ok(), "valid JSON, although a number is too large for serde_json"),
            (by_cursor, by_serde) => prop_assert_eq!(by_cursor.is_ok(), by_serde.is_ok(), "{}", text),
        }
    }

    #[test]
    fn any_part_survives_byte_for_byte(value in any_json(), blank in "[ \t\n\r]{0,5}") {
        let inner = serde_json::to_string_pretty(&value).unwrap();
        let text = SharedText::from(format!("{blank}{{{blank}\"p\"{blank}:{blank}{inner}{blank}}}{blank}"));
        let part = text.part(only_value(text.as_str()));
        prop_assert_eq!(part.get(), &inner);
        prop_assert_eq!(serde_json::to_string(&part).unwrap(), inner);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    #[test]
    fn an_indexed_text_yields_the_same_parts(value in any_json(), copies in 1..12_usize, pretty in any::<bool>()) {
        let value = json!({"result": {"list": vec![value; copies], "more": [[1, 2], {}]}});
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = SharedText::from(format!(" {}", text.unwrap()));
        let mut first = JsonCursor::indexing(&text, 128);
        let whole = text.part(first.next_value().unwrap());
        let unindexed = RawJson::parse(whole.get().to_owned()).unwrap();
        let (mut unindexed_parts, mut indexed_parts) = (Vec::new(), Vec::new());
        collect_parts(&mut JsonCursor::of(&unindexed), &unindexed, 7, &mut unindexed_parts);
        first.end().unwrap();
        collect_parts(&mut JsonCursor::of(&whole), &whole, 7, &mut indexed_parts);
        prop_assert_eq!(&unindexed_parts, &indexed_parts);
        for part in indexed_parts {
            collect_parts(&mut JsonCursor::of(&part), &part, 7, &mut Vec::new());
        }
    }
}
