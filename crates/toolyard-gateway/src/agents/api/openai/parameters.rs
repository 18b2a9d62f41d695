//! Parameters of OpenAI's APIs that an agent cannot honour. They are refused: a client that sends them relies on them.

use serde::Deserialize;
use serde_json::Value;

use crate::{agents::api::error::ApiError, api::error_code::ErrorCode};

/// Largest temperature of OpenAI's API.
const MAX_TEMPERATURE: f32 = 2.0;

/// Parameters that an agent does not support, or supports within limits, in both of OpenAI's APIs. Of a model's other settings,
/// such as `seed`, the agent's own are in effect.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SharedParameters {
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    pub(super) temperature: Option<f32>,
    pub(super) top_p: Option<f32>,
}

/// Parameters of a chat completion that an agent does not support, or supports within limits.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionParameters {
    functions: Option<Vec<Value>>,
    response_format: Option<Value>,
    stop: Option<Value>,
    logprobs: Option<bool>,
    n: Option<u64>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
}

/// Parameters of a response that an agent does not support, or supports within limits.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseParameters {
    text: Option<Value>,
    previous_response_id: Option<Value>,
    prompt: Option<Value>,
    background: Option<bool>,
    include: Option<Vec<Value>>,
    truncation: Option<String>,
    top_logprobs: Option<u64>,
    max_tool_calls: Option<Value>,
    max_output_tokens: Option<i64>,
}

fn refuse(parameter: &'static str, reason: &str) -> Result<(), ApiError> {
    let code = Some(ErrorCode::UnsupportedParameter);
    Err(ApiError { code, ..ApiError::invalid_param(parameter, reason) })
}

fn has_items(items: Option<&Vec<Value>>) -> bool {
    items.is_some_and(|items| !items.is_empty())
}

fn is_text_format(format: &Value) -> bool {
    format.get("type").and_then(Value::as_str) == Some("text")
}

/// A limit of tokens, which is at least 1.
fn token_limit(parameter: &'static str, limit: Option<i64>) -> Result<Option<usize>, ApiError> {
    let Some(limit) = limit else { return Ok(None) };
    match usize::try_from(limit) {
        Ok(limit) if limit > 0 => Ok(Some(limit)),
        _ => Err(ApiError::invalid_param(parameter, format!("`{parameter}` must be at least 1"))),
    }
}

impl SharedParameters {
    /// Refuses what cannot be honoured.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let out_of_range =
            |value: Option<f32>, most: f32| value.is_some_and(|value| !(0.0..=most).contains(&value));
        let is_free_choice = |choice: &Value| matches!(choice.as_str(), Some("auto" | "none"));
        match self {
            _ if has_items(self.tools.as_ref()) => {
                refuse("tools", "an agent calls the tools of its hub, not those of the client: omit `tools`")
            }
            Self { tool_choice: Some(choice), .. } if !is_free_choice(choice) => {
                refuse("tool_choice", "the agent chooses its tools: omit `tool_choice`")
            }
            _ if out_of_range(self.temperature, MAX_TEMPERATURE) => {
                Err(ApiError::invalid_param("temperature", "`temperature` must be between 0 and 2"))
            }
            _ if out_of_range(self.top_p, 1.0) => {
                Err(ApiError::invalid_param("top_p", "`top_p` must be between 0 and 1"))
            }
            _ => Ok(()),
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
}

impl CompletionParameters {
    /// Refuses what cannot be honoured.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        match self {
            _ if self.n.is_some_and(|n| n != 1) => refuse("n", "only one completion is supported: omit `n`"),
            _ if has_items(self.functions.as_ref()) => refuse(
                "functions",
                "an agent calls the tools of its hub, not those of the client: omit `functions`",
            ),
            Self { response_format: Some(format), .. } if !is_text_format(format) => {
                refuse("response_format", "an agent answers with text: omit `response_format`")
            }
            Self { stop: Some(stop), .. } if !stop.is_null() => {
                refuse("stop", "stop sequences are not supported: omit `stop`")
            }
            _ if self.logprobs == Some(true) => {
                refuse("logprobs", "log probabilities are not supported: omit `logprobs`")
            }
            _ => Ok(()),
        }
    }

    /// How many tokens the answer may have; OpenAI has two names for it.
    pub(super) fn max_tokens(&self) -> Result<Option<usize>, ApiError> {
        match self.max_completion_tokens {
            Some(limit) => token_limit("max_completion_tokens", Some(limit)),
            None => token_limit("max_tokens", self.max_tokens),
        }
    }
}

