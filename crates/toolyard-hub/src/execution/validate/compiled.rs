//! A validator that compiles the schema.

use jsonschema::{PatternOptions, ValidationError, error::ValidationErrorKind};
use serde_json::Value;
use toolyard_core::{ArgumentProblem, RawJson, ToolError};

use crate::execution::schema_patterns::drop_invalid_patterns;

/// A larger schema is not compiled; its tool validates the arguments itself.
const MAX_SCHEMA_BYTES: usize = 1 << 20;
const MAX_REPORTED_PROBLEMS: usize = 8;
/// Size limit of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A compiled schema; `None` if the schema is too large or invalid.
#[derive(Debug)]
pub(crate) struct Validator(Option<jsonschema::Validator>);

impl Validator {
    /// Compiles a schema. Remote references are never fetched. Patterns that cannot be matched in linear time are removed.
    pub(crate) fn compile(schema: &RawJson) -> Self {
        if schema.get().len() > MAX_SCHEMA_BYTES {
            tracing::warn!(bytes = schema.get().len(), "schema too large: arguments are not validated");
            return Self(None);
        }
        let mut schema = schema.to_value();
        let mut compiled = compile(&schema);
        if compiled.is_err() && drop_invalid_patterns(&mut schema, |part| compile(part).is_ok()) {
            tracing::warn!("schema patterns that cannot be matched in linear time are ignored");
            compiled = compile(&schema);
        }
        if let Err(error) = &compiled {
            tracing::warn!(%error, "invalid schema: arguments are not validated");
        }
        Self(compiled.ok())
    }

    /// Whether a value is valid, as far as the schema could be compiled.
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        self.0.as_ref().is_none_or(|validator| validator.is_valid(value))
    }

    /// Fails with the first problems, each with its path. Messages omit values, which may be secrets.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let Some(validator) = &self.0 else { return Ok(()) };
        if validator.is_valid(arguments) {
            return Ok(());
        }
        let problem = |error: ValidationError<'_>| ArgumentProblem {
            path: error.instance_path().to_string(),
            message: message(&error),
        };
        let problems = validator.iter_errors(arguments).take(MAX_REPORTED_PROBLEMS).map(problem).collect();
        Err(ToolError::invalid_arguments(problems))
    }
}

fn message(error: &ValidationError<'_>) -> String {
    match error.kind() {
        // The name is a server's choice: it may have control characters.
        ValidationErrorKind::Required { property: Value::String(name) } => {
            format!("`{}` is required", name.escape_debug())
        }
        _ => error.masked().to_string(),
    }
}

fn compile(schema: &Value) -> Result<jsonschema::Validator, ValidationError<'static>> {
    jsonschema::options()
        .with_pattern_options(
            PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES),
        )
        .build(schema)
}
