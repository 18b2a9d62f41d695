//! Settings of a model behind the crate genai.

use std::{fmt, time::Duration};

use crate::{Prices, SecretString, ToolCalling};

/// Settings of a model behind the crate genai. Only the first three are required.
#[derive(Clone, PartialEq)]
pub struct GenAiConfig {
    /// The name of the model in the operator's settings.
    pub name: String,
    /// The protocol: `anthropic`, `openai_resp`, `gemini`, `deepseek`, …
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    /// The API key. It is never taken from the environment.
    pub api_key: Option<SecretString>,
    /// The variable that holds the key, for hints.
    pub api_key_source: Option<String>,
    /// The server's address, if it is not the provider's own.
    pub base_url: Option<String>,
    /// How the model calls tools.
    pub tool_calling: ToolCalling,
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
}

impl GenAiConfig {
    /// Default settings for a model.
    pub fn new(name: impl Into<String>, provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: provider.into(),
            model: model.into(),
            api_key: None,
            api_key_source: None,
            base_url: None,
            tool_calling: ToolCalling::Native,
            first_token_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(60),
            max_attempts: 4,
            max_retry_delay: Duration::from_secs(60),
            prices: None,
            max_tokens: None,
        }
    }
}

impl fmt::Debug for GenAiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenAiConfig")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
