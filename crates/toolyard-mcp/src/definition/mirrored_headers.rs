//! Parameters that are mirrored into HTTP headers (`x-mcp-header`, revision 2026-07-28).

use std::collections::HashSet;

use toolyard_core::RawJson;

use super::{
    canonical::SchemaRole,
    json_tree::{JsonTree, JsonTreeError, MAX_DEPTH},
    preview::{MAX_NAME_CHARS_SHOWN, preview},
};

/// The schema keyword that requests mirroring.
const HEADER_KEYWORD: &str = "x-mcp-header";

/// A parameter whose value is also sent as the header `Mcp-Param-{header}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParameter {
    /// The property names from the root of the arguments.
    pub path: Vec<String>,
    /// The name of the header after `Mcp-Param-`.
    pub header: String,
}

/// Why an `x-mcp-header` is invalid. Over Streamable HTTP such a tool must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MirroredHeaderError {
    /// The schema asks for a parameter in a header at a place that a call need not have.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("x-mcp-header is only allowed on properties nested in properties of inputSchema")]
    InvalidLocation,
    /// The schema names a header with characters that headers cannot have.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the x-mcp-header of {parameter} is not an HTTP header name: {header}")]
    InvalidName {
        /// The parameter.
        parameter: String,
        /// The header.
        header: String,
    },
    /// Two parameters of the schema use one header.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the x-mcp-header of {parameter} is already used by another parameter: {header}")]
    DuplicateName {
        /// The parameter.
        parameter: String,
        /// The header.
        header: String,
    },
    /// Only a string, an integer or a boolean can be sent in a header.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the x-mcp-header of {parameter} requires the type string, integer or boolean")]
    UnsupportedType {
        /// The parameter.
        parameter: String,
    },
    /// The schema of a tool is not JSON.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("the schema is invalid JSON: {0}")]
    InvalidJson(#[from] JsonTreeError),
}

/// The parameters of a tool that are mirrored into headers.
pub fn mirrored_parameters(input_schema: &RawJson) -> Result<Vec<MirroredParameter>, MirroredHeaderError> {
    if !input_schema.get().contains(HEADER_KEYWORD) && !input_schema.get().contains('\\') {
        return Ok(Vec::new());
    }
    collect_mirrored_parameters(&JsonTree::parse(input_schema.get(), MAX_DEPTH)?)
}

/// As [`mirrored_parameters`], for a parsed schema.
pub(crate) fn collect_mirrored_parameters(
    schema: &JsonTree,
) -> Result<Vec<MirroredParameter>, MirroredHeaderError> {
    let mut collector = ParameterCollector::default();
    collector.search(schema, Reach::Always)?;
    Ok(collector.parameters)
}

#[derive(Default)]
struct ParameterCollector {
    path: Vec<String>,
    used_names: HashSet<String>,
    parameters: Vec<MirroredParameter>,
}

/// Whether a schema applies to the arguments of every call.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// Only `properties` lead to it.
    Always,
    Sometimes,
}

