//! Limits the work of checking arguments against a schema, without expanding the schema.
//!
//! A few lines of schema can refer to each other so that one check takes hours or never ends; those are rejected. A type
//! that contains itself below a property is an ordinary recursive type and passes.

use std::collections::HashMap;

use super::{canonical::SchemaRole, json_tree::JsonTree};

/// Subschemas that apply to one value; real schemas have a few dozen.
const MAX_SUBSCHEMAS: u64 = 10_000;
/// Nested references and combinators; validators recurse along this chain and would exhaust the stack.
const MAX_REFERENCE_CHAIN: usize = 200;
/// Objects with fewer fields are searched linearly.
const MIN_INDEXED_FIELDS: usize = 16;

/// Why a schema is too expensive to check arguments against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemaComplexityError {
    /// A reference in the schema leads back to itself without descending into the value.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("contains a circular reference")]
    CircularReference,
    /// Nested combinators (`anyOf`, `oneOf`, `allOf`) multiply, so that checking arguments would take too long.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("applies more than {max} subschemas to one value", max = MAX_SUBSCHEMAS)]
    TooManySubschemas,
    /// References and combinators of the schema are nested too deeply.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("has a chain of references longer than {max}", max = MAX_REFERENCE_CHAIN)]
    ReferenceChainTooLong,
    /// The schema has references whose target depends on where it is used.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("uses the unsupported keyword {0}")]
    UnsupportedKeyword(&'static str),
}

/// Checks that arguments can be validated against a schema in bounded time.
pub(crate) fn check_complexity(schema: &JsonTree) -> Result<(), SchemaComplexityError> {
    let mut checker = ComplexityChecker {
        root: schema,
        costs: HashMap::new(),
        pending: vec![schema],
        fields: HashMap::new(),
        anchors: None,
    };
    // Subschemas of parts of a value are measured on their own; measuring one adds its own to `pending`.
    while let Some(schema) = checker.pending.pop() {
        checker.measure(schema, 0)?;
    }
    Ok(())
}

/// The cost of checking one value against a schema.
#[derive(Clone, Copy)]
struct Cost {
    /// Subschemas that apply to the value.
    subschemas: u64,
    /// The longest chain of references and combinators among them.
    chain: usize,
}

struct ComplexityChecker<'a> {
    root: &'a JsonTree,
    /// By address; `None` while a schema is being measured.
    costs: HashMap<*const JsonTree, Option<Cost>>,
    /// Subschemas that apply to parts of the value.
    pending: Vec<&'a JsonTree>,
    /// The fields of large objects, by address.
    fields: HashMap<*const JsonTree, HashMap<&'a str, &'a JsonTree>>,
    /// Schemas by `$anchor`, collected when first needed. A duplicate name may mean either.
    anchors: Option<HashMap<&'a str, Vec<&'a JsonTree>>>,
}

impl<'a> ComplexityChecker<'a> {
    /// Measures a schema at the end of a chain of `depth` others.
    fn measure(&mut self, schema: &'a JsonTree, depth: usize) -> Result<Cost, SchemaComplexityError> {
        match self.costs.get(&std::ptr::from_ref(schema)) {
            Some(Some(cost)) if depth + cost.chain > MAX_REFERENCE_CHAIN => {
                return Err(SchemaComplexityError::ReferenceChainTooLong);
            }
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err(SchemaComplexityError::CircularReference),
            None if depth >= MAX_REFERENCE_CHAIN => return Err(SchemaComplexityError::ReferenceChainTooLong),
            None => {}
        }
        self.costs.insert(schema, None);
        let mut cost = Cost { subschemas: 1, chain: 1 };
        for (key, value) in schema.fields() {
            for subschema in self.in_place_subschemas(key, value)? {
                let subschema_cost = self.measure(subschema, depth + 1)?;
                cost.subschemas = cost.subschemas.saturating_add(subschema_cost.subschemas);
                cost.chain = cost.chain.max(subschema_cost.chain + 1);
                if cost.subschemas > MAX_SUBSCHEMAS {
                    return Err(SchemaComplexityError::TooManySubschemas);
                }
            }
        }
        self.costs.insert(schema, Some(cost));
        Ok(cost)
    }