impl ResponseParameters {
    /// Refuses what cannot be honoured.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let format =
            self.text.as_ref().and_then(|text| text.get("format")).filter(|format| !format.is_null());
        match self {
            _ if format.is_some_and(|format| !is_text_format(format)) => {
                refuse("text.format", "an agent answers with text: omit `text.format`")
            }
            _ if self.previous_response_id.is_some() => refuse(
                "previous_response_id",
                "responses are not stored: send the earlier messages, or name a `conversation`",
            ),
            _ if self.prompt.is_some() => {
                refuse("prompt", "prompt templates are not supported: omit `prompt`")
            }
            _ if self.background == Some(true) => {
                refuse("background", "a response is not stored: start a run that continues with POST /runs")
            }
            _ if has_items(self.include.as_ref()) => {
                refuse("include", "additional output is not supported: omit `include`")
            }
            _ if self.truncation.as_deref().is_some_and(|truncation| truncation != "disabled") => {
                refuse("truncation", "the input is not truncated: omit `truncation`")
            }
            _ if self.top_logprobs.is_some_and(|count| count > 0) => {
                refuse("top_logprobs", "log probabilities are not supported: omit `top_logprobs`")
            }
            _ if self.max_tool_calls.is_some() => {
                refuse("max_tool_calls", "the limits of the agent are in effect: omit `max_tool_calls`")
            }
            _ => Ok(()),
        }
    }

    /// How many tokens the answer may have.
    pub(super) fn max_tokens(&self) -> Result<Option<usize>, ApiError> {
        token_limit("max_output_tokens", self.max_output_tokens)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agents::api::openai::{completion::parse_completion, response::parse_response_request};

    /// The parameter of a chat completion and of a response that is refused.
    fn refused(parameters: &Value) -> [Option<&'static str>; 2] {
        let body = |field: &str, value: Value| {
            let mut body = parameters.clone();
            body[field] = value;
            body.to_string()
        };
        let completion = parse_completion(&body("messages", json!([{"role": "user", "content": "x"}])));
        let response = parse_response_request(&body("input", json!("x")));
        // Leaked, so that the tests can compare literals.
        let param = |error: ApiError| error.param.map(|param| &*Box::leak(param));
        [completion.err().and_then(param), response.err().and_then(param)]
    }

    #[test]
    fn what_an_agent_cannot_honour_is_refused() {
        for (parameter, value) in [
            ("tools", json!([{"type": "function"}])),
            ("tool_choice", json!("required")),
            ("tool_choice", json!({"type": "function"})),
            ("temperature", json!(7)),
            ("temperature", json!(-0.1)),
            ("top_p", json!(1.5)),
        ] {
            assert_eq!(refused(&json!({ parameter: value })), [Some(parameter); 2], "{parameter}");
        }
        for (parameter, value) in [
            ("n", json!(2)),
            ("functions", json!([{}])),
            ("response_format", json!({"type": "json_object"})),
            ("stop", json!(["\n"])),
            ("logprobs", json!(true)),
            ("max_tokens", json!(0)),
            ("max_completion_tokens", json!(-1)),
        ] {
            assert_eq!(refused(&json!({ parameter: value })), [Some(parameter), None], "{parameter}");
        }
        for (parameter, value) in [
            ("previous_response_id", json!("resp_1")),
            ("prompt", json!({"id": "x"})),
            ("background", json!(true)),
            ("include", json!(["reasoning.encrypted_content"])),
            ("truncation", json!("auto")),
            ("top_logprobs", json!(3)),
            ("max_tool_calls", json!(1)),
            ("max_output_tokens", json!(0)),
        ] {
            assert_eq!(refused(&json!({ parameter: value })), [None, Some(parameter)], "{parameter}");
        }
        let format = json!({"text": {"format": {"type": "json_schema"}}});
        assert_eq!(refused(&format), [None, Some("text.format")]);
    }

    #[test]
    fn what_clients_send_by_default_is_accepted() {
        let parameters = json!({
            "tools": [], "tool_choice": "auto", "response_format": {"type": "text"}, "stop": null, "logprobs": false, "n": 1,
            "temperature": 0.7, "top_p": 1, "max_tokens": 500, "seed": 7, "user": "x", "parallel_tool_calls": true,
            "text": {"format": {"type": "text"}, "verbosity": "low"}, "previous_response_id": null, "background": false,
            "include": [], "truncation": "disabled", "max_output_tokens": 500, "reasoning": {"effort": "low"}, "store": true,
        });
        assert_eq!(refused(&parameters), [None, None]);
    }
}
