//! What a tool wants to know, as it is asked at a terminal, and what a person's words mean to it. Pure.

use serde_json::Value;
use toolyard_mcp::client::FormField;

/// What a line means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Meant {
    Value(Value),
    /// Nothing was said, and nothing has to be.
    Nothing,
    /// It is no answer; this is what one would be.
    Unclear(&'static str),
}

/// What a person is asked.
pub(super) fn prompt(field: &FormField) -> String {
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
    let nothing = match (field.default(), field.required) {
        (Some(default), _) => format!(", {default} if nothing is said"),
        (None, true) => String::new(),
        (None, false) => ", or nothing".to_owned(),
    };
    format!("{title}{kind}{nothing}: ")
}

/// What a line means.
pub(super) fn meant(field: &FormField, line: &str) -> Meant {
    let word = line.trim();
    if word.is_empty() {
        let must_be = field.required && field.default().is_none();
        return if must_be { Meant::Unclear("something must be said") } else { Meant::Nothing };
    }
    match (choices(field), field.schema.get("type").and_then(Value::as_str)) {
        (Some(choices), _) if choices.contains(&word) => Meant::Value(word.into()),
        (Some(_), _) => Meant::Unclear("one of these must be said"),
        (None, Some("string") | None) => Meant::Value(word.into()),
        (None, Some("integer")) => match word.parse::<i64>() {
            Ok(number) => Meant::Value(number.into()),
            Err(_) => Meant::Unclear("that is no whole number"),
        },
        (None, Some("number")) => match word.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
            Some(number) => Meant::Value(Value::Number(number)),
            None => Meant::Unclear("that is no number"),
        },
        (None, Some("boolean")) => match word.to_lowercase().as_str() {
            "y" | "yes" => Meant::Value(true.into()),
            "n" | "no" => Meant::Value(false.into()),
            _ => Meant::Unclear("yes or no must be said"),
        },
        (None, Some("array")) => {
            Meant::Value(word.split(',').map(|one| Value::from(one.trim())).collect::<Vec<_>>().into())
        }
        (None, Some(_)) => Meant::Unclear("this cannot be said at a terminal"),
    }
}

/// The words that may be said, if there are only some.
fn choices(field: &FormField) -> Option<Vec<&str>> {
    let of = |key: &str| field.schema.get(key).and_then(Value::as_array);
    let word = |one: &'_ Value| -> bool { one.is_string() || one.get("const").is_some() };
    let all = of("enum").or_else(|| of("oneOf"))?;
    let words = all.iter().filter(|one| word(one));
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
    fn words_become_values_of_the_kind_that_is_wanted() {
        let whole = field(json!({"type": "integer"}), true);
        assert_eq!(meant(&whole, "7\n"), Meant::Value(json!(7)));
        assert!(matches!(
            (meant(&whole, "seven"), meant(&whole, "")),
            (Meant::Unclear(_), Meant::Unclear(_))
        ));
        for choices in
            [json!({"enum": ["red", "blue"]}), json!({"oneOf": [{"const": "red"}, {"const": "blue"}]})]
        {
            let color = field(choices, true);
            assert_eq!(meant(&color, "red"), Meant::Value(json!("red")));
            assert!(matches!(meant(&color, "green"), Meant::Unclear(_)));
            assert_eq!(prompt(&color), "it (red, blue): ");
        }
        let sure = field(json!({"type": "boolean", "default": false}), true);
        assert_eq!((meant(&sure, ""), meant(&sure, "Y")), (Meant::Nothing, Meant::Value(json!(true))));
        assert_eq!(prompt(&sure), "it [y]es [n]o, false if nothing is said: ");
        let why = field(json!({"type": "string", "title": "Why", "description": "the reason"}), false);
        assert_eq!((meant(&why, ""), meant(&why, " so ")), (Meant::Nothing, Meant::Value(json!("so"))));
        assert_eq!(prompt(&why), "Why: the reason, or nothing: ");
        let number = field(json!({"type": "number"}), true);
        assert_eq!(meant(&number, "0.5"), Meant::Value(json!(0.5)));
        assert!(matches!(meant(&number, "NaN"), Meant::Unclear(_)));
        assert!(matches!(meant(&field(json!({"type": "object"}), true), "x"), Meant::Unclear(_)));
    }
}
