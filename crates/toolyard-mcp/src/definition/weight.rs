//! How much work a schema makes for whoever checks arguments against it, found without following it to the end.
//!
//! A few lines of schema can refer to each other so that one check takes hours, or never ends. Those are refused here;
//! references in themselves are harmless, and a type that holds itself below a property is an ordinary tree.

use std::collections::HashMap;

use super::{canonical::Reading, tree::Tree};

/// Schemas that one value is held against; real ones have a few dozen.
const MAX_WEIGHT: u64 = 10_000;
/// References and combinations that lead from one to the next; a longer way exhausts the stack of whoever follows it.
const MAX_WAY: usize = 200;
/// Objects with fewer fields are searched from end to end.
const FEW_FIELDS: usize = 16;

/// A schema that is too much work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooHeavy {
    /// A reference that leads back to itself before anything was looked at.
    #[error("refers to itself without end")]
    Endless,
    /// Combinations of combinations.
    #[error("combines so many schemas that checking one call would take too long")]
    Heavy,
    /// A chain of references that is too long.
    #[error("has a chain of references longer than {max}", max = MAX_WAY)]
    Long,
    /// References whose meaning depends on how one came to them; nobody uses them in tools, and they can lead anywhere.
    #[error("refers to schemas by the word {0}, which is not supported")]
    Unusual(&'static str),
}

/// Whether arguments can be checked against a schema in reasonable time.
pub(crate) fn check(schema: &Tree) -> Result<(), TooHeavy> {
    let mut scale = Scale {
        root: schema,
        loads: HashMap::new(),
        below: vec![schema],
        fields: HashMap::new(),
        anchors: None,
    };
    // Schemas of parts are weighed on their own; weighing one adds those of its parts.
    while let Some(schema) = scale.below.pop() {
        scale.weigh(schema, 0)?;
    }
    Ok(())
}

/// What one value costs when it is held against a schema.
#[derive(Clone, Copy)]
struct Load {
    /// How many schemas it is held against.
    weight: u64,
    /// How many of them lead from one to the next.
    way: usize,
}

struct Scale<'a> {
    root: &'a Tree,
    /// By address; none while a schema is being weighed.
    loads: HashMap<*const Tree, Option<Load>>,
    /// Schemas that only parts of a value are held against.
    below: Vec<&'a Tree>,
    /// The fields of large objects, by address.
    fields: HashMap<*const Tree, HashMap<&'a str, &'a Tree>>,
    /// The schemas that have a name (`$anchor`), once one was asked for. A name that stands twice may mean either.
    anchors: Option<HashMap<&'a str, Vec<&'a Tree>>>,
}

impl<'a> Scale<'a> {
    /// Weighs one schema, which so many others led to.
    fn weigh(&mut self, schema: &'a Tree, before: usize) -> Result<Load, TooHeavy> {
        match self.loads.get(&std::ptr::from_ref(schema)) {
            Some(Some(load)) if before + load.way > MAX_WAY => return Err(TooHeavy::Long),
            Some(Some(load)) => return Ok(*load),
            Some(None) => return Err(TooHeavy::Endless),
            None if before >= MAX_WAY => return Err(TooHeavy::Long),
            None => {}
        }
        self.loads.insert(schema, None);
        let mut load = Load { weight: 1, way: 1 };
        for (key, value) in schema.fields() {
            for part in self.held_against(key, value)? {
                let more = self.weigh(part, before + 1)?;
                load.weight = load.weight.saturating_add(more.weight);
                load.way = load.way.max(more.way + 1);
                if load.weight > MAX_WEIGHT {
                    return Err(TooHeavy::Heavy);
                }
            }
        }
        self.loads.insert(schema, Some(load));
        Ok(load)
    }

    /// The schemas under a key that the same value is held against.
    fn held_against(&mut self, key: &str, value: &'a Tree) -> Result<Vec<&'a Tree>, TooHeavy> {
        match key {
            "$ref" => Ok(value.as_text().map(|reference| self.found(reference)).unwrap_or_default()),
            "$dynamicRef" => Err(TooHeavy::Unusual("$dynamicRef")),
            "$recursiveRef" => Err(TooHeavy::Unusual("$recursiveRef")),
            "$dynamicAnchor" => Err(TooHeavy::Unusual("$dynamicAnchor")),
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" => {
                Ok(parts(key, value))
            }
            _ => {
                self.below.extend(parts(key, value));
                Ok(Vec::new())
            }
        }
    }

    /// The schemas that a reference within the document means: one by its place, or those of a name.
    fn found(&mut self, reference: &str) -> Vec<&'a Tree> {
        let Some(fragment) = reference.strip_prefix('#').map(unescaped) else { return Vec::new() };
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.at(&fragment).into_iter().collect();
        }
        let root = self.root;
        let anchors = self.anchors.get_or_insert_with(|| {
            let mut named = HashMap::new();
            gather_anchors(root, &mut named);
            named
        });
        anchors.get(fragment.as_str()).cloned().unwrap_or_default()
    }

    fn at(&mut self, pointer: &str) -> Option<&'a Tree> {
        pointer.split('/').skip(1).try_fold(self.root, |tree, part| {
            let part = part.replace("~1", "/").replace("~0", "~");
            match tree {
                Tree::List(items) => items.get(part.parse::<usize>().ok()?),
                _ => self.field(tree, &part),
            }
        })
    }

    /// A field of an object; large ones are read once and not at every reference.
    fn field(&mut self, object: &'a Tree, key: &str) -> Option<&'a Tree> {
        if object.fields().len() < FEW_FIELDS {
            return object.get(key);
        }
        let by_key = || object.fields().iter().map(|(key, value)| (key.as_str(), value)).collect();
        self.fields.entry(object).or_insert_with(by_key).get(key).copied()
    }
}