impl ParameterCollector {
    fn search(&mut self, schema: &JsonTree, reach: Reach) -> Result<(), MirroredHeaderError> {
        if let Some(header) = schema.get(HEADER_KEYWORD) {
            if reach == Reach::Sometimes || self.path.is_empty() {
                return Err(MirroredHeaderError::InvalidLocation);
            }
            self.add_parameter(schema, header)?;
        }
        for (key, value) in schema.fields() {
            let reach = if key == "properties" { reach } else { Reach::Sometimes };
            match (SchemaRole::Schema.of_field(key), value) {
                (SchemaRole::SchemaCollection, JsonTree::Object(schemas)) => {
                    for (name, schema) in schemas {
                        self.path.push(name.clone());
                        self.search(schema, reach)?;
                        self.path.pop();
                    }
                }
                (SchemaRole::Schema | SchemaRole::SchemaCollection, JsonTree::List(schemas)) => {
                    schemas.iter().try_for_each(|schema| self.search(schema, Reach::Sometimes))?;
                }
                (SchemaRole::Schema, schema) => self.search(schema, Reach::Sometimes)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn add_parameter(&mut self, schema: &JsonTree, header: &JsonTree) -> Result<(), MirroredHeaderError> {
        let parameter = preview(&self.path.join("."), MAX_NAME_CHARS_SHOWN);
        let name = header.as_text().filter(|name| !name.is_empty() && name.bytes().all(is_token_byte));
        let Some(name) = name else {
            return Err(MirroredHeaderError::InvalidName {
                parameter,
                header: preview(&header.to_text(), MAX_NAME_CHARS_SHOWN),
            });
        };
        if !self.used_names.insert(name.to_ascii_lowercase()) {
            return Err(MirroredHeaderError::DuplicateName {
                parameter,
                header: preview(name, MAX_NAME_CHARS_SHOWN),
            });
        }
        if !matches!(schema.get("type").and_then(JsonTree::as_text), Some("string" | "integer" | "boolean")) {
            return Err(MirroredHeaderError::UnsupportedType { parameter });
        }
        self.parameters.push(MirroredParameter { path: self.path.clone(), header: name.to_owned() });
        Ok(())
    }
}

/// The characters of an HTTP field name (RFC 9110, 5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn mirrored(properties: &Value) -> Result<Vec<MirroredParameter>, MirroredHeaderError> {
        mirrored_parameters(&RawJson::from_value(&json!({"type": "object", "properties": properties})))
    }

    #[test]
    fn parameters_are_found_with_their_paths() {
        let parameters = mirrored(&json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "options": {"type": "object", "properties": {"limit": {"type": "integer", "x-mcp-header": "Limit"}}},
            "x-mcp-header": {"type": "string"},
            "plain": {"type": "string", "default": {"x-mcp-header": 1}},
        }));
        let parameters: Vec<_> = parameters
            .unwrap()
            .into_iter()
            .map(|parameter| (parameter.path.join("."), parameter.header))
            .collect();
        assert_eq!(
            parameters,
            [("region".to_owned(), "Region".to_owned()), ("options.limit".to_owned(), "Limit".to_owned())]
        );
    }

    #[test]
    fn invalid_headers_of_the_conformance_suite_are_rejected() {
        let with_header =
            |kind: &str, header: Value| mirrored(&json!({"value": {"type": kind, "x-mcp-header": header}}));
        for header in
            [json!(""), json!("a b"), json!("Region:Primary"), json!("Région"), json!("Region\t1"), json!(3)]
        {
            assert!(matches!(with_header("string", header), Err(MirroredHeaderError::InvalidName { .. })));
        }
        for kind in ["object", "array", "null", "number"] {
            assert!(matches!(
                with_header(kind, json!("Name")),
                Err(MirroredHeaderError::UnsupportedType { .. })
            ));
        }
        for other in ["Region", "region"] {
            let twice = mirrored(&json!({
                "a": {"type": "string", "x-mcp-header": "Region"},
                "b": {"type": "string", "x-mcp-header": other},
            }));
            assert!(matches!(twice, Err(MirroredHeaderError::DuplicateName { .. })));
        }
    }

    #[test]
    fn headers_of_conditional_parameters_are_rejected() {
        let inner = json!({"type": "string", "x-mcp-header": "Name"});
        for schema in [
            json!({"list": {"type": "array", "items": inner}}),
            json!({"choice": {"oneOf": [inner]}}),
            json!({"nested": {"items": {"properties": {"id": inner}}}}),
        ] {
            assert_eq!(mirrored(&schema), Err(MirroredHeaderError::InvalidLocation));
        }
        let root = RawJson::from_value(&json!({"type": "object", "x-mcp-header": "Name"}));
        assert_eq!(mirrored_parameters(&root), Err(MirroredHeaderError::InvalidLocation));
        let in_definitions = RawJson::from_value(&json!({"type": "object", "$defs": {"name": inner}}));
        assert_eq!(mirrored_parameters(&in_definitions), Err(MirroredHeaderError::InvalidLocation));
    }
}
