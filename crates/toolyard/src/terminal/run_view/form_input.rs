//! Fields of an elicitation form at a terminal: the prompt, and the value of the user's input.

use serde_json::Value;
use toolyard_mcp_client::FormField;

/// What the user entered for a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FieldInput {
    Value(Value),
    /// An optional field was left empty.
    Empty,
    /// The input does not fit the field, with what is expected.
    Invalid(&'static str),
}

pub(super) fn field_prompt(field: &FormField) -> String {
    let text = |key: &str| field.schema.get(key).and_then(Value::as_str);
    let title = match (text("title").unwrap_or(&field.name), text("description")) {
        (title, Some(more)) => format!("{title}: {more}"),
        (title, None) => title.to_owned(),
    };
    let kind = match (choices(field), text("type")) {
        (Some(choices), _) => format!(" ({})", choices.join(", ")),
        (None, Some("number")) => " (a number)".to_owned(),
        (None, Some("integer")) => " (a whole number)".to_owned(),
        (None, Some("boolean")) => " [y]es [n]o".to_owned(),
        (None, _) => String::new(),
    };
    let default = match (field.default(), field.required) {
        (Some(default), _) => format!(", default {default}"),
        (None, true) => String::new(),
        (None, false) => ", optional".to_owned(),
    };
    format!("{title}{kind}{default}: ")
}

pub(super) fn parse_input(field: &FormField, line: &str) -> FieldInput {
    let word = line.trim();
    if word.is_empty() {
        let is_required = field.required && field.default().is_none();
        return if is_required { FieldInput::Invalid("a value is required") } else { FieldInput::Empty };
    }
    match (choices(field), field.schema.get("type").and_then(Value::as_str)) {
        (Some(choices), _) if choices.contains(&word) => FieldInput::Value(word.into()),
        (Some(_), _) => FieldInput::Invalid("enter one of the choices"),
        (None, Some("string") | None) => FieldInput::Value(word.into()),
        (None, Some("integer")) => match word.parse::<i64>() {
            Ok(number) => FieldInput::Value(number.into()),
            Err(_) => FieldInput::Invalid("enter a whole number"),
        },
        (None, Some("number")) => match word.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
            Some(number) => FieldInput::Value(Value::Number(number)),
            None => FieldInput::Invalid("enter a number"),
        },
        (None, Some("boolean")) => match word.to_lowercase().as_str() {
            "y" | "yes" => FieldInput::Value(true.into()),
            "n" | "no" => FieldInput::Value(false.into()),
            _ => FieldInput::Invalid("enter yes or no"),
        },
        (None, Some("array")) => {
            FieldInput::Value(word.split(',').map(|one| Value::from(one.trim())).collect::<Vec<_>>().into())
        }
        (None, Some(_)) => FieldInput::Invalid("values of this type cannot be entered at a terminal"),
    }
}

/// The permitted values, if the field lists them.
fn choices(field: &FormField) -> Option<Vec<&str>> {
    let array_at = |key: &str| field.schema.get(key).and_then(Value::as_array);
    let is_choice = |one: &&Value| one.is_string() || one.get("const").is_some();
    let all = array_at("enum").or_else(|| array_at("oneOf"))?;
    let words = all.iter().filter(is_choice);
    Some(words.filter_map(|one| one.as_str().or_else(|| one.get("const")?.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: Value, required: bool) -> FormField {
        FormField { name: "it".to_owned(), schema, required }
    }

    #[test]
    fn input_becomes_a_value_of_the_fields_type() {
        let integer = field(json!({"type": "integer"}), true);
        assert_eq!(parse_input(&integer, "7\n"), FieldInput::Value(json!(7)));
        assert!(matches!(
            (parse_input(&integer, "seven"), parse_input(&integer, "")),
            (FieldInput::Invalid(_), FieldInput::Invalid(_))
        ));
        for choices in
            [json!({"enum": ["red", "blue"]}), json!({"oneOf": [{"const": "red"}, {"const": "blue"}]})]
        {
            let color = field(choices, true);
            assert_eq!(parse_input(&color, "red"), FieldInput::Value(json!("red")));
            assert!(matches!(parse_input(&color, "green"), FieldInput::Invalid(_)));
            assert_eq!(field_prompt(&color), "it (red, blue): ");
        }
        let sure = field(json!({"type": "boolean", "default": false}), true);
        assert_eq!(
            (parse_input(&sure, ""), parse_input(&sure, "Y")),
            (FieldInput::Empty, FieldInput::Value(json!(true)))
        );
        assert_eq!(field_prompt(&sure), "it [y]es [n]o, default false: ");
        let reason = field(json!({"type": "string", "title": "Why", "description": "the reason"}), false);
        assert_eq!(
            (parse_input(&reason, ""), parse_input(&reason, " so ")),
            (FieldInput::Empty, FieldInput::Value(json!("so")))
        );
        assert_eq!(field_prompt(&reason), "Why: the reason, optional: ");
        let number = field(json!({"type": "number"}), true);
        assert_eq!(parse_input(&number, "0.5"), FieldInput::Value(json!(0.5)));
        assert!(matches!(parse_input(&number, "NaN"), FieldInput::Invalid(_)));
        assert!(matches!(parse_input(&field(json!({"type": "object"}), true), "x"), FieldInput::Invalid(_)));
    }
}