    /// The subschemas under a key that apply to the same value.
    fn in_place_subschemas(
        &mut self,
        key: &str,
        value: &'a JsonTree,
    ) -> Result<Vec<&'a JsonTree>, SchemaComplexityError> {
        match key {
            "$ref" => {
                Ok(value.as_text().map(|reference| self.resolve_reference(reference)).unwrap_or_default())
            }
            "$dynamicRef" => Err(SchemaComplexityError::UnsupportedKeyword("$dynamicRef")),
            "$recursiveRef" => Err(SchemaComplexityError::UnsupportedKeyword("$recursiveRef")),
            "$dynamicAnchor" => Err(SchemaComplexityError::UnsupportedKeyword("$dynamicAnchor")),
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" => {
                Ok(subschemas_of(key, value))
            }
            _ => {
                self.pending.extend(subschemas_of(key, value));
                Ok(Vec::new())
            }
        }
    }

    /// The targets of a reference within the document: one for a JSON pointer, any number for an anchor.
    fn resolve_reference(&mut self, reference: &str) -> Vec<&'a JsonTree> {
        let Some(fragment) = reference.strip_prefix('#').map(percent_decode) else { return Vec::new() };
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.resolve_pointer(&fragment).into_iter().collect();
        }
        let root = self.root;
        let anchors = self.anchors.get_or_insert_with(|| {
            let mut anchors = HashMap::new();
            collect_anchors(root, &mut anchors);
            anchors
        });
        anchors.get(fragment.as_str()).cloned().unwrap_or_default()
    }

    fn resolve_pointer(&mut self, pointer: &str) -> Option<&'a JsonTree> {
        pointer.split('/').skip(1).try_fold(self.root, |tree, token| {
            let token = token.replace("~1", "/").replace("~0", "~");
            match tree {
                JsonTree::List(items) => items.get(token.parse::<usize>().ok()?),
                _ => self.field(tree, &token),
            }
        })
    }

    /// A field of an object; large objects are indexed once.
    fn field(&mut self, object: &'a JsonTree, key: &str) -> Option<&'a JsonTree> {
        if object.fields().len() < MIN_INDEXED_FIELDS {
            return object.get(key);
        }
        let index_fields = || object.fields().iter().map(|(key, value)| (key.as_str(), value)).collect();
        self.fields.entry(object).or_insert_with(index_fields).get(key).copied()
    }
}

/// Collects every schema with an `$anchor`, anywhere. The depth of definitions is limited.
fn collect_anchors<'a>(tree: &'a JsonTree, anchors: &mut HashMap<&'a str, Vec<&'a JsonTree>>) {
    if let Some(name) = tree.get("$anchor").and_then(JsonTree::as_text) {
        anchors.entry(name).or_default().push(tree);
    }
    match tree {
        JsonTree::List(items) => items.iter().for_each(|item| collect_anchors(item, anchors)),
        _ => tree.fields().iter().for_each(|(_, value)| collect_anchors(value, anchors)),
    }
}

