//! `[models.NAME]` as plain data, and with its variables looked up.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard_core::ContentHash;
use toolyard_mcp::config::{SecretText, Template};
use toolyard_model::{Prices, ToolCalling};

use super::{SettingsError, Span, agents::micros};

/// A language model: where it is asked, how it calls tools, what it costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// What its provider calls it, such as `qwen2.5:7b` or `gpt-5-mini`.
    pub model: String,
    /// The address it is asked at, up to and with `/v1`: `http://127.0.0.1:11434/v1` for Ollama on this machine.
    #[serde(default)]
    pub url: Option<String>,
    /// Its key, as a reference to an environment variable: `${OPENAI_API_KEY}`. Local models need none.
    #[serde(default)]
    pub key: Option<String>,
    /// Who is asked and how: `openai` for everything that speaks the protocol of OpenAI's chat completions (Ollama,
    /// llama.cpp, vLLM, LM Studio, OpenAI and most others), or `genai:NAME`, in builds that have it, for the protocols of
    /// others: `genai:anthropic`, `genai:gemini`.
    #[serde(default = "openai")]
    pub provider: String,
    /// How it is let to call tools; `auto` takes what `toolyard models test` found best.
    #[serde(default)]
    pub tool_calling: ToolCallingSetting,
    /// It ends after so many tokens.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// 0 for the same answer every time, as far as the model can.
    #[serde(default)]
    pub temperature: Option<f32>,
    /// How long it may take until it says something, such as `2m`.
    #[serde(default)]
    pub first_token: Option<Span>,
    /// How long it may be silent after that.
    #[serde(default)]
    pub between_tokens: Option<Span>,
    /// How often it is asked in all when it is busy or broken.
    #[serde(default)]
    pub attempts: Option<u32>,
    /// What a million tokens cost, in your currency.
    #[serde(default)]
    pub price: PriceSettings,
    /// Headers to send; secrets as references to variables: `${TOKEN}`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// More fields of each request, as its provider wants them.
    #[serde(default)]
    pub body: Map<String, Value>,
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PriceSettings {
    /// Tokens that are read.
    pub input: f64,
    /// Tokens that are read and were cached; as `input` where nothing is said.
    pub cached: Option<f64>,
    /// Tokens that are written.
    pub output: f64,
}

impl PriceSettings {
    /// The same in millionths.
    pub fn prices(&self) -> Prices {
        Prices { input: micros(self.input), cached: self.cached.map(micros), output: micros(self.output) }
    }
}

/// How a model is let to call tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallingSetting {
    /// However it was found to work best.
    #[default]
    Auto,
    /// By fields of the protocol that are made for it.
    Native,
    /// In its text.
    Text,
    /// As JSON that is held to a schema while it is written: best for small local models.
    Schema,
}

impl ToolCallingSetting {
    /// The way that was chosen; none where it is found out.
    pub fn chosen(self) -> Option<ToolCalling> {
        match self {
            Self::Auto => None,
            Self::Native => Some(ToolCalling::Native),
            Self::Text => Some(ToolCalling::Text),
            Self::Schema => Some(ToolCalling::Schema),
        }
    }
}

/// What of a model's settings comes from variables, looked up. It is shown without values.
#[derive(Clone, Default)]
pub struct ModelSecrets {
    /// Its key.
    pub key: Option<SecretText>,
    /// Headers to send.
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

/// Names of headers whose values are secrets.
const SECRET_HEADERS: [&str; 4] = ["authorization", "key", "token", "secret"];

impl ModelSettings {
    /// Its key and headers, looked up by the names of their variables.
    pub fn secrets(
        &self,
        name: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ModelSecrets, SettingsError> {
        let wrong = |problem: String| SettingsError::Model { model: name.to_owned(), problem };
        let looked_up = |place: &str, text: &str, is_secret: bool| {
            let template = Template::parse(text).map_err(|problem| wrong(format!("{place}: {problem}")))?;
            if is_secret && template.variables().next().is_none() {
                let problem = format!(
                    "`{place}` must name an environment variable, like `${{OPENAI_API_KEY}}`: secrets do not belong in files"
                );
                return Err(wrong(problem));
            }
            template
                .expand(&variable)
                .map_err(|unset| wrong(format!("{place}: the environment variable `{unset}` is not set")))
        };
        let key = self.key.as_deref().map(|key| looked_up("key", key, true)).transpose()?;
        let mut headers = BTreeMap::new();
        for (header, text) in &self.headers {
            let plain = header.to_ascii_lowercase();
            let is_secret = SECRET_HEADERS.iter().any(|word| plain.contains(word));
            headers.insert(header.clone(), looked_up(&format!("headers.{header}"), text, is_secret)?);
        }
        Ok(ModelSecrets { key, headers })
    }

    /// The variables it needs.
    pub fn variables(&self) -> Vec<String> {
        let templates =
            self.key.iter().chain(self.headers.values()).filter_map(|text| Template::parse(text).ok());
        let names = |template: Template| {
            let needed = template.variables().filter(|(_, has_default)| !has_default);
            needed.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        templates.flat_map(names).collect()
    }

    /// Changes when another model would be asked, so that what was found out about this one does not count for it.
    pub fn fingerprint(&self) -> String {
        let parts = [
            self.provider.as_bytes(),
            self.url.as_deref().unwrap_or_default().as_bytes(),
            self.model.as_bytes(),
        ];
        ContentHash::of_parts(parts).to_string()
    }
}