/// Everything that is called `$anchor` something, wherever it stands. Definitions are read to a limited depth.
fn gather_anchors<'a>(tree: &'a Tree, named: &mut HashMap<&'a str, Vec<&'a Tree>>) {
    if let Some(name) = tree.get("$anchor").and_then(Tree::as_text) {
        named.entry(name).or_default().push(tree);
    }
    match tree {
        Tree::List(items) => items.iter().for_each(|item| gather_anchors(item, named)),
        _ => tree.fields().iter().for_each(|(_, value)| gather_anchors(value, named)),
    }
}

/// The schemas under a key of a schema.
fn parts<'a>(key: &str, value: &'a Tree) -> Vec<&'a Tree> {
    match (Reading::Schema.of_field(key), value) {
        (Reading::Schema | Reading::Schemas, Tree::List(items)) => items.iter().collect(),
        (Reading::Schemas, Tree::Object(fields)) => fields.iter().map(|(_, schema)| schema).collect(),
        (Reading::Schema, schema) => vec![schema],
        _ => Vec::new(),
    }
}

/// The text with `%24` and its kin read.
fn unescaped(text: &str) -> String {
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

    fn of(schema: &Value) -> Result<(), TooHeavy> {
        check(&Tree::read(&schema.to_string(), 64).unwrap())
    }

    /// `d0` refers to `d1` refers to `d2` …, each in this way.
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
    fn a_type_that_holds_itself_is_an_ordinary_tree() {
        assert_eq!(
            of(&json!({"type": "object", "properties": {"children": {"items": {"$ref": "#"}}}})),
            Ok(())
        );
        let expression = json!({"anyOf": [
            {"properties": {"and": {"items": {"$ref": "#/$defs/expression"}}}},
            {"properties": {"or": {"items": {"$ref": "#/$defs/expression"}}}},
        ]});
        let schema = json!({
            "properties": {"where": {"$ref": "#/$defs/expression"}}, "$defs": {"expression": expression},
        });
        assert_eq!(of(&schema), Ok(()));
        assert_eq!(of(&chain(3_000, |next| json!({"properties": {"a": next}}))), Ok(()));
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_refused() {
        let cycle = json!({"$ref": "#/$defs/a", "$defs": {
            "a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]},
        }});
        for schema in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}]}), cycle] {
            assert_eq!(of(&schema), Err(TooHeavy::Endless), "{schema}");
        }
        assert_eq!(of(&json!({"$ref": "#/nowhere"})), Ok(()));
        assert_eq!(of(&json!({"$ref": "https://example.com/schema.json"})), Ok(()));
    }

    #[test]
    fn what_doubles_at_every_step_is_refused() {
        assert_eq!(of(&chain(40, |next| json!({"allOf": [next, next]}))), Err(TooHeavy::Heavy));
        let below = json!({"properties": {"a": chain(40, |next| json!({"allOf": [next, next]}))}});
        // References are read from the root, where there is nothing.
        assert_eq!(of(&below), Ok(()));
        assert_eq!(of(&chain(8, |next| json!({"allOf": [next, next]}))), Ok(()));
    }

    #[test]
    fn a_long_chain_is_refused_however_it_is_approached() {
        let link = |next: Value| json!({"allOf": [next]});
        assert_eq!(of(&chain(3_000, link)), Err(TooHeavy::Long));
        let mut sliced = chain(3_000, link);
        for index in 0..60 {
            sliced["properties"][format!("p{index}")] = json!({"$ref": format!("#/$defs/d{}", index * 50)});
        }
        assert_eq!(of(&sliced), Err(TooHeavy::Long));
    }

    #[test]
    fn references_by_name_are_followed() {
        let tree = json!({"$anchor": "tree", "properties": {"children": {"items": {"$ref": "#tree"}}}});
        assert_eq!(of(&json!({"properties": {"root": {"$ref": "#tree"}}, "$defs": {"tree": tree}})), Ok(()));
        let itself = json!({"$ref": "#a", "$defs": {"a": {"$anchor": "a", "allOf": [{"$ref": "#a"}]}}});
        assert_eq!(of(&itself), Err(TooHeavy::Endless));
        let through_a_name = json!({"$anchor": "top", "anyOf": [{"$ref": "#top"}]});
        assert_eq!(of(&through_a_name), Err(TooHeavy::Endless));
        let twice = json!({"$ref": "#a", "$defs": {
            "harmless": {"$anchor": "a"}, "endless": {"$anchor": "a", "allOf": [{"$ref": "#/$defs/endless"}]},
        }});
        assert_eq!(of(&twice), Err(TooHeavy::Endless));
        assert_eq!(of(&json!({"$ref": "#nowhere"})), Ok(()));
    }

    #[test]
    fn references_whose_meaning_depends_on_the_way_are_refused() {
        assert_eq!(
            of(&json!({"$defs": {"a": {"$dynamicAnchor": "a"}}})),
            Err(TooHeavy::Unusual("$dynamicAnchor"))
        );
        assert_eq!(of(&json!({"properties": {"$dynamicAnchor": {"type": "string"}}})), Ok(()));
    }
}
