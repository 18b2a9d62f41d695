//! Converts JSON (arguments of calls, claims of callers) into Cedar values, bounded in size and depth.

use std::{
    cell::Cell,
    collections::{BTreeSet, HashSet},
    fmt,
};

use cedar_policy::RestrictedExpression;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Values in one converted object.
const MAX_VALUES: usize = 10_000;
/// Nesting of one converted object.
const MAX_DEPTH: usize = 32;

/// A policy reads the arguments, and they have a form in which they cannot be compared; the call is denied.
///
/// Remedy: call the tool with flatter arguments, without duplicate fields; or do not read `context.arguments` in the
/// policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments cannot be compared with the policies: {0}")]
pub(crate) struct UnreadableArguments(String);

/// The wanted fields of a JSON object as a Cedar record. Objects become records without their nulls, arrays sets, integers
/// longs, other numbers text: a policy that compares them with an integer fails, and so denies. An object that has a
/// wanted field twice is an error, because tools may read either.
pub(crate) fn record_of_text(
    json: &str,
    wanted: &BTreeSet<String>,
) -> Result<RestrictedExpression, UnreadableArguments> {
    let remaining = Cell::new(MAX_VALUES);
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let seed = RecordSeed { wanted, remaining: &remaining };
    let record = seed.deserialize(&mut deserializer).and_then(|record| {
        deserializer.end()?;
        Ok(record)
    });
    record.map_err(|error| UnreadableArguments(error.to_string()))
}

/// The wanted fields of an object as a Cedar record. Fields that are too deep are left out.
pub(crate) fn record_of_map(object: &Map<String, Value>, wanted: &BTreeSet<String>) -> RestrictedExpression {
    let fields = object.iter().filter(|(key, _)| wanted.contains(*key));
    record(fields.filter_map(|(key, value)| Some((key.clone(), convert(value, MAX_DEPTH)?))))
}

fn convert(value: &Value, depth: usize) -> Option<RestrictedExpression> {
    let depth = depth.checked_sub(1)?;
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => RestrictedExpression::new_bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => RestrictedExpression::new_long(integer),
            None => RestrictedExpression::new_string(number.to_string()),
        },
        Value::String(text) => RestrictedExpression::new_string(text.clone()),
        Value::Array(items) => {
            RestrictedExpression::new_set(items.iter().filter_map(|item| convert(item, depth)))
        }
        Value::Object(fields) => {
            record(fields.iter().filter_map(|(key, value)| Some((key.clone(), convert(value, depth)?))))
        }
    })
}

/// A record of fields with different names.
fn record(fields: impl Iterator<Item = (String, RestrictedExpression)>) -> RestrictedExpression {
    RestrictedExpression::new_record(fields)
        .unwrap_or_else(|_| RestrictedExpression::new_string("duplicate key".to_owned()))
}

struct RecordSeed<'a> {
    wanted: &'a BTreeSet<String>,
    remaining: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for RecordSeed<'_> {
    type Value = RestrictedExpression;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordSeed<'_> {
    type Value = RestrictedExpression;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        read_fields(map, Some(self.wanted), ValueSeed { remaining: self.remaining, depth: MAX_DEPTH })
    }
}

fn read_fields<'de, A: MapAccess<'de>>(
    mut map: A,
    wanted: Option<&BTreeSet<String>>,
    seed: ValueSeed<'_>,
) -> Result<RestrictedExpression, A::Error> {
    let (mut seen, mut fields) = (HashSet::new(), Vec::new());
    while let Some(key) = map.next_key::<String>()? {
        if wanted.is_some_and(|wanted| !wanted.contains(&key)) {
            map.next_value::<IgnoredAny>()?;
            continue;
        }
        if let Some(value) = map.next_value_seed(seed)? {
            fields.push((key.clone(), value));
        }
        if !seen.insert(key) {
            return Err(A::Error::custom("an object has one of its fields twice"));
        }
    }
    RestrictedExpression::new_record(fields).map_err(A::Error::custom)
}

#[derive(Clone, Copy)]
struct ValueSeed<'a> {
    remaining: &'a Cell<usize>,
    depth: usize,
}

impl ValueSeed<'_> {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| E::custom("they are nested too deep"))?;
        Ok(Self { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Option<RestrictedExpression>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let remaining = self.remaining.get().checked_sub(1);
        self.remaining.set(remaining.ok_or_else(|| D::Error::custom("they have too many values"))?);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Option<RestrictedExpression>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(RestrictedExpression::new_bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(RestrictedExpression::new_long(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(match i64::try_from(value) {
            Ok(value) => RestrictedExpression::new_long(value),
            Err(_) => RestrictedExpression::new_string(value.to_string()),
        }))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Some(RestrictedExpression::new_string(Value::from(value).to_string())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Some(RestrictedExpression::new_string(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let (seed, mut values) = (self.inner()?, Vec::new());
        while let Some(value) = items.next_element_seed(seed)? {
            values.extend(value);
        }
        Ok(Some(RestrictedExpression::new_set(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        read_fields(map, None, self.inner()?).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn hostile_arguments_are_refused_rather_than_read_in_part() {
        let deep = format!(r#"{{"a": {}1{}}}"#, "[".repeat(40), "]".repeat(40));
        let wide = format!(r#"{{"a": [{}0]}}"#, "0,".repeat(MAX_VALUES));
        for hostile in [
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": null, "a": 2}"#,
            r#"{"a": {"b": 1, "\u0062": 2}}"#,
            "[]",
            "{",
            r#"{"a": 1} {"a": 2}"#,
            &deep,
            &wide,
        ] {
            assert!(record_of_text(hostile, &wanted(&["a"])).is_err(), "{}", hostile.len());
        }
        for unread in [&deep, &wide, r#"{"a": 1, "a": 2}"#] {
            assert!(record_of_text(unread, &wanted(&["b"])).is_ok(), "unread fields do not matter");
        }
    }

    proptest! {
        /// Both conversions agree.
        #[test]
        fn text_and_values_become_the_same_record(text in ".{0,8}", number: i64, quarters: i16, flag: bool) {
            let fraction = f64::from(quarters) + 0.25;
            let json = serde_json::json!({
                "a": {"text": text, "numbers": [number, fraction, null], "none": null}, "b": flag, "c": 1,
            });
            let names = wanted(&["a", "b"]);
            let Value::Object(object) = &json else { unreachable!() };
            let read = record_of_text(&json.to_string(), &names).unwrap();
            let context = |record| cedar_policy::Context::from_pairs([("a".to_owned(), record)]).unwrap();
            prop_assert_eq!(
                context(read).to_json_value().unwrap(),
                context(record_of_map(object, &names)).to_json_value().unwrap()
            );
        }
    }
}
