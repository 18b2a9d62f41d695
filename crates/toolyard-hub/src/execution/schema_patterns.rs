//! Removes patterns that cannot be matched in linear time from a schema, so that the rest of it is still enforced.

use serde_json::{Map, Value, json};

/// Patterns tested individually; further ones are removed untested.
const MAX_PATTERNS: usize = 256;

/// Removes every pattern that `compiles` rejects, and every keyword that would become stricter without it. Returns
/// whether anything was removed.
pub(crate) fn drop_invalid_patterns(schema: &mut Value, compiles: impl Fn(&Value) -> bool) -> bool {
    let mut sieve = PatternFilter { compiles, tried: 0, open_names: false };
    let changed = sieve.schema(schema);
    if sieve.open_names {
        forget_key(schema, "unevaluatedProperties");
    }
    changed
}

struct PatternFilter<F> {
    compiles: F,
    tried: usize,
    /// Whether property names were removed that an enclosing schema may rely on.
    open_names: bool,
}

impl<F: Fn(&Value) -> bool> PatternFilter<F> {
    fn schema(&mut self, schema: &mut Value) -> bool {
        let Value::Object(words) = schema else { return false };
        let mut changed = self.own_patterns(words);
        for (word, value) in words.iter_mut() {
            changed |= match word.as_str() {
                "const" | "enum" | "default" | "examples" => false,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    let Value::Object(named) = value else { continue };
                    named.values_mut().fold(false, |changed, inner| self.schema(inner) | changed)
                }
                "not" | "oneOf" | "if" | "contains" => false,
                _ => self.schemas(value),
            };
        }
        changed | self.drop_negating_keywords(words)
    }

    fn schemas(&mut self, value: &mut Value) -> bool {
        match value {
            Value::Array(several) => {
                several.iter_mut().fold(false, |changed, inner| self.schema(inner) | changed)
            }
            one => self.schema(one),
        }
    }

    fn own_patterns(&mut self, words: &mut Map<String, Value>) -> bool {
        let mut changed = false;
        if let Some(pattern) = words.get("pattern").and_then(Value::as_str)
            && !self.can_be_used(&json!({"pattern": pattern}))
        {
            words.shift_remove("pattern");
            changed = true;
        }
        let Some(Value::Object(named)) = words.get_mut("patternProperties") else { return changed };
        let before = named.len();
        named.retain(|pattern, _| self.can_be_used(&json!({"patternProperties": {pattern: true}})));
        if named.len() < before {
            // Property names that the pattern allowed must not be rejected as additional.
            words.shift_remove("additionalProperties");
            self.open_names = true;
            changed = true;
        }
        changed
    }

    /// Under these keywords a looser subschema makes the whole stricter, so the keyword is removed entirely if something in
    /// it, or in what it references, was removed.
    fn drop_negating_keywords(&mut self, words: &mut Map<String, Value>) -> bool {
        let mut changed = false;
        for word in ["not", "oneOf", "if", "contains"] {
            let Some(value) = words.get_mut(word) else { continue };
            if self.schemas(value) || mentions(value, "$ref") || mentions(value, "$dynamicRef") {
                let also: &[&str] = match word {
                    "if" => &["then", "else"],
                    "contains" => &["minContains", "maxContains"],
                    _ => &[],
                };
                for gone in also.iter().chain([&word]) {
                    words.shift_remove(*gone);
                }
                changed = true;
            }
        }
        changed
    }

    fn can_be_used(&mut self, schema: &Value) -> bool {
        self.tried += 1;
        self.tried <= MAX_PATTERNS && (self.compiles)(schema)
    }
}

fn mentions(value: &Value, word: &str) -> bool {
    match value {
        Value::Object(words) => words.iter().any(|(key, inner)| key == word || mentions(inner, word)),
        Value::Array(several) => several.iter().any(|inner| mentions(inner, word)),
        _ => false,
    }
}

fn forget_key(value: &mut Value, word: &str) {
    match value {
        Value::Object(words) => {
            words.shift_remove(word);
            words.values_mut().for_each(|inner| forget_key(inner, word));
        }
        Value::Array(several) => several.iter_mut().for_each(|inner| forget_key(inner, word)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if no pattern with a look-ahead could be used.
    fn sieved(mut schema: Value) -> Value {
        drop_invalid_patterns(&mut schema, |part| !part.to_string().contains("(?!"));
        schema
    }

    #[test]
    fn only_the_offending_pattern_goes() {
        let schema = json!({"allOf": [{"pattern": "(?!a)", "minLength": 2}, {"pattern": "b"}],
            "items": {"pattern": "(?!a)"}, "const": {"pattern": "(?!a)"}});
        let expected = json!({"allOf": [{"minLength": 2}, {"pattern": "b"}], "items": {},
            "const": {"pattern": "(?!a)"}});
        assert_eq!(sieved(schema), expected);
    }

    #[test]
    fn a_property_may_be_called_pattern() {
        let schema = json!({"properties": {"pattern": {"pattern": "(?!a)", "type": "string"}, "const": {"pattern": "(?!a)"}}});
        assert_eq!(sieved(schema), json!({"properties": {"pattern": {"type": "string"}, "const": {}}}));
    }

    #[test]
    fn nothing_turns_stricter() {
        let names = json!({"patternProperties": {"(?!a)": {}, "b": {}}, "additionalProperties": false});
        assert_eq!(sieved(names.clone()), json!({"patternProperties": {"b": {}}}));
        let outer = json!({"allOf": [names], "unevaluatedProperties": false});
        assert_eq!(sieved(outer), json!({"allOf": [{"patternProperties": {"b": {}}}]}));
        let negated = json!({"type": "string", "not": {"pattern": "(?!a)"}, "oneOf": [{"pattern": "b"}]});
        assert_eq!(sieved(negated), json!({"type": "string", "oneOf": [{"pattern": "b"}]}));
        let referred = json!({"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"pattern": "(?!a)"}}});
        assert_eq!(sieved(referred), json!({"$defs": {"x": {}}}));
        let conditional = json!({"if": {"pattern": "(?!a)"}, "then": {"minLength": 3}, "else": false});
        assert_eq!(sieved(conditional), json!({}));
    }

    #[test]
    fn very_many_patterns_end() {
        let all: Vec<Value> = (0..1_000).map(|at| json!({"pattern": format!("a{at}")})).collect();
        let left = sieved(json!({"allOf": all}));
        let kept = left["allOf"].as_array().unwrap().iter().filter(|inner| inner.get("pattern").is_some());
        assert_eq!(kept.count(), MAX_PATTERNS);
    }
}
