//! Converts JSON (arguments of calls, claims of callers) into Cedar values, bounded in size and depth.
//!
//! Objects become records without their nulls, arrays sets, integers longs, other numbers text: a policy that compares them with
//! an integer fails, and so denies.

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

/// The wanted fields of a JSON object as a Cedar record. An object that has a wanted field twice is an error, because tools may
/// read either.
pub(crate) fn record_of_text(
    json: &str,
    wanted: &BTreeSet<String>,
) -> Result<RestrictedExpression, UnreadableArguments> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let record = read_record(&mut deserializer, wanted).and_then(|record| {
        deserializer.end()?;
        Ok(record)
    });
    record.map_err(|error| UnreadableArguments(error.to_string()))
}

/// The wanted fields of an object as a Cedar record.
pub(crate) fn record_of_map(
    object: &Map<String, Value>,
    wanted: &BTreeSet<String>,
) -> Result<RestrictedExpression, serde_json::Error> {
    read_record(object, wanted)
}

fn read_record<'de, D: Deserializer<'de>>(
    deserializer: D,
    wanted: &BTreeSet<String>,
) -> Result<RestrictedExpression, D::Error> {
    deserializer.deserialize_map(RecordVisitor { wanted, remaining: &Cell::new(MAX_VALUES) })
}

struct RecordVisitor<'a> {
    wanted: &'a BTreeSet<String>,
    remaining: &'a Cell<usize>,
}

impl<'de> Visitor<'de> for RecordVisitor<'_> {
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

    #[test]
    fn hostile_claims_are_refused_rather_than_read_in_part() {
        let mut deep = serde_json::json!(1);
        for _ in 0..40 {
            deep = Value::Array(vec![deep]);
        }
        let claims = serde_json::json!({"deep": deep, "wide": vec![0; MAX_VALUES], "dept": "it"});
        let claims = claims.as_object().unwrap();
        for (name, is_readable) in [("deep", false), ("wide", false), ("dept", true), ("missing", true)] {
            assert_eq!(record_of_map(claims, &wanted(&[name])).is_ok(), is_readable, "{name}");
        }
    }
}
