//! Settings of a model behind a server.

use std::{fmt, time::Duration};

use serde_json::{Map, Value};
use toolyard_core::SecretText;

use crate::{Prices, ToolCalling, provider::redactions};

/// Limits on the size of a response, in any format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseLimits {
    /// Bytes of one event.
    pub max_event_bytes: usize,
    /// Bytes of the whole response.
    pub max_total_bytes: usize,
}

impl Default for ResponseLimits {
    fn default() -> Self {
        Self { max_event_bytes: 4 << 20, max_total_bytes: 64 << 20 }
    }
}

/// Settings of a model behind a server, whatever its protocol. Only the first three are required.
#[derive(Clone, PartialEq)]
pub struct ModelServerConfig {
    /// The name of the model in the operator's settings.
    pub name: String,
    /// The server's address, such as `http://127.0.0.1:8080/v1`. Without a path, `/v1` is added.
    pub base_url: String,
    /// The server's name for the model.
    pub model: String,
    /// The key to send in the header of the protocol.
    pub api_key: Option<SecretText>,
    /// The variable that holds the key, such as `OPENAI_API_KEY`, for hints.
    pub api_key_source: Option<String>,
    /// How the model calls tools.
    pub tool_calling: ToolCalling,
    /// Additional headers; their values are secret as well.
    pub headers: Vec<(String, SecretText)>,
    /// Limits the time until the first token.
    pub first_token_timeout: Duration,
    /// Limits the time between tokens.
    pub idle_timeout: Duration,
    /// Limits the attempts while the server is busy, failing or unreachable.
    pub max_attempts: u32,
    /// Limits the delay before another attempt. If a server asks for a longer delay, the request fails.
    pub max_retry_delay: Duration,
    /// The prices of tokens; `None` if they are not known.
    pub prices: Option<Prices>,
    /// Limits the length of replies to requests without `max_tokens`.
    pub max_tokens: Option<u32>,
    /// Additional fields of the request body. They override ours, and `null` removes one of ours.
    pub extra_body: Map<String, Value>,
    /// Limits the size of responses.
    pub response_limits: ResponseLimits,
}

impl ModelServerConfig {
    /// Default settings for a model.
    pub fn new(name: impl Into<String>, base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_url: base_url.into(),
            model: model.into(),
            api_key: None,
            api_key_source: None,
            tool_calling: ToolCalling::default(),
            headers: Vec::new(),
            first_token_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(60),
            // With at most 0.5, 1 and 2 s between them, enough for a server that restarts or is busy for a moment.
            max_attempts: 4,
            max_retry_delay: Duration::from_secs(60),
            prices: None,
            max_tokens: None,
            extra_body: Map::new(),
            response_limits: ResponseLimits::default(),
        }
    }

    /// Adds the additional fields to a request body.
    pub(crate) fn add_extra_fields(&self, body: &mut Map<String, Value>) {
        for (field, value) in &self.extra_body {
            if value.is_null() {
                body.remove(field);
            } else {
                body.insert(field.clone(), value.clone());
            }
        }
    }

    pub(crate) fn redactions(&self) -> Vec<String> {
        let all = self.api_key.iter().chain(self.headers.iter().map(|(_, value)| value));
        all.flat_map(redactions).collect()
    }
}

impl fmt::Debug for ModelServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The base URL and the additional fields may contain keys.
        f.debug_struct("ModelServerConfig")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("tool_calling", &self.tool_calling)
            .finish_non_exhaustive()
    }
}
