//! Checks arguments against a tool's schema before anyone is bothered with the call.

use jsonschema::PatternOptions;
use serde_json::Value;
use toolyard_core::{ArgumentProblem, RawJson, ToolError};

/// A schema larger than this is not compiled; its tool is called without a check and judges for itself.
const MAX_SCHEMA: usize = 1 << 20;
/// More problems than this help nobody.
const MAX_PROBLEMS: usize = 8;

/// A compiled schema, or nothing where the schema is too large or not a schema.
#[derive(Debug)]
pub(crate) struct Validator(Option<jsonschema::Validator>);

impl Validator {
    /// Compiles a schema. References elsewhere are never fetched, and patterns run in linear time.
    pub(crate) fn compile(schema: &RawJson) -> Self {
        if schema.get().len() > MAX_SCHEMA {
            tracing::warn!(bytes = schema.get().len(), "schema too large to check arguments against");
            return Self(None);
        }
        let compiled = jsonschema::options()
            .with_pattern_options(PatternOptions::regex().size_limit(1 << 20).dfa_size_limit(1 << 20))
            .build(&schema.to_value());
        if let Err(error) = &compiled {
            tracing::warn!(%error, "schema cannot be used to check arguments");
        }
        Self(compiled.ok())
    }

    /// All places that do not fit. Values are left out of the messages: they may be secrets.
    pub(crate) fn check(&self, arguments: &RawJson) -> Result<(), ToolError> {
        let value: Value = match serde_json::from_str(arguments.get()) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => return Err(one_problem("arguments must be a JSON object")),
            Err(error) => return Err(one_problem(&format!("arguments cannot be read: {error}"))),
        };
        let Some(validator) = &self.0 else { return Ok(()) };
        if validator.is_valid(&value) {
            return Ok(());
        }
        let problem = |error: jsonschema::ValidationError<'_>| ArgumentProblem {
            path: error.instance_path().to_string(),
            message: error.masked().to_string(),
        };
        let problems = validator.iter_errors(&value).take(MAX_PROBLEMS).map(problem).collect();
        Err(ToolError::invalid_arguments(problems))
    }
}

fn one_problem(message: &str) -> ToolError {
    ToolError::invalid_arguments(vec![ArgumentProblem { path: String::new(), message: message.to_owned() }])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: Value, arguments: Value) -> Result<(), String> {
        Validator::compile(&RawJson::from(schema))
            .check(&RawJson::from(arguments))
            .map_err(|e| e.message().to_owned())
    }

    #[test]
    fn problems_name_their_path_and_keep_values_to_themselves() {
        let schema = json!({"type": "object", "properties": {"user": {"type": "object",
            "properties": {"age": {"type": "integer"}}}}, "required": ["user", "key"]});
        let error = check(schema, json!({"user": {"age": "secret-4711"}})).unwrap_err();
        assert!(error.contains("/user/age: "), "{error}");
        assert!(error.contains("\"key\" is a required property"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn arguments_are_an_object() {
        assert!(check(json!({}), json!([1])).unwrap_err().contains("must be a JSON object"));
        let deep = RawJson::parse(format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap();
        assert!(Validator::compile(&RawJson::from(json!({}))).check(&deep).is_err());
    }

    #[test]
    fn a_schema_that_is_none_is_not_held_against_the_call() {
        assert_eq!(check(json!({"type": 7}), json!({})), Ok(()));
        assert_eq!(check(json!({"$ref": "https://nowhere.example/schema"}), json!({})), Ok(()));
    }

    #[test]
    fn a_regex_bomb_ends_at_once() {
        let schema = json!({"properties": {"s": {"pattern": "^(a+)+$"}}});
        assert!(check(schema, json!({"s": format!("{}!", "a".repeat(5_000))})).is_err());
    }

    #[test]
    fn a_reference_cycle_ends() {
        let schema =
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        let _either_is_fine = check(schema, json!({}));
    }
}
