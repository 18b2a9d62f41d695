//! Valid arguments are read, invalid ones are reported without their values.

use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters here")]
struct Outer {
    /// The parts.
    parts: Vec<Inner>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters here")]
struct Inner {
    #[serde(rename = "a/b")]
    size: u32,
}

#[test]
fn an_error_names_the_path() {
    let wrong = RawJson::from_value(&json!({"parts": [{"a/b": 1}, {"a/b": "x"}]}));
    let error = read_arguments::<Outer>(&wrong).unwrap_err();
    assert_eq!(error.message(), "invalid arguments: /parts/1/a~1b: expected an integer from 0 to 4294967295");
}

#[test]
fn a_missing_field_is_named() {
    let error = read_arguments::<Outer>(&RawJson::empty_object()).unwrap_err();
    assert_eq!(error.message(), "invalid arguments: missing field `parts`");
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the shape matters here")]
struct Strict {
    count: Option<usize>,
    signed: Option<i8>,
    ratio: Option<f64>,
    unit: Option<Unit>,
    address: Option<std::net::IpAddr>,
    any: Option<Value>,
    pair: Option<(u8, u8)>,
    either: Option<Either>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Metre,
    Mile,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the shape matters here")]
enum Either {
    Number(u8),
    List(Vec<u8>),
}

fn read_strict(arguments: Value) -> Result<Strict, String> {
    read_arguments(&RawJson::from(arguments)).map_err(|error| error.message().to_owned())
}

#[test]
fn errors_never_contain_values() {
    let tricky = "hunter2, expected hunter2 at line 1";
    for wrong in [
        json!({"count": "hunter2"}),
        json!({"count": tricky}),
        json!({"count": -4711}),
        json!({"count": 4711.5}),
        json!({"signed": 4711}),
        json!({"ratio": tricky}),
        json!({"unit": "hunter2"}),
        json!({"unit": tricky}),
        json!({"unit": {"hunter2": 4711}}),
        json!({"address": "hunter2"}),
        json!({"pair": [4711, 1]}),
        json!({"pair": [1]}),
        json!({"either": "hunter2"}),
        json!({"tz": "hunter2"}),
        json!("hunter2"),
        json!(4711),
    ] {
        let message = read_strict(wrong.clone()).unwrap_err();
        assert!(!message.contains("hunter2") && !message.contains("4711"), "{wrong}: {message}");
    }
    let message = |arguments| read_strict(arguments).unwrap_err();
    assert_eq!(message(json!({"count": -1})), "invalid arguments: /count: expected an integer, 0 or more");
    assert_eq!(message(json!({"unit": "mil"})), "invalid arguments: /unit: expected `metre` or `mile`");
    assert_eq!(message(json!(7)), "invalid arguments: expected an object");
    assert!(message(json!({"address": "x"})).ends_with("/address: this value is not accepted"));
}

#[test]
fn an_unknown_field_is_named() {
    let message = read_strict(json!({"cuont": 1})).unwrap_err();
    assert!(message.contains("unknown field `cuont`, expected one of `count`, `signed`"), "{message}");
    let long = read_strict(json!({format!("a\u{1b}[31m{}", "x".repeat(5_000)): 1})).unwrap_err();
    assert!(long.contains("unknown field `axxx"), "{long}");
}

#[test]
fn whole_numbers_are_integers_however_they_are_written() {
    let read = |text: &str| read_arguments::<Strict>(&RawJson::parse(text.to_owned()).unwrap());
    for text in [r#"{"count": 20.0}"#, r#"{"count": 2e1}"#, r#"{"count": 20, "signed": -1.0}"#] {
        assert_eq!(read(text).unwrap().count, Some(20), "{text}");
    }
    let mixed = read(r#"{"count": 1e18, "ratio": 2.0, "pair": [1.0, 2.0]}"#).unwrap();
    assert_eq!((mixed.count, mixed.ratio), (Some(1_000_000_000_000_000_000), Some(2.0)));
    assert_eq!(mixed.pair, Some((1, 2)));
    assert_eq!(read(r#"{"any": 1.0}"#).unwrap().any, Some(json!(1.0)), "as it was written");
    for wrong in [r#"{"count": 1.5}"#, r#"{"count": -1.0}"#, r#"{"count": 1e300}"#, r#"{"signed": 200.0}"#] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_schema_is_inline_without_title() {
    let schema = schema_of::<Outer>().to_value();
    assert_eq!(schema["properties"]["parts"]["description"], "The parts.");
    assert_eq!(schema["properties"]["parts"]["items"]["required"], json!(["a/b"]));
    assert!(schema.get("$schema").is_none() && schema.get("title").is_none());
    assert!(schema.get("additionalProperties").is_none(), "the type decides about unknown fields");
    assert_eq!(schema_of::<Strict>().to_value()["additionalProperties"], json!(false));
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    let deep = RawJson::parse(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    if let Ok(deep) = deep {
        assert!(read_arguments::<Outer>(&deep).is_err());
    }
}
