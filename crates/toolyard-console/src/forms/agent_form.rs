//! [`AgentForm`]: the configuration of an agent as inputs, and back. Fields that have no input are kept.

use serde_json::{Map, Value, json};
use toolyard_core::escape_unsafe;

use crate::form_fields::FormFields;

/// Limits that have an input, and whether they are numbers.
const LIMITS: [(&str, bool); 5] =
    [("steps", true), ("tool_calls", true), ("tokens", true), ("cost", true), ("time", false)];

/// The inputs for an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AgentForm {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) instructions: String,
    /// One pattern per line.
    pub(crate) tools: String,
    pub(crate) model: String,
    pub(crate) is_chinese: bool,
    pub(crate) judge: bool,
    pub(crate) may_call_tools: bool,
    pub(crate) limits: Vec<LimitField>,
}

/// The input of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LimitField {
    pub(crate) key: &'static str,
    pub(crate) value: String,
}

impl AgentForm {
    /// The form of an agent with this configuration.
    pub(crate) fn of(name: &str, config: &Value) -> Self {
        let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let tools = config.get("tools").and_then(Value::as_array).into_iter().flatten();
        let limit = |key: &str| match config.get("limits").and_then(|limits| limits.get(key)) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(value)) => value.clone(),
            Some(value) => value.to_string(),
        };
        let may_call_tools = config.pointer("/capabilities/enable_tool_calling").and_then(Value::as_bool);
        Self {
            name: name.to_owned(),
            description: text("description"),
            instructions: text("instructions"),
            tools: tools.filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
            model: text("model"),
            is_chinese: text("language") == "zh",
            judge: config.get("judge").and_then(Value::as_bool).unwrap_or_default(),
            may_call_tools: may_call_tools.unwrap_or(true),
            limits: LIMITS.iter().map(|(key, _)| LimitField { key, value: limit(key) }).collect(),
        }
    }

    /// The form with what was submitted.
    pub(crate) fn read(name: &str, fields: &FormFields) -> Self {
        let text = |key: &str| fields.get(key).replace("\r\n", "\n").trim().to_owned();
        Self {
            name: name.to_owned(),
            description: text("description"),
            instructions: text("instructions"),
            tools: text("tools"),
            model: text("model"),
            is_chinese: fields.get("language") == "zh",
            judge: fields.find("judge").is_some(),
            may_call_tools: fields.find("tool_calling").is_some(),
            limits: LIMITS
                .iter()
                .map(|(key, _)| LimitField { key, value: text(&format!("limit-{key}")) })
                .collect(),
        }
    }

    /// The configuration: the previous one with what was entered. An error is the key of a limit that is no number.
    ///
    /// Inputs show hidden characters as `\u{…}`. A text that was not touched keeps the characters of the previous one.
    pub(crate) fn config(&self, previous: &Value) -> Result<Value, &'static str> {
        let mut config = previous.as_object().cloned().unwrap_or_default();
        for (key, entered) in [("description", &self.description), ("instructions", &self.instructions)] {
            config.insert(key.to_owned(), json!(untouched(previous.get(key), entered).unwrap_or(entered)));
        }
        let tools = self.tools.lines().map(str::trim).filter(|tool| !tool.is_empty());
        let previous_tools =
            previous.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let tools = tools.map(|tool| {
            previous_tools.iter().find_map(|previous| untouched(Some(previous), tool)).unwrap_or(tool)
        });
        config.insert("tools".to_owned(), json!(tools.collect::<Vec<_>>()));
        config.insert("judge".to_owned(), json!(self.judge));
        config.insert("language".to_owned(), json!(if self.is_chinese { "zh" } else { "en" }));
        let capabilities = config.get("capabilities").and_then(Value::as_object).cloned();
        let mut capabilities = capabilities.unwrap_or_default();
        capabilities.insert("enable_tool_calling".to_owned(), json!(self.may_call_tools));
        config.insert("capabilities".to_owned(), Value::Object(capabilities));
        let model = untouched(previous.get("model"), &self.model).unwrap_or(&self.model);
        set_or_remove(&mut config, "model", (!model.is_empty()).then(|| json!(model)));
        let mut limits = config.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
        for ((key, is_number), field) in LIMITS.iter().zip(&self.limits) {
            let value = match (field.value.as_str(), is_number) {
                ("", _) => None,
                (text, false) => Some(json!(text)),
                (text, true) => match serde_json::from_str(text) {
                    Ok(Value::Number(number)) => Some(Value::Number(number)),
                    _ => return Err(key),
                },
            };
            set_or_remove(&mut limits, key, value);
        }
        limits.retain(|_, value| !value.is_null());
        config.insert("limits".to_owned(), Value::Object(limits));
        Ok(Value::Object(config))
    }
}

/// The previous text, if what was entered is what the form showed of it.
fn untouched<'a>(previous: Option<&'a Value>, entered: &str) -> Option<&'a str> {
    let previous = previous?.as_str()?;
    let shown = escape_unsafe(previous).replace("\r\n", "\n");
    (shown.trim() == entered).then_some(previous)
}

fn set_or_remove(fields: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(fields.insert(key.to_owned(), value)),
        None => drop(fields.remove(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_survives_the_form_with_fields_that_have_no_input() {
        let config = json!({
            "description": "Keeps notes", "instructions": "Be brief.\nBe right.", "tools": ["calculate", "read_*"],
            "capabilities": {"enable_tool_calling": false, "future": 1}, "model": "local", "language": "zh", "judge": true,
            "limits": {"steps": 5, "cost": 0.5, "time": "10m", "replans": 2}, "future": [1]
        });
        assert_eq!(AgentForm::of("clerk", &config).config(&config), Ok(config));
    }

    #[test]
    fn what_was_submitted_is_read() {
        let fields = FormFields::parse(b"description=+x+&tools=a%0D%0A%0D%0Ab&limit-steps=7&judge=on&model=");
        let form = AgentForm::read("clerk", &fields);
        let config = form.config(&json!({"model": "old", "limits": {"tokens": 9}})).unwrap();
        assert_eq!(config["tools"], json!(["a", "b"]));
        assert_eq!(config["limits"], json!({"steps": 7}));
        assert_eq!((config["judge"].clone(), config.get("model")), (json!(true), None));
        let wrong = AgentForm::read("clerk", &FormFields::parse(b"limit-cost=much"));
        assert_eq!(wrong.config(&Value::Null), Err("cost"));
    }
}
