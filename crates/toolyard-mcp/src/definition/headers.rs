//! Parameters that are mirrored into HTTP headers (`x-mcp-header`, revision 2026-07-28).

use std::collections::HashSet;

use toolyard_core::RawJson;

use super::{
    canonical::Reading,
    text::brief,
    tree::{Tree, TreeError},
};

/// The word of a schema that asks for mirroring.
const WORD: &str = "x-mcp-header";
/// Schemas are not read deeper than this.
const DEPTH: usize = 64;

/// A parameter whose value travels as `Mcp-Param-{header}`, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParameter {
    /// The names that lead to it from the arguments.
    pub path: Vec<String>,
    /// The name of the header after `Mcp-Param-`.
    pub header: String,
}

/// Why a request for mirroring is invalid. Over Streamable HTTP such a tool must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderProblem {
    /// Not where a property is that every call may have.
    #[error(
        "x-mcp-header is only for properties that are reached from the root of inputSchema by properties alone"
    )]
    OutOfPlace,
    /// Not a name for a header.
    #[error("the x-mcp-header of {parameter} is no name for an HTTP header: {header}")]
    BadName {
        /// Which.
        parameter: String,
        /// What was said.
        header: String,
    },
    /// A name that another parameter has.
    #[error("the x-mcp-header of {parameter} belongs to another parameter already: {header}")]
    Twice {
        /// Which.
        parameter: String,
        /// What was said.
        header: String,
    },
    /// Not a string, an integer or a boolean.
    #[error("the parameter {parameter} has an x-mcp-header but is no string, integer or boolean")]
    BadType {
        /// Which.
        parameter: String,
    },
    /// The schema cannot be read.
    #[error("the schema cannot be read: {0}")]
    Unreadable(#[from] TreeError),
}

/// The parameters of a tool that are mirrored into headers.
pub fn mirrored_parameters(input_schema: &RawJson) -> Result<Vec<MirroredParameter>, HeaderProblem> {
    if !input_schema.get().contains(WORD) && !input_schema.get().contains('\\') {
        return Ok(Vec::new());
    }
    mirrored(&Tree::read(input_schema.get(), DEPTH)?)
}

/// As [`mirrored_parameters`], for a schema that was read already.
pub(crate) fn mirrored(schema: &Tree) -> Result<Vec<MirroredParameter>, HeaderProblem> {
    let mut finder = Finder::default();
    finder.schema(schema, true)?;
    Ok(finder.found)
}

#[derive(Default)]
struct Finder {
    path: Vec<String>,
    names: HashSet<String>,
    found: Vec<MirroredParameter>,
}

impl Finder {
    /// Looks through a schema; `reachable` when only `properties` lead to it.
    fn schema(&mut self, schema: &Tree, reachable: bool) -> Result<(), HeaderProblem> {
        if let Some(header) = schema.get(WORD) {
            if !reachable || self.path.is_empty() {
                return Err(HeaderProblem::OutOfPlace);
            }
            self.parameter(schema, header)?;
        }
        for (key, value) in schema.fields() {
            let reachable = reachable && key == "properties";
            match (Reading::Schema.of_field(key), value) {
                (Reading::Schemas, Tree::Object(schemas)) => {
                    for (name, schema) in schemas {
                        self.path.push(name.clone());
                        self.schema(schema, reachable)?;
                        self.path.pop();
                    }
                }
                (Reading::Schema | Reading::Schemas, Tree::List(schemas)) => {
                    schemas.iter().try_for_each(|schema| self.schema(schema, false))?;
                }
                (Reading::Schema, schema) => self.schema(schema, false)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn parameter(&mut self, schema: &Tree, header: &Tree) -> Result<(), HeaderProblem> {
        let parameter = brief(&self.path.join("."), 64);
        let name = header.as_text().filter(|name| !name.is_empty() && name.bytes().all(is_token));
        let Some(name) = name else {
            return Err(HeaderProblem::BadName { parameter, header: brief(&header.to_text(), 64) });
        };
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err(HeaderProblem::Twice { parameter, header: brief(name, 64) });
        }
        if !matches!(schema.get("type").and_then(Tree::as_text), Some("string" | "integer" | "boolean")) {
            return Err(HeaderProblem::BadType { parameter });
        }
        self.found.push(MirroredParameter { path: self.path.clone(), header: name.to_owned() });
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

    fn of(properties: &Value) -> Result<Vec<MirroredParameter>, HeaderProblem> {
        mirrored_parameters(&RawJson::from_value(&json!({"type": "object", "properties": properties})))
    }

    #[test]
    fn parameters_are_found_with_their_paths() {
        let found = of(&json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "options": {"type": "object", "properties": {"limit": {"type": "integer", "x-mcp-header": "Limit"}}},
            "x-mcp-header": {"type": "string"},
            "plain": {"type": "string", "default": {"x-mcp-header": 1}},
        }));
        let found: Vec<_> = found.unwrap().into_iter().map(|one| (one.path.join("."), one.header)).collect();
        assert_eq!(
            found,
            [("region".to_owned(), "Region".to_owned()), ("options.limit".to_owned(), "Limit".to_owned())]
        );
    }

    #[test]
    fn the_invalid_ones_of_the_conformance_suite_are_refused() {
        let one = |kind: &str, header: Value| of(&json!({"value": {"type": kind, "x-mcp-header": header}}));
        for header in
            [json!(""), json!("a b"), json!("Region:Primary"), json!("Région"), json!("Region\t1"), json!(3)]
        {
            assert!(matches!(one("string", header), Err(HeaderProblem::BadName { .. })));
        }
        for kind in ["object", "array", "null", "number"] {
            assert!(matches!(one(kind, json!("Name")), Err(HeaderProblem::BadType { .. })));
        }
        for other in ["Region", "region"] {
            let twice = of(&json!({
                "a": {"type": "string", "x-mcp-header": "Region"},
                "b": {"type": "string", "x-mcp-header": other},
            }));
            assert!(matches!(twice, Err(HeaderProblem::Twice { .. })));
        }
    }

    #[test]
    fn a_header_for_what_not_every_call_has_is_refused() {
        let inner = json!({"type": "string", "x-mcp-header": "Name"});
        for schema in [
            json!({"list": {"type": "array", "items": inner}}),
            json!({"choice": {"oneOf": [inner]}}),
            json!({"nested": {"items": {"properties": {"id": inner}}}}),
        ] {
            assert_eq!(of(&schema), Err(HeaderProblem::OutOfPlace));
        }
        let root = RawJson::from_value(&json!({"type": "object", "x-mcp-header": "Name"}));
        assert_eq!(mirrored_parameters(&root), Err(HeaderProblem::OutOfPlace));
        let defined = RawJson::from_value(&json!({"type": "object", "$defs": {"name": inner}}));
        assert_eq!(mirrored_parameters(&defined), Err(HeaderProblem::OutOfPlace));
    }
}
