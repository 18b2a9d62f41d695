//! Deserializes the arguments of a call, and derives the JSON Schema of arguments from a type.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value, error::Category};
use serde_path_to_error::{Path, Segment};
use toolyard_core::{ArgumentProblem, RawJson, ToolError};

use crate::text::{MAX_ECHOED_NAME_CHARS, one_line, truncate};

/// Used where a more specific message could repeat a value.
const GENERIC_MESSAGE: &str = "this value is not accepted";

/// Reads the arguments as a type. Errors name the path that does not fit, but never its value, which may be a secret.
pub(crate) fn read_arguments<A: DeserializeOwned>(arguments: &RawJson) -> Result<A, ToolError> {
    let mut reader = serde_json::Deserializer::from_str(arguments.get());
    let as_written = serde_path_to_error::deserialize(&mut reader);
    as_written.or_else(|error| read_with_integers(arguments).unwrap_or(Err(error))).map_err(|error| {
        let problem =
            ArgumentProblem { path: json_pointer(error.path()), message: describe_error(error.inner()) };
        ToolError::invalid_arguments(vec![problem])
    })
}

/// Reads the arguments with `1.0` as `1`, which are equal in JSON Schema; `None` if there is no such number.
fn read_with_integers<A: DeserializeOwned>(
    arguments: &RawJson,
) -> Option<Result<A, serde_path_to_error::Error<serde_json::Error>>> {
    let mut value = arguments.to_value();
    (convert_to_integers(&mut value) > 0).then(|| serde_path_to_error::deserialize(value))
}

/// Converts whole floating-point numbers to integers; returns how many.
fn convert_to_integers(value: &mut Value) -> usize {
    match value {
        Value::Number(number) => {
            // Formatted without an exponent, a whole number has no decimal point.
            let digits = number.as_f64().filter(|_| number.is_f64()).map(|float| float.to_string());
            let integer = digits.and_then(|digits| {
                let signed = digits.parse::<i64>().ok().map(Number::from);
                signed.or_else(|| digits.parse::<u64>().ok().map(Number::from))
            });
            let Some(integer) = integer else { return 0 };
            *number = integer;
            1
        }
        Value::Array(values) => values.iter_mut().map(convert_to_integers).sum(),
        Value::Object(object) => object.values_mut().map(convert_to_integers).sum(),
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}

/// The JSON Schema of a type that is read, inline and without the title and description of the type itself.
pub(crate) fn schema_of<A: JsonSchema>() -> RawJson {
    let mut value = inline_schema::<A>(SchemaSettings::draft2020_12().for_deserialize());
    if let Some(object) = value.as_object_mut() {
        object.entry("type").or_insert_with(|| "object".into());
    }
    RawJson::from_value(&value)
}

/// The JSON Schema of a type that is written; `None` if it is not an object.
pub(crate) fn output_schema_of<T: JsonSchema>() -> Option<RawJson> {
    let schema = inline_schema::<T>(SchemaSettings::draft2020_12().for_serialize());
    (schema.get("type").and_then(Value::as_str) == Some("object")).then(|| RawJson::from_value(&schema))
}

fn inline_schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

fn json_pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        let token = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
            Segment::Enum { variant } => variant.clone(),
            Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&token);
    }
    pointer
}

/// serde's message without values: what was expected, but not what was found.
fn describe_error(error: &serde_json::Error) -> String {
    let message = error.to_string();
    // Line and column mean nothing to a caller that sent an object.
    let message = message.rfind(" at line ").and_then(|end| message.get(..end)).unwrap_or(&message);
    if error.classify() != Category::Data {
        return message.to_owned();
    }
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected);
    if message.starts_with("missing field `") || message.starts_with("duplicate field `") {
        message.to_owned()
    } else if let Some(rest) = message.strip_prefix("unknown field `") {
        // A field's name is not a value, but it is as untrusted as one.
        let end = if expected.is_some() { "`, expected " } else { "`, there are no fields" };
        let name = rest.rsplit_once(end).map(|(name, _)| truncate(&one_line(name), MAX_ECHOED_NAME_CHARS));
        let expected = expected.map(|expected| format!(", expected {expected}")).unwrap_or_default();
        format!("unknown field `{}`{expected}", name.unwrap_or_default())
    } else if ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant `"]
        .iter()
        .any(|prefix| message.starts_with(prefix))
    {
        expected.map_or_else(
            || GENERIC_MESSAGE.to_owned(),
            |expected| format!("expected {}", json_type_name(expected)),
        )
    } else {
        // A custom message of the type's author may repeat the value.
        GENERIC_MESSAGE.to_owned()
    }
}

/// The JSON type that serde expects, given its name for a Rust type.
fn json_type_name(expected: &str) -> &str {
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
#[path = "arguments_tests.rs"]
mod tests;
