//! Builds models from their settings, by provider.

use std::sync::Arc;

use toolyard_model::{
    ANTHROPIC_URL, AnthropicModel, Model, ModelError, ModelServerConfig, OpenAiModel, ToolCalling,
};

use crate::{
    SettingsError,
    settings::{ModelProblem, ModelSecrets, ModelSettings},
};

/// Builds a model. No request is sent yet.
pub(super) fn build_model(
    name: &str,
    settings: &ModelSettings,
    secrets: ModelSecrets,
    mode: Option<ToolCalling>,
) -> Result<Arc<dyn Model>, SettingsError> {
    build(name, settings, secrets, mode)
        .map_err(|problem| SettingsError::Model { model: name.to_owned(), problem })
}

fn build(
    name: &str,
    settings: &ModelSettings,
    secrets: ModelSecrets,
    mode: Option<ToolCalling>,
) -> Result<Arc<dyn Model>, ModelProblem> {
    let url = settings.url.as_deref();
    let model: Result<Arc<dyn Model>, ModelError> = match settings.provider.as_str() {
        "openai" => {
            let url = url.ok_or(ModelProblem::MissingUrl)?;
            let mut config = server_config(name, url, settings, secrets);
            // Most servers support schemas, and small models need them.
            config.tool_calling = mode.unwrap_or(ToolCalling::Schema);
            OpenAiModel::new(config).map(|model| Arc::new(model) as _)
        }
        "anthropic" => {
            let mut config = server_config(name, url.unwrap_or(ANTHROPIC_URL), settings, secrets);
            config.tool_calling = mode.unwrap_or(ToolCalling::Native);
            AnthropicModel::new(config).map(|model| Arc::new(model) as _)
        }
        other => return Err(ModelProblem::UnknownProvider(other.to_owned())),
    };
    model.map_err(|error| ModelProblem::Client(error.message))
}

fn server_config(
    name: &str,
    url: &str,
    settings: &ModelSettings,
    secrets: ModelSecrets,
) -> ModelServerConfig {
    let mut config = ModelServerConfig::new(name, url, settings.model.as_str());
    config.api_key_source = settings.variables().into_iter().next();
    config.api_key = secrets.key;
    config.headers = secrets.headers.into_iter().collect();
    config.prices = settings.price.map(|price| price.prices());
    config.max_tokens = settings.max_tokens;
    config.extra_body = settings.extra_body.clone();
    if let Some(temperature) = settings.temperature {
        config.extra_body.entry("temperature").or_insert_with(|| temperature.into());
    }
    if let Some(timeout) = settings.timeout {
        config.first_token_timeout = timeout.0;
        config.idle_timeout = timeout.0;
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_error(settings: &ModelSettings) -> String {
        build_model("m", settings, ModelSecrets::default(), None).unwrap_err().to_string()
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
    fn the_tool_calling_mode_defaults_to_schema_and_can_be_chosen() {
        let mut openai = settings("openai", Some("http://127.0.0.1:1/v1"));
        openai.temperature = Some(0.5);
        let model = build_model("m", &openai, ModelSecrets::default(), None).unwrap();
        assert_eq!((model.name(), model.tool_calling()), ("m", ToolCalling::Schema));
        let model = build_model("m", &openai, ModelSecrets::default(), Some(ToolCalling::Text)).unwrap();
        assert_eq!(model.tool_calling(), ToolCalling::Text);
    }

    #[test]
    fn a_missing_url_and_an_unknown_provider_are_reported() {
        assert_eq!(build_error(&settings("openai", None)), "[models.m] `url` is missing");
        assert!(build_error(&settings("gemini", None)).contains("`gemini` is not known"));
    }
    #[test]
    fn anthropic_needs_no_url_and_calls_tools_natively() {
        for url in [None, Some("http://127.0.0.1:1/v1")] {
            let model = build_model("m", &settings("anthropic", url), ModelSecrets::default(), None).unwrap();
            assert_eq!((model.provider(), model.tool_calling()), ("anthropic", ToolCalling::Native));
        }
    }
}
