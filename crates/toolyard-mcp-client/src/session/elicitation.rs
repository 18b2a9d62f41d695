//! Forms that a server asks the user to fill in (`elicitation/create`), and the answers to them.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_core::RawJson;

const MAX_FORM_FIELDS: usize = 256;
/// Characters of an unsupported mode that an error quotes.
const MAX_QUOTED_MODE_CHARS: usize = 32;

/// A form that a server asks the user to fill in.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationForm {
    /// The server's explanation; untrusted text.
    pub message: String,
    /// The fields.
    pub fields: Vec<FormField>,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    /// The name.
    pub name: String,
    /// The JSON Schema: type, title, limits, choices.
    pub schema: Value,
    /// Whether the form needs a value for it.
    pub required: bool,
}

/// Why a form cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The server asks for input in a way that Toolyard does not know.
    ///
    /// Remedy: call the tool with a client that supports it, or update Toolyard.
    #[error("unsupported elicitation mode `{0}`")]
    NotAForm(String),
    /// The form that the server wants to be filled in is not valid; the text says why.
    ///
    /// Remedy: report it to the author of the server.
    #[error("invalid elicitation form: {0}")]
    Invalid(String),
    /// A required field of the form was left empty.
    ///
    /// Remedy: answer again with a value for the field.
    #[error("the form needs a value for `{0}`")]
    Missing(String),
    /// The answer has a field that the form does not have.
    ///
    /// Remedy: use the names of the fields in the form.
    #[error("the form has no field `{0}`")]
    UnknownField(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FormParams {
    #[serde(default)]
    message: String,
    requested_schema: FormSchema,
}

#[derive(Deserialize)]
struct FormSchema {
    #[serde(default)]
    properties: Map<String, Value>,
    #[serde(default)]
    required: Vec<String>,
}

#[derive(Deserialize)]
struct ModeParam {
    #[serde(default)]
    mode: Option<String>,
}

impl ElicitationForm {
    /// Reads the parameters of `elicitation/create`.
    pub fn read(params: Option<&RawJson>) -> Result<Self, FormError> {
        let params = params.ok_or_else(|| FormError::Invalid("no parameters".to_owned()))?;
        let invalid = |error: toolyard_core::InvalidJson| FormError::Invalid(error.to_string());
        // Checked first, because other modes have other fields.
        let mode = params.read::<ModeParam>().map_err(invalid)?.mode;
        if let Some(mode) = mode.filter(|mode| mode != "form") {
            return Err(FormError::NotAForm(mode.chars().take(MAX_QUOTED_MODE_CHARS).collect()));
        }
        let FormParams { message, requested_schema: FormSchema { properties, required } } =
            params.read().map_err(invalid)?;
        if properties.len() > MAX_FORM_FIELDS {
            return Err(FormError::Invalid(format!("more than {MAX_FORM_FIELDS} fields")));
        }
        let field =
            |(name, schema): (String, Value)| FormField { required: required.contains(&name), name, schema };
        Ok(Self { message, fields: properties.into_iter().map(field).collect() })
    }

    /// The response of a user who accepts: the given values, and defaults for all other fields.
    pub fn accept(&self, mut values: Map<String, Value>) -> Result<RawJson, FormError> {
        let mut content = Map::new();
        for field in &self.fields {
            match values.remove(&field.name).or_else(|| field.default().cloned()) {
                Some(value) => drop(content.insert(field.name.clone(), value)),
                None if field.required => return Err(FormError::Missing(field.name.clone())),
                None => {}
            }
        }
        match values.into_iter().next() {
            Some((name, _)) => Err(FormError::UnknownField(name)),
            None => Ok(RawJson::from_value(&json!({"action": "accept", "content": content}))),
        }
    }
}

impl FormField {
    /// The default value. A default of another type than the field is ignored.
    pub fn default(&self) -> Option<&Value> {
        let default = self.schema.get("default")?;
        let has_field_type = match self.schema.get("type").and_then(Value::as_str)? {
            "string" => default.is_string(),
            "number" => default.is_number(),
            "integer" => default.as_f64().is_some_and(|number| number.fract() == 0.0),
            "boolean" => default.is_boolean(),
            "array" => default.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            _ => false,
        };
        has_field_type.then_some(default)
    }
}

/// The response of a user who declines.
pub fn declined_elicitation() -> RawJson {
    RawJson::from_value(&json!({"action": "decline"}))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(properties: &Value, required: &[&str]) -> ElicitationForm {
        let params = json!({"message": "Who?", "requestedSchema": {
            "type": "object", "properties": properties, "required": required}});
        ElicitationForm::read(Some(&RawJson::from_value(&params))).unwrap()
    }

    fn values(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn defaults_fill_missing_values() {
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
        let answer = form.accept(values(json!({"age": 7}))).unwrap().to_value();
        assert_eq!(
            answer,
            json!({"action": "accept", "content": {"name": "John", "age": 7, "score": 95.5, "status": "active",
                "verified": true, "tags": ["a"]}})
        );
    }

    #[test]
    fn missing_and_unknown_fields_are_named() {
        let form = form(&json!({"name": {"type": "string", "default": 3}}), &["name"]);
        assert_eq!(form.accept(Map::new()), Err(FormError::Missing("name".to_owned())));
        let more = values(json!({"name": "x", "password": "y"}));
        assert_eq!(form.accept(more), Err(FormError::UnknownField("password".to_owned())));
    }

    #[test]
    fn a_url_elicitation_is_not_a_form() {
        let params = json!({"mode": "url", "url": "https://example.org", "message": "Go there"});
        let read = ElicitationForm::read(Some(&RawJson::from_value(&params)));
        assert_eq!(read, Err(FormError::NotAForm("url".to_owned())));
        assert!(matches!(ElicitationForm::read(None), Err(FormError::Invalid(_))));
        let empty = RawJson::empty_object();
        assert!(matches!(ElicitationForm::read(Some(&empty)), Err(FormError::Invalid(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_default_has_the_type_of_its_field(
            kind in prop::sample::select(vec!["string", "number", "integer", "boolean", "array", "null", "x"]),
            default in prop_oneof![
                any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from),
                any::<f64>().prop_map(Value::from), "\\PC{0,8}".prop_map(Value::from),
                Just(Value::Null), Just(json!(["a"])), Just(json!([1])), Just(json!({})),
            ],
        ) {
            let form = form(&json!({"field": {"type": kind, "default": default}}), &[]);
            let answer = form.accept(Map::new()).unwrap().to_value();
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
