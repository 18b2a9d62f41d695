//! Makes models of their settings, by whoever is asked and how.

use std::sync::Arc;

use toolyard_model::{ApiKey, Model, OpenAiConfig, OpenAiModel, ToolCalling};

use crate::{
    SettingsError,
    settings::{ModelSecrets, ModelSettings},
};

/// What comes before the name of a protocol that is not OpenAI's.
const OTHERS: &str = "genai:";

/// A model of these settings. Nobody is asked anything yet.
pub(crate) fn made(
    name: &str,
    settings: &ModelSettings,
    secrets: ModelSecrets,
    calling: Option<ToolCalling>,
) -> Result<Arc<dyn Model>, SettingsError> {
    let made = match settings.provider.strip_prefix(OTHERS) {
        Some(provider) => other(name, provider, settings, secrets, calling),
        None if settings.provider == "openai" => openai(name, settings, secrets, calling),
        None => Err(format!(
            "provider `{}` is not known: write `openai`, or `{OTHERS}NAME` for the protocols of others",
            settings.provider
        )),
    };
    made.map_err(|problem| SettingsError::Model { model: name.to_owned(), problem })
}

fn openai(
    name: &str,
    settings: &ModelSettings,
    secrets: ModelSecrets,
    calling: Option<ToolCalling>,
) -> Result<Arc<dyn Model>, String> {
    let url = settings.url.as_deref().ok_or("needs `url`")?;
    let mut config = OpenAiConfig::new(name, url, settings.model.as_str());
    config.key_source = settings.variables().into_iter().next();
    config.key = secrets.key.map(|key| ApiKey::new(key.into_exposed()));
    let header =
        |(name, value): (String, toolyard_mcp::config::SecretText)| (name, ApiKey::new(value.into_exposed()));
    config.headers = secrets.headers.into_iter().map(header).collect();
    // What most servers can do, and small models need.
    config.tool_calling = calling.unwrap_or(ToolCalling::Schema);
    config.prices = settings.price.prices();
    config.max_tokens = settings.max_tokens;
    config.extra = settings.body.clone();
    if let Some(temperature) = settings.temperature {
        config.extra.entry("temperature").or_insert_with(|| temperature.into());
    }
    config.first_token_timeout = settings.first_token.map_or(config.first_token_timeout, |span| span.0);
    config.between_tokens_timeout =
        settings.between_tokens.map_or(config.between_tokens_timeout, |span| span.0);
    config.attempts = settings.attempts.unwrap_or(config.attempts);
    let model = OpenAiModel::new(config).map_err(|error| error.message)?;
    Ok(Arc::new(model))
}

#[cfg(feature = "genai")]
fn other(
    name: &str,
    provider: &str,
    settings: &ModelSettings,
    secrets: ModelSecrets,
    calling: Option<ToolCalling>,
) -> Result<Arc<dyn Model>, String> {
    use toolyard_model::{GenAiConfig, GenAiModel};
    if !settings.headers.is_empty() || !settings.body.is_empty() || settings.temperature.is_some() {
        return Err("`headers`, `body` and `temperature` are for the provider `openai` only".to_owned());
    }
    let mut config = GenAiConfig::new(name, provider, settings.model.as_str());
    config.key_source = settings.variables().into_iter().next();
    config.key = secrets.key.map(|key| ApiKey::new(key.into_exposed()));
    config.base_url.clone_from(&settings.url);
    config.tool_calling = calling.unwrap_or(config.tool_calling);
    config.prices = settings.price.prices();
    config.max_tokens = settings.max_tokens;
    config.first_token_timeout = settings.first_token.map_or(config.first_token_timeout, |span| span.0);
    config.between_tokens_timeout =
        settings.between_tokens.map_or(config.between_tokens_timeout, |span| span.0);
    config.attempts = settings.attempts.unwrap_or(config.attempts);
    let model = GenAiModel::new(config).map_err(|error| error.message)?;
    Ok(Arc::new(model))
}

#[cfg(not(feature = "genai"))]
fn other(
    _name: &str,
    provider: &str,
    _settings: &ModelSettings,
    _secrets: ModelSecrets,
    _calling: Option<ToolCalling>,
) -> Result<Arc<dyn Model>, String> {
    Err(format!("provider `{OTHERS}{provider}` is not part of this build: build it with the feature `genai`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(settings: &ModelSettings) -> String {
        made("m", settings, ModelSecrets::default(), None).unwrap_err().to_string()
    }

    fn settings(provider: &str, url: Option<&str>) -> ModelSettings {
        ModelSettings {
            model: "x".to_owned(),
            provider: provider.to_owned(),
            url: url.map(str::to_owned),
            ..ModelSettings::default()
        }
    }

    #[test]
    fn a_model_is_made_of_what_was_written() {
        let mut written = settings("openai", Some("http://127.0.0.1:1/v1"));
        written.temperature = Some(0.5);
        let model = made("m", &written, ModelSecrets::default(), None).unwrap();
        assert_eq!((model.name(), model.tool_calling()), ("m", ToolCalling::Schema));
        let model = made("m", &written, ModelSecrets::default(), Some(ToolCalling::Text)).unwrap();
        assert_eq!(model.tool_calling(), ToolCalling::Text);
    }

    #[test]
    fn what_cannot_be_made_is_said() {
        assert_eq!(problem(&settings("openai", None)), "[models.m] needs `url`");
        assert!(problem(&settings("anthropic", None)).contains("`genai:NAME`"));
    }

    #[cfg(not(feature = "genai"))]
    #[test]
    fn what_is_not_built_in_is_named() {
        assert!(problem(&settings("genai:anthropic", None)).contains("feature `genai`"));
    }

    #[cfg(feature = "genai")]
    #[test]
    fn models_of_others_call_tools_natively_unless_somebody_says_otherwise() {
        let model = made("m", &settings("genai:anthropic", None), ModelSecrets::default(), None).unwrap();
        assert_eq!(model.tool_calling(), ToolCalling::Native);
        let mut wrong = settings("genai:anthropic", None);
        wrong.temperature = Some(0.1);
        assert!(problem(&wrong).contains("`openai` only"));
    }
}
