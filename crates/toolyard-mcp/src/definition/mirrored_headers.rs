//! Parameters that are mirrored into HTTP headers (`x-mcp-header`, revision 2026-07-28).

use std::collections::HashSet;

use toolyard_core::RawJson;

use super::{
    canonical::SchemaRole,
    json_tree::{JsonTree, JsonTreeError},
    preview::preview,
};

/// The schema keyword that requests mirroring.
const HEADER_KEYWORD: &str = "x-mcp-header";
/// SchemaCollection are not read deeper than this.
const MAX_DEPTH: usize = 64;

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
    /// Not on a property that every call may have.
    #[error("x-mcp-header is only allowed on properties nested in properties of inputSchema")]
    InvalidLocation,
    /// Not the name of a header.
    #[error("the x-mcp-header of {parameter} is not an HTTP header name: {header}")]
    InvalidName {
        /// The parameter.
        parameter: String,
        /// The header.
        header: String,
    },
    /// Another parameter has the same header.
    #[error("the x-mcp-header of {parameter} is already used by another parameter: {header}")]
    DuplicateName {
        /// The parameter.
        parameter: String,
        /// The header.
        header: String,
    },
    /// Not a string, an integer or a boolean.
    #[error("the x-mcp-header of {parameter} requires the type string, integer or boolean")]
    UnsupportedType {
        /// The parameter.
        parameter: String,
    },
    /// The schema is invalid JSON.
    #[error("the schema is invalid JSON: {0}")]
    InvalidJson(#[from] JsonTreeError),
}

/// The parameters of a tool that are mirrored into headers.
pub fn mirrored_parameters(input_schema: &RawJson) -> Result<Vec<MirroredParameter>, MirroredHeaderError> {
    if !input_schema.get().contains(HEADER_KEYWORD) && !input_schema.get().contains('\\') {
        return Ok(Vec::new());
    }
    collect_mirrored(&JsonTree::parse(input_schema.get(), MAX_DEPTH)?)
}

/// As [`mirrored_parameters`], for a parsed schema.
pub(crate) fn collect_mirrored(schema: &JsonTree) -> Result<Vec<MirroredParameter>, MirroredHeaderError> {
    let mut collector = ParameterCollector::default();
    collector.schema(schema, true)?;
    Ok(collector.parameters)
}

#[derive(Default)]
struct ParameterCollector {
    path: Vec<String>,
    names: HashSet<String>,
    parameters: Vec<MirroredParameter>,
}

impl ParameterCollector {
    /// Searches a schema; `reachable` when only `properties` lead to it.
    fn schema(&mut self, schema: &JsonTree, reachable: bool) -> Result<(), MirroredHeaderError> {
        if let Some(header) = schema.get(HEADER_KEYWORD) {
            if !reachable || self.path.is_empty() {
                return Err(MirroredHeaderError::InvalidLocation);
            }
            self.parameter(schema, header)?;
        }
        for (key, value) in schema.fields() {
            let reachable = reachable && key == "properties";
            match (SchemaRole::Schema.of_field(key), value) {
                (SchemaRole::SchemaCollection, JsonTree::Object(schemas)) => {
                    for (name, schema) in schemas {
                        self.path.push(name.clone());
                        self.schema(schema, reachable)?;
                        self.path.pop();
                    }
                }
                (SchemaRole::Schema | SchemaRole::SchemaCollection, JsonTree::List(schemas)) => {
                    schemas.iter().try_for_each(|schema| self.schema(schema, false))?;
                }
                (SchemaRole::Schema, schema) => self.schema(schema, false)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn parameter(&mut self, schema: &JsonTree, header: &JsonTree) -> Result<(), MirroredHeaderError> {
        let parameter = preview(&self.path.join("."), 64);
        let name = header.as_text().filter(|name| !name.is_empty() && name.bytes().all(is_token));
        let Some(name) = name else {
            return Err(MirroredHeaderError::InvalidName {
                parameter,
                header: preview(&header.to_text(), 64),
            });
        };
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err(MirroredHeaderError::DuplicateName { parameter, header: preview(name, 64) });
        }
        if !matches!(schema.get("type").and_then(JsonTree::as_text), Some("string" | "integer" | "boolean")) {
            return Err(MirroredHeaderError::UnsupportedType { parameter });
        }
        self.parameters.push(MirroredParameter { path: self.path.clone(), header: name.to_owned() });
        Ok(())
    }
}

/// The characters of an HTTP field name (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(properties: &Value) -> Result<Vec<MirroredParameter>, MirroredHeaderError> {
        mirrored_parameters(&RawJson::from_value(&json!({"type": "object", "properties": properties})))
    }

    #[test]
    fn parameters_are_found_with_their_paths() {
        let parameters = of(&json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "options": {"type": "object", "properties": {"limit": {"type": "integer", "x-mcp-header": "Limit"}}},
            "x-mcp-header": {"type": "string"},
            "plain": {"type": "string", "default": {"x-mcp-header": 1}},
        }));
        let parameters: Vec<_> =
            parameters.unwrap().into_iter().map(|one| (one.path.join("."), one.header)).collect();
        assert_eq!(
            parameters,
            [("region".to_owned(), "Region".to_owned()), ("options.limit".to_owned(), "Limit".to_owned())]
        );
    }

    #[test]
    fn invalid_headers_of_the_conformance_suite_are_rejected() {
        let one = |kind: &str, header: Value| of(&json!({"value": {"type": kind, "x-mcp-header": header}}));
        for header in
            [json!(""), json!("a b"), json!("Region:Primary"), json!("Région"), json!("Region\t1"), json!(3)]
        {
            assert!(matches!(one("string", header), Err(MirroredHeaderError::InvalidName { .. })));
        }
        for kind in ["object", "array", "null", "number"] {
            assert!(matches!(one(kind, json!("Name")), Err(MirroredHeaderError::UnsupportedType { .. })));
        }
        for other in ["Region", "region"] {
            let twice = of(&json!({
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
            assert_eq!(of(&schema), Err(MirroredHeaderError::InvalidLocation));
        }
        let root = RawJson::from_value(&json!({"type": "object", "x-mcp-header": "Name"}));
        assert_eq!(mirrored_parameters(&root), Err(MirroredHeaderError::InvalidLocation));
        let defined = RawJson::from_value(&json!({"type": "object", "$defs": {"name": inner}}));
        assert_eq!(mirrored_parameters(&defined), Err(MirroredHeaderError::InvalidLocation));
    }
}
