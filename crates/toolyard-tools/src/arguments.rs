//! Reads a call's arguments as a type, and writes a type as the JSON Schema of arguments.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};
use toolyard_core::{ArgumentProblem, RawJson, ToolError};

/// The arguments as a type, or an error that names the place which does not fit.
pub(crate) fn read_arguments<A: DeserializeOwned>(arguments: &RawJson) -> Result<A, ToolError> {
    let mut reader = serde_json::Deserializer::from_str(arguments.get());
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let problem =
            ArgumentProblem { path: pointer(error.path()), message: without_position(error.inner()) };
        ToolError::invalid_arguments(vec![problem])
    })
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

/// Line and column mean nothing to someone who sent an object.
fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message.get(..end).unwrap_or_default().to_owned(),
        None => message,
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
            "invalid arguments: /parts/1/a~1b: invalid type: string \"x\", expected u32"
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = read_arguments::<Outer>(&RawJson::empty_object()).unwrap_err();
        assert_eq!(error.message(), "invalid arguments: missing field `parts`");
    }

    #[test]
    fn the_schema_is_inline_and_without_noise() {
        let schema = schema_of::<Outer>().to_value();
        assert_eq!(schema["properties"]["parts"]["description"], "The parts.");
        assert_eq!(schema["properties"]["parts"]["items"]["required"], json!(["a/b"]));
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none());
    }

    #[test]
    fn hostile_nesting_is_an_error_and_no_crash() {
        let deep = RawJson::parse(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
        if let Ok(deep) = deep {
            assert!(read_arguments::<Outer>(&deep).is_err());
        }
    }
}
