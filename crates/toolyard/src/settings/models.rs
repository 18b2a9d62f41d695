//! `[models.NAME]` as plain data, and its secrets.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard_core::ContentHash;
use toolyard_mcp_client::{SecretText, config::Template};
use toolyard_model::{Prices, ToolCalling};

use super::{DurationSetting, ModelProblem, SettingsError, agents::micros};

/// A language model: its endpoint, how it calls tools, its price.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// The provider's name of the model, such as `qwen2.5:7b` or `gpt-5-mini`.
    pub model: String,
    /// The base URL, including `/v1`: `http://127.0.0.1:11434/v1` for a local Ollama.
    #[serde(default)]
    pub url: Option<String>,
    /// The API key, as a reference to an environment variable: `${OPENAI_API_KEY}`. Local models need none.
    #[serde(default)]
    pub key: Option<String>,
    /// The protocol: `openai` for OpenAI's chat completions (Ollama, llama.cpp, vLLM, LM Studio, OpenAI and most others),
    /// `anthropic` for Anthropic's messages, whose `url` is optional.
    #[serde(default = "openai")]
    pub provider: String,
    /// How the model calls tools; `auto` uses what `toolyard models test` found to work best.
    #[serde(default)]
    pub tool_calling: ToolCallingSetting,
    /// The maximum number of output tokens.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// The sampling temperature; 0 for reproducible output, as far as the model supports it.
    #[serde(default)]
    pub temperature: Option<f32>,
    /// The maximum time until the first token, and between two tokens; by default `2m` and `1m`.
    #[serde(default)]
    pub timeout: Option<DurationSetting>,
    /// The price of a million tokens, in your currency. Without it, costs are unknown.
    #[serde(default)]
    pub price: Option<PriceSettings>,
    /// Additional HTTP headers; secrets as references to environment variables: `${TOKEN}`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Additional fields of the request body.
    #[serde(default)]
    pub extra_body: Map<String, Value>,
}

/// The price of a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PriceSettings {
    /// Input tokens.
    pub input: f64,
    /// Cached input tokens; by default the price of `input`.
    pub cached: Option<f64>,
    /// Output tokens.
    pub output: f64,
}

impl PriceSettings {
    /// The prices in millionths.
    pub fn prices(&self) -> Prices {
        Prices { input: micros(self.input), cached: self.cached.map(micros), output: micros(self.output) }
    }
}

/// How a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallingSetting {
    /// As `toolyard models test` found to work best.
    #[default]
    Auto,
    /// Through the protocol's own tool calls.
    Native,
    /// In its text.
    Text,
    /// As JSON whose decoding is constrained by a schema: best for small local models.
    Schema,
}

impl ToolCallingSetting {
    /// The mode; `None` for `auto`.
    pub fn mode(self) -> Option<ToolCalling> {
        match self {
            Self::Auto => None,
            Self::Native => Some(ToolCalling::Native),
            Self::Text => Some(ToolCalling::Text),
            Self::Schema => Some(ToolCalling::Schema),
        }
    }
}

/// A model's key and headers with variables resolved. `Debug` omits the values.
#[derive(Clone, Default)]
pub struct ModelSecrets {
    /// The API key.
    pub key: Option<SecretText>,
    /// Additional HTTP headers.
    pub headers: BTreeMap<String, SecretText>,
}

impl fmt::Debug for ModelSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSecrets").field("headers", &self.headers.keys()).finish_non_exhaustive()
    }
}

fn openai() -> String {
    "openai".to_owned()
}

/// A header whose name contains one of these holds a secret.
const SECRET_HEADER_WORDS: [&str; 4] = ["authorization", "key", "token", "secret"];

impl ModelSettings {
    /// The key and headers, with environment variables looked up by `variable`.
    pub fn secrets(
        &self,
        name: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ModelSecrets, SettingsError> {
        let resolve = |key: &str, text: &str, is_secret: bool| {
            let template = Template::parse(text).map_err(|reason| SettingsError::Model {
                model: name.to_owned(),
                problem: ModelProblem::Template { key: key.to_owned(), reason: reason.to_string() },
            })?;
            let key = || format!("[models.{name}] {key}");
            if is_secret && template.variables().next().is_none() {
                return Err(SettingsError::LiteralSecret { key: key(), example: "OPENAI_API_KEY" });
            }
            template.expand(&variable).map_err(|unset| SettingsError::unset_variable(key(), unset.0))
        };
        let is_secret = true;
        let key = self.key.as_deref().map(|key| resolve("key", key, is_secret)).transpose()?;
        let mut headers = BTreeMap::new();
        for (header, text) in &self.headers {
            let lowercase = header.to_ascii_lowercase();
            let is_secret = SECRET_HEADER_WORDS.iter().any(|word| lowercase.contains(word));
            headers.insert(header.clone(), resolve(&format!("headers.{header}"), text, is_secret)?);
        }
        Ok(ModelSecrets { key, headers })
    }

    /// The environment variables that must be set.
    pub fn variables(&self) -> Vec<String> {
        let templates =
            self.key.iter().chain(self.headers.values()).filter_map(|text| Template::parse(text).ok());
        let names = |template: Template| {
            let needed = template.variables().filter(|(_, has_default)| !has_default);
            needed.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        templates.flat_map(names).collect()
    }

    /// Identifies provider, URL and model, so that test results of one model are not used for another.
    pub fn fingerprint(&self) -> String {
        let parts = [
            self.provider.as_bytes(),
            self.url.as_deref().unwrap_or_default().as_bytes(),
            self.model.as_bytes(),
        ];
        ContentHash::of_parts(parts).to_string()
    }
}
