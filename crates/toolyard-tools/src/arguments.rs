//! Reads a call's arguments as a type, and writes a type as the JSON Schema of arguments.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value, error::Category};
use serde_path_to_error::{Path, Segment};
use toolyard_core::{ArgumentProblem, RawJson, ToolError};

use crate::text::{one_line, shortened};

/// More of a field's name is not repeated.
const MAX_NAME: usize = 64;
/// Said where anything more could repeat a value.
const NOT_ACCEPTED: &str = "this value is not accepted";

/// The arguments as a type, or an error that names the place which does not fit, and never what stands there.
pub(crate) fn read_arguments<A: DeserializeOwned>(arguments: &RawJson) -> Result<A, ToolError> {
    let mut reader = serde_json::Deserializer::from_str(arguments.get());
    let as_written = serde_path_to_error::deserialize(&mut reader);
    as_written.or_else(|error| with_integers(arguments).unwrap_or(Err(error))).map_err(|error| {
        let problem = ArgumentProblem { path: pointer(error.path()), message: described(error.inner()) };
        ToolError::invalid_arguments(vec![problem])
    })
}

/// The arguments read once more with `1.0` as `1`, which to JSON Schema are the same; `None` if there is no such number.
fn with_integers<A: DeserializeOwned>(
    arguments: &RawJson,
) -> Option<Result<A, serde_path_to_error::Error<serde_json::Error>>> {
    let mut value = arguments.to_value();
    (write_as_integers(&mut value) > 0).then(|| serde_path_to_error::deserialize(value))
}

/// How many numbers were changed.
fn write_as_integers(value: &mut Value) -> usize {
    match value {
        Value::Number(number) => {
            // Written without an exponent, a whole number has no point.
            let digits = number.as_f64().filter(|_| number.is_f64()).map(|float| float.to_string());
            let integer = digits.and_then(|digits| {
                let signed = digits.parse::<i64>().ok().map(Number::from);
                signed.or_else(|| digits.parse::<u64>().ok().map(Number::from))
            });
            let Some(integer) = integer else { return 0 };
            *number = integer;
            1
        }
        Value::Array(values) => values.iter_mut().map(write_as_integers).sum(),
        Value::Object(object) => object.values_mut().map(write_as_integers).sum(),
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}

/// The JSON Schema of a type, without the noise that models do not need.
pub(crate) fn schema_of<A: JsonSchema>() -> RawJson {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    schema.remove("description");
    let mut value = schema.to_value();
    if let Some(object) = value.as_object_mut() {
        object.entry("type").or_insert_with(|| "object".into());
    }
    RawJson::from_value(&value)
}

/// A place as a JSON Pointer.
fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        let step = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
            Segment::Enum { variant } => variant.clone(),
            Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&step);
    }
    pointer
}

/// The reader's message without values, which may be secrets: what was expected, but not what was found.
fn described(error: &serde_json::Error) -> String {
    let message = error.to_string();
    // Line and column mean nothing to someone who sent an object.
    let message = message.rfind(" at line ").and_then(|end| message.get(..end)).unwrap_or(&message);
    if error.classify() != Category::Data {
        return message.to_owned();
    }
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected);
    if message.starts_with("missing field `") || message.starts_with("duplicate field `") {
        message.to_owned()
    } else if let Some(rest) = message.strip_prefix("unknown field `") {
        // The name of a field is no value, but it may be anything at all.
        let end = if expected.is_some() { "`, expected " } else { "`, there are no fields" };
        let name = rest.rsplit_once(end).map(|(name, _)| shortened(&one_line(name), MAX_NAME));
        let expected = expected.map(|expected| format!(", expected {expected}")).unwrap_or_default();
        format!("unknown field `{}`{expected}", name.unwrap_or_default())
    } else if ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant `"]
        .iter()
        .any(|known| message.starts_with(known))
    {
        expected.map_or_else(|| NOT_ACCEPTED.to_owned(), |expected| format!("expected {}", named(expected)))
    } else {
        // The words of whoever wrote the type; they may repeat the value.
        NOT_ACCEPTED.to_owned()
    }
}

/// A type of Rust in the words of JSON.
fn named(expected: &str) -> &str {
    match expected {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "u128" | "usize" => "an integer, 0 or more",
        "i8" => "an integer from -128 to 127",
        "i16" => "an integer from -32768 to 32767",
        "i32" => "an integer from -2147483648 to 2147483647",
        "i64" | "i128" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a sequence" => "an array",
        "a map" => "an object",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    }
}

#[cfg(test)]
mod tests {
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
    fn a_problem_names_its_place() {
        let wrong = RawJson::from_value(&json!({"parts": [{"a/b": 1}, {"a/b": "x"}]}));
        let error = read_arguments::<Outer>(&wrong).unwrap_err();
        assert_eq!(
            error.message(),
            "invalid arguments: /parts/1/a~1b: expected an integer from 0 to 4294967295"
        );
    }

    #[test]
    fn what_is_missing_is_named() {
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

    fn strict(arguments: Value) -> Result<Strict, String> {
        read_arguments(&RawJson::from(arguments)).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn values_are_never_repeated() {
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
            let message = strict(wrong.clone()).unwrap_err();
            assert!(!message.contains("hunter2") && !message.contains("4711"), "{wrong}: {message}");
        }
        let message = |arguments| strict(arguments).unwrap_err();
        assert_eq!(
            message(json!({"count": -1})),
            "invalid arguments: /count: expected an integer, 0 or more"
        );
        assert_eq!(message(json!({"unit": "mil"})), "invalid arguments: /unit: expected `metre` or `mile`");
        assert_eq!(message(json!(7)), "invalid arguments: expected an object");
        assert!(message(json!({"address": "x"})).ends_with("/address: this value is not accepted"));
    }

    #[test]
    fn a_field_that_is_not_known_is_named() {
        let message = strict(json!({"cuont": 1})).unwrap_err();
        assert!(message.contains("unknown field `cuont`, expected one of `count`, `signed`"), "{message}");
        let long = strict(json!({format!("a\u{1b}[31m{}", "x".repeat(5_000)): 1})).unwrap_err();
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
        for wrong in
            [r#"{"count": 1.5}"#, r#"{"count": -1.0}"#, r#"{"count": 1e300}"#, r#"{"signed": 200.0}"#]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_schema_is_inline_and_without_noise() {
        let schema = schema_of::<Outer>().to_value();
        assert_eq!(schema["properties"]["parts"]["description"], "The parts.");
        assert_eq!(schema["properties"]["parts"]["items"]["required"], json!(["a/b"]));
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none());
        assert!(schema.get("additionalProperties").is_none(), "unknown fields are the type's own affair");
        assert_eq!(schema_of::<Strict>().to_value()["additionalProperties"], json!(false));
    }

    #[test]
    fn hostile_nesting_is_an_error_and_no_crash() {
        let deep = RawJson::parse(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
        if let Ok(deep) = deep {
            assert!(read_arguments::<Outer>(&deep).is_err());
        }
    }
}
