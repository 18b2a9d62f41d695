//! Removes patterns that cannot be matched in linear time from a schema, so that the rest of it is still enforced.

use serde_json::{Map, Value, json};

/// Patterns tested individually; further ones are removed untested.
const MAX_PATTERNS: usize = 256;

/// Removes every pattern that `compiles` rejects, and every keyword that would become stricter without it. Returns
/// whether anything was removed.
pub(crate) fn drop_invalid_patterns(schema: &mut Value, compiles: impl Fn(&Value) -> bool) -> bool {
    let mut filter = PatternFilter { compiles, tested_count: 0, removed_property_patterns: false };
    let changed = filter.filter_schema(schema);
    if filter.removed_property_patterns {
        remove_key(schema, "unevaluatedProperties");
    }
    changed
}

struct PatternFilter<F> {
    compiles: F,
    tested_count: usize,
    /// Whether a pattern of property names was removed, so that `unevaluatedProperties` of an enclosing schema would be stricter.
    removed_property_patterns: bool,
}

impl<F: Fn(&Value) -> bool> PatternFilter<F> {
    fn filter_schema(&mut self, schema: &mut Value) -> bool {
        let Value::Object(keywords) = schema else { return false };
        let mut changed = self.drop_own_patterns(keywords);
        for (keyword, value) in keywords.iter_mut() {
            changed |= match keyword.as_str() {
                "const" | "enum" | "default" | "examples" => false,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    let Value::Object(named) = value else { continue };
                    named.values_mut().fold(false, |changed, inner| self.filter_schema(inner) | changed)
                }
                "not" | "oneOf" | "if" | "contains" => false,
                _ => self.filter_schemas(value),
            };
        }
        changed | self.drop_negating_keywords(keywords)
    }

    fn filter_schemas(&mut self, value: &mut Value) -> bool {
        match value {
            Value::Array(items) => {
                items.iter_mut().fold(false, |changed, inner| self.filter_schema(inner) | changed)
            }
            one => self.filter_schema(one),
        }
    }

    fn drop_own_patterns(&mut self, keywords: &mut Map<String, Value>) -> bool {
        let mut changed = false;
        if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str)
            && !self.is_usable(&json!({"pattern": pattern}))
        {
            keywords.shift_remove("pattern");
            changed = true;
        }
        let Some(Value::Object(named)) = keywords.get_mut("patternProperties") else { return changed };
        let before = named.len();
        named.retain(|pattern, _| self.is_usable(&json!({"patternProperties": {pattern: true}})));
        if named.len() < before {
            // Property names that the pattern allowed must not be rejected as additional.
            keywords.shift_remove("additionalProperties");
            self.removed_property_patterns = true;
            changed = true;
        }
        changed
    }

    /// Under these keywords a looser subschema makes the whole stricter, so the keyword is removed entirely if something in
    /// it, or in what it references, was removed.
    fn drop_negating_keywords(&mut self, keywords: &mut Map<String, Value>) -> bool {
        let mut changed = false;
        for keyword in ["not", "oneOf", "if", "contains"] {
            let Some(value) = keywords.get_mut(keyword) else { continue };
            if self.filter_schemas(value) || contains_key(value, "$ref") || contains_key(value, "$dynamicRef")
            {
                let also: &[&str] = match keyword {
                    "if" => &["then", "else"],
                    "contains" => &["minContains", "maxContains"],
                    _ => &[],
                };
                for gone in also.iter().chain([&keyword]) {
                    keywords.shift_remove(*gone);
                }
                changed = true;
            }
        }
        changed
    }

    fn is_usable(&mut self, schema: &Value) -> bool {
        self.tested_count += 1;
        self.tested_count <= MAX_PATTERNS && (self.compiles)(schema)
    }
}

fn contains_key(value: &Value, keyword: &str) -> bool {
    match value {
        Value::Object(keywords) => {
            keywords.iter().any(|(key, inner)| key == keyword || contains_key(inner, keyword))
        }
        Value::Array(items) => items.iter().any(|inner| contains_key(inner, keyword)),
        _ => false,
    }
}

fn remove_key(value: &mut Value, keyword: &str) {
    match value {
        Value::Object(keywords) => {
            keywords.shift_remove(keyword);
            keywords.values_mut().for_each(|inner| remove_key(inner, keyword));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| remove_key(inner, keyword)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema after removal of patterns, if those with a look-ahead are not supported.
    fn without_look_aheads(mut schema: Value) -> Value {
        drop_invalid_patterns(&mut schema, |part| !part.to_string().contains("(?!"));
        schema
    }

    #[test]
    fn only_the_unsupported_pattern_is_removed() {
        let schema = json!({"allOf": [{"pattern": "(?!a)", "minLength": 2}, {"pattern": "b"}],
            "items": {"pattern": "(?!a)"}, "const": {"pattern": "(?!a)"}});
        let expected = json!({"allOf": [{"minLength": 2}, {"pattern": "b"}], "items": {},
            "const": {"pattern": "(?!a)"}});
        assert_eq!(without_look_aheads(schema), expected);
    }

    #[test]
    fn a_property_may_be_called_pattern() {
        let schema = json!({"properties": {"pattern": {"pattern": "(?!a)", "type": "string"}, "const": {"pattern": "(?!a)"}}});
        assert_eq!(
            without_look_aheads(schema),
            json!({"properties": {"pattern": {"type": "string"}, "const": {}}})
        );
    }

    #[test]
    fn no_schema_becomes_stricter() {
        let names = json!({"patternProperties": {"(?!a)": {}, "b": {}}, "additionalProperties": false});
        assert_eq!(without_look_aheads(names.clone()), json!({"patternProperties": {"b": {}}}));
        let outer = json!({"allOf": [names], "unevaluatedProperties": false});
        assert_eq!(without_look_aheads(outer), json!({"allOf": [{"patternProperties": {"b": {}}}]}));
        let negated = json!({"type": "string", "not": {"pattern": "(?!a)"}, "oneOf": [{"pattern": "b"}]});
        assert_eq!(without_look_aheads(negated), json!({"type": "string", "oneOf": [{"pattern": "b"}]}));
        let referred = json!({"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"pattern": "(?!a)"}}});
        assert_eq!(without_look_aheads(referred), json!({"$defs": {"x": {}}}));
        let conditional = json!({"if": {"pattern": "(?!a)"}, "then": {"minLength": 3}, "else": false});
        assert_eq!(without_look_aheads(conditional), json!({}));
    }

    #[test]
    fn patterns_beyond_the_limit_are_removed() {
        let all: Vec<Value> = (0..1_000).map(|at| json!({"pattern": format!("a{at}")})).collect();
        let left = without_look_aheads(json!({"allOf": all}));
        let kept = left["allOf"].as_array().unwrap().iter().filter(|inner| inner.get("pattern").is_some());
        assert_eq!(kept.count(), MAX_PATTERNS);
    }
}
