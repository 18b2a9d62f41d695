//! Forms that a server asks a person to fill in (`elicitation/create`), and the answers to them.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_core::RawJson;

/// More fields than this are no form for a person.
const MOST_FIELDS: usize = 256;

/// A form that a server asks a person to fill in.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// What the server says about it. Text from outside.
    pub message: String,
    /// What is asked for.
    pub fields: Vec<FormField>,
}

/// One thing that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    /// Its name.
    pub name: String,
    /// Its JSON Schema: type, title, limits, choices.
    pub schema: Value,
    /// Whether there is no answer without it.
    pub required: bool,
}

/// Why a form is not filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The server asks for something else, such as a visit to an address.
    #[error("it asks for no form but for `{0}`")]
    NotAForm(String),
    /// The question cannot be read.
    #[error("its form cannot be read: {0}")]
    Unreadable(String),
    /// Something is asked for that nobody gave and that has no default.
    #[error("its form needs `{0}`, which nobody gave")]
    Missing(String),
    /// Something was given that is not asked for.
    #[error("its form has no field `{0}`")]
    Unknown(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    #[serde(default)]
    message: String,
    requested_schema: Requested,
}

#[derive(Deserialize)]
struct Requested {
    #[serde(default)]
    properties: Map<String, Value>,
    #[serde(default)]
    required: Vec<String>,
}

#[derive(Deserialize)]
struct Mode {
    #[serde(default)]
    mode: Option<String>,
}

impl Form {
    /// Reads the parameters of `elicitation/create`.
    pub fn read(params: Option<&RawJson>) -> Result<Self, FormError> {
        let params = params.ok_or_else(|| FormError::Unreadable("it is empty".to_owned()))?;
        let unreadable = |error: toolyard_core::NotJson| FormError::Unreadable(error.to_string());
        // Other modes have other fields.
        let mode = params.read::<Mode>().map_err(unreadable)?.mode;
        if let Some(mode) = mode.filter(|mode| mode != "form") {
            return Err(FormError::NotAForm(mode.chars().take(32).collect()));
        }
        let Params { message, requested_schema: Requested { properties, required } } =
            params.read().map_err(unreadable)?;
        if properties.len() > MOST_FIELDS {
            return Err(FormError::Unreadable(format!("it has more than {MOST_FIELDS} fields")));
        }
        let field =
            |(name, schema): (String, Value)| FormField { required: required.contains(&name), name, schema };
        Ok(Self { message, fields: properties.into_iter().map(field).collect() })
    }

    /// The answer of a person who agrees: what was given, and the defaults of everything else.
    pub fn accepted(&self, mut given: Map<String, Value>) -> Result<RawJson, FormError> {
        let mut content = Map::new();
        for field in &self.fields {
            match given.remove(&field.name).or_else(|| field.default().cloned()) {
                Some(value) => drop(content.insert(field.name.clone(), value)),
                None if field.required => return Err(FormError::Missing(field.name.clone())),
                None => {}
            }
        }
        match given.into_iter().next() {
            Some((name, _)) => Err(FormError::Unknown(name)),
            None => Ok(RawJson::from_value(&json!({"action": "accept", "content": content}))),
        }
    }
}

impl FormField {
    /// What it is unless a person says otherwise. A default that is not of the field's own type is none.
    pub fn default(&self) -> Option<&Value> {
        let default = self.schema.get("default")?;
        let fits = match self.schema.get("type").and_then(Value::as_str)? {
            "string" => default.is_string(),
            "number" => default.is_number(),
            "integer" => default.as_f64().is_some_and(|number| number.fract() == 0.0),
            "boolean" => default.is_boolean(),
            "array" => default.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            _ => false,
        };
        fits.then_some(default)
    }
}

/// The answer of a person who does not agree.
pub fn declined() -> RawJson {
    RawJson::from_value(&json!({"action": "decline"}))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(properties: &Value, required: &[&str]) -> Form {
        let params = json!({"message": "Who?", "requestedSchema": {
            "type": "object", "properties": properties, "required": required}});
        Form::read(Some(&RawJson::from_value(&params))).unwrap()
    }

    fn given(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn defaults_fill_what_was_not_given() {
        let form = form(
            &json!({
                "name": {"type": "string", "default": "John"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
                "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a"]},
                "note": {"type": "string"},
            }),
            &["name"],
        );
        let answer = form.accepted(given(json!({"age": 7}))).unwrap().to_value();
        assert_eq!(
            answer,
            json!({"action": "accept", "content": {"name": "John", "age": 7, "score": 95.5, "status": "active",
                "verified": true, "tags": ["a"]}})
        );
    }

    #[test]
    fn what_is_needed_and_not_given_is_named_and_so_is_what_was_never_asked_for() {
        let form = form(&json!({"name": {"type": "string", "default": 3}}), &["name"]);
        assert_eq!(form.accepted(Map::new()), Err(FormError::Missing("name".to_owned())));
        let more = given(json!({"name": "x", "password": "y"}));
        assert_eq!(form.accepted(more), Err(FormError::Unknown("password".to_owned())));
    }

    #[test]
    fn an_address_is_no_form() {
        let params = json!({"mode": "url", "url": "https://example.org", "message": "Go there"});
        let read = Form::read(Some(&RawJson::from_value(&params)));
        assert_eq!(read, Err(FormError::NotAForm("url".to_owned())));
        assert!(matches!(Form::read(None), Err(FormError::Unreadable(_))));
        let empty = RawJson::empty_object();
        assert!(matches!(Form::read(Some(&empty)), Err(FormError::Unreadable(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_default_is_of_the_type_of_its_field(
            kind in prop::sample::select(vec!["string", "number", "integer", "boolean", "array", "null", "x"]),
            default in prop_oneof![
                any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from),
                any::<f64>().prop_map(Value::from), "\\PC{0,8}".prop_map(Value::from),
                Just(Value::Null), Just(json!(["a"])), Just(json!([1])), Just(json!({})),
            ],
        ) {
            let form = form(&json!({"field": {"type": kind, "default": default}}), &[]);
            let answer = form.accepted(Map::new()).unwrap().to_value();
            match answer.pointer("/content/field") {
                Some(value) => {
                    let fits = match kind {
                        "string" => value.is_string(),
                        "number" => value.is_number(),
                        "integer" => value.as_f64().unwrap().fract() == 0.0,
                        "boolean" => value.is_boolean(),
                        "array" => value.is_array(),
                        _ => false,
                    };
                    prop_assert!(fits);
                }
                None => prop_assert!(kind == "x" || kind == "null" || form.fields[0].default().is_none()),
            }
        }
    }
}
