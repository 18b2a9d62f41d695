//! [`FormField`]: one input of a form.

use serde_json::Value;

/// The prefix of the names of inputs, so that no property collides with the other fields of a form.
const NAME_PREFIX: &str = "arg:";

/// An input of a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FormField {
    /// The property of the arguments.
    pub(crate) property: String,
    /// Identifies the input in the page.
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) is_required: bool,
    pub(crate) kind: FieldKind,
    /// The text that is entered.
    pub(crate) value: String,
    /// Why the text is not accepted.
    pub(crate) error: Option<FieldError>,
}

/// The values that an input accepts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FieldKind {
    Text,
    LongText,
    Integer,
    Number,
    Boolean,
    /// One of these values; the text of an option is its JSON.
    Choice(Vec<Value>),
    Json,
}

/// Why a value is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldError {
    Missing,
    NotANumber,
    NotAnInteger,
    NotAChoice,
    InvalidJson,
}

/// An option of a choice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChoiceOption {
    pub(crate) value: String,
    pub(crate) label: String,
    pub(crate) is_selected: bool,
}

impl FormField {
    /// The name of the input.
    pub(crate) fn name(&self) -> String {
        format!("{NAME_PREFIX}{}", self.property)
    }

    /// The options of a choice or boolean.
    pub(crate) fn options(&self) -> Vec<ChoiceOption> {
        let values = match &self.kind {
            FieldKind::Choice(values) => values.clone(),
            FieldKind::Boolean => vec![Value::Bool(true), Value::Bool(false)],
            _ => Vec::new(),
        };
        let option = |value: &Value| {
            let label = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let value = value.to_string();
            ChoiceOption { is_selected: value == self.value, label, value }
        };
        values.iter().map(option).collect()
    }

    pub(crate) fn is_choice(&self) -> bool {
        matches!(self.kind, FieldKind::Choice(_) | FieldKind::Boolean)
    }

    pub(crate) fn is_multiline(&self) -> bool {
        matches!(self.kind, FieldKind::LongText | FieldKind::Json)
    }

    pub(crate) fn is_json(&self) -> bool {
        self.kind == FieldKind::Json
    }

    /// The keyboard that touch screens show.
    pub(crate) fn input_mode(&self) -> &'static str {
        match self.kind {
            FieldKind::Integer => "numeric",
            FieldKind::Number => "decimal",
            _ => "text",
        }
    }

    /// Whether an empty input stands for an absent argument.
    fn is_absent_if_empty(&self) -> bool {
        !(self.is_required && matches!(self.kind, FieldKind::Text | FieldKind::LongText))
    }

    /// The argument that was entered; none if the input was left empty.
    pub(crate) fn argument(&self) -> Result<Option<Value>, FieldError> {
        if self.value.is_empty() && self.is_absent_if_empty() {
            return if self.is_required { Err(FieldError::Missing) } else { Ok(None) };
        }
        let text = self.value.trim();
        let value = match &self.kind {
            FieldKind::Text => Value::String(self.value.clone()),
            FieldKind::LongText => Value::String(self.value.replace("\r\n", "\n")),
            FieldKind::Integer => match serde_json::from_str(text) {
                Ok(Value::Number(number)) if !number.is_f64() => Value::Number(number),
                _ => return Err(FieldError::NotAnInteger),
            },
            FieldKind::Number => match serde_json::from_str(text) {
                // The standard library keeps all digits of a fraction.
                Ok(Value::Number(number)) if number.is_f64() => {
                    text.parse::<f64>().map_or(Value::Number(number), Value::from)
                }
                Ok(Value::Number(number)) => Value::Number(number),
                _ => return Err(FieldError::NotANumber),
            },
            FieldKind::Boolean | FieldKind::Choice(_) => {
                let is_option = self.options().iter().any(|option| option.value == self.value);
                let value = serde_json::from_str(text).ok().filter(|_| is_option);
                value.ok_or(FieldError::NotAChoice)?
            }
            FieldKind::Json => serde_json::from_str(text).map_err(|_| FieldError::InvalidJson)?,
        };
        Ok(Some(value))
    }

    /// Enters an argument.
    pub(crate) fn set_argument(&mut self, argument: &Value) {
        self.value = match (&self.kind, argument) {
            (FieldKind::Text | FieldKind::LongText, Value::String(text)) => {
                if text.contains(['\n', '\r']) {
                    self.kind = FieldKind::LongText;
                }
                text.clone()
            }
            (FieldKind::Json, value) => serde_json::to_string_pretty(value).unwrap_or_default(),
            (_, value) => value.to_string(),
        };
    }
}
