//! What an operator says about a model behind an OpenAI-compatible address.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ToolCalling, Usage};

/// A value that is sent and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Keeps it.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one place that sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// What must not show of it: `Bearer abc` hides `abc` as well.
    pub(crate) fn spellings(&self) -> Vec<String> {
        let words = self.0.split_whitespace().filter(|word| !word.eq_ignore_ascii_case("bearer"));
        let all = std::iter::once(self.0.as_str()).chain(words);
        all.filter(|secret| secret.len() >= 4).map(str::to_owned).collect()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[not shown]")
    }
}

/// What a million tokens cost, in millionths of the operator's currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Tokens that are read.
    #[serde(default)]
    pub input: u64,
    /// Tokens that are read from a cache; those of `input` where none is given.
    #[serde(default)]
    pub cached: Option<u64>,
    /// Tokens that are written.
    #[serde(default)]
    pub output: u64,
}

impl Prices {
    /// What this usage costs, rounded up.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        let parts = [
            (usage.input - cached, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        let sum: u128 = parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// How much of an answer is read at most, however it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// Bytes of one event.
    pub event_bytes: usize,
    /// Bytes of a whole answer.
    pub total_bytes: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self { event_bytes: 4 << 20, total_bytes: 64 << 20 }
    }
}

/// What an operator says about a model behind an OpenAI-compatible address. Only the first three are needed.
#[derive(Clone, PartialEq)]
pub struct OpenAiConfig {
    /// The name under which the operator knows the model.
    pub name: String,
    /// Where it answers, such as `http://127.0.0.1:8080/v1`. Without a path, `/v1` is meant.
    pub base_url: String,
    /// The name under which its server knows it.
    pub model: String,
    /// The key that is sent as `Authorization: Bearer`.
    pub key: Option<ApiKey>,
    /// Where the key comes from, such as `OPENAI_API_KEY`, so that an error can name it.
    pub key_source: Option<String>,
    /// How it is let to call tools.
    pub tool_calling: ToolCalling,
    /// More headers; their values are as secret as the key.
    pub headers: Vec<(String, ApiKey)>,
    /// How long it may take to begin.
    pub first_token_timeout: Duration,
    /// How long it may be silent once it began.
    pub between_tokens_timeout: Duration,
    /// How often a request is sent at most while the server is busy, broken or not there.
    pub attempts: u32,
    /// No pause before another attempt is longer; a server that wants a longer one is given up.
    pub longest_pause: Duration,
    /// What it costs.
    pub prices: Prices,
    /// It ends after so many tokens where a request does not say.
    pub max_tokens: Option<u32>,
    /// More fields of the request's body; they win over ours, and `null` takes one of ours away.
    pub extra: Map<String, Value>,
    /// How much is read.
    pub limits: StreamLimits,
}

impl OpenAiConfig {
    /// A model of which nothing is said but where it is.
    pub fn new(name: impl Into<String>, base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            key_source: None,
            tool_calling: ToolCalling::default(),
            headers: Vec::new(),
            first_token_timeout: Duration::from_secs(120),
            between_tokens_timeout: Duration::from_secs(60),
            attempts: 4,
            longest_pause: Duration::from_secs(60),
            prices: Prices::default(),
            max_tokens: None,
            extra: Map::new(),
            limits: StreamLimits::default(),
        }
    }

    /// Everything that must not show in what is said about this model.
    pub(super) fn secrets(&self) -> Vec<String> {
        let all = self.key.iter().chain(self.headers.iter().map(|(_, value)| value));
        all.flat_map(ApiKey::spellings).collect()
    }
}

impl fmt::Debug for OpenAiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may carry a key as well, and so may extra fields; both are left out.
        f.debug_struct("OpenAiConfig")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("tool_calling", &self.tool_calling)
            .finish_non_exhaustive()
    }
}
