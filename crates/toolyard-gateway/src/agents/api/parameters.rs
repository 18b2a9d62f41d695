//! Parameters of a chat completion that an agent cannot honour. They are refused: a client that sends them relies on them.

use serde::Deserialize;
use serde_json::Value;

use super::error::ApiError;

/// Largest temperature of OpenAI's API.
const MAX_TEMPERATURE: f32 = 2.0;

/// Parameters that an agent does not support, or supports within limits. Of a model's other settings, such as `seed`, the agent's own
/// are in effect.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Parameters {
    tools: Option<Vec<Value>>,
    functions: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    response_format: Option<Value>,
    stop: Option<Value>,
    logprobs: Option<bool>,
    n: Option<u64>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
}

impl Parameters {
    /// Refuses what cannot be honoured.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let refuse = |parameter: &'static str, reason: &str| {
            let code = Some("unsupported_parameter");
            Err(ApiError { code, ..ApiError::invalid_param(parameter, reason) })
        };
        let has_items = |items: &Option<Vec<Value>>| items.as_ref().is_some_and(|items| !items.is_empty());
        let out_of_range =
            |value: Option<f32>, most: f32| value.is_some_and(|value| !(0.0..=most).contains(&value));
        let is_format = |format: &Value| format.get("type").and_then(Value::as_str) == Some("text");
        let is_free_choice = |choice: &Value| matches!(choice.as_str(), Some("auto" | "none"));
        match self {
            _ if self.n.is_some_and(|n| n != 1) => refuse("n", "only one completion is supported: omit `n`"),
            _ if has_items(&self.tools) => {
                refuse("tools", "an agent calls the tools of its hub, not those of the client: omit `tools`")
            }
            _ if has_items(&self.functions) => refuse(
                "functions",
                "an agent calls the tools of its hub, not those of the client: omit `functions`",
            ),
            Self { tool_choice: Some(choice), .. } if !is_free_choice(choice) => {
                refuse("tool_choice", "the agent chooses its tools: omit `tool_choice`")
            }
            Self { response_format: Some(format), .. } if !is_format(format) => {
                refuse("response_format", "an agent answers with text: omit `response_format`")
            }
            Self { stop: Some(stop), .. } if !stop.is_null() => {
                refuse("stop", "stop sequences are not supported: omit `stop`")
            }
            _ if self.logprobs == Some(true) => {
                refuse("logprobs", "log probabilities are not supported: omit `logprobs`")
            }
            _ if out_of_range(self.temperature, MAX_TEMPERATURE) => {
                Err(ApiError::invalid_param("temperature", "`temperature` must be between 0 and 2"))
            }
            _ if out_of_range(self.top_p, 1.0) => {
                Err(ApiError::invalid_param("top_p", "`top_p` must be between 0 and 1"))
            }
            _ => self.max_tokens().map(drop),
        }
    }

    /// The temperature in hundredths, if it is within its limits.
    pub(super) fn temperature_hundredths(&self) -> Option<u8> {
        let temperature = self.temperature.filter(|value| (0.0..=MAX_TEMPERATURE).contains(value))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 200 after the check above"
        )]
        let hundredths = (temperature * 100.0).round() as u8;
        Some(hundredths)
    }

    /// How many tokens the answer may have; OpenAI has two names for it.
    pub(super) fn max_tokens(&self) -> Result<Option<usize>, ApiError> {
        let (parameter, limit) = match self.max_completion_tokens {
            Some(limit) => ("max_completion_tokens", Some(limit)),
            None => ("max_tokens", self.max_tokens),
        };
        let Some(limit) = limit else { return Ok(None) };
        match usize::try_from(limit) {
            Ok(limit) if limit > 0 => Ok(Some(limit)),
            _ => Err(ApiError::invalid_param(parameter, format!("`{parameter}` must be at least 1"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(parameters: Value) -> Option<&'static str> {
        serde_json::from_value::<Parameters>(parameters).unwrap().check().err()?.param
    }

    #[test]
    fn what_an_agent_cannot_honour_is_refused() {
        for (parameter, value) in [
            ("n", json!(2)),
            ("tools", json!([{"type": "function"}])),
            ("functions", json!([{}])),
            ("tool_choice", json!("required")),
            ("tool_choice", json!({"type": "function"})),
            ("response_format", json!({"type": "json_object"})),
            ("stop", json!(["\n"])),
            ("logprobs", json!(true)),
            ("temperature", json!(7)),
            ("temperature", json!(-0.1)),
            ("top_p", json!(1.5)),
            ("max_tokens", json!(0)),
            ("max_completion_tokens", json!(-1)),
        ] {
            assert_eq!(refused(json!({ parameter: value })), Some(parameter), "{parameter}");
        }
    }

    #[test]
    fn what_clients_send_by_default_is_accepted() {
        let parameters = json!({
            "tools": [], "tool_choice": "auto", "response_format": {"type": "text"}, "stop": null, "logprobs": false, "n": 1,
            "temperature": 0.7, "top_p": 1, "max_tokens": 500, "seed": 7, "user": "x", "parallel_tool_calls": true,
        });
        assert_eq!(refused(parameters), None);
    }
}
