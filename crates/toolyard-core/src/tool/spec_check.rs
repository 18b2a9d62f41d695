//! Checks the definition of an embedder's own tool, so that a mistake shows when the tool is added and not in a client.

use serde_json::Value;

use crate::ToolSpec;

/// Maximum length of a tool's name in MCP.
const MAX_NAME_CHARS: usize = 128;

/// Why the definition of a tool cannot be served over MCP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidToolSpec {
    /// The name has other characters than MCP permits, or is too long.
    ///
    /// Remedy: rename the tool: letters, digits, `_`, `-`, `.` and `/`, such as `get_weather`.
    #[error("`{name}` is not the name of a tool: names have 1 to 128 letters, digits, `_`, `-`, `.` or `/`")]
    Name {
        /// The name.
        name: String,
    },
    /// The arguments of a tool in Rust are a single value or a list, but MCP passes an object.
    ///
    /// Remedy: take a struct with named fields as the argument of the function.
    #[error("tool `{name}`: its arguments must be an object, and the schema says `{schema_type}`")]
    InputNotObject {
        /// The tool.
        name: String,
        /// The type in the schema.
        schema_type: String,
    },
}

impl InvalidToolSpec {
    /// What to do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Name { .. } => "give the tool a name such as `read_file`",
            Self::InputNotObject { .. } => "use a struct with named fields as the parameter of the function",
        }
    }
}

impl ToolSpec {
    /// Checks that the name and the schema of the arguments can be served over MCP.
    ///
    /// # Errors
    /// [`InvalidToolSpec`] says what is wrong.
    pub fn check(&self) -> Result<(), InvalidToolSpec> {
        let is_valid_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if self.name.is_empty() || self.name.len() > MAX_NAME_CHARS || !self.name.chars().all(is_valid_char) {
            return Err(InvalidToolSpec::Name { name: self.name.to_string() });
        }
        let schema_type = self.input_schema.to_value().get("type").cloned().unwrap_or_default();
        match schema_type {
            Value::String(text) if text == "object" => Ok(()),
            Value::String(text) => {
                Err(InvalidToolSpec::InputNotObject { name: self.name.to_string(), schema_type: text })
            }
            other => Err(InvalidToolSpec::InputNotObject {
                name: self.name.to_string(),
                schema_type: other.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_clients_reject_are_refused() {
        for name in ["read_file", "files/read", "a.b-c", "X", &"n".repeat(128)] {
            assert_eq!(ToolSpec::new(name, "").check(), Ok(()), "{name}");
        }
        for name in ["", "bad name!", "überweisung", "a@b", "a\nb", &"n".repeat(129)] {
            let refused = matches!(ToolSpec::new(name, "").check(), Err(InvalidToolSpec::Name { .. }));
            assert!(refused, "{name}");
        }
    }

    #[test]
    fn arguments_must_be_an_object() {
        for schema in
            [json!({"type": "integer"}), json!({}), json!({"type": ["object", "null"]}), json!(true)]
        {
            let spec = ToolSpec::new("t", "").with_input_schema(schema.clone());
            assert!(matches!(spec.check(), Err(InvalidToolSpec::InputNotObject { .. })), "{schema}");
        }
    }
}