fn subschemas_of<'a>(key: &str, value: &'a JsonTree) -> Vec<&'a JsonTree> {
    match (SchemaRole::Schema.of_field(key), value) {
        (SchemaRole::Schema | SchemaRole::SchemaCollection, JsonTree::List(items)) => items.iter().collect(),
        (SchemaRole::SchemaCollection, JsonTree::Object(fields)) => {
            fields.iter().map(|(_, schema)| schema).collect()
        }
        (SchemaRole::Schema, schema) => vec![schema],
        _ => Vec::new(),
    }
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        let code = escaped.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(b'%'));
        rest = if code.is_some() { escaped.get(2..).unwrap_or_default() } else { escaped };
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check_value(schema: &Value) -> Result<(), SchemaComplexityError> {
        check_complexity(&JsonTree::parse(&schema.to_string(), 64).unwrap())
    }

    /// `d0` refers to `d1` refers to `d2` …, each through `link`.
    fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
        let mut definitions = serde_json::Map::new();
        for index in 0..length {
            let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
            definitions.insert(format!("d{index}"), link(next));
        }
        definitions.insert(format!("d{length}"), json!({"type": "object"}));
        json!({"$ref": "#/%24defs/d0", "$defs": definitions})
    }

    #[test]
    fn recursive_types_are_accepted() {
        assert_eq!(
            check_value(&json!({"type": "object", "properties": {"children": {"items": {"$ref": "#"}}}})),
            Ok(())
        );
        let expression = json!({"anyOf": [
            {"properties": {"and": {"items": {"$ref": "#/$defs/expression"}}}},
            {"properties": {"or": {"items": {"$ref": "#/$defs/expression"}}}},
        ]});
        let schema = json!({
            "properties": {"where": {"$ref": "#/$defs/expression"}}, "$defs": {"expression": expression},
        });
        assert_eq!(check_value(&schema), Ok(()));
        assert_eq!(check_value(&chain(3_000, |next| json!({"properties": {"a": next}}))), Ok(()));
    }

    #[test]
    fn circular_references_are_rejected() {
        let cycle = json!({"$ref": "#/$defs/a", "$defs": {
            "a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]},
        }});
        for schema in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}]}), cycle] {
            assert_eq!(check_value(&schema), Err(SchemaComplexityError::CircularReference), "{schema}");
        }
        assert_eq!(check_value(&json!({"$ref": "#/nowhere"})), Ok(()));
        assert_eq!(check_value(&json!({"$ref": "https://example.com/schema.json"})), Ok(()));
    }

    #[test]
    fn exponential_combinators_are_rejected() {
        assert_eq!(
            check_value(&chain(40, |next| json!({"allOf": [next, next]}))),
            Err(SchemaComplexityError::TooManySubschemas)
        );
        let nested = json!({"properties": {"a": chain(40, |next| json!({"allOf": [next, next]}))}});
        // References are resolved from the root, where there is no target.
        assert_eq!(check_value(&nested), Ok(()));
        assert_eq!(check_value(&chain(8, |next| json!({"allOf": [next, next]}))), Ok(()));
    }

    #[test]
    fn long_chains_are_rejected_from_every_entry_point() {
        let link = |next: Value| json!({"allOf": [next]});
        assert_eq!(check_value(&chain(3_000, link)), Err(SchemaComplexityError::ReferenceChainTooLong));
        let mut many_entry_points = chain(3_000, link);
        for index in 0..60 {
            many_entry_points["properties"][format!("p{index}")] =
                json!({"$ref": format!("#/$defs/d{}", index * 50)});
        }
        assert_eq!(check_value(&many_entry_points), Err(SchemaComplexityError::ReferenceChainTooLong));
    }

    #[test]
    fn anchors_are_followed() {
        let tree = json!({"$anchor": "tree", "properties": {"children": {"items": {"$ref": "#tree"}}}});
        assert_eq!(
            check_value(&json!({"properties": {"root": {"$ref": "#tree"}}, "$defs": {"tree": tree}})),
            Ok(())
        );
        let self_reference =
            json!({"$ref": "#a", "$defs": {"a": {"$anchor": "a", "allOf": [{"$ref": "#a"}]}}});
        assert_eq!(check_value(&self_reference), Err(SchemaComplexityError::CircularReference));
        let root_anchor_cycle = json!({"$anchor": "top", "anyOf": [{"$ref": "#top"}]});
        assert_eq!(check_value(&root_anchor_cycle), Err(SchemaComplexityError::CircularReference));
        let duplicate_anchor = json!({"$ref": "#a", "$defs": {
            "harmless": {"$anchor": "a"}, "endless": {"$anchor": "a", "allOf": [{"$ref": "#/$defs/endless"}]},
        }});
        assert_eq!(check_value(&duplicate_anchor), Err(SchemaComplexityError::CircularReference));
        assert_eq!(check_value(&json!({"$ref": "#nowhere"})), Ok(()));
    }

    #[test]
    fn dynamic_references_are_rejected() {
        assert_eq!(
            check_value(&json!({"$defs": {"a": {"$dynamicAnchor": "a"}}})),
            Err(SchemaComplexityError::UnsupportedKeyword("$dynamicAnchor"))
        );
        assert_eq!(check_value(&json!({"properties": {"$dynamicAnchor": {"type": "string"}}})), Ok(()));
    }
}
