//! Validates arguments against a tool's JSON Schema before the call.

#[cfg(feature = "schema-validation")]
mod compiled;
#[cfg(not(feature = "schema-validation"))]
mod unchecked;

use serde_json::Value;
use toolyard_core::{ArgumentProblem, RawJson, ToolError};

#[cfg(feature = "schema-validation")]
pub(crate) use compiled::Validator;
#[cfg(not(feature = "schema-validation"))]
pub(crate) use unchecked::Validator;

/// Parses the arguments, once for all candidates.
pub(crate) fn parse_arguments(arguments: &RawJson) -> Result<Value, ToolError> {
    match serde_json::from_str(arguments.get()) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(one_problem("arguments must be a JSON object")),
        Err(error) => Err(one_problem(&format!("arguments are not valid JSON: {error}"))),
    }
}

fn one_problem(message: &str) -> ToolError {
    ToolError::invalid_arguments(vec![ArgumentProblem { path: String::new(), message: message.to_owned() }])
}

#[cfg(all(test, feature = "schema-validation"))]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: Value, arguments: Value) -> Result<(), String> {
        let checked = parse_arguments(&arguments.into())
            .and_then(|arguments| Validator::compile(&schema.into()).check(&arguments));
        checked.map_err(|error| error.message().to_owned())
    }

    #[test]
    fn errors_name_the_path_and_not_the_value() {
        let schema = json!({"type": "object", "properties": {"user": {"type": "object",
            "properties": {"age": {"type": "integer"}}}}, "required": ["user", "key"]});
        let error = check(schema, json!({"user": {"age": "secret-4711"}})).unwrap_err();
        assert!(error.contains("/user/age: "), "{error}");
        assert!(error.contains("`key` is required"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn arguments_must_be_an_object() {
        assert!(check(json!({}), json!([1])).unwrap_err().contains("must be a JSON object"));
        let deep = RawJson::parse(format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap();
        assert!(parse_arguments(&deep).is_err());
    }

    #[test]
    fn an_invalid_schema_rejects_no_call() {
        assert_eq!(check(json!({"type": 7}), json!({})), Ok(()));
        assert_eq!(check(json!({"$ref": "https://nowhere.example/schema"}), json!({})), Ok(()));
    }

    #[test]
    fn a_regex_bomb_is_checked_in_bounded_time() {
        let schema = json!({"properties": {"s": {"pattern": "^(a+)+$"}}});
        let started = std::time::Instant::now();
        assert!(check(schema, json!({"s": format!("{}!", "a".repeat(100_000))})).is_err());
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }

    #[test]
    fn one_unsupported_pattern_does_not_disable_validation() {
        let name = json!({"type": "string", "maxLength": 9, "pattern": "^(?!admin).*$"});
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": name, "code": {"pattern": "^[a-z]+$"}, "pattern": {"type": "integer"}}});
        assert_eq!(check(schema.clone(), json!({"name": "admin", "code": "a"})), Ok(()), "not checked");
        let wrong = [
            json!({}),
            json!({"name": 7}),
            json!({"name": "0123456789"}),
            json!({"name": "a", "code": "A"}),
            json!({"name": "a", "pattern": "x"}),
        ];
        for arguments in wrong {
            assert!(check(schema.clone(), arguments.clone()).is_err(), "{arguments} does not fit");
        }
    }

    #[test]
    fn a_reference_cycle_terminates() {
        let schema =
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        let _either_is_fine = check(schema, json!({}));
    }
}
